"""The raw columns as a pool: sums, shards, columns of a block, what a model holds of them."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.errors import UsageError
from dboost.hypotheses.base import Family
from dboost.hypotheses.columns import Columns, ColumnsPool
from tests.hypotheses.conftest import Raw, check_sums, dense


@pytest.fixture(params=[np.float32, np.float64])
def raw(request):
    """Of numbers that float32 holds; one column is zero, and some weights."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(30, 7)) * (rng.random((30, 7)) < 0.6)).astype(np.float32)
    X[:, 5] = 0.0
    weight = rng.uniform(0.5, 2.0, 30)
    weight[::6] = 0.0
    return Raw(X, weight, dtype=request.param)


def test_sums_are_those_of_the_explicit_columns(raw):
    assert check_sums(raw, raw.prepare(Columns())) == [(j,) for j in range(7)]


def test_shards_cover_every_column_once_and_respect_their_size():
    found = ColumnsPool(7)
    assert (found.size, found.searched) == (7, False)
    for row_bytes, shard_bytes, longest in ((16, 48, 3), (16, 1, 1), (16, 10**6, 7)):
        shards = found.shards([(3,)], row_bytes, shard_bytes)
        assert [key for shard in shards for key in found.keys(shard)] == [(j,) for j in range(7)]
        assert max(stop - start for start, stop in shards) == longest
    assert found.keys((2, 6), np.array([3, 0])) == [(5,), (2,)]


def test_columns_of_a_block_are_cut_in_the_order_asked(raw):
    made = ColumnsPool(7).columns(raw.block(), [(6,), (5,), (0,)])
    np.testing.assert_array_equal(dense(made), raw.X[:, [6, 5, 0]])
    assert (made.indptr.dtype, made.rows.dtype, made.n_rows) == (np.int64, np.int32, 30)
    assert ColumnsPool(7).columns(raw.block(), []).indptr.tolist() == [0]


def test_names_and_what_a_model_holds():
    found, names = ColumnsPool(7), tuple("abcdefg")
    assert found.names([(0,), (6,)], names) == ["a", "g"]
    assert found.names([(0,), (6,)], None) == ["x0", "x6"]
    held = found.chosen([(1,), (4,)], names)
    assert (held.inputs.tolist(), held.words(), held.n_hypotheses) == ([1, 4], ["b", "e"], 2)
    assert held == found.chosen([(1,), (4,)], names)
    assert held.family == Columns().to_json()["family"] == "columns"


def test_a_family_is_told_from_other_things():
    assert isinstance(Columns(), Family)
    assert not isinstance("columns", Family)
    assert ColumnsPool(3).token != ColumnsPool(4).token
    with pytest.raises(UsageError, match="takes none"):
        Columns.from_json({"family": "columns", "max_degree": 2})
