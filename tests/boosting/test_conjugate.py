"""Conjugate gradients on the support: blocks for heavy rows, and columns that are almost copies."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dboost.boosting import precondition
from dboost.boosting.precondition import HeavyRows
from dboost.compiled import columns
from dboost.penalties import get_penalty
from tests.boosting import plain

M, A, K = 60, 9, 3


def copies(seed, m=400):
    """Three classes told by 14 sparse columns, of which two pairs are copies but for one example."""
    rng = np.random.default_rng(seed)
    X = (rng.random((m, 14)) < 0.25) * rng.uniform(0.5, 1.5, (m, 14))
    X[:, 0] = rng.random(m) < 0.9
    for copy, of in ((12, 3), (13, 5)):
        X[:, copy] = X[:, of]
        X[np.flatnonzero(X[:, of])[0], copy] = 0.0
    return X, (X[:, [3, 5, 7]] + 0.3 * rng.normal(size=(m, 3))).argmax(axis=1)


@pytest.mark.parametrize("penalty, most", [("l1/l2", 200), ("l1", 600)])
def test_one_of_two_copies_drives_the_other_out(penalty, most):
    X, code = copies(0)
    data = plain.Data("multinomial", X, code.astype(np.int32), np.ones(400), K)
    fitting = plain.fitting(data, penalty=penalty, tol=1e-9, max_rounds=100)
    result = fitting.fit(1e-4)
    assert result.gap <= 1e-9
    # exchanging the weights of two columns step by step takes thousands of passes
    assert result.passes <= most


@pytest.fixture
def curved():
    """Examples by row with their Hessians, the dense matrix, and the diagonal of the curvature, the intercept last."""
    rng = np.random.default_rng(3)
    X = (rng.normal(size=(M, A)) * (rng.random((M, A)) < 0.5)).astype(np.float32)
    csc = sp.csc_array(X)
    csc.sort_indices()
    csc = (csc.indptr.astype(np.int64), csc.indices.astype(np.int32), csc.data)
    cut = columns.cut_rows(*csc, np.arange(A), M)
    q = rng.dirichlet(np.ones(K), M)
    weight = rng.uniform(0.5, 2.0, M)
    h = np.zeros((M, 4), np.float32)
    h[:, :K] = q * weight[:, None]
    d = h[:, :K].astype(float) - h[:, :K].astype(float) ** 2 / weight[:, None]
    Z = np.hstack([X.astype(float), np.ones((M, 1))])
    return cut, h, 1.0 / weight, Z, d, np.einsum("ij,ir->jr", Z**2, d)


@pytest.mark.parametrize("intercept", [True, False])
def test_blocks_are_the_curvature_of_the_heaviest_rows(curved, intercept, monkeypatch):
    cut, h, rank_one, Z, d, diagonal = curved
    monkeypatch.setattr(precondition, "HEAVY", 4)
    diagonal = diagonal if intercept else diagonal[:A]
    heavy = HeavyRows.of(cut, h, rank_one, diagonal, intercept)
    assert set(heavy.rows) == set(np.argsort(-diagonal[:A].sum(axis=1))[:4])
    X = Z[:, np.append(heavy.rows, A)] if intercept else Z[:, heavy.rows]
    np.testing.assert_allclose(heavy.gram, np.einsum("ij,ir,il->rjl", X, d, X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["l1", "l1/l2", "l1/linf", "l1/l2+l1"])
def test_the_preconditioner_is_symmetric_and_positive(curved, name, monkeypatch):
    cut, h, rank_one, _, _, diagonal = curved
    monkeypatch.setattr(precondition, "HEAVY", 5)
    rng = np.random.default_rng(0)
    W, lam = rng.normal(size=(A, K)), np.full(A, 0.3)
    W[2] = 0.0
    W[4] = [1.0, -1.0, 0.5]
    face = get_penalty(name).face(W, lam)
    penalty = face.diagonal(lam)
    scale = np.concatenate([np.abs(face.restrict(diagonal[:A])) + penalty, diagonal[A]]) + 1e-3
    apply = HeavyRows.of(cut, h, rank_one, diagonal, True).solver(face, scale, penalty)
    P = np.column_stack([apply(e) for e in np.eye(scale.shape[0])])
    np.testing.assert_allclose(P, P.T, rtol=1e-7, atol=1e-9)
    assert np.linalg.eigvalsh(P).min() > 0.0


def test_the_preconditioner_inverts_a_curvature_without_ties_between_outputs(curved, monkeypatch):
    cut, h, _, Z, _, diagonal = curved
    monkeypatch.setattr(precondition, "HEAVY", A)
    W, lam = np.ones((A, K)), np.zeros(A)
    face = get_penalty("l1/l2").face(W, lam)
    heavy = HeavyRows.of(cut, h, np.zeros(M), diagonal, True)
    scale = np.ones(face.dim + K)
    apply = heavy.solver(face, scale, np.zeros(face.dim))
    v = np.random.default_rng(1).normal(size=face.dim + K)
    rows = np.vstack([v[: face.dim].reshape(A, K), v[face.dim :]])
    product = Z.T @ (h[:, :K].astype(float) * (Z @ rows))
    np.testing.assert_allclose(apply(product.ravel()), v, rtol=1e-3, atol=1e-3)
