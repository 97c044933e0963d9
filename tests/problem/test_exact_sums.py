"""Sums of products that are rounded once, against fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dboost.problem.problem import exact_dot


def test_what_cancels_is_rounded_once():
    rng = np.random.default_rng(0)
    for size in (0, 1, 7):
        a = rng.normal(size=size) * 10.0 ** rng.integers(-8, 15, size)
        b = rng.normal(size=size) * 10.0 ** rng.integers(-8, 3, size)
        less = -float(np.sum(a * b))
        wanted = sum((Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)), Fraction(less))
        assert exact_dot(a, b, less) == float(wanted)
