"""The dual value of an example: weak duality, equality at the residuals, and what scale, mix, shift and prior mean."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.losses import LOSSES, EpsilonInsensitive
from tests.losses.references import REFERENCES, Epsilon, Rows

M = 40


@pytest.fixture(params=list(LOSSES))
def case(request):
    rng = np.random.default_rng(5)
    reference = REFERENCES[request.param]
    F = rng.normal(size=(M, reference.k)) * 3
    return Rows(request.param), reference, reference.labels(rng, M), F, rng.uniform(0.1, 3, M), rng


def plain(k, scale=1.0):
    """No repair of the intercept, the same scale for all outputs."""
    return np.full(k, scale), np.zeros(k), np.zeros(k), np.zeros(k)


def test_fenchel_young_equality_at_the_residuals(case):
    """D(U) = l + <U, f> per example, for s = 1; s multiplies (docs/math.md 6)."""
    rows, reference, y, F, s, _ = case
    U = rows.residual(y, F, np.ones(M))
    expected = s * (rows.value(y, F, np.ones(M)) + (U * F).sum(axis=1))
    np.testing.assert_allclose(rows.dual(y, F, s, *plain(reference.k)), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("scale", [0.0, 1e-6, 0.3, 0.999, 1.0])
def test_scale_shrinks_the_point_towards_zero(case, scale):
    """Theta = scale U: the value is that of the reference dual there."""
    rows, reference, y, F, s, _ = case
    theta = scale * rows.residual(y, F, np.ones(M))
    wanted = (s * reference.dual(y, theta)).astype(float)
    np.testing.assert_allclose(rows.dual(y, F, s, *plain(reference.k, scale)), wanted, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("case", ["log", "multinomial", "margin_softmax", "multitask"], indirect=True)
def test_mix_shift_and_prior_move_the_probabilities(case):
    """q'' = (1 - mix)(q - shift) + mix prior, then (1 - scale) y + scale q'' (``losses.base.dual_row``)."""
    rows, reference, y, F, s, rng = case
    k = reference.k
    for _ in range(20):
        prior = rng.dirichlet(np.ones(k)) if not rows.loss.separable else rng.uniform(0.2, 0.8, k)
        mix = np.full(k, rng.uniform(0.3, 1)) if not rows.loss.separable else rng.uniform(0.3, 1, k)
        shift = rng.normal(size=k) * 1e-2
        scale = np.full(k, rng.uniform()) if not rows.loss.separable else rng.uniform(size=k)
        if not rows.loss.separable:
            shift -= shift.mean()
        q = (1 - mix) * (reference.predicted(y, F).astype(float) - shift) + mix * prior
        inside = ((q >= 0) & (q <= 1)).all(axis=1)
        assert inside.any()
        theta = scale * reference.theta(y, q)
        wanted = (s * reference.dual(y, theta)).astype(float)
        got = rows.dual(y, F, s, scale, mix, shift, prior)
        np.testing.assert_allclose(got[inside], wanted[inside], rtol=1e-10, atol=1e-12)


def test_weak_duality_at_random_dual_points(case):
    """D_i(Theta) <= l(f) + <Theta, f> for every f and every Theta of the domain."""
    rows, reference, y, F, s, rng = case
    one = np.ones(M)
    for _ in range(30):
        elsewhere = rng.normal(size=F.shape) * 10.0 ** rng.uniform(-1, 1.5)
        scale = rng.uniform()
        theta = scale * rows.residual(y, F, one)
        value = rows.dual(y, F, one, *plain(reference.k, scale))
        upper = rows.value(y, elsewhere, one) + (theta * elsewhere).sum(axis=1)
        assert (value <= upper + 1e-12 * (1 + np.abs(upper))).all()


def test_extreme_margins_give_finite_values(case):
    rows, reference, *_ = case
    rng = np.random.default_rng(0)
    F = rng.choice([-1e8, -1e4, -700.0, -37.0, 0.0, 37.0, 700.0, 1e4], size=(200, reference.k))
    lowest = {"log": 0.0, "multinomial": 0.0, "multitask": 0.0}.get(rows.loss.name, -np.inf)
    y = reference.labels(rng, 200)
    for scale in (0.0, 0.5, 1.0):
        value = rows.dual(y, F, np.ones(200), *plain(reference.k, scale))
        # a dual value beyond all numbers is minus infinity, which is a lower bound as well
        assert np.isfinite(value[np.abs(F).max(axis=1) <= 700]).all()
        assert not np.isnan(value).any()
        assert value.min() >= lowest


def test_missing_labels_add_nothing_to_the_dual(case):
    rows, reference, y, F, s, _ = case
    if reference.kind not in ("sign", "reals"):
        assert not rows.dual(y, F, np.zeros(M), *plain(reference.k)).any()
        return
    missing = np.zeros_like(y) if reference.kind == "sign" else np.full_like(y, np.nan)
    assert not rows.dual(missing, F, s, *plain(reference.k)).any()


@pytest.mark.full
def test_the_repair_is_feasible_and_changes_sums_no_more_than_it_says(case):
    """Theta sums to zero, D of it is what ``dual_row`` adds up to, and drift and spill bound X'(Theta - U)."""
    rows, reference, _, F, s, rng = case
    for size in (0.0, 1e-3, 1.0):
        y = reference.follow(rng, F)
        at = F + size
        mass, total = rows.loss.label_mass(y, s, reference.k)
        U = rows.residual(y, at, s)
        repair = rows.loss.repair(mass, total, U.sum(axis=0))
        theta = rows.theta(y, U, s, repair)
        np.testing.assert_allclose(theta.sum(axis=0), 0.0, atol=1e-11 * np.abs(U).sum())
        wanted = float((s * reference.dual(y, theta / s[:, None])).sum())
        assert np.isfinite(wanted)
        got = rows.dual(y, at, s, repair.keep, repair.mix, repair.shift, repair.prior).sum()
        assert got == pytest.approx(wanted, rel=1e-10, abs=1e-10 * s.sum())
        x = rng.normal(size=(30, M)) * (rng.random((30, M)) < 0.5)
        null = rows.residual(y, np.tile(rows.loss.null_intercept(mass, total), (M, 1)), s)
        allowed = repair.null_share * np.abs(x @ null)
        allowed += (np.abs(x) @ s)[:, None] * repair.drift + np.abs(x).max(axis=1)[:, None] * repair.spill
        if repair.null_share:
            allowed = allowed.max(axis=1, keepdims=True)
        assert (np.abs(x @ (theta - U)) <= allowed + 1e-9).all()


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0, 19.0, 21.0, 40.0])
def test_the_conjugate_of_every_epsilon(epsilon):
    reference, rows = Epsilon(epsilon=epsilon), Rows(EpsilonInsensitive(epsilon))
    z = np.concatenate([np.linspace(-1, 1, 41) * (epsilon + 30), np.linspace(-1, 1, 40) * 1e-3])[:, None]
    y, one = np.linspace(-3, 3, 81), np.ones(81)
    U = rows.residual(y, y[:, None] - z, one)
    for scale in (1.0, 0.999, 0.5, 1e-6, 0.0):
        wanted = reference.dual(y, scale * U).astype(float)
        inside = np.abs(U[:, 0]) < 1
        got = rows.dual(y, y[:, None] - z, one, *plain(1, scale))
        np.testing.assert_allclose(got[inside], wanted[inside], rtol=1e-10, atol=1e-12)
