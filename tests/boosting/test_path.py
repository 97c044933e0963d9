"""Paths of strengths: order, certificates, and what the warm starts save."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dboost.boosting import fit as fits
from dboost.boosting import path as paths
from dboost.engine.local import LocalEngine
from dboost.losses import LOSSES
from tests.boosting import plain


# a path and its cold fits are two dozen fits: every loss and every penalty once or twice
@pytest.mark.parametrize("loss,penalty", list(zip(LOSSES, itertools.cycle(plain.PULLING), strict=False)))
def test_a_path_is_certified_and_cheaper_than_cold_fits(loss, penalty):
    data = plain.make(loss, seed=30, weights=True)
    settings = fits.FitSettings(loss, penalty, tol=1e-6)
    results = paths.path(plain.plan(data), LocalEngine(1), settings, n_alphas=12, eps=0.05)
    alphas = np.array([result.alpha for result in results])
    largest = plain.alpha_max(data, penalty)
    np.testing.assert_allclose(alphas, largest * np.geomspace(1, 0.05, 12), rtol=1e-9)
    assert len(results[0].active) <= 1
    weight = data.s.sum()
    cold = 0
    for result in results:
        assert result.stop_reason == "tol" and result.gap <= 1e-6
        value = plain.objective(data, penalty, result.alpha * weight, plain.dense(result, 25), result.intercept)
        assert result.objective * weight == pytest.approx(value, rel=1e-12)
        alone = plain.fitting(data, penalty=penalty, tol=1e-6).fit(result.alpha)
        assert result.objective == pytest.approx(alone.objective, rel=1e-6)
        cold += alone.passes
    assert sum(result.passes for result in results) < 0.85 * cold
    # every third point against the independent solver: the bound is below the optimum
    for result in results[1::3]:
        best = plain.optimum(data, penalty, result.alpha * weight)
        assert result.lower_bound * weight <= best.value * (1 + 1e-12)
        assert result.objective * weight <= best.value * (1 + 1.1e-6)


@pytest.mark.parametrize("loss,penalty,factor", plain.covering(LOSSES, plain.PULLING, [4.0, 0.25]))
def test_a_warm_start_from_either_side(solve, loss, penalty, factor):
    data, alpha, best = solve(loss, penalty, 0.1, True, weights=True)
    fitting = plain.fitting(data, penalty=penalty, tol=1e-9)
    result = fitting.fit(alpha, fitting.fit(factor * alpha))
    assert result.stop_reason == "tol"
    assert result.objective * data.s.sum() == pytest.approx(best.value, rel=1e-9)
    assert result.lower_bound * data.s.sum() <= best.value * (1 + 1e-12)
    for record in result.history:
        # also while the strong rule holds columns back, what is called certified must be so
        if np.isfinite(record["lower_bound"]):
            assert record["lower_bound"] * data.s.sum() <= best.value * (1 + 1e-12)
