"""Weights and targets near the ends of float64: what is brought to the middle, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.data.labels.labels import plan_labels, scan
from dboost.data.plan import build_plan
from dboost.data.ranges import weight_exponent
from dboost.engine.local import LocalEngine
from dboost.errors import DataError

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 4))
Y = (X[:, 0] + RNG.standard_normal(30) > 0).astype(int)


def test_factors_of_classes_count_with_the_weights() -> None:
    assert weight_exponent((1e200, 1e-200)) == 0
    assert weight_exponent((1e200, 1e200)) == -1328
    weight = np.full(30, 1e-200)
    coder = plan_labels(scan("binary", Y, weight), "binary", class_weight={0: 1e200, 1: 2e200})
    assert coder.exponent == 0
    np.testing.assert_allclose(coder.encode(Y, weight)[1], 1.0 + Y, rtol=1e-15)


def test_the_unit_is_of_all_blocks() -> None:
    for cut in [1, 7, 30]:
        weight = 10.0 ** RNG.uniform(100, 124, 30)
        whole, parts = scan("binary", Y, weight), scan("binary", Y[:cut], weight[:cut])
        parts.merge(scan("binary", Y[cut:], weight[cut:]))
        assert parts.largest_weight == whole.largest_weight == weight.max()
        coder = plan_labels(parts, "binary")
        assert coder.exponent == weight_exponent((float(weight.max()), 1.0))
        assert 1.0 <= coder.encode(Y, weight)[1].max() < 2.0


def test_weights_that_add_up_to_more_than_a_number_are_refused() -> None:
    with pytest.raises(DataError, match="add up to more than a float64 holds; divide all of them"):
        plan_labels(scan("binary", Y, np.full(30, 1.7e308)), "binary")


def test_targets_whose_squares_are_no_numbers_are_refused() -> None:
    for scale in [1e300, 1e155, 1e-155, 1e-300]:
        y = scale * RNG.standard_normal(30)
        with (
            LocalEngine(1) as engine,
            pytest.raises(DataError, match="the largest target is .*; divide all targets by 1e"),
        ):
            build_plan(X, y, task="regression", engine=engine)


def test_a_target_of_weight_zero_is_no_target() -> None:
    y, weight = RNG.standard_normal(30), np.ones(30)
    y[3], weight[3] = 1e300, 0.0
    with LocalEngine(1) as engine:
        assert build_plan(X, y, weight, task="regression", engine=engine).n_rows == 29
