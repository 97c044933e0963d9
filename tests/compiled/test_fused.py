"""The fused passes over examples against dense numpy, for every loss."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.compiled.examples import fused
from dboost.compiled.sparse import columns
from dboost.compiled.vectors.scaled_rows import width
from dboost.losses import LOSSES, get_loss
from tests.losses.references import REFERENCES

ACTIVE = np.array([0, 2, 4, 7, 9])


@pytest.fixture(params=list(LOSSES))
def case(request, block, rng):
    """(arguments of the kernels, reference, X, y, W, b)."""
    reference = REFERENCES[request.param]
    W, b = rng.normal(size=(5, reference.k)), rng.normal(size=reference.k)
    W[1] = 0.0
    y = reference.labels(rng, 40)
    cut = columns.cut_rows(*block.csc, ACTIVE, 40)
    args = (*cut, W, b, get_loss(request.param).target(y), block.weight)
    return args, reference, block.dense[:, ACTIVE], y, W, b


def test_residuals_and_active_gradient(case, block):
    args, reference, X, y, W, b = case
    s = block.weight
    F = X @ W + b
    total = np.ones(reference.k)
    U, loss = fused.residuals(*args, total)
    assert not U[:, reference.k :].any()
    U = U[:, : reference.k]
    wanted = (s[:, None] * reference.residual(y, F)).astype(float)
    np.testing.assert_allclose(U, wanted, rtol=1e-12, atol=1e-14)
    assert not U[s == 0].any()
    assert loss == pytest.approx(float((s * reference.loss(y, F)).sum()), rel=1e-13)
    np.testing.assert_allclose(total - 1, wanted.sum(axis=0), rtol=1e-12, atol=1e-12)
    G, bias = np.ones((5, width(reference.k))), np.ones(reference.k)
    assert fused.active_gradient(*args, G, bias) == loss
    np.testing.assert_allclose(G[:, : reference.k] - 1, X.T @ wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(bias, total)


def test_losses_along_a_line(case, block, rng):
    args, reference, X, y, W, b = case
    D, d = rng.normal(size=W.shape), rng.normal(size=b.shape)
    steps = np.array([0.0, 1e-3, 0.5, 1.0, -2.0])
    out = np.ones(5)
    fused.losses_along(*args[:5], D, d, steps, *args[5:], out)
    wanted = [(block.weight * reference.loss(y, X @ (W + t * D) + b + t * d)).sum() for t in steps]
    np.testing.assert_allclose(out - 1, np.array(wanted, float), rtol=1e-12)


def test_curvature_and_products_with_it(case, block, rng):
    args, reference, X, y, W, b = case
    F = X @ W + b
    H = (block.weight[:, None, None] * reference.hessian(y, F)).astype(float)
    for dtype, rtol in ((np.float64, 1e-11), (np.float32, 1e-5)):
        h, r = np.full((40, reference.k), np.nan, dtype), np.full(40, np.nan)
        fused.curvature(*args, h, r)
        V, v = rng.normal(size=W.shape), rng.normal(size=b.shape)
        out, total = np.zeros_like(V), np.zeros_like(v)
        fused.hessian_product(*args[:3], h, r, V, v, out, total)
        Z = np.einsum("irs,is->ir", H, X @ V + v)
        np.testing.assert_allclose(out, X.T @ Z, rtol=rtol, atol=10 * rtol)
        np.testing.assert_allclose(total, Z.sum(axis=0), rtol=rtol, atol=10 * rtol)


def test_dual_value(case, block):
    args, reference, X, y, W, b = case
    k = reference.k
    U = reference.residual(y, X @ W + b)
    for scale in (1.0, 0.4):
        got = fused.dual_value(*args, np.full(k, scale), np.zeros(k), np.zeros(k), np.zeros(k))
        assert got == pytest.approx(float((block.weight * reference.dual(y, scale * U)).sum()), rel=1e-12)
