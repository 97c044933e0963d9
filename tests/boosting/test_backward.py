"""The way back of ShareBoost: costs from the formula, every model a minimum, the path, resuming."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from dboost.boosting.shareboost import REMOVAL, removal_costs
from dboost.hypotheses.columns import Columns
from dboost.hypotheses.pieces.family import PiecewiseLinear
from dboost.hypotheses.products.family import Products
from tests.boosting import plain
from tests.boosting.test_resume import bits
from tests.boosting.test_shareboost import LOSSES, Reference, fitted, stages


def hessians(data, rows, W, b, lam):
    """Hessian of loss plus ridge in the weights of each class and its intercept, (k, a + 1, a + 1)."""
    X = np.column_stack([data.X[:, rows], np.ones(len(data.s))])
    F = data.X[:, rows] @ W + b
    if data.k == 1:
        p = 1 / (1 + np.exp(-F))
    else:
        F = F + (0 if data.loss == "multinomial" else 1 - np.eye(data.k)[data.y])
        p = np.exp(F - F.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
    h = data.s[:, None] * p * (1 - p)
    ridge = lam * np.diag(np.append(np.ones(len(rows)), 0.0))
    return np.array([X.T @ (h[:, [c]] * X) + ridge for c in range(data.k)])


def removed(result):
    return [record for record in result.history if record["step"] == REMOVAL]


@pytest.mark.parametrize("loss", LOSSES)
def test_costs_are_the_formula(loss):
    data = plain.make(loss, m=80, n=8, weights=True, seed=3)
    fitting = plain.fitting(data, cuts=3, penalty="l2_squared")
    problem = fitting.problem
    rng = np.random.default_rng(0)
    rows, W, b = np.array([0, 2, 3, 6]), rng.normal(size=(4, data.k)), rng.normal(size=data.k)
    lam = 1e-2 * data.s.sum()
    iterate = replace(problem.null(), active=rows, W=W, intercept=b)
    groups = [np.array([0]), np.array([1, 3]), np.array([2])]
    found = removal_costs(problem, iterate, lam, groups, 80)
    inverse = np.linalg.inv(hessians(data, rows, W, b, lam))
    for places, cost in zip(groups, found.tolist(), strict=True):
        each = [W[places, c] @ np.linalg.inv(inverse[c][np.ix_(places, places)]) @ W[places, c] for c in range(data.k)]
        assert cost == pytest.approx(0.5 * sum(each), rel=1e-5)


@pytest.mark.full
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", ["l2_squared", "smooth_l1/linf"])
def test_every_model_of_the_way_back_is_the_minimum_of_its_features(loss, penalty):
    data = plain.make(loss, m=120, n=12, weights=True, seed=5)
    result = fitted(data, rounds=7, alpha=1e-3, penalty=penalty, keep=5)
    assert [record["features"] for record in result.history] == [1, 2, 3, 4, 5, 6, 7, 6, 5, 4, 3, 2, 1]
    assert result.stop_reason == "kept" and result.active.shape == (5,)
    path = stages(result)
    assert [len(order) for order, _, _ in path] == [1, 2, 3, 4, 5]
    for (small, _, _), (large, _, _) in zip(path, path[1:], strict=False):
        assert large[: len(small)].tolist() == small.tolist()
    values = {record["features"]: record["objective"] for record in removed(result)}
    # the gradient that is left, of loss and penalty, by column length
    assert max(record["gradient"] for record in removed(result)) <= 1e-7
    for order, W, b in path:
        if penalty == "l2_squared":
            reference = Reference(data, 1e-3)
            best = reference.minimum(order, W)
            assert reference.objective(order, W, b) <= best * (1 + 1e-9)
            assert values[len(order)] * data.s.sum() == pytest.approx(best, rel=1e-9)
        U = data.residual(data.X[:, order] @ W + b)
        assert np.abs(U.sum(axis=0)).max() <= 1e-6 * data.s.sum()
    order, W, b = path[-1]
    places = np.argsort(order)
    assert result.active.tolist() == order[places].tolist() and result.W.tobytes() == W[places].tobytes()
    assert result.objective == pytest.approx(values[5], rel=1e-12) and np.all(result.intercept == b)


def test_the_cheapest_leaves():
    data = plain.make("margin_softmax", m=150, n=8, seed=6)
    result = fitted(data, rounds=6, keep=6, alpha=1e-3)
    fitting = plain.fitting(data, penalty="l2_squared")
    path = stages(result)
    for (small, _, _), (large, W, b) in zip(path, path[1:], strict=False):
        places = np.argsort(large)
        iterate = replace(fitting.problem.null(), active=large[places], W=W[places], intercept=b)
        costs = removal_costs(fitting.problem, iterate, 1e-3 * 150, [np.array([i]) for i in range(len(large))], 150)
        assert {int(large[places][np.argmin(costs)])} == set(large.tolist()) - set(small.tolist())


@pytest.mark.parametrize("keep", [4, 9])
def test_what_has_grown_stays_where_enough_may_be_kept(keep):
    data = plain.make("margin_softmax", m=100, n=9, seed=7)
    grown, back = fitted(data, rounds=4), fitted(data, rounds=4, keep=keep)
    assert back.W.tobytes() == grown.W.tobytes() and back.objective == pytest.approx(grown.objective, rel=1e-14)
    assert [len(order) for order, _, _ in stages(back)] == [1, 2, 3, 4]


def test_groups_leave_whole():
    data = plain.make("margin_softmax", m=120, n=12, seed=8)
    groups = tuple((np.arange(12) % 4 + 7).tolist())
    result = fitted(data, rounds=4, groups=groups, keep=7)
    assert [record["features_out"] for record in removed(result)] == [3, 3, 3]
    assert [len(order) for order, _, _ in stages(result)] == [3, 6] and result.active.shape == (6,)
    for order, _, _ in stages(result):
        assert set(np.bincount(order % 4, minlength=4).tolist()) <= {0, 3}
    # no model is as small as that: the smallest
    least = fitted(data, rounds=2, groups=groups, keep=1)
    assert least.active.shape == (3,) and len(stages(least)) == 1


def test_pieces_leave_whole():
    data = plain.make("margin_softmax", m=90, n=3, seed=9)
    family = PiecewiseLinear(centres=4, radii=2)
    result = fitted(data, rounds=3, hypotheses=family, keep=10**6, tol=1e-4)
    sizes = [record["features_in"] for record in result.history if record["features_in"]]
    assert len(removed(result)) == 2 and max(sizes) > 1
    counts = [len(order) for order, _, _ in stages(result)]
    assert len(counts) == 3 and set(np.diff([0, *counts]).tolist()) <= set(sizes)


@pytest.mark.full
@pytest.mark.parametrize("family", [None, Columns(), Products(max_degree=2)])
def test_any_round_can_be_resumed_and_threads_change_nothing(family):
    data = plain.make("margin_softmax", m=60, n=6, weights=True, seed=20)
    states = []

    def run(**more):
        return fitted(data, "row", rounds=4, hypotheses=family, tol=1e-5, keep=3, **more)

    whole = run(callback=lambda record, state: states.append(pickle.dumps(state)))
    assert len(states) == 7
    for stopped in range(7):
        resumed = run(resume=pickle.loads(states[stopped]))
        assert bits(resumed) == bits(whole)
        for name, value in whole.state.carried.items():
            assert value.tobytes() == resumed.state.carried[name].tobytes()
    assert bits(run(threads=3)) == bits(whole)
    ended = run(resume=pickle.loads(pickle.dumps(whole.state)))
    assert bits(ended) == bits(whole) and ended.stop_reason == "kept"


def test_a_fit_stopped_on_its_way_back_has_a_model_and_its_path():
    data = plain.make("margin_softmax", m=100, n=9, seed=10)
    early = fitted(
        data, rounds=6, keep=3, callback=lambda record, state: record["features_out"] and len(state.active) == 4
    )
    assert early.stop_reason == "callback" and early.active.shape == (4,)
    assert [len(order) for order, _, _ in stages(early)] == [4]
    late = fitted(
        data, rounds=6, keep=4, callback=lambda record, state: record["features_out"] and len(state.active) == 2
    )
    assert late.active.shape == (4,) and [len(order) for order, _, _ in stages(late)] == [2, 3, 4]


def test_a_fit_that_finds_nothing_has_no_way_back():
    data = plain.make("margin_softmax", m=60, n=3, seed=13)
    data.X[:] = 1.0
    result = fitted(data, rounds=5, keep=2)
    assert result.stop_reason == "gradient" and result.active.shape == (0,)
