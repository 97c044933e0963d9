"""How many examples the curvature of a Newton step is taken from, and what they say of all."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.problem.sample import Sample
from tests.boosting import plain

M, N, K = 300, 12, 4


@pytest.fixture
def problem():
    return plain.fitting(plain.make("multinomial", m=M, n=N, k=K), penalty="l1/l2").problem


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
