"""Every loss of the registry against its formula in extended precision and against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.compiled.vectors.softmax import LONGEST
from dboost.errors import UsageError
from dboost.losses import LOSSES, EpsilonInsensitive, get_loss
from dboost.losses.real import RealLoss
from tests.losses.references import REFERENCES, Epsilon, Rows, softplus

M = 60


@pytest.fixture(params=list(LOSSES))
def name(request):
    assert set(REFERENCES) == set(LOSSES), "write the new loss down in references.py"
    return request.param


@pytest.fixture
def case(name):
    """(row functions, reference, labels, margins, weights): mixed scales, ties and zeros, weights of many sizes."""
    rng = np.random.default_rng(7)
    reference = REFERENCES[name]
    F = rng.normal(size=(M, reference.k)) * 10.0 ** rng.uniform(-2, 1.3, size=(M, 1))
    F[:4] = 0.0
    F[4:8] = F[4:8, :1]
    return Rows(name), reference, reference.labels(rng, M), F, 10.0 ** rng.uniform(-3, 2, M)


def extreme_margins(k):
    """Confident, hopeless, tied and huge margins."""
    rows = [np.full(k, v) for v in (0.0, 1e4, -1e4, 37.0, -37.0, 710.0, -745.0, 1e-300)]
    for big in (1.0, 30.0, 700.0, 1e4, 1e8):
        for r in range(k):
            rows += [np.eye(k)[r] * big, -np.eye(k)[r] * big]
    return np.array(rows)


def all_labels(name, F):
    """Every row of F with every label there is."""
    choices = REFERENCES[name].every_label()
    return np.repeat(choices, len(F), axis=0), np.tile(F, (len(choices), 1))


def test_values_and_residuals_follow_the_formula(case):
    rows, reference, y, F, s = case
    np.testing.assert_allclose(rows.value(y, F, s), (s * reference.loss(y, F)).astype(float), rtol=3e-14)
    np.testing.assert_allclose(rows.residual_loss(y, F, s), rows.value(y, F, s), rtol=1e-15)
    expected = (s[:, None] * reference.residual(y, F)).astype(float)
    np.testing.assert_allclose(rows.residual(y, F, s), expected, rtol=3e-14)


@pytest.mark.parametrize("name", ["multinomial", "margin_softmax"])
def test_more_classes_than_one_loop_holds_follow_the_formula(name):
    # Rows of at most LONGEST classes are computed by another loop, which the references above are short enough for.
    rng, k = np.random.default_rng(3), 2 * LONGEST + 1
    rows, reference = Rows(name), type(REFERENCES[name])(k)
    F, s = rng.normal(size=(M, k)) * 3.0, rng.uniform(0.5, 2.0, M)
    y = reference.labels(rng, M)
    np.testing.assert_allclose(rows.residual_loss(y, F, s), (s * reference.loss(y, F)).astype(float), rtol=3e-14)
    expected = (s[:, None] * reference.residual(y, F)).astype(float)
    np.testing.assert_allclose(rows.residual(y, F, s), expected, rtol=1e-12, atol=1e-15)


def test_no_residual_is_longer_than_the_longest(name):
    rows, k = Rows(name), REFERENCES[name].k
    y, F = all_labels(name, REFERENCES[name].bounded(extreme_margins(k)))
    U = rows.residual(y, F, np.ones(len(F)))
    longest = get_loss(name).longest_residual(k)
    if longest is None:
        assert np.abs(U).max() > 1e3
        return
    assert longest.shape == (k,)
    for order in (1, 2, np.inf):
        lengths, bound = np.linalg.norm(U, order, axis=1), np.linalg.norm(longest, order)
        assert (lengths <= bound * (1 + 1e-12)).all() and lengths.max() >= 0.99 * bound


def test_the_residual_is_minus_the_derivative_of_the_loss(case):
    rows, reference, y, F, s = case
    F = np.clip(F, -3, 3)
    step = 1e-3
    for r in range(reference.k):
        e = step * np.eye(reference.k)[r]
        near = rows.value(y, F + e, s) - rows.value(y, F - e, s)
        far = rows.value(y, F + 2 * e, s) - rows.value(y, F - 2 * e, s)
        slope = (8 * near - far) / (12 * step)
        np.testing.assert_allclose(rows.residual(y, F, s)[:, r], -slope, atol=1e-11 * s.max(), rtol=1e-9)


def test_the_hessian_is_the_derivative_of_the_residual(case):
    rows, reference, y, F, s = case
    F = np.clip(F, -3, 3)
    step = 1e-3
    H = rows.hessian(y, F, s)
    for r in range(reference.k):
        e = step * np.eye(reference.k)[r]
        near = rows.residual(y, F + e, s) - rows.residual(y, F - e, s)
        far = rows.residual(y, F + 2 * e, s) - rows.residual(y, F - 2 * e, s)
        slope = (8 * near - far) / (12 * step)
        some = np.ones(M, bool)
        if isinstance(rows.loss, RealLoss) and np.isfinite(rows.loss.largest):
            # near an end of the residuals steps are given a curvature all the same (``losses.real.FAR``)
            u = np.hstack([rows.residual(y, F + t * e, np.ones(M)) for t in (-2, 2)])
            some = ((u > 0.95 * rows.loss.ends[0]) & (u < 0.95 * rows.loss.ends[1])).all(axis=1)
        np.testing.assert_allclose(H[some, r], -slope[some], atol=1e-11 * s.max(), rtol=1e-9)
    np.testing.assert_allclose(H, (s[:, None, None] * reference.hessian(y, F)).astype(float), rtol=1e-12, atol=1e-15)


def test_kappa_is_the_largest_curvature(case):
    rows, reference, y, F, s = case
    loss = rows.loss
    ones = np.ones(M)
    if not np.isfinite(loss.kappa):
        assert rows.hessian(y, reference.sharpest(y), ones).max() > 1e260
        return
    eigenvalues = np.linalg.eigvalsh(rows.hessian(y, F, ones))
    assert eigenvalues.max() <= loss.kappa * (1 + 1e-12)
    # and it is reached
    y = reference.labels(np.random.default_rng(0), M)
    eigenvalues = np.linalg.eigvalsh(rows.hessian(y, reference.sharpest(y), ones))
    assert eigenvalues.max() == pytest.approx(loss.kappa, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.3, 1.32, 3.0, 30.0, 1000.0])
def test_kappa_and_floor_of_every_epsilon(epsilon):
    loss = EpsilonInsensitive(epsilon)
    rows, reference = Rows(loss), Epsilon(epsilon=epsilon)
    z = np.linspace(-1, 1, 401)[:, None] * (epsilon + 5)
    h = rows.hessian(np.zeros(401), z, np.ones(401))
    assert h.max() <= loss.kappa * (1 + 1e-12)
    if epsilon < 300:
        top = rows.hessian(np.zeros(1), reference.sharpest(np.zeros(1)), np.ones(1))
        assert top.max() == pytest.approx(loss.kappa, rel=1e-9)
    values = rows.value(np.zeros(401), z, np.ones(401))
    assert values.min() == pytest.approx(loss.floor, rel=1e-14)
    np.testing.assert_allclose(values, reference.loss(np.zeros(401), z).astype(float), rtol=1e-13)


@pytest.mark.parametrize("epsilon", [-0.1, np.nan, np.inf, "0.1", None, True])
def test_a_bad_epsilon_is_refused(epsilon):
    with pytest.raises(UsageError, match="epsilon must be a finite number >= 0"):
        EpsilonInsensitive(epsilon)


def test_separable_says_whether_the_hessian_is_diagonal(case):
    rows, reference, y, F, s = case
    H = rows.hessian(y, F, s)
    off = np.abs(H * (1 - np.eye(reference.k))).max()
    assert bool(off == 0.0) is rows.loss.separable


def test_extreme_margins_are_finite_and_accurate(name):
    rows, reference = Rows(name), REFERENCES[name]
    y, F = all_labels(name, reference.bounded(extreme_margins(reference.k)))
    s = np.ones(len(F))
    for got, wanted in (
        (rows.value(y, F, s), reference.loss(y, F)),
        (rows.residual_loss(y, F, s), reference.loss(y, F)),
        (rows.residual(y, F, s), reference.residual(y, F)),
    ):
        assert np.isfinite(got).all()
        np.testing.assert_allclose(got, wanted.astype(float), rtol=1e-13, atol=1e-300)
    H = rows.hessian(y, F, s)
    assert np.isfinite(H).all()
    np.testing.assert_allclose(H, reference.hessian(y, F).astype(float), rtol=1e-12, atol=1e-15)


def test_a_weight_multiplies_and_zero_is_absent(case):
    rows, _, y, F, s = case
    np.testing.assert_allclose(rows.value(y, F, 3.0 * s), 3.0 * rows.value(y, F, s), rtol=1e-15)
    np.testing.assert_allclose(rows.residual(y, F, 3.0 * s), 3.0 * rows.residual(y, F, s), rtol=2e-15)
    np.testing.assert_allclose(rows.hessian(y, F, 3.0 * s), 3.0 * rows.hessian(y, F, s), rtol=1e-12, atol=1e-16)
    none = np.zeros(M)
    assert not rows.value(y, F, none).any()
    assert not rows.residual(y, F, none).any()
    assert not rows.hessian(y, F, none).any()


@pytest.mark.parametrize("name", [n for n in LOSSES if REFERENCES[n].kind in ("sign", "reals")])
def test_missing_labels_contribute_nothing(name):
    rng = np.random.default_rng(3)
    rows, reference = Rows(name), REFERENCES[name]
    y, F, s = reference.labels(rng, M), rng.normal(size=(M, reference.k)), rng.uniform(0.5, 2, M)
    none = 0 if reference.kind == "sign" else np.nan
    y[0] = none
    missing = np.isnan(y) if reference.kind == "reals" else y == 0
    other = np.where(missing, rng.normal(size=F.shape) * 100, F)
    for function in (rows.value, rows.residual, rows.hessian):
        np.testing.assert_array_equal(function(y, F, s), function(y, other, s))
    assert not rows.residual(y, F, s)[missing].any()
    nothing = np.full_like(y, none)
    assert not rows.value(nothing, F, s).any()


def test_label_mass_and_null_intercept(name):
    """The intercept makes the weighted residuals sum to zero, which is optimal for a convex loss."""
    rng = np.random.default_rng(11)
    rows, reference = Rows(name), REFERENCES[name]
    loss = rows.loss
    y, s = reference.labels(rng, 400), rng.uniform(0, 3, 400)
    s[:20] = 0.0
    mass, total = loss.label_mass(y, s, reference.k)
    if reference.kind == "real":
        np.testing.assert_allclose((mass, total), ([s @ y], [s.sum()]))
    elif reference.kind == "reals":
        np.testing.assert_allclose(mass, np.nansum(s[:, None] * y, axis=0))
        np.testing.assert_allclose(total, s @ ~np.isnan(y))
    elif reference.kind == "sign":
        np.testing.assert_allclose(mass, [s[y[:, r] > 0].sum() for r in range(reference.k)])
        np.testing.assert_allclose(total, [s[y[:, r] != 0].sum() for r in range(reference.k)])
    else:
        np.testing.assert_allclose(mass, [s[y == r].sum() for r in range(reference.k)])
        np.testing.assert_allclose(total, s.sum())
    b = loss.null_intercept(mass, total)
    U = rows.residual(y, np.tile(b, (400, 1)), s)
    if loss.closed_null:
        np.testing.assert_allclose(U.sum(axis=0), 0.0, atol=1e-12 * s.sum())
    if not loss.separable:
        assert b.mean() == pytest.approx(0.0, abs=1e-15)
    # doubling the weights changes the mass, not the intercept
    np.testing.assert_allclose(loss.null_intercept(2 * mass, 2 * total), b, rtol=1e-14, atol=1e-14)


def test_the_null_intercept_stays_finite_with_one_label_only(name):
    rows, reference = Rows(name), REFERENCES[name]
    loss = rows.loss
    for label in (1, -1, 0):
        kinds = {"sign": ((9, reference.k), np.int8), "code": (9, np.int32), "real": (9, float)}
        shape, dtype = (kinds | {"reals": ((9, reference.k), float)})[reference.kind]
        y = np.full(shape, abs(label) if reference.kind == "code" else label, dtype)
        b = loss.null_intercept(*loss.label_mass(y, np.ones(9), reference.k))
        assert np.isfinite(b).all()
        assert rows.value(y, np.tile(b, (9, 1)), np.ones(9)).sum() <= 9 * (loss.floor + 1e-12 * reference.k)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(UsageError, match="unknown loss 'hinge'.*" + ", ".join(LOSSES)):
        get_loss("hinge")
    with pytest.raises(UsageError, match="neither a name nor an instance of a loss"):
        get_loss(EpsilonInsensitive)
    assert get_loss(EpsilonInsensitive(0.5)).epsilon == 0.5


def test_the_pulls_of_both_branches(case):
    """plus - minus = U and both >= 0; their sum is the curvature of the exponential bound (docs/math.md, eq. 2)."""
    rows, reference, y, F, s = case
    plus, minus, loss = rows.branches(y, F, s)
    assert (plus >= 0).all() and (minus >= 0).all()
    U = rows.residual(y, F, s)
    np.testing.assert_allclose(plus - minus, U, rtol=1e-12, atol=1e-14 * s.max())
    assert loss == pytest.approx(rows.value(y, F, s).sum(), rel=1e-13)
    if rows.loss.name == "epsilon_insensitive":
        z = reference.gap(y, F)
        wanted = s[:, None] * np.exp(-softplus(reference.epsilon - z))
        np.testing.assert_allclose(plus, wanted.astype(float), rtol=1e-13)
    elif rows.loss.name == "poisson":
        np.testing.assert_array_equal(plus[:, 0], s * y)
    else:
        assert not (plus * minus).any()
