"""How many examples the curvature of a Newton step is taken from, and what they say of all."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dboost.problem import sample as samples
from dboost.problem.sample import Sample
from dboost.solvers.newton import step
from tests.boosting import plain

M, N, K = 300, 12, 4


@pytest.fixture
def problem():
    return plain.fitting(plain.make("multinomial", m=M, n=N, k=K), penalty="l1/l2").problem


def drawn_share(problem, monkeypatch, rows, gap=math.inf):
    """The share of the examples that steps on so many rows draw."""
    drawn, draw = [], problem.sample

    def sample(active, share, seed):
        drawn.append(share)
        return draw(active, share, seed)

    monkeypatch.setattr(problem, "sample", sample)
    step.NewtonSteps(problem, np.arange(rows), M, "auto", 0, step.Memory(), gap)
    return drawn[0]


@pytest.mark.parametrize("rows, share", [(2, 40 / M), (4, 80 / M), (8, 1.0)])
def test_there_are_so_many_examples_for_each_row(problem, monkeypatch, rows, share):
    monkeypatch.setattr(samples, "_TINY", 0)
    assert drawn_share(problem, monkeypatch, rows) == pytest.approx(share)


def test_dense_columns_need_fewer_examples(problem, monkeypatch):
    monkeypatch.setattr(samples, "_TINY", 0)
    monkeypatch.setattr(samples, "_VALUES_PER_ROW", 10)
    stored = problem.statistics.values(np.arange(4), M)
    share = drawn_share(problem, monkeypatch, 4)
    assert share == pytest.approx(max(0.1, 10 * 4 / stored)) and share < 80 / M


def test_little_data_is_taken_whole_near_the_optimum_only(problem, monkeypatch):
    monkeypatch.setattr(samples, "_TINY", 0)
    assert drawn_share(problem, monkeypatch, 2, gap=1e-3) == 1.0
    monkeypatch.setattr(samples, "_SMALL", 0)
    assert drawn_share(problem, monkeypatch, 2, gap=1e-3) < 1.0


def test_very_little_data_is_always_taken_whole(problem, monkeypatch):
    assert drawn_share(problem, monkeypatch, 2) == 1.0


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
