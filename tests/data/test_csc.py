"""Rows to columns: both ways give the arrays that scipy gives, and the same errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dboost.compiled.read_only import read_only
from dboost.data.sparse import csc
from dboost.data.sparse.csc import to_csc
from dboost.data.sparse.csr import CsrPiece, any_repeats
from dboost.engine.local import LocalEngine
from dboost.errors import DataError

N = 7
F32 = np.dtype(np.float32)


def pieces(X, cuts=(0,), index=np.int32, dtype=np.float32, offset=0):
    """The matrix as pieces of rows, with offsets that do not begin at zero."""
    found = []
    bounds = [*cuts, X.shape[0]]
    for a, b in zip(bounds, bounds[1:]):
        part = X[a:b].tocsr()
        filler = np.full(offset, 1)
        indices = np.concatenate([filler, part.indices]).astype(index)
        values = np.concatenate([filler, part.data]).astype(dtype)
        found.append(CsrPiece(part.indptr.astype(np.int64) + offset, indices, values))
    return found


def drawn(seed, rows=40, duplicates=False):
    rng = np.random.default_rng(seed)
    X = sparse.random_array((rows, N), density=0.3, format="csr", rng=rng)
    X.data = rng.standard_normal(X.nnz).astype(np.float32).astype(float)
    if duplicates and X.nnz > 3:
        for i in range(rows):
            a, b = X.indptr[i], X.indptr[i + 1]
            if b - a > 1:
                X.indices[a + 1] = X.indices[a]
    return X


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("offset", [0, 3])
@pytest.mark.parametrize("rows", [1, 40, 0])
@pytest.mark.parametrize("duplicates", [False, True])
def test_usual_blocks_take_the_faster_way(index, offset, rows, duplicates):
    X = drawn(1, rows, duplicates)
    cuts = (0, rows // 3, rows // 3) if rows > 3 else (0,)
    turns = []

    def each(fn, items):
        turns.append(len(items))
        return [fn(item) for item in items]

    indptr, at, values = to_csc(pieces(X, cuts, index, offset=offset), N, dtype=F32, each=each)
    # the slower way would have asked for the counts only, if for anything
    assert turns == [1, 1]
    expected = X.copy()
    expected.sum_duplicates()
    expected = expected.tocsc()
    expected.sort_indices()
    assert np.array_equal(indptr, expected.indptr) and np.array_equal(at, expected.indices)
    assert (indptr.dtype, at.dtype, values.dtype) == (np.int64, np.int32, np.float32)
    assert np.allclose(values, expected.data, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("duplicates", [False, True])
def test_both_ways_give_the_same_bits(duplicates):
    given = pieces(drawn(2, duplicates=duplicates), (0, 11, 30))
    fast = to_csc(given, N, dtype=F32)
    # rows to keep are visited one by one, here all of them
    for a, b in zip(fast, to_csc(given, N, dtype=F32, keep=np.ones(40, dtype=bool))):
        assert a.tobytes() == b.tobytes() and a.dtype == b.dtype


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("duplicates", [False, True])
@pytest.mark.parametrize("rows", [0, 1, 3, 40])
def test_parts_that_threads_share_give_the_same_bits(monkeypatch, duplicates, rows, threads):
    given = pieces(drawn(3, rows, duplicates), (0, rows // 2), offset=3)
    alone = to_csc(given, N, dtype=F32)
    monkeypatch.setattr(csc, "PART_VALUES", 5)
    monkeypatch.setattr(csc, "PART_COLUMNS", 0)
    many = []
    with LocalEngine(threads) as engine:

        def each(fn, items):
            many.append(len(items))
            return engine.on_driver(fn, items)

        for a, b in zip(alone, to_csc(given, N, dtype=F32, each=each)):
            assert a.tobytes() == b.tobytes() and a.dtype == b.dtype
    # to count, and to place; eight parts of either piece
    assert many == ([16, 16] if rows == 40 else [1, 1]) or rows in (1, 3)


def test_dense_rows_are_put_by_column():
    rng = np.random.default_rng(5)
    dense = np.where(rng.random((700, 5)) < 0.8, rng.normal(size=(700, 5)), 0.0)
    for given in (dense, np.asfortranarray(dense), dense[::2], (9 * dense).astype(np.int32), dense[:0]):
        found, wanted = csc.dense_to_csc(given, np.dtype(float)), sparse.csc_matrix(given.astype(float))
        for part, right in zip(found, (wanted.indptr, wanted.indices, wanted.data), strict=True):
            np.testing.assert_array_equal(part, right)
    for odd in (np.nan, np.inf):
        dense[300, 2] = odd
        with pytest.raises(csc.Unclean):
            csc.dense_to_csc(dense, np.dtype(float))


@pytest.mark.parametrize("offsets", [[0, 30, 20, 40], [0, 20, 60, 80], [-3, 20, 30, 40], [0, 50, 50, 40]])
def test_damaged_offsets_are_named_in_parts_too(monkeypatch, offsets):
    monkeypatch.setattr(csc, "PART_VALUES", 5)
    monkeypatch.setattr(csc, "PART_COLUMNS", 0)
    piece = CsrPiece(np.array(offsets), np.tile(np.arange(5, dtype=np.int32), 8), np.ones(40, np.float32))
    with LocalEngine(2) as engine, pytest.raises(DataError, match="offsets are damaged at row"):
        to_csc([piece], N, dtype=F32, each=engine.on_driver)


def test_duplicates_that_cancel_and_explicit_zeros_are_left_out():
    for offsets, indices, data, wanted in [
        ([0, 3], [1, 1, 2], [1.0, -1.0, 2.0], ([0, 0, 0, 1], [0], [2.0])),
        ([0, 2, 3], [0, 1, 1], [0.0, 1.0, -0.0], ([0, 0, 1, 1], [0], [1.0])),
    ]:
        piece = CsrPiece(np.array(offsets), np.array(indices, np.int32), np.array(data, np.float32))
        assert tuple(part.tolist() for part in to_csc([piece], 3, dtype=F32)) == wanted


def test_faults_are_named():
    for index in [np.int32, np.int64]:
        for indices, values, offsets, what in [
            ([0, 1, -1], [1.0, 1.0, 1.0], [0, 1, 3], "feature index -1 in row 1"),
            ([0, 1, N], [1.0, 1.0, 1.0], [0, 1, 3], f"feature index {N} in row 1"),
            ([0, 1, 2], [1.0, np.nan, 1.0], [0, 1, 3], "NaN in row 1"),
            ([0, 1, 2], [1.0, 1.0, -np.inf], [0, 1, 3], "-infinity in row 1"),
            ([0, 1, 2], [1.0, 1.0, 1.0], [0, 2, 1], "offsets are damaged at row 1"),
            ([0, 1, 2], [1.0, 1.0, 1.0], [0, 2, 4], "offsets are damaged at row 1"),
            ([0, 1, 2], [1.0, 1.0, 1.0], [-1, 2, 3], "offsets are damaged at row 0"),
        ]:
            piece = CsrPiece(np.array(offsets), np.array(indices, index), np.array(values, np.float32))
            with pytest.raises(DataError, match=what):
                to_csc([piece], N, dtype=F32)


def test_columns_that_a_row_names_twice_are_found_in_any_order_and_spare_storage_is_none():
    rng = np.random.default_rng(0)
    found = []
    for number in range(300):
        rows = [rng.integers(0, 12, rng.integers(0, 5)) for _ in range(6)]
        rows = [np.sort(row) for row in rows] if number % 2 else rows
        indptr = np.concatenate([[0], np.cumsum([row.shape[0] for row in rows])])
        spare = [[], [0, 0], [5]][number % 3]
        found.append(any_repeats(read_only(indptr), read_only(np.concatenate([*rows, spare]).astype(np.int32)), 12))
        assert found[-1] is any(np.unique(row).shape[0] < row.shape[0] for row in rows)
    assert 50 < sum(found) < 250
    assert not any_repeats(read_only(np.zeros(2, np.int64)), read_only(np.zeros(0, np.int32)), 12)
