"""The compiled row prox under a diagonal, against a bisection in long double and against the definition."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.compiled.solves.row_prox import diagonal_prox
from dboost.penalties import L1, L2, CompiledProx, ElasticNet
from dboost.penalties.mixed import RidgedPenalty
from tests.penalties.conftest import PULLING, SEPARABLE, distance

COMPILED = tuple(one for one in SEPARABLE if isinstance(one, CompiledProx))


def solve(penalty, z, D, lam):
    out, work = np.full(z.size, np.nan), np.full(z.size, np.nan)
    diagonal_prox(*penalty.compiled, z, D, float(lam), out, work)
    return out


def by_bisection(penalty, z, D, lam):
    """The same minimiser, slowly: one scalar unknown, 200 halvings, extended precision."""
    if isinstance(penalty, RidgedPenalty):
        # (D / 2) (w - z)^2 + (c / 2) w^2 is ((D + c) / 2) (w - D z / (D + c))^2 and a constant
        norm, c = (L1() if isinstance(penalty, ElasticNet) else L2()), np.longdouble(lam) * (1 - penalty.l1_ratio)
        bent = D.astype(np.longdouble) + c
        return by_bisection(norm, D * z.astype(np.longdouble) / bent, bent, lam * np.longdouble(penalty.l1_ratio))
    code, group, entry, ridge = penalty.compiled
    z, D, lam = z.astype(np.longdouble), D.astype(np.longdouble), np.longdouble(lam)
    if penalty.name == "none" or lam == 0:
        return z.astype(float)
    if code == 1:
        if (D * np.abs(z)).sum() <= lam:
            return np.zeros(z.size)
        low, high = np.longdouble(0), np.abs(z).max()
        for _ in range(200):
            xi = (low + high) / 2
            low, high = (xi, high) if (D * np.maximum(np.abs(z) - xi, 0)).sum() > lam else (low, xi)
        return np.clip(z, -high, high).astype(float)
    if penalty.name == "l2_squared":
        return (D * z / (D + ridge * lam)).astype(float)
    v = D * z
    u = np.sign(v) * np.maximum(np.abs(v) - lam * entry, 0)
    if group == 0:
        return (u / D).astype(float)
    if np.sqrt((u**2).sum()) <= lam * group:
        return np.zeros(z.size)
    low, high = np.longdouble(0), np.sqrt(((u / D) ** 2).sum())
    for _ in range(200):
        tau = (low + high) / 2
        low, high = (tau, high) if ((u / (D * tau + lam * group)) ** 2).sum() > 1 else (low, tau)
    return (high * u / (D * high + lam * group)).astype(float)


@pytest.mark.full
def test_against_bisection(cases, rng):
    for penalty in COMPILED:
        for k in [1, 2, 5, 30, 1000]:
            for decades in [0, 2, 8]:
                trials = 4 if k == 1000 else 20
                nonzero = 0
                for z in cases.rows(trials, k):
                    D = 10.0 ** rng.uniform(-decades, decades, size=k)
                    base = penalty.dual_norm((D * z)[None])[0]
                    lam = 10.0 ** rng.uniform(-4, 0.5) * (base if np.isfinite(base) and base > 0 else 1.0)
                    w = solve(penalty, z, D, lam)
                    expected = by_bisection(penalty, z, D, lam)
                    assert np.abs(w - expected).max() <= 1e-12 * np.abs(expected).max() + 1e-300
                    assert np.array_equal(w != 0, expected != 0)
                    assert distance(penalty, w, D * (z - w), lam) <= 1e-12 * (lam + np.abs(D * z).sum())
                    nonzero += w.any()
                assert nonzero > trials // 3


def test_unit_diagonal_is_the_prox(cases, rng):
    for penalty in COMPILED:
        Z, lam = cases.rows(300, 7), 10.0 ** rng.uniform(-2, 2, size=300)
        expected = penalty.prox(Z, lam)
        for j in range(300):
            w = solve(penalty, Z[j], np.ones(7), lam[j])
            assert np.allclose(w, expected[j], rtol=1e-13, atol=1e-15 * np.abs(Z[j]).max())
            assert np.array_equal(w == 0, expected[j] == 0)


def test_both_sides_of_the_threshold(cases, rng):
    for penalty in PULLING:
        tried = 0
        for z in cases.rows(200, 6):
            D = 10.0 ** rng.uniform(-3, 3, size=6)
            dual = penalty.dual_norm((D * z)[None])[0]
            if dual == 0:
                continue
            assert not solve(penalty, z, D, dual * (1 + 1e-9)).any()
            assert solve(penalty, z, D, dual * (1 - 1e-9)).any()
            tried += 1
        assert tried > 150


def test_without_penalty_the_row_stays(cases):
    for penalty in COMPILED:
        for z in cases.rows(50, 5):
            assert np.array_equal(solve(penalty, z, np.full(5, 0.3), 0.0), z)


def test_entries_without_curvature():
    for penalty in COMPILED:
        z, D = np.array([3.0, -5.0, 0.5]), np.array([2.0, 0.0, 1.0])
        w = solve(penalty, z, D, 1.0)
        if penalty.name == "none":
            assert np.array_equal(w, z)
        elif penalty.compiled[0] == 1:
            assert np.allclose(w, [2.5, -2.5, 0.5], rtol=1e-15)
        else:
            assert w[1] == 0 and w[0] > 0
            assert np.allclose(w[[0, 2]], solve(penalty, z[[0, 2]], D[[0, 2]], 1.0), rtol=1e-15)
        assert np.array_equal(solve(penalty, z, np.zeros(3), 1.0), z if penalty.name == "none" else np.zeros(3))


def test_output_may_be_the_input(cases):
    for penalty in COMPILED:
        for z in cases.rows(50, 5):
            D = np.linspace(0.1, 2.0, 5)
            expected = solve(penalty, z, D, 0.2)
            same = z.copy()
            diagonal_prox(*penalty.compiled, same, D, 0.2, same, np.empty(5))
            assert np.array_equal(same, expected)


def test_bound_ties_are_exact(rng):
    hits = 0
    for _ in range(100):
        z, D = rng.normal(size=20), rng.exponential(size=20)
        out, work = np.empty(20), np.empty(20)
        diagonal_prox(1, 1.0, 0.0, 0.0, z, D, 0.5 * (D * np.abs(z)).sum(), out, work)
        sizes = np.abs(out)
        hits += (sizes >= sizes.max() * (1 - 1e-9)).sum() == (sizes == sizes.max()).sum() > 1
    assert hits == 100
