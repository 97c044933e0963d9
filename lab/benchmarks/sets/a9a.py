"""Census records as 123 zero-one columns: 32,561 rows."""

from __future__ import annotations

from lab.datasets import libsvm
from lab.oracle.problems import Encoded, encode

LOSS = "log"
SECONDS = 0.02


def load() -> Encoded:
    """The data, labels as the losses take them."""
    return encode(libsvm.load(name="a9a"))


def twin(seed: int = 0) -> Encoded:
    """A tiny synthetic set of the same shape of problem."""
    return encode(libsvm.synthetic(seed))
