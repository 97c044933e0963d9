"""Columns far from zero: the optimum, the rounds and the bits of the same columns less a number."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from dboost.boosting.cross_validation import cross_validate
from dboost.boosting.fit import FitSettings, Fitting
from dboost.boosting.path import path
from dboost.columns.statistics import FAR
from dboost.engine.dask.engine import DaskEngine
from dboost.engine.local import LocalEngine
from dboost.engine.memo import MemoStore
from dboost.hypotheses.base import Block
from dboost.hypotheses.columns import Columns
from dboost.hypotheses.kernels.family import Kernels
from dboost.hypotheses.products.family import Products
from dboost.passes.folds import Folds
from tests.boosting import plain
from tests.boosting.test_resume import bits
from tests.data.test_streamed import ReadAgain

SHIFTS = 10.0 ** np.array([1, 3, 5, 6, 7, 9])
LOSSES = {"log": "l1", "multinomial": "l1/l2", "squared": "l1", "multitask": "l1/linf"}


def moved(data, shift):
    """The data with all columns moved, and the same less the shift: what is left of the digits of the first."""
    X = data.X + shift
    return replace(data, X=X), replace(data, X=X - shift)


def dense(loss, **shape):
    return plain.make(loss, **{"m": 160, "n": 10, "seed": 3, "density": 1.0, "weights": True, **shape})


@pytest.mark.full
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_shift_of_all_columns_changes_neither_the_optimum_nor_the_way(loss, standardize):
    # a gap below 1e-8 is more than scores of columns at 1e7 and beyond can show
    settings = {"penalty": LOSSES[loss], "tol": 1e-8, "standardize": standardize}
    data = dense(loss)
    alpha = 0.1 * plain.fitting(data, **settings).alpha_max()
    for shift in SHIFTS:
        far, near = moved(data, shift)
        result, wanted = (plain.fitting(one, **settings).fit(alpha) for one in (far, near))
        assert wanted.stop_reason == "tol"
        assert result.stop_reason in ("tol", "precision")[: 1 + (shift >= 1e7)]
        assert result.objective == pytest.approx(wanted.objective, rel=1e-9)
        assert result.active.tolist() == wanted.active.tolist()
        np.testing.assert_allclose(result.W, wanted.W, atol=1e-4 * np.abs(wanted.W).max())
        assert result.n_iter <= wanted.n_iter + 3 and result.passes <= 3 * wanted.passes
        # on the columns as given, as far as float64 holds margins of that size
        value = plain.objective(far, LOSSES[loss], 0.0, plain.dense(result, 10), result.intercept)
        reached = plain.objective(near, LOSSES[loss], 0.0, plain.dense(wanted, 10), wanted.intercept)
        assert value == pytest.approx(reached, rel=1e-6 + 1e-15 * shift)


@pytest.mark.full
@pytest.mark.parametrize("update", ["gradboost", "adaboost"])
@pytest.mark.parametrize("penalty", ["l1", "l1/l2", "l1/linf"])
def test_one_row_updates_take_as_many_rounds_wherever_the_columns_are(update, penalty):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(60, 6))
    y = (Z[:, :3] + rng.gumbel(size=(60, 3))).argmax(axis=1).astype(np.int32)
    data = plain.Data("multinomial", Z, y, np.ones(60), 3)
    settings = {"penalty": penalty, "tol": 1e-4, "update": update}
    alpha = 0.2 * plain.fitting(data, **settings).alpha_max()
    near = plain.fitting(data, **settings).fit(alpha)
    far = plain.fitting(replace(data, X=Z + 1e5), **settings).fit(alpha)
    assert far.stop_reason == near.stop_reason == "tol"
    assert far.objective == pytest.approx(near.objective, rel=2e-4)
    assert far.passes <= 3 * near.passes


class ByColumn(ReadAgain):
    """A block that is read for every pass, by column."""

    def load(self):
        return self.given

    load_rows = load


@pytest.mark.full
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_fit_has_the_same_bits_on_threads_on_a_cluster_and_streamed(dtype, one_worker, two_processes):
    far, _ = moved(dense("multinomial"), 3e4)
    settings = FitSettings("multinomial", "l1/l2", tol=1e-4, standardize=True)
    plan = plain.plan(far, [10, 40, 41, 41, 90, 160], dtype)
    results = []
    engines = [LocalEngine(1), LocalEngine(3), DaskEngine(one_worker), DaskEngine(two_processes)]
    plans = [plan] * len(engines)
    for block in (ByColumn, ReadAgain)[: 1 if dtype == np.float64 else 2]:
        # memory for the labels alone
        engines.append(LocalEngine(2, MemoStore(10_000)))
        plans.append(plain.SimpleNamespace(**{**vars(plan), "items": [block(part) for part in plan.items]}))
    for engine, mine in zip(engines, plans, strict=True):
        with engine:
            fitting = Fitting(mine, engine, settings)
            results.append(bits(fitting.fit(0.2 * fitting.alpha_max())))
    assert all(result == results[0] for result in results[1:])


def test_columns_that_are_not_far_leave_the_data_as_they_are():
    near = dense("log")
    edge = replace(near, X=near.X + 0.8 * FAR * near.X.std(axis=0).min())
    assert plain.fitting(edge).problem.statistics.far is None
    # sparse columns look far where one example has almost all the weight, and stay sparse
    heavy = plain.make("log", n=8, density=0.1)
    heavy.s[0], heavy.X[0] = 1e9, 1.0
    fitting = plain.fitting(heavy)
    assert fitting.problem.statistics.far is not None and isinstance(fitting.problem.engine, LocalEngine)


def test_without_an_intercept_the_columns_stay_where_they_are():
    data = dense("squared", n=4)
    far = replace(data, X=data.X + 30.0)
    settings = {"penalty": "l1", "tol": 1e-7, "fit_intercept": False}
    fitting = plain.fitting(far, **settings)
    result = fitting.fit(0.01 * fitting.alpha_max())
    best = plain.optimum(far, "l1", 0.01 * fitting.alpha_max() * far.s.sum(), intercept=False)
    assert result.stop_reason == "tol" and not result.intercept.any()
    assert result.objective * far.s.sum() == pytest.approx(best.value, rel=1e-6)


@pytest.mark.parametrize("intercept", [False, True])
def test_deviations_are_those_of_long_doubles_wherever_the_columns_are(intercept):
    data = dense("log", n=6)
    data.s[::7] = 0.0
    X = data.X * 10.0 ** np.arange(-2, 4) + 10.0 ** np.array([3, 9, 6, 9, 9, 12])
    X[::3, 0] = 0.0
    wide, s = X.astype(np.longdouble), data.s.astype(np.longdouble) / data.s.sum()
    mean = s @ wide
    wanted = np.sqrt(s @ (wide - mean) ** 2).astype(float)
    for cuts in (1, 4, [1, 2, 3, 60, 160]):
        fitting = plain.fitting(replace(data, X=X), cuts, penalty="l1", standardize=True, fit_intercept=intercept)
        np.testing.assert_allclose(fitting.problem.objective.columns.weight, wanted, rtol=1e-9)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("shift", [1e3, 1e6])
def test_hypotheses_far_from_zero_are_those_less_a_number(shift, standardize):
    """Columns as hypotheses and columns as columns are one problem."""
    far, near = moved(dense("log"), shift)
    settings = {"penalty": "l1", "tol": 1e-8, "standardize": standardize}
    alpha = 0.1 * plain.fitting(near, **settings).alpha_max()
    wanted = plain.fitting(near, **settings).fit(alpha)
    fitting = plain.fitting(far, hypotheses=Columns(), **settings)
    found = fitting.fit(alpha)
    assert found.stop_reason == "tol" and found.n_iter <= wanted.n_iter + 3
    assert found.objective == pytest.approx(wanted.objective, rel=1e-8)
    keys = [found.state.keys[i][0] for i in found.active.tolist()]
    assert sorted(keys) == wanted.active.tolist()
    W = np.zeros((10, 1))
    W[keys] = found.W
    assert plain.objective(far, "l1", 0.0, W, found.intercept) == pytest.approx(
        plain.objective(near, "l1", 0.0, plain.dense(wanted, 10), wanted.intercept), rel=1e-5
    )


@pytest.mark.parametrize("standardize", [False, True])
def test_products_of_a_column_far_from_zero_are_certified(standardize):
    data = dense("log", n=4)
    far = replace(data, X=data.X + [1e4, 0.0, 0.0, 0.0])
    scaled = far.X / np.abs(far.X).max(axis=0)
    explicit = [scaled] + [scaled[:, [i]] * scaled[:, [j]] for i in range(4) for j in range(i, 4)]
    settings = {"penalty": "l1", "tol": 1e-7, "standardize": standardize}
    fitting = plain.fitting(far, hypotheses=Products(max_degree=2), **settings)
    alpha = 0.1 * fitting.alpha_max()
    found = fitting.fit(alpha)
    whole = plain.fitting(replace(data, X=np.hstack(explicit)), **settings)
    assert whole.alpha_max() == pytest.approx(fitting.alpha_max(), rel=1e-6)
    assert found.stop_reason == "tol" and found.n_iter < 30
    assert found.objective == pytest.approx(whole.fit(alpha).objective, rel=1e-6)


@pytest.mark.parametrize("hypotheses", [None, Columns()])
def test_any_round_can_be_resumed_and_told_of(hypotheses):
    far, _ = moved(dense("log"), 1e5)
    settings = {"penalty": "l1", "tol": 1e-8, "hypotheses": hypotheses}
    states, told = [], []
    fitting = plain.fitting(far, **settings)
    alpha = 0.05 * fitting.alpha_max()

    def kept(record, state):
        states.append(pickle.dumps(state))
        told.append((record, fitting.as_given(state)))

    whole = fitting.fit(alpha, callback=kept)
    for place in {0, len(states) // 2, len(states) - 1}:
        assert bits(plain.fitting(far, **settings).fit(alpha, resume=pickle.loads(states[place]))) == bits(whole)
    # a model that is told of after a round has the objective of the next record
    record, state = told[-1]
    assert np.array_equal(state.W, whole.W) and np.array_equal(state.intercept, whole.intercept)


@pytest.mark.full
@pytest.mark.parametrize("hypotheses", [None, Columns()])
def test_paths_warm_starts_and_folds_are_those_of_near_columns(hypotheses):
    far, near = moved(dense("log", m=120), 1e5)
    settings = FitSettings("log", "l1", tol=1e-6, hypotheses=hypotheses)
    found = []
    for data in (far, near):
        plan = plain.plan(data)
        plan.feature_names, plan.task = None, "binary"
        with LocalEngine(2) as engine:
            results = path(plan, engine, settings, n_alphas=5, eps=0.05)
        keys = [i % 3 for i in range(120)]
        ends = np.cumsum(plan.rows)[:-1]
        given = dict(zip([p.key for p in plan.items], np.split(np.array(keys, np.int32), ends), strict=True))
        with LocalEngine(2) as engine:
            alphas = [r.alpha for r in results]
            _, scores = cross_validate(plan, engine, settings, Folds(3, given=given), 1e-6, alphas, 5, 0.05)
        again = plain.fitting(data, penalty="l1", tol=1e-6, hypotheses=hypotheses).fit(results[-1].alpha, results[-1])
        assert again.n_iter <= 2 and again.objective == pytest.approx(results[-1].objective, rel=1e-6)
        found.append(([r.objective for r in results], scores))
    (mine, my_scores), (theirs, their_scores) = found
    np.testing.assert_allclose(mine, theirs, rtol=2e-6)
    np.testing.assert_allclose(my_scores.loss, their_scores.loss, rtol=1e-3)
    np.testing.assert_allclose(my_scores.error, their_scores.error)


@pytest.mark.parametrize("penalty", ["l1", "l1/l2"])
def test_kernels_that_hardly_differ_from_one_are_scaled_by_what_they_differ(penalty):
    """Of such columns E[h**2] - E[h]**2 is rounding: as constants they were left out of a model that was certified."""
    data = dense("log", n=4)
    settings = {"penalty": penalty, "tol": 1e-7, "standardize": True}
    fitting = plain.fitting(data, 1, hypotheses=Kernels(20, gamma=1e-7), **settings)
    part = fitting.plan.items[0]
    raw = Block(part.indptr, part.rows, part.values, part.n_rows)
    made = fitting.problem.pool.columns(raw, [(j,) for j in range(20)])
    H = plain.sp.csc_array((made.values, made.rows, made.indptr), shape=(160, 20)).toarray()
    explicit = plain.fitting(replace(data, X=H), 1, **settings)
    assert fitting.alpha_max() == pytest.approx(explicit.alpha_max(), rel=1e-6)
    alpha = 0.1 * explicit.alpha_max()
    found, wanted = fitting.fit(alpha), explicit.fit(alpha)
    assert found.stop_reason == wanted.stop_reason == "tol" and found.active.size
    assert found.objective == pytest.approx(wanted.objective, rel=1e-6)
