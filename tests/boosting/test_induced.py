"""Fits over hypotheses: the optimum of the explicit matrix, on every engine, certified over the whole class."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from dboost.boosting.checks import UPDATES
from dboost.boosting.fit import FitSettings, Fitting
from dboost.engine.local import LocalEngine
from dboost.errors import ConvergenceWarning, UsageError
from dboost.hypotheses.products import family as products
from dboost.hypotheses.products.family import Products
from dboost.losses import LOSSES
from dboost.penalties import get_penalty
from tests.boosting import plain
from tests.losses.references import Rows

PAIRS = Products(max_degree=2)


def monomials(X, degree):
    """{key: column} of all monomials of the columns scaled to |x| <= 1."""
    S = X / np.abs(X).max(axis=0)
    keys = (k for d in range(1, degree + 1) for k in itertools.combinations_with_replacement(range(X.shape[1]), d))
    return {key: np.prod(S[:, list(key)], axis=1) for key in keys}


def explicit(data, degree=2):
    """The same data with every monomial as a column, and the keys of the columns."""
    made = monomials(data.X, degree)
    return plain.replace(data, X=np.column_stack(list(made.values()))), list(made)


def induced(data, engine=None, cuts=3, **settings):
    """A fitting over pairs of features."""
    chosen = FitSettings(data.loss, **{"hypotheses": PAIRS, **settings})
    return Fitting(plain.plan(data, cuts), engine or LocalEngine(2), chosen)


def rows_of(result, keys):
    """All rows of W in the order of `keys`."""
    W = np.zeros((len(keys), result.W.shape[1]))
    for i, row in zip(result.active.tolist(), result.W, strict=True):
        W[keys.index(result.state.keys[i])] = row
    return W


@pytest.mark.parametrize("loss,penalty,intercept", plain.covering(LOSSES, plain.SIZED, [True, False]))
def test_the_optimum_is_that_of_the_explicit_matrix(loss, penalty, intercept):
    data = plain.make(loss, m=90, n=6, weights=True, seed=41)
    matrix, keys = explicit(data)
    fitting = induced(data, penalty=penalty, tol=1e-9, fit_intercept=intercept)
    largest = plain.alpha_max(matrix, penalty, intercept)
    assert fitting.alpha_max() == pytest.approx(largest, rel=1e-9)
    result = fitting.fit(0.15 * largest)
    best = plain.optimum(matrix, penalty, 0.15 * largest * data.s.sum(), intercept)
    weight = data.s.sum()
    assert result.stop_reason == "tol" and result.gap <= 1e-9
    assert result.objective * weight == pytest.approx(best.value, rel=1e-8)
    assert result.lower_bound * weight <= best.value * (1 + 1e-12)
    mine = plain.objective(matrix, penalty, 0.15 * largest * weight, rows_of(result, keys), result.intercept)
    assert mine == pytest.approx(result.objective * weight, rel=1e-12)


@pytest.mark.parametrize("loss,update", plain.DEFINED)
def test_every_update_and_standardize(loss, update):
    standardize = (list(LOSSES).index(loss) + UPDATES.index(update)) % 2 == 0
    data = plain.make(loss, m=80, n=4, seed=42)
    select = "greedy" if update == "newton" else "template"
    settings = {"penalty": "l1/l2", "update": update, "select": select, "tol": 1e-6, "standardize": standardize}
    matrix, _ = explicit(data)
    other = plain.fitting(matrix, **settings)
    fitting = induced(data, **settings)
    alpha = 0.3 * other.alpha_max()
    assert fitting.alpha_max() == pytest.approx(other.alpha_max(), rel=1e-9)
    a, b = fitting.fit(alpha), other.fit(alpha)
    assert a.gap <= 1e-6 and b.gap <= 1e-6
    assert a.objective == pytest.approx(b.objective, rel=3e-6)


# ---- classes without end -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss,penalty,scale", plain.covering(LOSSES, plain.SIZED, ["max", "range"]))
def test_an_infinite_class_is_certified_whole(loss, penalty, scale):
    """No monomial up to degree 7 violates optimality, and the fit of all up to degree 4 is no better."""
    data = plain.make(loss, m=70, n=3, density=1.0, seed=46)
    family = Products(scale=scale, decay=0.8)
    fitting = induced(data, penalty=penalty, tol=1e-8, hypotheses=family)
    alpha = 0.2 * fitting.alpha_max()
    result = fitting.fit(alpha)
    assert result.stop_reason == "tol" and result.gap <= 1e-8 and result.history[-1]["subtrees"] > 0
    pool = fitting.problem.pool
    S = (data.X - data.X.min(0)) / np.ptp(data.X, axis=0) if scale == "range" else data.X / np.abs(data.X).max(0)
    S = 0.8 * S
    W = {result.state.keys[i]: row for i, row in zip(result.active.tolist(), result.W, strict=True)}
    F = result.intercept + sum((np.prod(S[:, list(k)], axis=1)[:, None] * w for k, w in W.items()), np.zeros((70, 1)))
    U = data.residual(F)
    deep = [k for d in range(1, 8) for k in itertools.combinations_with_replacement(range(3), d)]
    norms = get_penalty(penalty).dual_norm(np.stack([np.prod(S[:, list(k)], axis=1) @ U for k in deep]))
    assert norms.max() <= alpha * data.s.sum() * (1 + 1e-3)
    finite = induced(data, penalty=penalty, tol=1e-9, hypotheses=Products(max_degree=4, scale=scale, decay=0.8))
    assert result.objective <= finite.fit(alpha).objective * (1 + 1e-8)
    assert fitting.problem.n_candidates == pool.size == float("inf")


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", ["squared", "huber", "quantile", "epsilon_insensitive"])
def test_the_size_before_a_search_is_that_of_the_models_own_hypotheses_too(name, intercept):
    """The labels are those of (0, 2), which is no product of one held with a feature, so that no sum asks for it."""
    data = plain.make(name, m=400, n=3, density=1.0, seed=46)
    S = data.X / np.abs(data.X).max(axis=0)
    column = 0.95**2 * S[:, 0] * S[:, 2]
    data = plain.replace(data, y=2.0 * np.sign(column) + 0.1 * intercept)
    fitting = induced(data, penalty="l1/l2", hypotheses=Products(scale="max", decay=0.95), fit_intercept=intercept)
    fitting.fit(0.9 * fitting.alpha_max())
    problem = fitting.problem
    rows = np.sort(problem.register([(1, 1), (0, 2)]))
    W = np.where(rows == problem.register([(0, 2)]), 0.1, 0.0)[:, None]
    iterate = problem.evaluate(rows, W, np.zeros(1))
    U = data.residual(column[:, None] * 0.1)
    theta = Rows(name).theta(data.y, U, data.s, problem.objective.repair(iterate)) if intercept else U
    size = problem.score(iterate, None, 0.0, 1, whole=False).size
    assert size == pytest.approx(abs(column @ theta[:, 0]), rel=1e-12)


def test_a_searched_finite_class_equals_the_summed_one(loss, monkeypatch):
    data = plain.make(loss, m=80, n=5, seed=47)
    settings = {"penalty": "l1/l2", "tol": 1e-8, "hypotheses": Products(max_degree=3)}
    summed = induced(data, **settings)
    alpha = 0.2 * summed.alpha_max()
    expected = summed.fit(alpha)
    monkeypatch.setattr(products, "ENUMERATED", 0)
    searched = induced(data, **settings)
    assert searched.alpha_max() == pytest.approx(summed.alpha_max(), rel=1e-12)
    result = searched.fit(alpha)
    assert result.gap <= 1e-8 and result.objective == pytest.approx(expected.objective, rel=1e-7)


def test_a_search_out_of_budget_ends_the_fit_and_says_so():
    data = plain.make("log", m=70, n=3, density=1.0, seed=48)
    fitting = induced(data, penalty="l1", tol=1e-6, hypotheses=Products(scale="range", decay=0.9, max_opened=2))
    alpha = 0.1 * fitting.alpha_max()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        result = fitting.fit(alpha)
    assert result.stop_reason == "max_opened" and result.gap > 1e-6
    assert result.lower_bound <= result.objective


def test_what_has_no_certificate_over_an_infinite_class_is_refused():
    data = plain.make("log", m=30, n=3, seed=49)
    with pytest.raises(UsageError, match="standardize=True"):
        induced(data, hypotheses=Products(), standardize=True)
