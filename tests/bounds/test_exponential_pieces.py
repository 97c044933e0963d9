"""The scalar pieces of the exponential bound against slow references: the root, the gain, the tilt."""

from __future__ import annotations

import numpy as np

from dboost.bounds import exponential


def triples(rng, size):
    """p >= q >= 0 and lam of very different magnitudes, with zeros."""
    p = 10.0 ** rng.uniform(-6, 6, size=size)
    q = p * rng.random(size) ** 3
    q[rng.random(size) < 0.1] = 0.0
    lam = (p - q) * 2 * rng.random(size)
    lam[rng.random(size) < 0.1] = 0.0
    return p, q, lam


def test_gain_is_the_minimum(rng):
    p, q, lam = triples(rng, 5000)
    gain = exponential.gain(p, q, lam)
    wide = [x.astype(np.longdouble) for x in (p, q, lam)]
    low, high = np.zeros(5000, np.longdouble), np.full(5000, np.longdouble(60))
    for _ in range(120):
        d = (low + high) / 2
        falling = -wide[0] * np.exp(-d) + wide[1] * np.exp(d) + wide[2] < 0
        low, high = np.where(falling, d, low), np.where(falling, high, d)
    least = -(wide[0] * np.expm1(-d) + wide[1] * np.expm1(d) + wide[2] * d)
    least = np.where(p - q > lam, least, 0)
    assert np.allclose(gain, least.astype(float), rtol=1e-12, atol=1e-300)
    assert np.array_equal(gain > 0, p - q > lam) and 1000 < (gain > 0).sum() < 4000


def test_gain_stays_positive_next_to_the_threshold(rng):
    """Relative excess down to 1e-15: second order in it, so a formula that cancels would give zero or less."""
    p, q = 10.0 ** rng.uniform(-3, 3, size=(2, 2000))
    p, q = np.maximum(p, q) * 1.01, np.minimum(p, q)
    excess = (p - q) * 10.0 ** rng.uniform(-15, -3, size=2000)
    gain = exponential.gain(p, q, p - q - excess, excess=excess)
    leading = excess**2 / (2 * (p + q))
    small = excess < 1e-6 * (p - q)
    assert np.all(gain > 0) and small.sum() > 1000
    assert np.allclose(gain[small], leading[small], rtol=1e-4, atol=0)


def test_gain_without_weight():
    assert np.allclose(exponential.gain(np.array([9.0, 4.0, 2.0]), np.array([4.0, 0.0, 2.0]), 0.0), [1.0, 4.0, 0.0])


def test_root_agrees_with_the_rationalised_form(rng):
    p, q, lam = triples(rng, 5000)
    with np.errstate(divide="ignore"):
        P, N = np.log(p)[:, None], np.log(q)[:, None]
        got = exponential.shrunk_root(P, N, lam)[:, 0]
        expected = np.where(p - q > lam, np.log(2 * p / (lam + np.hypot(lam, 2 * np.sqrt(p * q)))), 0.0)
    assert np.array_equal(np.isinf(got), np.isinf(expected)) and np.isinf(got).sum() > 5
    finite = np.isfinite(got)
    assert np.allclose(got[finite], expected[finite], rtol=1e-9, atol=1e-13)


def test_root_stays_exact_under_a_tilt():
    """Adding t to P and -t to N, as w / a does, with lam = 0 moves the root by t."""
    P, N = np.full((4, 1), 0.3), np.full((4, 1), -0.2)
    t = np.array([[0.0], [10.0], [1000.0], [50000.0]])
    root = exponential.shrunk_root(P + t, N - t, np.zeros(4))
    assert np.allclose(root - t, 0.25, atol=1e-15 * 50000)


def test_sides_of_empty_entries():
    inf = -np.inf
    P, N, s = exponential.sides(np.array([[inf, 1.0, inf, 2.0]]), np.array([[inf, inf, 1.0, 2.0]]))
    assert P.tolist() == [[inf, 1.0, 1.0, 2.0]] and N.tolist() == [[inf, inf, inf, 2.0]]
    assert s.tolist() == [[0.0, 1.0, -1.0, 0.0]]


def test_change_with_zero_sums_survives_overflow():
    delta = np.array([[1e6, -1e6]])
    change = exponential.change(delta, np.array([[1.0, 0.0]]), np.array([[0.0, 2.0]]), np.array([1e-3]))
    assert change.tolist() == [-3e-3]


def test_exponential_loss_with_unit_features_meets_its_bound(rng):
    """For x in {-1, 0, 1} and the loss e^(-y f) the one-row bound is the loss itself."""
    for _ in range(100):
        x, y, s = rng.integers(-1, 2, size=20), rng.choice([-1, 1], size=20), rng.exponential(size=20)
        mu_plus = np.array([[s[x * y > 0].sum()]])
        mu_minus = np.array([[s[x * y < 0].sum()]])
        delta = rng.normal(size=(1, 1))
        true = (s * (np.exp(-y * x * delta[0, 0]) - 1)).sum()
        assert np.isclose(exponential.change(delta, mu_plus, mu_minus, np.ones(1))[0], true, rtol=1e-12, atol=1e-12)
