"""Fits over hypotheses: the optimum and the rounds of the explicit columns, certified over the whole class."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dboost.boosting.fit import FitSettings, Fitting
from dboost.engine.local import LocalEngine
from dboost.errors import ConvergenceWarning, UsageError
from dboost.hypotheses.products import family as products
from dboost.hypotheses.products.family import Products
from dboost.hypotheses.stumps.family import Stumps, key_arrays
from dboost.losses import LOSSES
from dboost.penalties import get_penalty
from tests.boosting import plain
from tests.hypotheses.conftest import every_stump
from tests.losses.references import Rows


def monomials(data):
    """{key: column} of all products of one and two columns scaled to |x| <= 1."""
    S = data.X / np.abs(data.X).max(axis=0)
    keys = (k for d in (1, 2) for k in itertools.combinations_with_replacement(range(S.shape[1]), d))
    return {key: np.prod(S[:, list(key)], axis=1) for key in keys}


def steps(data, otherwise=0.0):
    """{(column, threshold): column} of all stumps."""
    cuts = every_stump(data.X, data.s)
    return {(j, round(th, 9)): np.where(data.X[:, j] < th, 1.0, otherwise) for j, th in cuts}


def cuts_of(keys):
    columns, thresholds = key_arrays(keys)
    return list(zip(columns.tolist(), thresholds.round(9).tolist(), strict=True))


@dataclass(frozen=True)
class Kind:
    """A family, its hypotheses as columns by their names, and the name that each key stands for."""

    family: Any
    columns: Callable
    names: Callable
    # of problems that one-row updates solve: columns that are nearly equal are slow
    small: dict
    share: float
    tol: float

    def explicit(self, data):
        """The same data with every hypothesis as a column, and the names of the columns."""
        made = self.columns(data)
        return plain.replace(data, X=np.column_stack(list(made.values()))), list(made)

    def rows(self, result, names):
        """All rows of W in the order of `names`."""
        W = np.zeros((len(names), result.W.shape[1]))
        keys = self.names([result.state.keys[i] for i in result.active.tolist()])
        W[[names.index(key) for key in keys]] = result.W
        return W


SMALL = {"m": 30, "n": 2, "seed": 62}
KINDS = {
    "products": Kind(Products(max_degree=2), monomials, list, {"m": 80, "n": 4, "seed": 42}, 0.3, 1e-6),
    "stumps": Kind(Stumps(), steps, cuts_of, SMALL, 0.7, 1e-4),
    "signed": Kind(Stumps(signed=True), lambda data: steps(data, -1.0), cuts_of, SMALL, 0.7, 1e-4),
}


def make(kind, loss, **shape):
    """A problem; with ties, as stumps meet them."""
    data = plain.make(loss, **shape)
    return data if kind == "products" else plain.replace(data, X=np.round(data.X, 1))


def induced(data, hypotheses=KINDS["products"].family, cuts=3, **settings):
    """A fitting over hypotheses."""
    settings = FitSettings(data.loss, hypotheses=hypotheses, **settings)
    return Fitting(plain.plan(data, cuts), LocalEngine(2), settings)


def optimal(kind, loss, penalty, intercept, **shape):
    data = make(kind, loss, weights=True, **shape)
    matrix, names = KINDS[kind].explicit(data)
    fitting = induced(data, KINDS[kind].family, penalty=penalty, tol=1e-9, fit_intercept=intercept)
    largest, weight = plain.alpha_max(matrix, penalty, intercept), data.s.sum()
    assert fitting.alpha_max() == pytest.approx(largest, rel=1e-9)
    result = fitting.fit(0.15 * largest)
    best = plain.optimum(matrix, penalty, 0.15 * largest * weight, intercept)
    assert result.stop_reason == "tol" and result.gap <= 1e-9
    assert result.objective * weight == pytest.approx(best.value, rel=1e-8)
    assert result.lower_bound * weight <= best.value * (1 + 1e-12)
    W = KINDS[kind].rows(result, names)
    mine = plain.objective(matrix, penalty, 0.15 * largest * weight, W, result.intercept)
    assert mine == pytest.approx(result.objective * weight, rel=1e-12)


SIZED = plain.covering(LOSSES, plain.SIZED, [True, False])


@pytest.mark.parametrize("loss,penalty,intercept", SIZED)
def test_the_optimum_of_products_is_that_of_their_columns(loss, penalty, intercept):
    optimal("products", loss, penalty, intercept, m=90, n=6, seed=41)


@pytest.mark.parametrize("loss,penalty,intercept", SIZED)
def test_the_optimum_of_stumps_is_that_of_their_columns(loss, penalty, intercept):
    optimal("stumps", loss, penalty, intercept, m=70, n=4, seed=61)


@pytest.mark.parametrize("loss,update,kind,standardize", [
    (*pair, kind, standardize)
    for pair, kind, standardize in plain.covering(plain.DEFINED, KINDS, [True, False])
])  # fmt: skip
def test_every_update_and_standardize(loss, update, kind, standardize):
    about = KINDS[kind]
    data = make(kind, loss, **about.small)
    select = "greedy" if update == "newton" else "template"
    settings = {"penalty": "l1/l2", "update": update, "select": select, "standardize": standardize, "tol": about.tol}
    other, fitting = plain.fitting(about.explicit(data)[0], **settings), induced(data, about.family, **settings)
    alpha = about.share * other.alpha_max()
    assert fitting.alpha_max() == pytest.approx(other.alpha_max(), rel=1e-9)
    a, b = fitting.fit(alpha), other.fit(alpha)
    assert max(a.gap, b.gap) <= about.tol
    assert a.objective == pytest.approx(b.objective, rel=3 * about.tol)


# the two baselines of Duchi & Singer 2009, section 6, and the dense penalties, while candidates are made
ROUNDS = {
    "none": {"update": "forward", "tol": 0.0, "max_rounds": 15},
    "smooth_l1": {"features_per_round": 1, "tol": 1e-6, "max_rounds": 6},
    "l2": {"tol": 1e-8},
    "l2_squared": {"tol": 1e-8},
}
FORWARD = [name for name in LOSSES if plain.defined(name, "forward")]


@pytest.mark.parametrize(
    "loss,kind,penalty",
    plain.covering(FORWARD, KINDS, ROUNDS, allowed=lambda loss, kind, penalty: kind == "products" or penalty == "none"),
)
def test_rounds_are_those_of_the_columns(loss, kind, penalty):
    data = make(kind, loss, m=80, n=5, weights=True, seed=51)
    matrix, names = KINDS[kind].explicit(data)
    alpha = "auto" if penalty == "none" else 0.02
    result = induced(data, KINDS[kind].family, penalty=penalty, **ROUNDS[penalty]).fit(alpha)
    expected = plain.fitting(matrix, penalty=penalty, **ROUNDS[penalty]).fit(alpha)
    assert (result.stop_reason, result.n_iter) == (expected.stop_reason, expected.n_iter)
    if penalty == "none":
        ours, theirs = ([r["objective"] for r in found.history] for found in (result, expected))
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    assert result.objective == pytest.approx(expected.objective, rel=1e-8)
    if kind == "products":
        np.testing.assert_allclose(KINDS[kind].rows(result, names), plain.dense(expected, len(names)), atol=1e-3)


# ---- classes without end, and those that are looked into piece by piece ----------------------------------------------


@pytest.mark.parametrize("loss,penalty,scale", plain.covering(LOSSES, plain.SIZED, ["max", "range"]))
def test_an_infinite_class_is_certified_whole(loss, penalty, scale):
    """No monomial up to degree 7 violates optimality, and the fit of all up to degree 4 is no better."""
    data = plain.make(loss, m=70, n=3, density=1.0, seed=46)
    family = Products(scale=scale, decay=0.8)
    fitting = induced(data, family, penalty=penalty, tol=1e-8)
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
    finite = induced(data, Products(max_degree=4, scale=scale, decay=0.8), penalty=penalty, tol=1e-9)
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
    fitting = induced(data, Products(scale="max", decay=0.95), penalty="l1/l2", fit_intercept=intercept)
    fitting.fit(0.9 * fitting.alpha_max())
    problem = fitting.problem
    rows = np.sort(problem.register([(1, 1), (0, 2)]))
    W = np.where(rows == problem.register([(0, 2)]), 0.1, 0.0)[:, None]
    iterate = problem.evaluate(rows, W, np.zeros(1))
    U = data.residual(column[:, None] * 0.1)
    theta = Rows(name).theta(data.y, U, data.s, problem.objective.repair(iterate)) if intercept else U
    size = problem.score(iterate, None, 0.0, 1, whole=False).size
    assert size == pytest.approx(abs(column @ theta[:, 0]), rel=1e-12)


@pytest.mark.parametrize("loss,penalty", plain.covering(LOSSES, plain.SIZED))
@pytest.mark.parametrize("kind", ["products", "stumps"])
def test_a_class_that_is_searched_equals_the_one_that_is_listed(kind, loss, penalty, monkeypatch):
    data = make(kind, loss, m=70, n=4, weights=True, seed=65)
    settings = {"penalty": penalty, "tol": 1e-7}
    listed, searched = Products(max_degree=3), Stumps(bins=4, max_listed=0)
    whole = induced(data, listed if kind == "products" else Stumps(), **settings)
    alpha = 0.2 * whole.alpha_max()
    expected = whole.fit(alpha)
    monkeypatch.setattr(products, "ENUMERATED", 0)
    fitting = induced(data, listed if kind == "products" else searched, **settings)
    assert fitting.problem.searched and fitting.alpha_max() == pytest.approx(whole.alpha_max(), rel=1e-12)
    result = fitting.fit(alpha)
    assert result.stop_reason == "tol" and result.objective == pytest.approx(expected.objective, rel=3e-7)
    assert result.lower_bound <= expected.objective and expected.lower_bound <= result.objective


def test_a_search_out_of_budget_ends_the_fit_and_says_so():
    data = plain.make("log", m=70, n=3, density=1.0, seed=48)
    fitting = induced(data, Products(scale="range", decay=0.9, max_opened=2), penalty="l1", tol=1e-6)
    alpha = 0.1 * fitting.alpha_max()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        result = fitting.fit(alpha)
    assert result.stop_reason == "max_opened" and result.gap > 1e-6
    assert result.lower_bound <= result.objective


def test_what_has_no_certificate_over_an_infinite_class_is_refused():
    with pytest.raises(UsageError, match="standardize=True"):
        induced(plain.make("log", m=30, n=3, seed=49), Products(), standardize=True)


def test_most_bins_stay_closed():
    """Data with a signal: the best stump is known after looking into few of the bins."""
    rng = np.random.default_rng(66)
    X = rng.normal(size=(20_000, 6))
    y = np.where(X[:, 2] + 0.5 * rng.normal(size=20_000) < 0.3, 1, -1).astype(np.int8)[:, None]
    data = plain.Data("log", X, y, np.ones(20_000), 1)
    fitting = induced(data, Stumps(max_listed=0), cuts=4, penalty="l1")
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
