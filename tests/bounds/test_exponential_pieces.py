"""The scalar pieces of the exponential bound against slow references: the gain, the root under a tilt."""

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


def test_root_stays_exact_under_a_tilt():
    """Adding t to P and -t to N, as w / a does, with lam = 0 moves the root by t."""
    P, N = np.full((4, 1), 0.3), np.full((4, 1), -0.2)
    t = np.array([[0.0], [10.0], [1000.0], [50000.0]])
    root = exponential.shrunk_root(P + t, N - t, np.zeros(4))
    assert np.allclose(root - t, 0.25, atol=1e-15 * 50000)


def test_change_with_zero_sums_survives_overflow():
    delta = np.array([[1e6, -1e6]])
    change = exponential.change(delta, np.array([[1.0, 0.0]]), np.array([[0.0, 2.0]]), np.array([1e-3]))
    assert change.tolist() == [-3e-3]
