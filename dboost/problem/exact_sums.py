"""Sums of products that are rounded once, at their end: what a large number that is taken off and put back needs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# It parts a number of 53 bits in two of 26 (Veltkamp), whose products are exact.
_SPLITTER = 2.0**27 + 1.0


def exact_dot(a: Array, b: Array, *terms: float) -> float:
    """sum_j a_j b_j + the terms, rounded once; a and b are (n,), of products that stay within the range of float64."""
    high_a, low_a = _halves(a)
    high_b, low_b = _halves(b)
    product = a * b
    # what the product is rounded by (Dekel), exactly
    error = low_a * low_b - (((product - high_a * high_b) - low_a * high_b) - high_a * low_b)
    return math.fsum([*product.tolist(), *error.tolist(), *terms])


def _halves(x: Array) -> tuple[Array, Array]:
    big = _SPLITTER * x
    high = big - (big - x)
    return high, x - high
