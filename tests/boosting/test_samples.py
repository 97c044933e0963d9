"""How many examples the curvature of a Newton step is taken from, and what they say of all."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dboost.problem.accelerators import Accelerators
from dboost.problem.memory import Memory
from dboost.problem.sample import Sample, share_for
from dboost.problem.tuning import Samples, Tuning
from dboost.solvers.newton.step import NewtonSteps
from tests.boosting import plain

M, N, K = 300, 12, 4


@pytest.fixture
def problem():
    return plain.fitting(plain.make("multinomial", m=M, n=N, k=K), penalty="l1/l2").problem


def drawn_share(problem, rows, gap=math.inf, **sizes):
    """The share of the examples that steps on so many rows draw."""
    return share_for(problem, np.arange(rows), M, gap, Samples(**sizes))


@pytest.mark.parametrize("rows, share", [(2, 40 / M), (4, 80 / M), (8, 1.0)])
def test_there_are_so_many_examples_for_each_row(problem, rows, share):
    assert drawn_share(problem, rows, tiny=0) == pytest.approx(share)


def test_dense_columns_need_fewer_examples(problem):
    stored = problem.statistics.values(np.arange(4), M)
    share = drawn_share(problem, 4, tiny=0, values_per_row=10)
    assert share == pytest.approx(max(0.1, 10 * 4 / stored)) and share < 80 / M


def test_little_data_is_taken_whole_near_the_optimum_only(problem):
    assert drawn_share(problem, 2, gap=1e-3, tiny=0) == 1.0
    assert drawn_share(problem, 2, gap=1e-3, tiny=0, small=0) < 1.0


def test_very_little_data_is_always_taken_whole(problem):
    assert drawn_share(problem, 2) == 1.0


@pytest.mark.parametrize("sample, names, share", [
    ("auto", ("sampled_curvature",), 40 / M), ("auto", (), 1.0), (0.5, ("sampled_curvature",), 0.5)
])  # fmt: skip
def test_steps_draw_that_share(problem, sample, names, share):
    fast = Accelerators(names, Tuning(samples=Samples(tiny=0)))
    steps = NewtonSteps(problem, np.arange(2), M, sample, 0, Memory(), fast)
    seen = steps.sample.weight.shape[0]
    assert seen == M if share == 1.0 else 0.5 * share * M < seen < 1.6 * share * M
    assert fast.taken["sampled_curvature"] == (share == 40 / M)


def test_number_of_stored_values_is_never_overestimated(problem):
    data = plain.make("multinomial", m=M, n=N, k=K)
    stored = problem.statistics.values(np.arange(N), M)
    assert 0.3 * np.count_nonzero(data.X) < stored <= np.count_nonzero(data.X)


@pytest.mark.parametrize("intercept", [True, False])
def test_diagonal_of_all_examples_grows_with_the_squares_that_the_sample_lacks(problem, intercept):
    active = np.arange(N)
    square = problem.statistics.square[active]
    diagonal = np.random.default_rng(0).random((N + intercept, K))
    whole = Sample.drawn(problem, active, 1.0, 0)
    np.testing.assert_allclose(whole.of_all(diagonal, square), diagonal, rtol=1e-6)
    some = Sample.drawn(problem, active, 0.5, 0)
    indptr, row, values = some.by_column
    seen = np.array(
        [np.sum(some.weight[row[p:q]] * values[p:q] ** 2) for p, q in zip(indptr, indptr[1:], strict=False)]
    )
    full = some.of_all(diagonal, square)
    np.testing.assert_allclose(full[:N], diagonal[:N] * (square / seen)[:, None], rtol=1e-6)
    np.testing.assert_array_equal(full[N:], diagonal[N:])


def test_column_that_the_sample_lacks_is_as_curved_as_the_others(problem):
    rare = np.zeros(N)
    # beyond what a quotient by the smallest number holds
    rare[[2, 5]] = 10.0, 30.0
    some = Sample.drawn(problem, np.arange(N), 0.5, 0)
    indptr, row, values = some.by_column
    # take the values of the two columns out of the sample
    values[indptr[2] : indptr[3]] = values[indptr[5] : indptr[6]] = 0.0
    square = np.where(rare > 0.0, rare, problem.statistics.square)
    diagonal = np.where(rare[:, None] > 0.0, 0.0, 1.0) * np.arange(1.0, K + 1.0)
    full = some.of_all(diagonal, square)
    assert np.all(full > 0.0)
    np.testing.assert_allclose(full[5], 3.0 * full[2])
    np.testing.assert_allclose(full[2] / full[2].sum(), np.arange(1.0, K + 1.0) / 10.0)
