"""Steepest descent in the l2 norm and the l1 norm (Stratos, Lemmas 1.1 and 1.2), and what a step is sure to gain."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from dboost import Columns, Learned, LeveragingClassifier, Products, UsageError
from dboost.boosting import leveraging as l2
from dboost.boosting.leveraging import Leveraging
from tests.boosting import plain

LOSSES = ("exp", "log", "squared")


def fitting(data, norm="l2", step="exact", **settings):
    system = Leveraging("edge", step, norm)
    settings = {"penalty": system.penalty(0.0), "alpha": 0.0, "tol": 0.0, "max_rounds": 15, **settings}
    return plain.fitting(data, system=system, **settings)


def make(loss, seed=3):
    return plain.make(loss, m=80, n=6, weights=True, seed=seed)


def by_hand(data, rounds, step="exact"):
    """Gradient descent with an exact line search from the best constant: objectives, and the last model."""
    X = np.hstack([data.X, np.ones((len(data.s), 1))])
    w, values = np.append(np.zeros(data.X.shape[1]), plain.null_intercept(data)), []
    for _ in range(rounds):
        F = (X @ w)[:, None]
        values.append(data.value(F))
        g = X.T @ data.residual(F)[:, 0]
        v = g / np.linalg.norm(g)

        def slope(t, v=v, w=w):
            return -float(v @ (X.T @ data.residual((X @ (w + t * v))[:, None])[:, 0]))

        t, high = step, 1.0
        if step == "exact":
            while slope(high) < 0:
                high *= 2
            t = brentq(slope, 0.0, high, xtol=1e-15, rtol=1e-14)
        w = w + t * v
    return np.array(values) / data.s.sum(), w


@pytest.mark.parametrize("step", ["exact", 0.05])
@pytest.mark.parametrize("loss", LOSSES)
def test_rounds_of_lemma_1_1_are_gradient_descent(loss, step):
    data = make(loss)
    result = fitting(data, step=step).fit(0.0)
    values, w = by_hand(data, 15, step)
    np.testing.assert_allclose([r["objective"] for r in result.history], values, rtol=1e-9)
    np.testing.assert_allclose(np.append(plain.dense(result, 6)[:, 0], result.intercept), w, atol=1e-7)
    assert result.history[0]["features_in"] == 6, "all hypotheses move at once"
    other = fitting(data, "l1", step=step).fit(0.0)
    assert other.history[0]["features_in"] <= 1 and other.objective != result.objective


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_promise_is_never_above_the_true_progress(loss, norm):
    for seed in range(4):
        data = make(loss, seed)
        result = fitting(data, norm, max_rounds=30).fit(0.0)
        after = np.array([r["objective"] for r in result.history[1:]] + [result.objective])
        before = np.array([r["objective"] for r in result.history])
        promised = np.array([r["promised"] for r in result.history])
        steps = np.array([r["step"] == "step" for r in result.history])
        assert steps.sum() >= 10 and np.all(promised[steps] >= 0.0) and promised[0] > 0.0
        assert np.all(promised[steps] <= (before - after)[steps] + 1e-13 * before[0])


def test_it_ends_at_the_minimum():
    data = make("log")
    result = fitting(data, tol=1e-7, max_rounds=3000).fit(0.0)
    free = plain.fitting(data, penalty="none", tol=1e-10).fit("auto")
    assert result.stop_reason == "gradient"
    assert result.objective == pytest.approx(free.objective, rel=1e-9)


def test_refusals(monkeypatch):
    data = make("log")
    y = data.y[:, 0]
    with pytest.raises(UsageError, match="norm='linf'.*expected one of 'l1', 'l2'"):
        LeveragingClassifier(hypotheses=Columns(), norm="linf").fit(data.X, y)
    with pytest.raises(UsageError, match="Algorithm 2 moves one hypothesis at a time"):
        LeveragingClassifier(hypotheses=Columns(), norm="l2", alpha=0.01).fit(data.X, y)
    from sklearn.tree import DecisionTreeClassifier

    with pytest.raises(UsageError, match="gives one at a time"):
        LeveragingClassifier(norm="l2", hypotheses=Learned(DecisionTreeClassifier(max_depth=1))).fit(data.X, y)
    monkeypatch.setattr(l2, "MOST_HYPOTHESES", 5)
    with pytest.raises(UsageError, match="norm='l2' gives each of .* hypotheses a weight.*at most 5"):
        LeveragingClassifier(norm="l2", hypotheses=Products(max_degree=2)).fit(data.X, y)
