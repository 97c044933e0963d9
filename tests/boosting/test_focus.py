"""Steps on the few rows that keep a model from its certificate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dboost.certificate.duality_gap import restricted_gap
from dboost.compiled.sparse import columns
from dboost.passes import examples
from dboost.problem.accelerators import Accelerators
from dboost.problem.iterate import Iterate
from dboost.problem.tuning import Tuning, WorstRows
from dboost.solvers.newton import step as newton
from dboost.solvers.newton import worst_rows
from dboost.solvers.newton.accuracy import Aim
from tests.boosting import plain

M, N, K = 400, 40, 4
PENALTIES = ["l1", "l1/l2", "l1/linf"]
# the rows that are moved away from the optimum
SPOILT = np.array([3, 17])


def spoilt(penalty, intercept=False):
    """Problem, strength, the optimum on all rows, and the same with the step of a few rows taken back in part."""
    data = plain.make("multinomial", m=M, n=N, k=K)
    fitting = plain.fitting(data, penalty=penalty, tol=1e-10, fit_intercept=intercept, max_rounds=200)
    alpha = 0.02 * plain.alpha_max(data, penalty, intercept)
    found = fitting.fit(alpha)
    problem, lam = fitting.problem, alpha * data.s.sum()
    W = np.zeros((N, K))
    W[found.active] = found.W
    best = problem.evaluate(np.arange(N), W, found.intercept)
    V = W.copy()
    V[SPOILT] *= 0.7
    return problem, lam, best, problem.evaluate(np.arange(N), V, found.intercept)


def test_rows_are_few_only_where_they_make_up_the_gap():
    problem, lam, best, _ = spoilt("l1/l2")
    # so large a pull on two rows that nothing else counts
    G = best.G.copy()
    G[SPOILT] *= 2.0
    at = replace(best, G=G)
    gap = restricted_gap(problem, at, lam, False)
    assert worst_rows.few_rows(problem, at, lam, gap, 1e-6 * gap, False, WorstRows(first=2)).tolist() == SPOILT.tolist()
    # the other rows leave hardly anything of it
    others = np.setdiff1d(np.arange(N), SPOILT)
    rest = Iterate(others, at.W[others], at.intercept, at.loss, at.G[others], at.bias)
    assert restricted_gap(problem, rest, lam, False) <= 0.01 * gap
    at = replace(best, G=2.0 * best.G)
    gap = restricted_gap(problem, at, lam, False)
    assert worst_rows.few_rows(problem, at, lam, gap, 1e-6 * gap, False, WorstRows(first=2)) is None


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("intercept", [True, False])
def test_a_step_on_the_spoilt_rows_restores_the_optimum(penalty, intercept):
    problem, lam, best, at = spoilt(penalty, intercept)
    excess = problem.objective(at, lam) - problem.objective(best, lam)
    assert excess > 1e-4 * problem.objective(best, lam)
    for _ in range(6):
        D = worst_rows.focused_step(problem, at, lam, SPOILT, seed=1)
        assert not np.delete(D, SPOILT, axis=0).any()
        at = problem.evaluate(at.active, at.W + D, at.intercept)
    assert problem.objective(at, lam) - problem.objective(best, lam) < 1e-6 * excess


@pytest.mark.parametrize("penalty", PENALTIES)
def test_steps_take_the_few_rows_they_are_told_to(penalty):
    problem, lam, best, at = spoilt(penalty)

    def stepped(**sizes):
        # so few columns would be solved for together
        fast = Accelerators(plain.without("formed_curvature"), Tuning(worst_rows=WorstRows(**sizes)))
        steps = newton.NewtonSteps(problem, at.active, M, 1.0, 0, newton.Memory(), fast)
        return steps.step(at, lam, Aim(True, few=SPOILT))

    moved, step = stepped()
    assert step.kind == "focused" and problem.objective(moved, lam) < problem.objective(at, lam)
    np.testing.assert_array_equal(np.delete(moved.W, SPOILT, axis=0), np.delete(at.W, SPOILT, axis=0))
    # where it costs too much an ordinary step is taken
    assert stepped(cheap=0.0)[1].kind == "descent"


@pytest.mark.parametrize("penalty", PENALTIES)
def test_fits_with_steps_on_few_rows_reach_the_certified_optimum(penalty, solve):
    often = Tuning(worst_rows=WorstRows(first=1, share=0.5, cheap=1.0))
    data, alpha, best = solve("multinomial", penalty, 0.02, m=M, n=N, k=K)
    result = plain.fitting(data, penalty=penalty, tol=1e-8, sample=0.3, max_rounds=200, tuning=often).fit(alpha)
    assert result.taken["worst_rows"] > 0
    assert result.gap <= 1e-8
    assert result.objective * data.s.sum() == pytest.approx(best.value, rel=1e-7)


def test_examples_are_those_that_hold_one_of_the_columns():
    problem, _, _, at = spoilt("l1/l2", intercept=True)
    found = problem.own_pass(examples.examples_of, at, SPOILT, name="focus").parts["examples"]
    data = plain.make("multinomial", m=M, n=N, k=K)
    X = np.asarray(data.X)[:, SPOILT]
    chosen = np.flatnonzero(X.any(axis=1))
    counts, slots, values, h, rank_one, weight = (np.concatenate([p[c] for p in found]) for c in range(6))
    pointer = np.concatenate([[0], np.cumsum(counts)])
    dense = np.zeros((chosen.shape[0], 2))
    for i in range(chosen.shape[0]):
        dense[i, slots[pointer[i] : pointer[i + 1]]] = values[pointer[i] : pointer[i + 1]]
    np.testing.assert_allclose(dense, X[chosen], rtol=1e-6)
    np.testing.assert_allclose(weight, data.s[chosen])
    F = np.asarray(data.X) @ at.W + at.intercept
    q = np.exp(F - F.max(axis=1, keepdims=True))
    q /= q.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(h[:, :K], (q * data.s[:, None])[chosen], rtol=1e-5)
    np.testing.assert_allclose(rank_one, 1.0 / data.s[chosen])


def test_rows_that_store_a_column_agree_with_sets():
    rng = np.random.default_rng(0)
    for _ in range(50):
        rows = [np.sort(rng.choice(9, rng.integers(0, 5), replace=False)) for _ in range(rng.integers(0, 12))]
        pointer = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)
        slots = np.concatenate([*rows, []]).astype(np.int32)
        wanted = set(rng.choice(9, rng.integers(0, 4), replace=False).tolist())
        place = np.array([0 if j in wanted else -1 for j in range(9)], np.int32)
        expected = [i for i, r in enumerate(rows) if wanted & set(r.tolist())]
        assert columns.rows_with(pointer, slots, place).tolist() == expected
