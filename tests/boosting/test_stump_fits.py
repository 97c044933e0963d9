"""Fits over stumps: the optimum of the explicit columns, the best stump of every round, certified over all stumps."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.boosting.checks import UPDATES
from dboost.boosting.fit import FitSettings, Fitting
from dboost.engine.local import LocalEngine
from dboost.hypotheses.stumps.family import Stumps, key_arrays
from dboost.losses import LOSSES
from tests.boosting import plain


def thresholds_of(X, s):
    """(column, threshold) of every stump, by plain enumeration."""
    found = []
    for j in range(X.shape[1]):
        values = sorted(set(X[s > 0, j].tolist()))
        found += [(j, (a + b) / 2) for a, b in zip(values, values[1:], strict=False)]
    return found


def explicit(data, signed=False):
    """The same data with every stump as a column, and where they are cut."""
    cuts = thresholds_of(data.X, data.s)
    below = np.column_stack([data.X[:, j] < th for j, th in cuts])
    return plain.replace(data, X=np.where(below, 1.0, -1.0 if signed else 0.0)), cuts


def make(loss, m=70, n=4, **kwargs):
    """A problem with ties: values rounded to a tenth."""
    data = plain.make(loss, m=m, n=n, **kwargs)
    return plain.replace(data, X=np.round(data.X, 1))


def fitted(data, cuts=3, **settings):
    chosen = FitSettings(data.loss, **{"hypotheses": Stumps(), **settings})
    return Fitting(plain.plan(data, cuts), LocalEngine(2), chosen)


def rows_of(result, cuts):
    """All rows of W in the order of `cuts`."""
    W = np.zeros((len(cuts), result.W.shape[1]))
    columns, thresholds = key_arrays([result.state.keys[i] for i in result.active.tolist()])
    for j, th, row in zip(columns.tolist(), thresholds.tolist(), result.W, strict=True):
        place = [i for i, (c, t) in enumerate(cuts) if c == j and abs(t - th) < 1e-9]
        W[place[0]] = row
    return W


@pytest.mark.parametrize("loss,penalty,intercept", plain.covering(LOSSES, plain.SIZED, [True, False]))
def test_the_optimum_is_that_of_the_explicit_columns(loss, penalty, intercept):
    data = make(loss, weights=True, seed=61)
    matrix, cuts = explicit(data)
    fitting = fitted(data, penalty=penalty, tol=1e-9, fit_intercept=intercept)
    largest = plain.alpha_max(matrix, penalty, intercept)
    assert fitting.alpha_max() == pytest.approx(largest, rel=1e-9)
    result = fitting.fit(0.2 * largest)
    best = plain.optimum(matrix, penalty, 0.2 * largest * data.s.sum(), intercept)
    weight = data.s.sum()
    assert result.stop_reason == "tol" and result.gap <= 1e-9
    assert result.objective * weight == pytest.approx(best.value, rel=1e-8)
    assert result.lower_bound * weight <= best.value * (1 + 1e-12)
    mine = plain.objective(matrix, penalty, 0.2 * largest * weight, rows_of(result, cuts), result.intercept)
    assert mine == pytest.approx(result.objective * weight, rel=1e-12)


# The bound of a quantile has a curvature of one over its width: the updates stall among columns that are nearly equal.
@pytest.mark.parametrize("loss,update", [pair for pair in plain.DEFINED if pair != ("quantile", "gradboost")])
def test_every_update_form_and_standardize(loss, update):
    place = list(LOSSES).index(loss) + UPDATES.index(update)
    signed, standardize = place % 2 == 1, place % 3 == 0
    # stumps of one feature are nearly equal, and the updates of a whole template move slowly among such columns
    data = make(loss, m=30, n=2, seed=62)
    select = "greedy" if update == "newton" else "template"
    settings = {"penalty": "l1/l2", "update": update, "select": select, "tol": 1e-4, "standardize": standardize}
    matrix, _ = explicit(data, signed)
    other = plain.fitting(matrix, **settings)
    fitting = fitted(data, hypotheses=Stumps(signed=signed), **settings)
    alpha = 0.7 * other.alpha_max()
    assert fitting.alpha_max() == pytest.approx(other.alpha_max(), rel=1e-9)
    a, b = fitting.fit(alpha), other.fit(alpha)
    assert max(a.gap, b.gap) <= 1e-4
    assert a.objective == pytest.approx(b.objective, rel=2e-4)


BINNED = Stumps(bins=4, max_listed=0)


@pytest.mark.parametrize("loss,penalty", plain.covering(LOSSES, plain.SIZED))
def test_stumps_in_bins_reach_the_same_optimum(loss, penalty):
    data = make(loss, weights=True, seed=65)
    alpha = 0.2 * fitted(data, penalty=penalty).alpha_max()
    whole = fitted(data, penalty=penalty, tol=1e-7).fit(alpha)
    fitting = fitted(data, penalty=penalty, tol=1e-7, hypotheses=BINNED)
    assert fitting.problem.searched and fitting.alpha_max() == pytest.approx(alpha / 0.2, rel=1e-12)
    result = fitting.fit(alpha)
    assert result.stop_reason == "tol" and result.objective == pytest.approx(whole.objective, rel=3e-7)
    assert result.lower_bound <= whole.objective and whole.lower_bound <= result.objective


def test_most_bins_stay_closed():
    """Data with a signal: the best stump is known after looking into few of the bins."""
    rng = np.random.default_rng(66)
    X = rng.normal(size=(20_000, 6))
    y = np.where(X[:, 2] + 0.5 * rng.normal(size=20_000) < 0.3, 1, -1).astype(np.int8)[:, None]
    data = plain.Data("log", X, y, np.ones(20_000), 1)
    fitting = fitted(data, cuts=4, penalty="l1", hypotheses=Stumps(max_listed=0))
    pool, problem = fitting.problem.pool, fitting.problem
    score = problem.score(problem.null(), None, 0.2 * fitting.alpha_max() * 20_000, 1)
    order = np.argsort(X[:, 2])
    U = data.residual(np.full((20_000, 1), problem.null().intercept))[order, 0]
    assert score.size == pytest.approx(np.abs(np.cumsum(U)).max(), rel=1e-9)
    (j,), (th,) = key_arrays([problem.keys[int(score.best[0])]])
    D = 0.25 * np.arange(1, 20_000)
    wanted = np.maximum(np.abs(np.cumsum(U)[:-1]) - 0.2 * fitting.alpha_max() * 20_000, 0) ** 2 / D
    place = int(np.argmax(wanted))
    assert j == 2 and th == pytest.approx(X[order[place : place + 2], 2].mean(), abs=1e-12)
    assert 0 < score.opened < 0.05 * pool.hidden.sum()


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("loss", [name for name in LOSSES if plain.defined(name, "forward")])
def test_forward_rounds_are_those_of_the_explicit_columns(loss, signed):
    data = make(loss, weights=True, seed=64)
    matrix, _ = explicit(data, signed)
    settings = {"penalty": "none", "update": "forward", "tol": 0.0, "max_rounds": 12}
    mine = fitted(data, hypotheses=Stumps(signed=signed), **settings).fit("auto")
    other = plain.fitting(matrix, **settings).fit("auto")
    ours, theirs = ([r["objective"] for r in found.history] for found in (mine, other))
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)
