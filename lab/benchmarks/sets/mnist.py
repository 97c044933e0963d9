"""Handwritten digits, 784 pixels in [0, 1] as a dense array, 10 classes: the first 20,000 images.

A third of the training images: with all 60,000 the dense problems alone would fill the hour of the whole benchmark.
"""

from __future__ import annotations

from dataclasses import replace

from lab.datasets import mnist
from lab.oracle.problems import Encoded, encode

LOSS = "multinomial"
SECONDS = 0.65
N_IMAGES = 20_000


def load() -> Encoded:
    """The data, labels as the losses take them."""
    data = encode(mnist.load(n_train=N_IMAGES))
    return replace(data, X=data.X.toarray())


def twin(seed: int = 0) -> Encoded:
    """A tiny synthetic set of the same shape of problem."""
    data = encode(mnist.synthetic(seed))
    return replace(data, X=data.X.toarray())
