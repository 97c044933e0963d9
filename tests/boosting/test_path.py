"""Paths of strengths: order, certificates, and what the warm starts save."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from dboost.boosting import fit as fits
from dboost.boosting import path as paths
from dboost.boosting.starts.along_path import predicted
from dboost.boosting.starts.start import FromModel
from dboost.engine.local import LocalEngine
from dboost.losses import LOSSES
from dboost.penalties import get_penalty
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


def test_the_rows_that_a_strength_begins_with_are_among_its_candidates():
    """Also those that the line through two optima took to zero, and that the strong rule would leave out."""
    fitting = plain.fitting(plain.make("log", seed=31), penalty="l1", tol=1e-6)
    lam_max = fitting.alpha_max() * fitting.problem.statistics.weight
    first = fitting.fit(0.3 * fitting.alpha_max())
    gone = int(first.active[-1])
    norms = first.state.norms.copy()
    norms[gone] = 0.0
    state = replace(first.state, norms=norms)
    start = replace(first, active=first.active[:-1], W=first.W[:-1], state=state)
    before = 0.3 * lam_max, norms
    begun = FromModel(fitting.problem, start, 0.28 * lam_max, lam_max, before, fitting.accelerators()).begin()
    assert begun.origin is not None and gone in begun.active and begun.candidates.shape[0] < fitting.problem.n
    assert np.isin(begun.active, begun.candidates).all()


BOUNDED = [loss for loss in LOSSES if np.isfinite(LOSSES[loss].kappa)]


def _bounds(data, penalty, state):
    """Bounds on ||G_j||_* of all columns that a state stands for, and what is true of its model."""
    size, W = get_penalty(penalty), np.zeros((data.X.shape[1], data.k))
    W[state.active] = state.W
    norms = size.dual_norm(data.X.T @ data.residual(data.X @ W + state.intercept))
    return state.norms + state.drift * size.dual_radius(data.k) * np.sqrt(data.s @ data.X**2), norms


@pytest.mark.parametrize("loss,penalty", list(zip(BOUNDED, itertools.cycle(plain.PULLING), strict=False)))
def test_bounds_of_columns_go_along_a_path_and_hold(loss, penalty):
    data = plain.make(loss, m=80, n=300, seed=33, density=0.1, weights=True)
    loose = []

    def holds(record, state):
        bounds, norms = _bounds(data, penalty, state)
        assert np.all(bounds >= norms * (1 - 1e-9) - 1e-12)
        if record["strength"] >= 2 and state.round == 1:
            # the model of a strength was looked at only where the strong rule kept rows
            assert np.isfinite(bounds).all()
            loose.append(np.mean(bounds > norms + 1e-9))
        return False

    settings = fits.FitSettings(loss, penalty, tol=1e-6)
    results = paths.path(plain.plan(data), LocalEngine(1), settings, n_alphas=8, eps=0.2, callback=holds)
    assert all(result.stop_reason == "tol" for result in results) and max(loose) > 0.2

    # bounds of another problem, here of four times the weights, say nothing of this one
    other = replace(data, s=4.0 * data.s)
    fitting = plain.fitting(other, penalty=penalty, tol=1e-6)
    fitting.fit(results[3].alpha)

    def holds_there(record, state):
        bounds, norms = _bounds(other, penalty, state)
        assert np.all(bounds >= norms * (1 - 1e-9) - 1e-12)
        return False

    fitting.fit(results[4].alpha, results[3], holds_there)


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
