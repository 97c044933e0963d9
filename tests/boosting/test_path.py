"""Paths of strengths: order, certificates, and what the warm starts save."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dboost.boosting import fit as fits
from dboost.boosting import path as paths
from dboost.boosting.starts.along_path import predicted
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


def test_strengths_are_sorted_downwards(loss):
    data = plain.make(loss, m=60, n=8, seed=31)
    settings = fits.FitSettings(loss, "l1", tol=1e-6)
    results = paths.path(plain.plan(data), LocalEngine(1), settings, alphas=[0.01, 0.1, 0.03])
    assert [result.alpha for result in results] == [0.1, 0.03, 0.01]
    assert [result.alpha_max for result in results] == [results[0].alpha_max] * 3


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


def test_the_start_of_a_strength_lies_on_the_line_through_the_last_two_optima(loss):
    # the optima of a quantile are on another line as soon as one label crosses its prediction
    data = plain.make(loss if loss != "quantile" else "squared", m=90, n=12, seed=35)
    fitting = plain.fitting(data, penalty="l1/l2", tol=1e-9)
    alphas = fitting.alpha_max() * np.geomspace(0.6, 0.05, 8)
    results, misses = [], []
    for alpha in alphas.tolist():
        start = predicted(results, alpha)
        new = fitting.fit(alpha, start)
        if len(results) >= 2:
            size = [np.abs(plain.dense(new, 12) - plain.dense(other, 12)).sum() for other in (start, results[-1])]
            misses.append(size)
            assert not np.any((plain.dense(start, 12) * plain.dense(results[-1], 12)).sum(axis=1) < 0.0)
            assert set(start.active) <= set(results[-1].active) and np.all(np.any(start.W != 0.0, axis=1))
        results.append(new)
    by_line, by_last = np.sum(misses, axis=0)
    assert by_line < 0.7 * by_last
    assert predicted([], 1.0) is None and predicted(results[:1], alphas[1]) is results[0]
