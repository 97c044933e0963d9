"""Value, dual norm and prox. The compiled prox is in test_penalty_diagonal."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.penalties import L1, L2, ElasticNet, GroupElasticNet, Linf, SparseGroup, get_penalty
from tests.penalties.conftest import ANY, NORMS, SEPARABLE
from tests.penalties.optimality import missed


def test_nothing_but_the_prox_is_optimal(cases, rng):
    """The minimiser of |w - z|^2/2 + lam omega(w) has G = z - w; moving away is seen by the formula of all rows."""
    for penalty in SEPARABLE:
        for k in [1, 2, 5, 20]:
            Z, lam = cases.rows(300, k), 10.0 ** rng.uniform(-2, 1, size=300)
            lam[::8] = 0.0
            W = penalty.prox(Z, lam)
            scale = np.abs(Z).sum(axis=1) + lam
            assert np.all(missed(penalty, W, Z - W, lam) <= 1e-13 * scale)
            moved = W + 0.1 * scale[:, None] * rng.choice([-1.0, 1.0], size=W.shape)
            alive = scale > 0
            assert np.all(missed(penalty, moved, Z - moved, lam)[alive] > 1e-3 * scale[alive])


def test_prox_without_threshold_returns_the_row(cases):
    for penalty in SEPARABLE:
        Z = cases.rows(100, 5)
        assert np.array_equal(penalty.prox(Z, 0.0), Z)
        half = np.arange(100) % 2 * 1.0
        assert np.array_equal(penalty.prox(Z, half)[::2], Z[::2])


def test_zero_row_agrees_with_dual_norm_to_the_last_bit(cases):
    for name in ["l1", "l1/l2", "l1/linf"]:
        penalty = get_penalty(name)
        Z = cases.rows(2000, 9)
        dual = penalty.dual_norm(Z)
        assert not penalty.prox(Z, dual).any()
        alive = dual > 0
        below = np.nextafter(dual[alive], 0.0)
        assert penalty.prox(Z[alive], below).any(axis=1).all()
        assert np.all(penalty.score_quadratic(Z[alive], 1.0, below) > 0)


def test_dual_norm_is_the_dual(cases, rng):
    """<g, w> <= dual(g) omega(w) for many w, with equality for the w that the prox just inside the ball points to."""
    for penalty in NORMS:
        for k in [1, 2, 5, 30]:
            G = cases.rows(300, k)
            dual = penalty.dual_norm(G)
            assert np.array_equal(dual[~G.any(axis=1)], np.zeros((~G.any(axis=1)).sum()))
            if penalty.name == "none":
                assert np.all(np.isinf(dual[G.any(axis=1)]))
                continue
            for _ in range(40):
                W = cases.rows(300, k)
                assert np.all((G * W).sum(1) <= dual * penalty.value(W) * (1 + 1e-13) + 1e-300)
            alive = dual > 0
            G, dual = G[alive], dual[alive]
            W = penalty.prox(G, dual * (1 - 1e-7))
            reached = (G * W).sum(1) / penalty.value(W)
            assert len(G) > 220 and np.allclose(reached, dual, rtol=1e-6)


@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("kind", [ElasticNet, GroupElasticNet])
def test_the_conjugate_is_the_supremum(kind, ratio, cases, rng):
    """(lam omega)*(g) >= <g, w> - lam omega(w) for every w, with equality at the w that the prox points to."""
    penalty, G = kind(ratio), cases.rows(300, 5)
    lam = 10.0 ** rng.uniform(-2, 1, size=300)
    top = penalty.conjugate(G, lam)
    best = penalty.solve_quadratic(np.zeros_like(G), G, 1e-13 * lam, lam)
    for W in (best, *(cases.rows(300, 5) for _ in range(40))):
        assert np.all((G * W).sum(1) - lam * penalty.value(W) <= top * (1 + 1e-12) + 1e-300)
    assert np.allclose((G * best).sum(1) - lam * penalty.value(best), top, rtol=1e-10, atol=1e-12)
    assert np.array_equal(top > 0, penalty.leaves_zero(G, lam)) and 50 < (top > 0).sum() < 300


def test_the_norm_alone(cases, rng):
    for kind, norm in [(ElasticNet, L1()), (GroupElasticNet, L2())]:
        penalty, Z, lam = kind(1.0), cases.rows(300, 6), 10.0 ** rng.uniform(-2, 1, size=300)
        W, G, D = cases.rows(300, 6), cases.rows(300, 6), 10.0 ** rng.uniform(-2, 2, size=300)
        assert np.array_equal(penalty.prox(Z, lam), norm.prox(Z, lam))
        assert np.allclose(penalty.solve_quadratic(W, G, D, lam), norm.solve_quadratic(W, G, D, lam), rtol=1e-13)
        assert np.array_equal(penalty.value(Z), norm.value(Z)) and np.array_equal(
            penalty.dual_norm(Z), norm.dual_norm(Z)
        )


def test_dual_norm_of_the_mix_joins_its_ends(cases):
    G = cases.rows(500, 8)
    assert np.array_equal(SparseGroup(0.0).dual_norm(G), L2().dual_norm(G))
    assert np.array_equal(SparseGroup(1.0).dual_norm(G), L1().dual_norm(G))
    assert np.allclose(SparseGroup(1e-9).dual_norm(G), L2().dual_norm(G), rtol=1e-6)
    assert np.allclose(SparseGroup(1 - 1e-9).dual_norm(G), L1().dual_norm(G), rtol=1e-3)


def test_dual_norm_of_the_mix_solves_its_equation(cases):
    for k in [1, 2, 40]:
        for ratio in [1e-6, 0.1, 0.5, 0.9, 0.999999]:
            G = cases.rows(1000, k)
            t = SparseGroup(ratio).dual_norm(G)
            rest = np.maximum(np.abs(G) - (t * ratio)[:, None], 0.0)
            assert np.allclose(
                np.sqrt((rest**2).sum(1)), t * (1 - ratio), rtol=0, atol=1e-14 * np.abs(G).max(initial=0) * k
            )


def test_homogeneous_at_extreme_scales(cases):
    """No square overflows or underflows on the way."""
    for penalty in NORMS:
        Z = cases.rows(100, 4)
        for scale in (1e-180, 1e180):
            assert np.allclose(penalty.value(scale * Z), scale * penalty.value(Z), rtol=1e-12, atol=0)
            assert np.allclose(penalty.dual_norm(scale * Z), scale * penalty.dual_norm(Z), rtol=1e-12, atol=0)
            assert np.allclose(penalty.prox(scale * Z, scale), scale * penalty.prox(Z, 1.0), rtol=1e-12, atol=0)


def test_linf_ties_are_exact(cases):
    Z = cases.rows(500, 10)
    X = Linf().prox(Z, 0.3 * Linf().dual_norm(Z))
    sizes = np.abs(X)
    near = sizes >= sizes.max(axis=1, keepdims=True) * (1 - 1e-9)
    assert np.array_equal(sizes[near], np.broadcast_to(sizes.max(axis=1, keepdims=True), sizes.shape)[near])
    assert (near.sum(axis=1) > 1).sum() > 200


def test_no_rows():
    for penalty in ANY:
        empty = np.zeros((0, 4))
        assert penalty.value(empty).shape == penalty.dual_norm(empty).shape == (0,)
        assert penalty.prox(empty, 1.0).shape == (0, 4)
        assert penalty.solve_quadratic(empty, empty, 1.0, 1.0).shape == (0, 4)
        new, unbounded = penalty.solve_exponential(empty, empty, empty, 1.0, 1.0)
        assert new.shape == (0, 4) and unbounded.shape == (0,)
        assert penalty.score_quadratic(empty, 1.0, 1.0).shape == (0,)
        assert penalty.score_exponential(empty, empty, 1.0, 1.0).shape == (0,)
        assert penalty.face(empty).dim == 0
