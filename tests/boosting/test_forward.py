"""Classical forward-greedy boosting against the same few lines in dense numpy."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from dboost.boosting import fit as fits
from dboost.engine.local import LocalEngine
from dboost.losses import LOSSES, get_loss
from tests.boosting import plain


def by_hand(data, rounds, intercept=True):
    """Objective before each round, and the model after the last; the last row of W is the intercept's."""
    X = np.hstack([data.X, np.ones((len(data.s), 1))]) if intercept else data.X
    W = np.zeros((X.shape[1], data.k))
    if intercept:
        W[-1] = plain.null_intercept(data)
    values = []
    for _ in range(rounds):
        F = X @ W
        values.append(data.value(F))
        plus, minus = replace(data, X=X).sums(F)
        a = get_loss(data.loss).template_constant / np.abs(X).max(axis=0)
        best = np.argmax(a * ((np.sqrt(plus) - np.sqrt(minus)) ** 2).sum(axis=1))
        with np.errstate(divide="ignore"):
            step = 0.5 * np.log(plus[best] / minus[best])
        W[best] += a[best] * np.clip(step, -30, 30)
    return values, W


def forward(data, **settings):
    return plain.fitting(data, penalty="none", update="forward", **{"tol": 0.0, **settings})


@pytest.mark.full
@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize("loss", [name for name in LOSSES if plain.defined(name, "forward")])
def test_round_by_round(loss, intercept):
    data = plain.make(loss, m=80, n=10, weights=True, seed=50)
    result = forward(data, max_rounds=40, fit_intercept=intercept).fit("auto")
    values, W = by_hand(data, 40, intercept)
    np.testing.assert_allclose([r["objective"] for r in result.history], np.array(values) / data.s.sum(), rtol=1e-9)
    np.testing.assert_allclose(plain.dense(result, 10), W[:10], atol=1e-8)
    if intercept:
        np.testing.assert_allclose(result.intercept, W[10], atol=1e-8)
    assert (np.diff(values) < 0).all()
    assert (result.stop_reason, result.n_iter) == ("max_rounds", 40)
    assert result.objective < values[-1] / data.s.sum()
    assert np.isnan(result.gap) and np.isnan(result.alpha_max)
    # one hypothesis at most enters in a round, and none leaves
    assert {r["features_in"] for r in result.history} <= {0, 1} and not any(r["features_out"] for r in result.history)


@pytest.mark.full
@pytest.mark.parametrize("loss", ["log", "margin_softmax", "exp"])
def test_it_approaches_the_optimum_and_stops_when_no_step_gains(loss):
    data = plain.make(loss, m=150, n=5, seed=40, noise=3.0)
    best = plain.fitting(data, penalty="none", tol=1e-9).fit("auto")
    result = forward(data, tol=1e-7, max_rounds=20_000).fit("auto")
    assert result.stop_reason == "gradient"
    assert best.objective <= result.objective <= best.objective * (1 + 1e-4)


def test_a_hypothesis_that_is_never_wrong_is_capped():
    data = plain.make("log", m=40, n=3, seed=1, density=1.0)
    data.X[:, 1] = data.y[:, 0]
    result = forward(data, max_rounds=1, fit_intercept=False).fit("auto")
    assert result.active.tolist() == [1] and result.W[0, 0] == pytest.approx(30.0)


def test_the_round_budget_is_no_reason_to_warn():
    settings = fits.FitSettings("log", "none", update="forward", max_rounds=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = fits.fit(plain.plan(plain.make("log", m=60, n=6, seed=3)), LocalEngine(1), settings)
    assert result.stop_reason == "max_rounds"


@pytest.mark.parametrize("loss", ["log", "multitask"])
def test_a_budget_of_features_goes_on_with_those_held(loss):
    data = plain.make(loss, m=60, n=8, seed=4)
    result = forward(data, max_features=2, tol=1e-5, max_rounds=2000).fit("auto")
    assert result.stop_reason == "max_features" and len(result.active) == 2
    alone = plain.fitting(data.columns(result.active), penalty="none", tol=1e-8).fit("auto")
    assert result.objective == pytest.approx(alone.objective, rel=1e-2)
