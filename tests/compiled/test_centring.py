"""Columns less a number: moments about it and the block without it, against dense long doubles."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dboost.compiled.sparse.centring import less_centres, moments_about
from tests.compiled.conftest import arrays

COLUMNS = np.array([0, 2, 3])


@pytest.fixture
def dense():
    """Column 0 is full, 1 and 3 are sparse, 2 is constant but for a row, 4 empty."""
    rng = np.random.default_rng(0)
    X = np.zeros((40, 5))
    X[:, 0] = 1.7e9 + np.arange(40)
    X[:, 2] = 3.0
    X[7, 2] = 5.0
    X[:, [1, 3]] = rng.normal(size=(40, 2)) * (rng.random((40, 2)) < 0.5)
    return X


def test_moments_are_those_of_all_examples_stored_or_not(dense):
    weight = np.random.default_rng(1).random(40)
    weight[3] = 0.0
    centres = np.array([1.7e9 + 19.0, 3.1, 0.25])
    total, square, stored = np.zeros(3), np.zeros(3), np.zeros(3)
    moments_about(*arrays(sp.csc_array(dense)), weight, COLUMNS, centres, total, square, stored)
    apart = dense[:, COLUMNS].astype(np.longdouble) - centres
    np.testing.assert_allclose(total, (weight[:, None] * apart).sum(0).astype(float), rtol=1e-13)
    np.testing.assert_allclose(square, (weight[:, None] * apart**2).sum(0).astype(float), rtol=1e-13)
    np.testing.assert_array_equal(stored, np.count_nonzero(dense[:, COLUMNS], axis=0))


def test_small_weights_of_examples_that_store_nothing_count_beside_large_ones():
    """Their weight as the difference of two sums would be rounding: 1e-8 beside weights of 5e7."""
    X, weight = np.array([[1.0], [0.0], [0.0]]), np.array([5e7, 8e-4, 8e-7])
    total, square, stored = np.zeros(1), np.zeros(1), np.zeros(1)
    moments_about(*arrays(sp.csc_array(X)), weight, np.array([0]), np.array([1.0]), total, square, stored)
    assert total[0] == -(8e-4 + 8e-7) and square[0] == 8e-4 + 8e-7 and stored[0] == 1.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_block_less_its_centres_holds_every_difference_and_no_zeros(dense, dtype):
    X = dense.astype(dtype)
    centres = np.array([np.float32(1.7e9), 3.0, 0.25], np.float64)
    indptr, rows, values = less_centres(*arrays(sp.csc_array(X)), 40, COLUMNS, centres)
    wanted = X.astype(np.float64)
    wanted[:, COLUMNS] -= centres
    assert np.all(values != 0.0)
    np.testing.assert_array_equal(sp.csc_array((values, rows, indptr), shape=X.shape).toarray(), wanted)
    assert np.all(np.diff(rows)[np.diff(np.repeat(np.arange(5), np.diff(indptr))) == 0] > 0)


def test_differences_that_float32_cannot_hold_are_stored_in_float64(dense):
    X = dense.astype(np.float32)
    centre = np.array([0.1])
    indptr, rows, values = less_centres(*arrays(sp.csc_array(X)), 40, COLUMNS[2:], centre)
    assert values.dtype == np.float64
    mine = slice(indptr[3], indptr[4])
    np.testing.assert_array_equal(values[mine], X[rows[mine], 3].astype(np.float64) - centre)
