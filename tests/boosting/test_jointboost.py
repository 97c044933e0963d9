"""JointBoost against weighted least squares over every stump and set of classes in plain numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dboost.boosting.fit import FitSettings, Fitting
from dboost.boosting.jointboost.rounds import JointBoost
from dboost.engine.local import LocalEngine
from dboost.errors import UsageError
from dboost.hypotheses.columns import Columns
from dboost.hypotheses.stumps.family import Stumps
from dboost.losses.one_vs_rest import OneVsRestExponential
from tests.boosting import plain
from tests.boosting.test_stump_fits import thresholds_of


def make(loss, m=60, n=3, k=3, weights=True, seed=70):
    data = plain.make(loss, m=m, n=n, k=k, weights=weights, seed=seed)
    return replace(data, X=np.round(data.X, 1))


def fitting(data, engine=None, cuts=3, **settings):
    k = data.k if data.loss == "multinomial" else 1
    loss = OneVsRestExponential(n_classes=k) if data.loss == "multinomial" else "exp"
    chosen = {"hypotheses": Stumps(), "tol": 0.0, "max_rounds": 10, "system": JointBoost(), **settings}
    full = FitSettings(loss, "none", **chosen)
    return Fitting(plain.plan(data, cuts), engine or LocalEngine(2), full)


def labels(data):
    """z, (m, k)."""
    return np.where(np.eye(data.k)[data.y] == 1, 1.0, -1.0) if data.loss == "multinomial" else data.y.astype(float)


def fitted_by_hand(below, z, w, S):
    """h (m, k) of the classes S sharing a stump, the others at a constant, each number a weighted mean."""
    h = np.zeros_like(z)
    for side in (below, ~below):
        rows = np.ix_(side, S)
        if w[rows].sum() > 0:
            h[rows] = np.average(z[rows], weights=w[rows])
    for c in set(range(z.shape[1])) - set(S):
        h[:, c] = np.average(z[:, c], weights=w[:, c])
    return h


def best_by_hand(X, s, z, w):
    """The best stage of the greedy search of every stump, by trying every class at every stage."""
    best = (np.inf, None)
    for j, th in thresholds_of(X, s):
        below, S = X[:, j] < th, []
        while len(S) < z.shape[1]:
            tried = []
            for c in sorted(set(range(z.shape[1])) - set(S)):
                h = fitted_by_hand(below, z, w, [*S, c])
                tried.append(((w * (z - h) ** 2).sum(), c, h))
            error, c, h = min(tried, key=lambda t: (round(t[0], 9), t[1]))
            S.append(c)
            if error < best[0] - 1e-9:
                best = (error, h)
    return best[1]


@pytest.mark.parametrize("loss", ["multinomial", "exp"])
def test_round_by_round(loss):
    data = make(loss)
    z = labels(data)
    F, values = np.zeros_like(z), []
    for _ in range(10):
        w = data.s[:, None] * np.exp(-z * F)
        values.append(w.sum())
        F = F + best_by_hand(data.X, data.s, z, w)
    values.append((data.s[:, None] * np.exp(-z * F)).sum())
    run = fitting(data)
    result = run.fit("auto")
    found = [r["objective"] for r in result.history] + [result.objective]
    np.testing.assert_allclose(np.array(found) * data.s.sum(), values, rtol=1e-9)
    assert (np.diff(values) < 0).all()
    keys = [result.state.keys[i] for i in result.active.tolist()]
    chosen = run.problem.pool.chosen(keys, None)
    H = np.column_stack([data.X[:, j] < th for j, th in zip(chosen.columns, chosen.thresholds, strict=True)])
    np.testing.assert_allclose(H @ result.W + result.intercept, F, atol=1e-9)
    assert result.stop_reason == "max_rounds" and np.isnan(result.gap)
    assert {r["sharing_classes"] for r in result.history} <= set(range(1, z.shape[1] + 1))


def test_it_stops_when_no_round_gains():
    data = make("multinomial", weights=False)
    X = np.ones_like(data.X)
    result = fitting(replace(data, X=X), tol=1e-4).fit("auto")
    assert (result.stop_reason, result.n_iter, len(result.active)) == ("gradient", 1, 0)


def test_refusals():
    data = make("multinomial")
    for settings in ({"hypotheses": None}, {"hypotheses": Stumps(signed=True)}, {"hypotheses": Columns() | Stumps()}):
        with pytest.raises(UsageError, match="JointBoost: hypotheses="):
            fitting(data, **settings)
    with pytest.raises(UsageError, match="JointBoost has no penalty"):
        fitting(data, fit_intercept=False)
