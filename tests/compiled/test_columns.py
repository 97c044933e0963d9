"""Loops over stored columns against dense numpy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dboost.compiled.solves import descent
from dboost.compiled.sparse import columns
from dboost.compiled.vectors.scaled_rows import padded, width

K = 3
EMPTY_COLUMNS = np.array([2, 11])


@pytest.mark.parametrize("candidates", [np.arange(12), np.array([0, 2, 4, 11]), np.zeros(0, np.int64)], ids=len)
def test_column_gradient(block, rng, candidates):
    U = rng.normal(size=(40, K))
    out = np.full((len(candidates), K), np.nan)
    columns.column_gradient(*block.csc, U, candidates, out)
    np.testing.assert_allclose(out, block.dense[:, candidates].T @ U, rtol=1e-13, atol=1e-14)
    assert not out[np.isin(candidates, EMPTY_COLUMNS)].any()


def test_a_tiny_mu_is_not_lost_beside_a_large_one():
    """The sums are kept apart: mu- to full precision at a ratio of 1e-18 (docs/math.md 0.1)."""
    indptr, rows, values = np.array([0, 2]), np.array([0, 1], np.int32), np.ones(2)
    U = np.array([[1e9], [-1e-9]])
    plus, minus = np.empty((1, 1)), np.empty((1, 1))
    columns.column_mu(indptr, rows, values, np.maximum(U, 0), np.maximum(-U, 0), np.array([0]), plus, minus)
    assert (plus[0, 0], minus[0, 0]) == (1e9, 1e-9)


def test_column_statistics(block):
    got = np.full((4, 12), np.nan)
    columns.column_statistics(*block.csc, block.weight, *got)
    X, s = block.dense, block.weight
    seen = np.abs(X)[s > 0]
    wanted = [seen.max(axis=0), s @ X, s @ np.abs(X), s @ X**2]
    np.testing.assert_allclose(got, wanted, rtol=1e-13, atol=1e-14)
    assert not got[:, EMPTY_COLUMNS].any()
    # with residuals the same, and their sums
    again, G = np.full((4, 12), np.nan), np.full(12, np.nan)
    u = np.random.default_rng(0).normal(size=len(s))
    columns.column_statistics(*block.csc, s, *again, u, G)
    np.testing.assert_array_equal(again, got)
    np.testing.assert_allclose(G, u @ X, rtol=1e-13, atol=1e-14)


def dense_of(pointer, slots, values, width):
    return sp.csr_array((values, slots, pointer), shape=(len(pointer) - 1, width)).toarray()


@pytest.mark.parametrize("active", [range(12), [1, 2, 4, 9], [2], []], ids=str)
def test_cut_transpose_take(block, active):
    active = np.array(active, np.int64)
    cut = columns.cut_rows(*block.csc, active, 40)
    assert cut[2].dtype == block.values.dtype
    np.testing.assert_array_equal(dense_of(*cut, len(active)), block.dense[:, active])
    for i in range(40):
        row = cut[1][cut[0][i] : cut[0][i + 1]]
        assert (np.diff(row) > 0).all()
    turned = columns.transpose(*cut, len(active))
    np.testing.assert_array_equal(dense_of(*turned, 40), block.dense[:, active].T)
    chosen = np.array([3, 5, 6, 39])
    taken = columns.take_rows(*cut, chosen)
    np.testing.assert_array_equal(dense_of(*taken, len(active)), block.dense[chosen][:, active])
    none = columns.take_rows(*cut, np.zeros(0, np.int64))
    assert none[0].tolist() == [0] and none[1].shape == (0,)
    by_row = columns.transpose(*block.csc, 40)
    for mine, wanted in zip(columns.cut_of_rows(*by_row, active, block.dense.shape[1]), cut, strict=True):
        assert mine.dtype == wanted.dtype
        np.testing.assert_array_equal(mine, wanted)


@pytest.mark.parametrize("extra", [0.0, 1.0])
def test_template_sums(block, extra):
    active = np.array([0, 2, 4, 7, 9])
    cut = columns.cut_rows(*block.csc, active, 40)
    X, s = block.dense[:, active], block.weight
    if extra:
        X = np.hstack([X, np.ones((40, 1))])
    rho = np.abs(X).sum(axis=1)
    np.testing.assert_allclose(columns.row_lengths(cut[0], cut[2], extra), rho, rtol=1e-14)
    peak, diagonal = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    columns.template_sums(*cut, s, extra, peak, diagonal)
    present = (X != 0) & (s > 0)[:, None]
    np.testing.assert_allclose(peak, (present * rho[:, None]).max(axis=0), rtol=1e-14)
    np.testing.assert_allclose(diagonal, (s[:, None] * np.abs(X) * rho[:, None]).sum(axis=0), rtol=1e-13)
    # the two bounds that the sums stand for (docs/math.md 2)
    d = np.random.default_rng(0).normal(size=X.shape[1])
    assert (s * (X @ d) ** 2).sum() <= (diagonal * d**2).sum() * (1 + 1e-12)
    a = np.divide(1.0, peak, out=np.zeros_like(peak), where=peak > 0)
    assert (np.abs(X[s > 0]) @ a).max() <= 1 + 1e-12


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("intercept", [False, True])
def test_curvature_of_every_output_among_columns(block, kind, k, intercept):
    active, rng = np.array([0, 2, 4, 7, 9]), np.random.default_rng(0)
    cut = columns.cut_rows(*block.csc, active, 40)
    X = block.dense[:, active]
    X = np.hstack([X, np.ones((40, 1))]) if intercept else X
    h, rank_one = padded(rng.random((40, k)).astype(kind)), rng.random(40)
    out = np.zeros((X.shape[1], X.shape[1], width(k)), kind)
    descent.curvature_blocks(*cut, h, rank_one, np.arange(5), 1, 2, intercept, out)
    d = h[1::2, :k].astype(float) - rank_one[1::2, None] * h[1::2, :k].astype(float) ** 2
    wanted, close = np.einsum("ia,ir,ib->abr", X[1::2], d, X[1::2]), 1e-12 if kind == np.float64 else 1e-4
    for r in range(k):
        np.testing.assert_allclose(out[:, :, r], np.triu(wanted[:, :, r]), rtol=close, atol=close)
    assert not out[:, :, k:].any()
