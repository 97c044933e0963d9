"""Bookmarked pages, 983 tags, several or none a row: 12,920 x 500."""

from __future__ import annotations

from lab.datasets import bibtex
from lab.oracle.problems import Encoded, encode

LOSS = "multitask"
SECONDS = 0.8


def load() -> Encoded:
    """The data, labels as the losses take them."""
    return encode(bibtex.load(name="delicious"))


def twin(seed: int = 0) -> Encoded:
    """A tiny synthetic set of the same shape of problem."""
    return encode(bibtex.synthetic(seed))
