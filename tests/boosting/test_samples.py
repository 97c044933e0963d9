"""How many examples the curvature of a Newton step is taken from."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dboost.boosting import newton
from tests.boosting import plain


@pytest.mark.parametrize(
    "penalty, rows, gap, share",
    [
        ("l1/linf", 4, math.inf, 80 / 300),
        ("l1/linf", 4, 0.1, 80 / 300),
        ("l1/linf", 4, 1e-3, 1.0),
        ("l1/linf", 2, 1e-3, 40 / 300),
        ("l1/linf", 8, math.inf, 1.0),
        ("l1/l2", 4, 1e-3, 80 / 300),
        ("l1/l2", 8, 1e-3, 1.0),
    ],
)
def test_all_examples_end_a_fit_with_ties_where_the_sample_is_a_good_part_of_them(
    monkeypatch, penalty, rows, gap, share
):
    monkeypatch.setattr(newton, "_SMALL", 0)
    problem = plain.fitting(plain.make("multinomial", m=300, n=12, k=4), penalty=penalty).problem
    drawn, draw = [], problem.sample

    def sample(active, share, seed):
        drawn.append(share)
        return draw(active, share, seed)

    monkeypatch.setattr(problem, "sample", sample)
    newton.NewtonSteps(problem, np.arange(rows), 300, "auto", 0, newton.Memory(), gap)
    assert drawn == [pytest.approx(share)]
