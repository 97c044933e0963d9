"""Columns by row: turned, put beside one another, and multiplied."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dboost.compiled.solves.columns_by_row import beside, products, turned
from dboost.solvers.one_output.columns_by_row import ColumnsByRow

M = 300


@pytest.fixture(params=[np.float32, np.float64])
def block(request):
    """Columns of 300 examples, one of them empty and one full."""
    rng = np.random.default_rng(12)
    X = sp.random(M, 40, 0.2, format="csc", rng=rng).toarray()
    X[:, 5], X[:, 9] = 0.0, rng.normal(size=M)
    return sp.csc_matrix(X.astype(request.param))


def arrays(block):
    return block.indptr.astype(np.int64), block.indices, block.data


def in_turn(each, given):
    return [each(part) for part in given]


def dense(by_row, width):
    pointer, slots, x = by_row
    return sp.csr_matrix((x, slots, pointer), shape=(M, width)).toarray()


def test_columns_are_turned_and_put_beside_one_another(block):
    whole = block.toarray()
    left, right = np.array([2, 9, 5]), np.array([0, 39, 5, 7])
    a, b = turned(*arrays(block), left, M), turned(*arrays(block), right, M)
    assert a[2].dtype == block.dtype
    assert np.array_equal(dense(a, 3), whole[:, left]) and np.array_equal(dense(b, 4), whole[:, right])
    assert np.array_equal(dense(beside(a, b, 3), 7), whole[:, np.concatenate([left, right])])


def test_products_of_some_examples_are_added(block):
    whole, h = block.toarray().astype(float), np.random.default_rng(1).random(M)
    left, right = np.array([2, 9, 5, 11]), np.array([0, 39, 5])
    sums = np.ones((4, 3))
    given = turned(*arrays(block), left, M), turned(*arrays(block), right, M)
    products(*given, h, 20, 111, sums)
    some = slice(20, 111)
    np.testing.assert_allclose(
        sums, 1.0 + whole[some, left].T @ (h[some, None] * whole[some][:, right]), rtol=1e-11, atol=1e-12
    )


def test_chunks_change_no_bit(block):
    whole, h = block.toarray().astype(float), np.random.default_rng(1).random(M)
    held, new = np.arange(30), np.array([35, 31, 38])
    found = []
    for steps in ([30], [1, 1, 1, 27], [20, 5, 2, 2, 1], [10, 10, 10]):
        columns = ColumnsByRow(M)
        for chunk in np.split(held, np.cumsum(steps)[:-1]):
            columns.append(*arrays(block), chunk)
        columns.append(*arrays(block), held[:0])
        assert columns.count == 30
        found.append(columns.products(*arrays(block), new, h, in_turn))
    np.testing.assert_allclose(found[0], whole[:, new].T @ (h[:, None] * whole[:, held]), rtol=1e-11, atol=1e-12)
    assert all(np.array_equal(other, found[0]) for other in found[1:])
