"""The formed quadratic model of several outputs: packed Hessians, the table, its sweeps."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.compiled.solves import formed_curvature
from dboost.compiled.vectors.scaled_rows import width
from dboost.penalties import get_penalty
from tests.penalties.optimality import missed

PENALTIES = ["l1", "l1/l2", "l1/linf", "l1/l2+l1"]


@pytest.fixture
def rng():
    return np.random.default_rng(4)


@pytest.mark.parametrize("k", [2, 3, 6, 10])
def test_packed_hessians_are_unpacked_to_what_they_were(k, rng):
    h, rank_one = rng.random((7, width(k))).astype(np.float32), rng.random(7)
    w = width(k * (k + 1) // 2)
    packed = np.full((7, w), np.nan)
    formed_curvature.pack(h, rank_one, k, packed)
    assert np.all(packed[:, k * (k + 1) // 2 :] == 0.0)
    each = [np.diag(row[:k].astype(float)) - r * np.outer(row[:k], row[:k]) for row, r in zip(h, rank_one, strict=True)]
    X = rng.normal(size=(7, 3))
    sums = np.einsum("ij,il,iw->jlw", X, X, packed)
    # what lies below is not looked at
    sums[np.tril_indices(3, -1)] = np.nan
    H = np.empty((3 * k, 3 * k))
    formed_curvature.unpack(sums, k, H)
    expected = sum(np.kron(np.outer(x, x), one) for x, one in zip(X, each, strict=True))
    np.testing.assert_allclose(H, expected, rtol=1e-6, atol=1e-6)
    x, out = rng.normal(size=3 * k), np.empty(3 * k)
    formed_curvature.times(H, x, out)
    np.testing.assert_allclose(out, H @ x, rtol=1e-12)


def model(rng, s, k):
    """A curved model of s rows and k outputs, the last row without penalty, and a bound of its blocks' diagonals."""
    A = rng.normal(size=(4 * s * k, s * k)) + rng.normal(size=(4 * s * k, 1))
    H = A.T @ A / A.shape[0]
    blocks = np.abs(H.reshape(s, k, s, k))
    diagonal = np.array([blocks[j, :, j, :].sum(axis=1) for j in range(s)])
    W = rng.normal(size=(s, k)) * (rng.random((s, 1)) < 0.5)
    strength = np.full(s, 3.0)
    strength[-1] = 0.0
    return H, rng.normal(size=(s, k)), W, strength, diagonal, 0.1 * rng.random((s, k))


@pytest.mark.parametrize("penalty", PENALTIES)
def test_sweeps_end_at_the_optimum_of_the_model(penalty, rng):
    H, G, W, strength, diagonal, damping = model(rng, 6, 3)
    D, pull = np.zeros_like(W), np.zeros(W.size)
    compiled = get_penalty(penalty).compiled
    formed_curvature.sweep_rows(H, G, W, strength, diagonal, damping, *compiled, 20_000, 1e-26, D, pull)
    np.testing.assert_allclose(pull, H @ D.reshape(-1), rtol=1e-9, atol=1e-9)
    rest = G - pull.reshape(W.shape) - damping * D
    assert missed(get_penalty(penalty), W + D, rest, strength).max() < 1e-7 and np.any(W + D == 0.0)


def test_a_row_without_curvature_stays(rng):
    H, G, W, strength, diagonal, damping = model(rng, 4, 2)
    H[2:4], H[:, 2:4], diagonal[1], damping[1] = 0.0, 0.0, 0.0, 0.0
    D, pull = np.zeros_like(W), np.zeros(W.size)
    prox = get_penalty("l1").compiled
    formed_curvature.sweep_rows(H, G, W, 0.1 * strength, diagonal, damping, *prox, 50, 1e-9, D, pull)
    assert not D[1].any() and D[0].any()
