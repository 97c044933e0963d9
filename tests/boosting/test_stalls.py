"""Rounds that lead nowhere end the fit, with the reason and the gap that was reached."""

from __future__ import annotations

import numpy as np
import pytest

from dboost import BoostedClassifier
from dboost.solvers import formed
from dboost.solvers.newton.damping import growth
from tests.boosting import plain


def far_rows(m, n):
    """Rows at 1e5, which only an intercept or an exactly solved sum of columns could bring back to zero."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, n))
    return X + 1e5, X[:, 0] - X[:, 1] + rng.normal(size=m) > 0


def test_a_fit_of_far_columns_ends_once_its_rounds_lead_nowhere_and_is_certified_where_curvature_is_formed():
    X, y = far_rows(2000, 20)
    settings = {"penalty": "l1", "fit_intercept": False}
    data = plain.Data("log", X, np.where(y, 1.0, -1.0)[:, None], np.ones(2000), 1)
    found = plain.fitting(data, **settings, accelerators=plain.without("group_curvature")).fit(1e-3)
    assert found.stop_reason == "stalled" and found.n_iter <= 60 and 0.0 < found.gap < 1.0
    # as good a model as any number of rounds would have led to
    assert found.history[-1]["objective"] <= found.history[-10]["objective"]
    best = plain.fitting(data, **settings).fit(1e-3)
    assert best.stop_reason == "tol" and best.objective < found.objective


def rare(seed, n, p, common, few, each, heavy):
    """Labels, of which `few` classes have `each` examples, features of which mark these, and weights."""
    rng = np.random.RandomState(seed)
    y, m = rng.randint(0, common, n), few * each
    y[:m] = common + np.repeat(np.arange(few), each)
    X = (rng.rand(n, p) < 0.1).astype(float)
    X[np.arange(m), y[:m]] = X[np.arange(m), (common + few + np.arange(m)) % p] = 1.0
    return X, y, np.where(np.arange(n) < m, 1.0, heavy)


@pytest.mark.full
def test_rare_classes_at_a_weak_strength_are_certified():
    """Steps that creep give way to the curvature itself, under every norm of rows."""
    for problem, alpha, optima in (
        ((0, 1000, 40, 2, 2, 12, 100.0), 1e-6, {"l1/l2": 0.66921453114, "l1/linf": 0.66909087186}),
        ((0, 1000, 40, 2, 2, 12, 100.0), 1e-6, {"l1/l2+l1": 0.66929818621}),
        ((2, 600, 25, 2, 1, 8, 1000.0), 1e-7, {"l1/linf": 0.67408549297, "l1/l2+ridge": 0.67412490528}),
    ):
        for penalty, least in optima.items():
            model = BoostedClassifier(standardize=False, penalty=penalty, alpha=alpha).fit(*rare(*problem))
            assert model.stop_reason_ == "tol" and model.duality_gap_ <= 1e-4, penalty
            assert model.objective_ == pytest.approx(least, rel=1e-8) and model.model_.certificate.passes <= 160


def test_a_step_back_from_a_certain_error_is_as_long_as_the_way_up_to_it():
    """A Newton step from a probability of one for the wrong class is 1e5 long, where 12 would bring it back."""
    steps = []
    for label in (1.0, -1.0):
        data = plain.Data("log", np.ones((4, 1)), np.full((4, 1), label), np.ones(4), 1)
        problem = plain.fitting(data, penalty="l1", fit_intercept=False).problem
        iterate = problem.evaluate(np.array([0]), np.array([[-12.0 * label]]), np.zeros(1))
        p = 1.0 / (1.0 + np.exp(12.0))
        diagonal = np.array([[4.0 * p * (1.0 - p)]])
        steps.append(iterate.G[0, 0] / (diagonal + growth(problem, iterate, 1e-9, diagonal))[0, 0])
    assert steps[0] == pytest.approx(12.0, rel=1e-3) and steps[1] == pytest.approx(-12.0, rel=1e-3)


def classes(m=1500, n=8, k=6):
    """Columns of two hidden numbers and little else, of which each class follows its own sum."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(m, 2)) @ rng.normal(size=(2, n)) + 0.3 * rng.normal(size=(m, n))
    y = (X @ rng.normal(size=(n, k)) + rng.gumbel(size=(m, k))).argmax(1).astype(np.int32)
    return plain.Data("multinomial", X, y, np.ones(m), k)


@pytest.mark.parametrize("penalty", [pytest.param("l1", marks=pytest.mark.full), "l1/linf", "l1/l2"])
def test_a_table_of_curvature_serves_several_steps_to_the_optimum(penalty):
    data, lam = classes(), 1e-3 * 1500
    fitting = plain.fitting(data, penalty=penalty, tol=1e-9)
    best = fitting.fit(1e-3)
    assert best.gap <= 1e-9
    problem = fitting.problem
    iterate = problem.evaluate(np.arange(8), np.zeros((8, 6)), problem.null().intercept)
    steps, values = formed.Steps(problem, lam), [np.inf]
    for _ in range(12):
        iterate, _ = steps.step(iterate)
        values.append(problem.objective(iterate, lam) / 1500)
    assert values[-1] == pytest.approx(best.objective, rel=1e-9) and np.all(np.diff(values) <= 1e-14)
    assert steps.formed <= 8


def test_columns_of_a_few_examples_do_not_mislead_steps_on_a_sample():
    """Standardised pixels of the border: a sample has no example of most of them, so that its steps are cut short."""
    rng = np.random.default_rng(0)
    m, k = 15_000, 10
    y = rng.integers(0, k, m)
    often = np.maximum(0.5 * rng.normal(size=(k, 60))[y] + rng.normal(size=(m, 60)), 0.0)
    seldom = np.zeros((m, 150))
    for column in seldom.T:
        hit = rng.choice(m, size=rng.integers(1, 6), replace=False)
        column[hit] = rng.random(hit.size)
    X = np.hstack([often, seldom])
    model = BoostedClassifier(penalty="l1", alpha=1e-4, standardize=True).fit(X, y)
    # a fit on all examples takes 35, and one that keeps to the first size of its samples 380
    assert model.stop_reason_ == "tol" and model.model_.certificate.passes <= 130
