"""Positive semidefinite systems: the factor against NumPy, copies of columns, blocks that share a vector."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.compiled.solves.positive import factor, factor_blocks, solve, solve_blocks, solve_positive


@pytest.mark.parametrize("n", [1, 2, 7, 8, 33, 75])
def test_solve(n, rng):
    A = rng.normal(size=(n + 3, n))
    H, g = A.T @ A, rng.normal(size=n)
    np.testing.assert_allclose(solve_positive(H.copy(), g, 1e-12), np.linalg.solve(H, g), rtol=1e-8)


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


def test_blocks_solve_for_their_own_places(rng):
    A = rng.normal(size=(2, 6, 3))
    H = np.einsum("bij,bil->bjl", A, A)
    # as a block is built: nobody's place has a row of the unit matrix
    H[1, 2], H[1, :, 2], H[1, 2, 2] = 0.0, 0.0, 1.0
    places = np.array([[4, 0, 2], [1, 5, -1]])
    r, z = rng.normal(size=7), np.full(7, 9.0)
    wanted = z.copy()
    wanted[[4, 0, 2]] = np.linalg.solve(H[0], r[[4, 0, 2]])
    wanted[[1, 5]] = np.linalg.solve(H[1, :2, :2], r[[1, 5]])
    factor_blocks(H, 1e-12)
    solve_blocks(H, places, r, z)
    np.testing.assert_allclose(z, wanted, rtol=1e-8)
