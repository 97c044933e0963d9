"""Film reviews as tf-idf, positive or negative: 25,000 x 27,316."""

from __future__ import annotations

from lab.datasets import imdb
from lab.oracle.problems import Encoded, encode

LOSS = "log"
SECONDS = 0.08


def load() -> Encoded:
    """The data, labels as the losses take them."""
    return encode(imdb.load())


def twin(seed: int = 0) -> Encoded:
    """A tiny synthetic set of the same shape of problem."""
    return encode(imdb.synthetic(seed))
