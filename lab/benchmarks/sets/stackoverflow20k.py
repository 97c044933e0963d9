"""Titles of questions as tf-idf, 20 tags: 16,000 rows."""

from __future__ import annotations

from lab.datasets import stackoverflow
from lab.oracle.problems import Encoded, encode

LOSS = "multinomial"
SECONDS = 0.075


def load() -> Encoded:
    """The data, labels as the losses take them."""
    return encode(stackoverflow.load())


def twin(seed: int = 0) -> Encoded:
    """A tiny synthetic set of the same shape of problem."""
    return encode(stackoverflow.synthetic(seed))
