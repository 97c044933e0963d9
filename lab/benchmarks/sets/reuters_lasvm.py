"""Newswire, one topic of Reuters-21578 against the rest: 7,770 x 8,315."""

from __future__ import annotations

from lab.datasets import libsvm
from lab.oracle.problems import Encoded, encode

LOSS = "log"
SECONDS = 0.015


def load() -> Encoded:
    """The data, labels as the losses take them."""
    return encode(libsvm.load(name="reuters_lasvm"))


def twin(seed: int = 0) -> Encoded:
    """A tiny synthetic set of the same shape of problem."""
    return encode(libsvm.synthetic(seed))
