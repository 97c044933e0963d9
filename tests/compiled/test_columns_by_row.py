"""Products of columns that are held by row: the same bits however they were held."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

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


def test_chunks_change_no_bit(block):
    whole, h = block.toarray().astype(float), np.random.default_rng(1).random(M)
    held, new = np.arange(30), np.array([35, 31, 38])
    found = []
    for counts in ([30], [1, 2, 3, 30], [20, 25, 27, 29, 30], [10, 20, 30, 30]):
        columns = ColumnsByRow(M)
        for count in counts:
            columns.hold(*arrays(block), held[:count])
        found.append(columns.products(*arrays(block), new, h, in_turn))
    np.testing.assert_allclose(found[0], whole[:, new].T @ (h[:, None] * whole[:, held]), rtol=1e-11, atol=1e-12)
    assert all(np.array_equal(other, found[0]) for other in found[1:])
