"""Bookmarks of papers, 159 tags, several or none a row: 4,880 x 1,836."""

from __future__ import annotations

from lab.datasets import bibtex
from lab.oracle.problems import Encoded, encode

LOSS = "multitask"
SECONDS = 0.15


def load() -> Encoded:
    """The data, labels as the losses take them."""
    return encode(bibtex.load(name="bibtex"))


def twin(seed: int = 0) -> Encoded:
    """A tiny synthetic set of the same shape of problem."""
    return encode(bibtex.synthetic(seed))
