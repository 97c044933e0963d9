"""Classical forward-greedy boosting against the same few lines in dense numpy."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from dboost.boosting import fit as fits
from dboost.engine.local import LocalEngine
from dboost.errors import UsageError
from dboost.losses import LOSSES, get_loss
from tests.boosting import plain
from tests.boosting.test_induced import explicit, induced, rows_of


@pytest.fixture(params=[name for name in LOSSES if plain.defined(name, "forward")])
def loss(request):
    """Every loss with an exponential bound."""
    return request.param


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


@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
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


def test_the_round_budget_is_no_reason_to_warn(loss):
    data = plain.make(loss, m=60, n=6, seed=3)
    settings = fits.FitSettings(loss, "none", update="forward", max_rounds=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = fits.fit(plain.plan(data), LocalEngine(1), settings)
    assert result.stop_reason == "max_rounds"


def test_a_budget_of_features_goes_on_with_those_held(loss):
    data = plain.make(loss, m=60, n=8, seed=4)
    result = forward(data, max_features=2, tol=1e-5, max_rounds=2000).fit("auto")
    assert result.stop_reason == "max_features" and len(result.active) == 2
    alone = plain.fitting(data.columns(result.active), penalty="none", tol=1e-8).fit("auto")
    assert result.objective == pytest.approx(alone.objective, rel=1e-2)


def test_a_loss_without_an_exponential_bound_is_refused():
    plain.refused(plain.make("squared"), penalty="none", update="forward")


@pytest.mark.parametrize(
    "wrong,words",
    [
        ({"penalty": "l1"}, "penalty='none'.*update='adaboost'"),
        ({"penalty": "none", "select": "cyclic"}, "select.*update='adaboost'"),
        ({"penalty": "none", "features_per_round": 30}, "features_per_round=30.*update='adaboost'"),
    ],
)
def test_what_it_has_no_use_for_is_refused(wrong, words):
    with pytest.raises(UsageError, match=words):
        plain.fitting(plain.make("log"), update="forward", **wrong)


@pytest.mark.parametrize(
    "settings",
    [
        {"penalty": "none", "update": "forward", "tol": 0.0, "max_rounds": 15},
        {"penalty": "smooth_l1", "features_per_round": 1, "tol": 1e-6, "max_rounds": 6},
        {"penalty": "l2", "tol": 1e-8},
        {"penalty": "l2_squared", "tol": 1e-8},
    ],
    ids=lambda settings: settings["penalty"],
)
def test_over_induced_products_as_over_their_matrix(loss, settings):
    """The two baselines of Duchi & Singer 2009, section 6, and the dense penalties, while candidates are made."""
    data = plain.make(loss, m=80, n=5, weights=True, seed=51)
    matrix, keys = explicit(data)
    alpha = "auto" if settings["penalty"] == "none" else 0.02
    result = induced(data, **settings).fit(alpha)
    expected = plain.fitting(matrix, **settings).fit(alpha)
    assert (result.stop_reason, result.n_iter) == (expected.stop_reason, expected.n_iter)
    assert result.objective == pytest.approx(expected.objective, rel=1e-8)
    np.testing.assert_allclose(rows_of(result, keys), plain.dense(expected, len(keys)), atol=1e-3)
