"""Positive semidefinite systems: the factor against NumPy, and copies of columns."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.compiled.solves.positive import factor, solve, solve_positive


@pytest.mark.parametrize("n", [1, 2, 5, 8, 40])
def test_the_factor_gives_the_matrix_back(n, rng):
    A = rng.normal(size=(n + 3, n))
    H = A.T @ A
    U = H.copy()
    factor(U, 1e-12)
    U = np.triu(U)
    np.testing.assert_allclose(U.T @ np.diag(1.0 / np.diag(U)) @ U, H, rtol=1e-10, atol=1e-12)
    x = H @ np.arange(1.0, n + 1)
    solve(U, x)
    np.testing.assert_allclose(x, np.arange(1.0, n + 1), rtol=1e-8)


def test_solve_with_copies_of_columns(rng):
    A = rng.normal(size=(9, 4))
    A = np.column_stack([A, A[:, 1], np.zeros(9), A[:, 0]])
    H = A.T @ A
    x = solve_positive(H.copy(), H @ np.ones(7), 1e-10)
    np.testing.assert_allclose(H @ x, H @ np.ones(7), atol=1e-9)
    assert np.all(x[4:] == 0.0)
