"""Rows in memory: every container gives the same blocks, and bad values are named."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

from dboost.data import build_plan
from dboost.data.blocks import GROUP_ROWS, rows_per_block
from dboost.data.sparse import csc
from dboost.engine.local import LocalEngine
from dboost.errors import DataError, UsageError
from tests.data.conftest import plan, same

NAMES = tuple("abcdefg")


def containers(X):
    """Every supported container of the same matrix, with the feature names it carries."""
    dense = X.toarray()
    frame = pd.DataFrame(dense, columns=list(NAMES))
    yield "csr_array", sparse.csr_array(X), None
    yield "csc", X.tocsc(), None
    yield "coo", X.tocoo(), None
    yield "coo_array", sparse.coo_array(X), None
    yield "bsr", X.tobsr(), None
    yield "dense", dense, None
    yield "fortran", np.asfortranarray(dense), None
    yield "big endian", dense.astype(">f8"), None
    yield "lists", dense.tolist(), None
    yield "objects", dense.astype(object), None
    yield "read-only", _frozen(dense), None
    yield "pandas", frame, NAMES
    yield "pandas sparse", frame.astype(pd.SparseDtype(float, 0.0)), NAMES
    yield "pandas nullable", frame.astype("Float64"), NAMES
    yield "arrow", pa.table({name: dense[:, j] for j, name in enumerate(NAMES)}), NAMES


def _frozen(array):
    array = array.copy()
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("blocks", [1, 4])
def test_every_container_gives_the_same_bits(small, monkeypatch, blocks):
    monkeypatch.setattr("dboost.data.blocks.BLOCK_COST", 230 if blocks == 1 else 50)
    reference = plan(small.X, small.y, small.weight)
    assert len(reference.items) == blocks
    for name, X, names in containers(small.X):
        found = plan(X, small.y, small.weight)
        same(found, reference)
        assert found.feature_names == names
        assert found.n_features == 7, name
        if names is None:
            assert found.fingerprint == reference.fingerprint, name


def test_blocks_hold_the_matrix(small, monkeypatch):
    monkeypatch.setattr("dboost.data.blocks.BLOCK_COST", 50)
    found = plan(small.X, small.y)
    parts = [sparse.csc_array((p.values, p.rows, p.indptr), shape=(p.n_rows, 7)).toarray() for p in found.items]
    np.testing.assert_array_equal(np.vstack(parts), small.X.toarray())
    assert len({p.key for p in found.items}) == len(found.items)
    assert all(p.indptr.dtype == np.int64 and p.rows.dtype == np.int32 for p in found.items)
    assert found.nbytes_estimate == sum(p.nbytes for p in found.items)


def test_duplicates_zeros_and_unsorted_columns_change_nothing(small):
    X = small.X
    messy = sparse.csr_matrix(
        (np.concatenate([X.data, [0.0]]), np.concatenate([X.indices, [3]]), np.append(X.indptr[:-1], X.nnz + 1)),
        shape=X.shape,
    )
    start, stop = messy.indptr[5:7]
    messy.indices[start:stop] = messy.indices[start:stop][::-1].copy()
    messy.data[start:stop] = messy.data[start:stop][::-1].copy()
    before = messy.data.copy(), messy.indices.copy()
    same(plan(messy, small.y), plan(X, small.y))
    np.testing.assert_array_equal(messy.data, before[0])
    np.testing.assert_array_equal(messy.indices, before[1])
    doubled = sparse.csr_matrix(
        (np.array([1.0, 2.0, 5.0, -5.0, 4.0]), np.array([1, 1, 0, 0, 0]), np.array([0, 4, 5])), shape=(2, 2)
    )
    single = plan(doubled, [0, 1]).items[0]
    np.testing.assert_array_equal(
        sparse.csc_array((single.values, single.rows, single.indptr), shape=(2, 2)).toarray(), [[0, 3], [4, 0]]
    )
    assert single.values.shape == (2,)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("blocks", [1, 4])
def test_threads_and_a_digest_that_is_made_aside_change_nothing(small, monkeypatch, blocks, threads):
    monkeypatch.setattr("dboost.data.blocks.BLOCK_COST", 230 if blocks == 1 else 50)
    reference = plan(small.X, small.y, small.weight)
    monkeypatch.setattr("dboost.data.plan.ASIDE_BYTES", 0)
    monkeypatch.setattr(csc, "PART_VALUES", 10)
    monkeypatch.setattr(csc, "PART_COLUMNS", 0)
    with LocalEngine(threads) as engine:
        found = build_plan(small.X, small.y, small.weight, task="classification", engine=engine)
        same(found, reference)
        assert found.fingerprint == reference.fingerprint
    # the plan outlives the engine that made it
    assert found.fingerprint == reference.fingerprint


@pytest.mark.parametrize("fault", [("indices", 4, 7), ("indices", 4, -1), ("indptr", 3, 1), ("indptr", 1, 99)])
def test_damaged_matrices_are_refused(small, fault):
    X = small.X.copy()
    name, place, value = fault
    getattr(X, name)[place] = value
    with pytest.raises(DataError, match="damaged sparse matrix"):
        plan(X, small.y)


def test_weight_zero_is_absence(small, monkeypatch):
    monkeypatch.setattr("dboost.data.blocks.BLOCK_COST", 50)
    keep = small.weight > 0
    y = small.y.copy()
    y[~keep] = "never seen"
    with_zeros = plan(small.X, y, small.weight)
    without = plan(small.X[keep], y[keep], small.weight[keep])
    same(with_zeros, without)
    assert with_zeros.fingerprint == without.fingerprint
    assert with_zeros.classes.tolist() == ["ant", "bee", "cat"]
    dense = small.X.toarray()
    dense[31, 2] = np.nan
    same(plan(dense, y, small.weight), without)


@pytest.mark.parametrize("given, kept", [("f4", "f4"), ("f2", "f4"), ("f8", "f8"), ("i4", "f8"), ("?", "f8")])
def test_value_types(small, given, kept):
    X = (small.X.toarray() * 4).astype(given)
    for matrix in (X, sparse.csr_matrix(X.astype("f4")).astype(given) if given != "f2" else X):
        assert plan(matrix, small.y).items[0].values.dtype == np.dtype(kept)


@pytest.mark.parametrize("value, shown", [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "-infinity")])
def test_non_finite_values_name_row_and_column(small, value, shown):
    dense = small.X.toarray()
    dense[17, 2] = value
    for X, name in ((dense, "2"), (sparse.csr_matrix(dense), "2"), (pd.DataFrame(dense, columns=list(NAMES)), "c")):
        with pytest.raises(DataError, match=f"(^{shown}|NaN).* in row 17") as caught:
            plan(X, small.y)
        assert caught.value.column == name


def test_blocks_cost_a_million_to_two_unless_rows_or_columns_are_many():
    for rows, cost, n_features, expected in [
        (10_000, 10_000_000, 5, 1024),  # 1.02 million each
        (1_000_000, 10_000_000, 5, 131_072),
        (100, 900_000, 5, 128),  # one block of all
        (100_000, 10_000_000, 625_000, 32_768),  # columns cost each block 2.5 million
        (100_000, 100_000_000, 5, 8192),  # as many as a row group is cut into
        (10_000_000, 10**10, 5, GROUP_ROWS),  # of many rows no group is cut
    ]:
        assert rows_per_block(rows, cost, n_features) == expected


def test_little_data_is_cut_where_threads_can_share_a_pass():
    for n_features, n_outputs, blocks in [(50, 1, 1), (50, 19, 1), (50, 20, 2), (50, 79, 8), (50, 2000, 8)]:
        assert -(-1024 // rows_per_block(1024, 102_400, n_features, n_outputs)) == blocks
    assert rows_per_block(1024, 102_400, 10_000, 79) == 512


def test_the_cut_of_many_classes():
    rng = np.random.default_rng(0)
    X = sparse.random(3000, 40, density=0.5, format="csr", rng=rng)
    few, many = (plan(X, np.arange(3000) % k, task="multiclass") for k in (3, 100))
    assert (len(few.items), len(many.items)) == (1, 6)
    assert sum(few.rows) == sum(many.rows) == 3000


def test_refused_matrices():
    for X, error, words in [
        (np.zeros(60), DataError, "expected \\(rows, features\\)"),
        (np.zeros((60, 2), dtype=complex), DataError, "Complex data not supported"),
        (np.array([["a"]] * 60), DataError, "expected real numbers"),
        (np.array([["a"]] * 60, dtype=object), DataError, "not numbers"),
        (np.zeros((60, 0)), DataError, r"0 feature\(s\)"),
        (np.zeros((59, 2)), DataError, "inconsistent numbers of samples"),
        (pd.DataFrame({"a": ["x"] * 60}), DataError, "'a'"),
        (pd.DataFrame([[1, 2]] * 60, columns=["a", "a"]), DataError, "same name.*'a'"),
        (pd.DataFrame({"a": [1.0, None] * 30}), DataError, "missing value.*row 1; column 'a'"),
        (pa.table({"a": pa.array([1, None] * 30)}), DataError, "30 nulls; column 'a'"),
        (pa.table({"a": ["x"] * 60}), DataError, "string.*'a'"),
        ("folder", UsageError, "ParquetData"),
    ]:
        y = ["u", "v"] * 30
        with pytest.raises(error, match=words):
            plan(X, y)
