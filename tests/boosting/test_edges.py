"""Strengths around alpha_max, degenerate columns, labels and settings, and every way a fit may be cut short."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dboost.boosting import fit as fits
from dboost.engine.local import LocalEngine
from dboost.errors import ConvergenceWarning, DataError
from dboost.losses import LOSSES, EpsilonInsensitive
from tests.boosting import plain

# The Newton update with every penalty; the others, which cost many passes, with two that differ in kind.
RUNS = [("newton", name) for name in plain.PULLING] + [("gradboost", "l1/linf"), ("adaboost", "l1/l2+l1")]
RUNNABLE = {*plain.DEFINED, *((loss, "newton") for loss in LOSSES)}


def combinations(*axes, runs=RUNS):
    """Pairs of losses, runs and the other axes."""
    chosen = plain.covering(LOSSES, runs, *axes, allowed=lambda loss, run, *rest: (loss, run[0]) in RUNNABLE)
    return [(loss, *run, *rest) for loss, run, *rest in chosen]


@pytest.mark.parametrize("loss,update,penalty,intercept", combinations([True, False]))
def test_at_alpha_max_and_above_nothing_is_selected(loss, penalty, update, intercept):
    data = plain.make(loss, m=100, n=12, weights=True, seed=5)
    fitting = plain.fitting(data, penalty=penalty, update=update, tol=1e-9, fit_intercept=intercept)
    largest = fitting.alpha_max()
    b = plain.null_intercept(data) if intercept else np.zeros(data.k)
    b -= b.mean() if data.multiclass else 0.0
    for factor in (1.0 + 1e-12, 1.5, 1e6):
        result = fitting.fit(factor * largest)
        assert result.active.shape == (0,) and result.W.shape == (0, data.k)
        np.testing.assert_allclose(result.intercept, b, atol=1e-9)
        assert result.gap <= (2e-12 if loss == "poisson" else 1e-13)
        assert (result.stop_reason, result.n_iter) == ("tol", 1)
    below = fitting.fit(0.999 * largest)
    assert below.active.shape[0] >= 1 and below.stop_reason == "tol"


# A ridge shares a weight between equal columns, and so lowers the objective; scaling a column has no one power.
NORMS = [(update, penalty) for update, penalty in RUNS if penalty in plain.SIZED]


@pytest.mark.parametrize("loss,update,penalty", combinations(runs=NORMS))
def test_duplicated_columns(loss, penalty, update):
    """The optimum is not unique then, its value is; the certificate closes all the same."""
    data = plain.make(loss, m=100, n=8, seed=6)
    alpha = 0.4 * plain.alpha_max(data, penalty)
    best = plain.optimum(data, penalty, alpha * data.s.sum())
    twice = data.columns([*range(8), *range(8), 0, 0])
    result = plain.fitting(twice, penalty=penalty, tol=1e-6, update=update).fit(alpha)
    assert result.stop_reason == "tol"
    assert result.objective * data.s.sum() == pytest.approx(best.value, rel=2e-6)


@pytest.mark.full
@pytest.mark.parametrize("loss,update,penalty,standardize", combinations([False, True], runs=NORMS))
def test_zero_and_constant_columns(loss, penalty, update, standardize):
    """A zero column never enters; a constant one does not matter beside an intercept."""
    data = plain.make(loss, m=100, n=6, seed=7, weights=True)
    constant = np.ones((100, 1)) * [0.0, 0.1, 0.1, -3.3, 1e5 / 3]
    wider = replace(data, X=np.hstack([data.X, constant]))
    settings = {"penalty": penalty, "tol": 1e-6, "update": update, "standardize": standardize}
    plainly = plain.fitting(data, **settings)
    alpha = 0.4 * plainly.alpha_max()
    expected = plainly.fit(alpha)
    with np.errstate(all="raise", under="ignore"):
        fitting = plain.fitting(wider, **settings)
        assert fitting.alpha_max() == pytest.approx(plainly.alpha_max(), rel=1e-9)
        result = fitting.fit(alpha)
    assert result.stop_reason == expected.stop_reason == "tol"
    assert result.objective == pytest.approx(expected.objective, rel=2e-6)
    # brought to no scale the largest constant is so cheap that a weight of 1e-9 is within tol
    assert not set(result.active) & set(range(6, 11 if standardize else 10))


def test_only_zero_columns(loss, penalty):
    data = plain.make(loss, m=30, n=3, seed=8)
    data = replace(data, X=np.zeros((30, 3)))
    fitting = plain.fitting(data, penalty=penalty)
    assert fitting.alpha_max() == 0.0
    result = fitting.fit("auto")
    assert result.active.shape == (0,)
    least = {"poisson": 1e-12, "quantile": 1e-13}.get(loss, 1e-14)
    assert (result.stop_reason, result.gap) == ("tol", pytest.approx(0.0, abs=least))


SCALED = plain.covering(LOSSES, [*plain.SIZED, "l2", "l2_squared"], [True, False])


@pytest.mark.parametrize("loss,penalty,intercept", SCALED)
def test_standardize_is_scaling_the_columns_by_hand(loss, penalty, intercept):
    data = plain.make(loss, m=100, n=10, weights=True, seed=9)
    reach = 2 if penalty.startswith("l2") else 3
    data = replace(data, X=data.X * 10.0 ** np.random.default_rng(0).uniform(-reach, reach, 10))
    mean = data.s @ data.X / data.s.sum()
    deviation = np.sqrt(data.s @ (data.X - mean) ** 2 / data.s.sum())
    fitting = plain.fitting(data, penalty=penalty, tol=1e-9, standardize=True, fit_intercept=intercept)
    by_hand = plain.fitting(replace(data, X=data.X / deviation), penalty=penalty, tol=1e-9, fit_intercept=intercept)
    largest = by_hand.alpha_max()
    assert fitting.alpha_max() == pytest.approx(largest, rel=1e-10, nan_ok=True)
    alpha = 0.1 * largest if np.isfinite(largest) else 0.02
    result, expected = fitting.fit(alpha), by_hand.fit(alpha)
    assert result.stop_reason == expected.stop_reason == "tol"
    assert result.objective == pytest.approx(expected.objective, rel=1e-8)
    W = plain.dense(result, 10) * deviation[:, None]
    np.testing.assert_allclose(W, plain.dense(expected, 10), atol=1e-3 * np.abs(W).max())


@pytest.mark.parametrize("loss,update", plain.DEFINED)
def test_doubled_rows_are_weight_two_and_weight_zero_is_absent(loss, update):
    data = plain.make(loss, m=60, n=6, seed=10)
    chosen = np.arange(0, 60, 3)
    doubled = data.take(np.concatenate([np.arange(60), chosen]))
    weighted = replace(data, s=np.where(np.isin(np.arange(60), chosen), 2.0, 1.0))
    junk = replace(weighted.take(chosen), X=1e3 * weighted.X[chosen], s=np.zeros(len(chosen)))
    padded = replace(
        weighted,
        X=np.vstack([weighted.X, junk.X]),
        y=np.concatenate([weighted.y, junk.y[::-1]]),
        s=np.concatenate([weighted.s, junk.s]),
    )
    settings = {"penalty": "l1/linf", "tol": 1e-9 if update == "newton" else 1e-4, "update": update}
    fitting = plain.fitting(doubled, **settings)
    expected = fitting.fit(0.4 * fitting.alpha_max())
    for same in (weighted, padded):
        fitting = plain.fitting(same, **settings)
        assert fitting.alpha_max() == pytest.approx(expected.alpha_max, rel=1e-12)
        result = fitting.fit(expected.alpha)
        assert result.objective == pytest.approx(expected.objective, rel=2 * settings["tol"])
        if update == "newton":
            np.testing.assert_array_equal(result.active, expected.active)


def test_a_class_without_examples_is_refused_with_a_free_intercept():
    data = replace(plain.make("multinomial", k=3), k=4)
    with pytest.raises(DataError, match="class 3 has no example"):
        plain.fitting(data)
    result = plain.fitting(data, fit_intercept=False, tol=1e-6).fit("auto")
    assert result.stop_reason == "tol"


# ---- cut short -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair,limit", plain.covering(plain.DEFINED, [0, 1, 3])[::2])
def test_max_features(pair, limit):
    loss, update = pair
    data = plain.make(loss, m=100, n=12, seed=11)
    plan, engine = plain.plan(data), LocalEngine(1)
    alpha = 0.2 * plain.alpha_max(data, "l1/l2")
    settings = fits.FitSettings(loss, "l1/l2", alpha=alpha, update=update, tol=1e-6, max_features=limit)
    with pytest.warns(ConvergenceWarning, match=r"max_features.*relative gap of 0\.\d+, above tol=1e-06"):
        result = fits.fit(plan, engine, settings)
    assert result.stop_reason == "max_features"
    assert len(result.active) <= limit
    assert all(record["features"] <= limit for record in result.history)
    value = plain.objective(data, "l1/l2", result.alpha * 100, plain.dense(result, 12), result.intercept)
    assert result.objective * 100 == pytest.approx(value, rel=1e-12)
    # the rows it has are re-solved: no better model exists on them
    chosen = plain.optimum(data.columns(result.active), "l1/l2", result.alpha * 100) if limit else None
    if chosen is not None:
        assert value == pytest.approx(chosen.value, rel=1e-5)


@pytest.mark.parametrize("loss", ["multinomial", "exp", "quantile"])
def test_max_rounds_warns_with_the_gap(loss):
    data = plain.make(loss, seed=12)
    settings = fits.FitSettings(loss, "l1", tol=1e-10, max_rounds=2)
    with pytest.warns(ConvergenceWarning) as caught:
        result = fits.fit(plain.plan(data), LocalEngine(1), settings)
    assert (result.stop_reason, result.n_iter) == ("max_rounds", 2)
    assert 1e-10 < result.gap < 1.0
    assert f"{result.gap:.2g}" in str(caught[0].message) and "2 rounds" in str(caught[0].message)
    assert result.alpha == pytest.approx(0.05 * result.alpha_max)
    value = plain.objective(data, "l1", result.alpha * 150, plain.dense(result, 25), result.intercept)
    assert result.objective * 150 == pytest.approx(value, rel=1e-12)
    assert caught[0].filename == __file__


def test_a_tolerance_of_zero_ends_at_the_precision_of_the_numbers(loss, penalty):
    data = plain.make(loss, m=80, n=8, seed=15)
    fitting = plain.fitting(data, penalty=penalty, tol=0.0)
    result = fitting.fit("auto")
    assert result.gap <= 1e-10
    assert result.stop_reason == ("precision" if result.gap > 0.0 else "tol")
    # along a path the rows of a first round have no goal but the optimum
    assert fitting.fit(0.5 * result.alpha, result).gap <= 1e-10


@pytest.mark.parametrize("loss", ["squared", "epsilon_insensitive"])
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
