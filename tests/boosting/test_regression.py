"""Regression against independent solvers, and labels that leave nothing to explain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dboost.losses import EpsilonInsensitive
from tests.boosting import plain

REAL = ["squared", "epsilon_insensitive"]


@pytest.mark.parametrize("loss", REAL)
@pytest.mark.parametrize("value", [0.0, 0.1, -1e6])
def test_constant_labels(loss, value):
    data = plain.make(loss, m=40, n=5, seed=5)
    data = replace(data, y=np.full(40, value))
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        fitting = plain.fitting(data, penalty="l1", tol=1e-4)
        result = fitting.fit(0.1)
    # the null model's own intercept may be that of labels less a number; what is returned is that of the labels given
    assert result.intercept[0] == pytest.approx(value, rel=1e-14, abs=0.0)
    assert (result.stop_reason, len(result.active)) == ("tol", 0)


@pytest.mark.parametrize("penalty", ["l1", "none"])
def test_a_perfect_fit_ends(penalty):
    data = plain.make("squared", m=40, n=5, seed=6)
    data = replace(data, y=data.X @ np.arange(5.0) + 2.0)
    fitting = plain.fitting(data, penalty=penalty, tol=1e-6)
    result = fitting.fit("auto" if penalty == "none" else 1e-9 * fitting.alpha_max())
    assert result.stop_reason in ("tol", "gradient", "precision")
    np.testing.assert_allclose(plain.dense(result, 5)[:, 0], np.arange(5.0), atol=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
def test_a_loss_instance_and_its_null_intercept(epsilon):
    """Outliers included: the search starts at the mean, far from the optimum."""
    data = plain.make("epsilon_insensitive", m=90, n=4, seed=7)
    data.y[:3] += [1e3, -40.0, 1e4]
    data = replace(data, loss=EpsilonInsensitive(epsilon))
    fitting = plain.fitting(data, penalty="l1", tol=1e-8)
    b = fitting.problem.null().intercept[0]
    z = data.y - b
    up, down = (np.exp(-np.logaddexp(0, epsilon + t)) for t in (-z, z))
    assert abs(np.sum(up - down)) <= 1e-11
    result = fitting.fit(0.3 * fitting.alpha_max())
    assert result.stop_reason == "tol"
