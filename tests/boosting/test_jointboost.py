"""JointBoost and both of its searches against weighted least squares over every stump and set of classes in numpy."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from dboost import UsageError
from dboost.boosting.fit import FitSettings, Fitting
from dboost.boosting.jointboost import MOST_CLASSES, JointBoost
from dboost.engine.local import LocalEngine
from dboost.hypotheses.stumps.family import Stumps
from dboost.losses.exponential import OneVsRestExponential
from tests.boosting import plain
from tests.boosting.test_resume import bits
from tests.hypotheses.conftest import every_stump


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
    for j, th in every_stump(X, s):
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


def best_of_all_sets(X, s, z, w):
    """h of the least weighted squares over all stumps and sets of classes, of which none is empty."""
    best = (np.inf, None)
    for j, th in every_stump(X, s):
        for number in range(1, 2 ** z.shape[1]):
            S = [c for c in range(z.shape[1]) if number >> c & 1]
            h = fitted_by_hand(X[:, j] < th, z, w, S)
            error = (w * (z - h) ** 2).sum()
            if error < best[0] - 1e-9:
                best = (error, h)
    return best[1]


@pytest.mark.parametrize(
    "loss,search,rounds,shape",
    [
        ("multinomial", "greedy", 10, {}),
        ("exp", "greedy", 10, {}),
        ("multinomial", "exhaustive", 4, {"m": 40, "n": 2}),
        ("multinomial", "exhaustive", 4, {"m": 40, "n": 2, "k": 4}),
    ],
    ids=["classes", "two", "sets3", "sets4"],
)
def test_round_by_round(loss, search, rounds, shape):
    data = make(loss, **shape)
    z, best = labels(data), best_by_hand if search == "greedy" else best_of_all_sets
    F, values = np.zeros_like(z), []
    for _ in range(rounds):
        w = data.s[:, None] * np.exp(-z * F)
        values.append(w.sum())
        F = F + best(data.X, data.s, z, w)
    values.append((data.s[:, None] * np.exp(-z * F)).sum())
    run = fitting(data, system=JointBoost(search), max_rounds=rounds)
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


def test_bits_of_chunks_threads_and_resumed_fits():
    data, states = make("multinomial", k=4), []
    whole = fitting(data, system=JointBoost("exhaustive")).fit(
        "auto", callback=lambda r, state: states.append(pickle.dumps(state))
    )
    small = JointBoost("exhaustive", shard_bytes=100, chunk=20)
    assert bits(fitting(data, system=small).fit("auto")) == bits(whole)
    resumed = fitting(data, system=JointBoost("exhaustive")).fit("auto", resume=pickle.loads(states[3]))
    assert bits(resumed) == bits(whole)


def test_many_classes_are_refused_with_their_number_of_sets():
    data = make("multinomial", m=80, k=MOST_CLASSES + 1)
    with pytest.raises(UsageError, match=r"13 classes would try 2\^13 = 8,192 sets .*at most 12 classes"):
        fitting(data, system=JointBoost("exhaustive")).fit("auto")
    fitting(data, system=JointBoost("greedy"), max_rounds=1).fit("auto")
