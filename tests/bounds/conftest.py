"""Reference losses, written plainly on dense arrays, with random and degenerate problems."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest


@dataclass
class Problem:
    """X (m, n), labels, example weights s (m,), scores F (m, k) before the step."""

    X: np.ndarray
    y: np.ndarray
    s: np.ndarray
    F: np.ndarray
    kind: str

    @property
    def c(self):
        """Constant of the exponential bound."""
        return 0.5 if self.kind == "multinomial" else 1.0

    @property
    def kappa(self):
        """Largest curvature of the loss of one example."""
        return 0.5 if self.kind == "multinomial" else 0.25

    def loss(self, F):
        """Sum of weighted losses, in long double."""
        F = F.astype(np.longdouble)
        if self.kind == "multinomial":
            apart = F - F[np.arange(len(F)), self.y][:, None]
            top = apart.max(axis=1)
            each = top + np.log(np.exp(apart - top[:, None]).sum(axis=1))
        else:
            each = np.where(self.y != 0, np.logaddexp(0, -self.y * F), 0).sum(axis=1)
        return (self.s * each).sum()

    def pseudo_residual(self):
        """U = -dL/dF (m, k)."""
        if self.kind == "multinomial":
            q = np.exp(self.F - self.F.max(axis=1, keepdims=True))
            own = np.arange(len(q)), self.y
            U = -q / q.sum(axis=1, keepdims=True)
            # 1 - q of the own class is the sum of the others; the difference would lose a confident example.
            U[own] = 0.0
            U[own] = -U.sum(axis=1)
        else:
            U = self.y / (1 + np.exp(self.y * self.F))
        return self.s[:, None] * U

    def sums(self):
        """mu_plus, mu_minus (n, k): both signs of U x summed apart."""
        terms = self.pseudo_residual()[:, None, :] * self.X[:, :, None]
        return np.maximum(terms, 0).sum(axis=0), np.maximum(-terms, 0).sum(axis=0)

    @property
    def rho(self):
        """rho_i (m,) of the template of all features, unit weights."""
        return np.abs(self.X).sum(axis=1)

    def change(self, delta):
        """True change of the loss when W moves by delta (n, k)."""
        return self.loss(self.F + self.X @ delta) - self.loss(self.F)


def make(rng, kind):
    """One problem: sparse or dense, sometimes with zero columns, confident scores, zero weights, repeated columns."""
    m, n, k = rng.integers(1, 12), rng.integers(1, 6), 1 if kind == "log" else int(rng.integers(2, 6))
    X = rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-2, 2, size=n)
    X[rng.random((m, n)) < rng.choice([0.0, 0.5, 0.9])] = 0.0
    if rng.random() < 0.2:
        X = np.sign(X)
    if rng.random() < 0.2:
        X[:, 0] = 0.0
    if rng.random() < 0.2:
        X[:, -1] = X[:, 0]
    s = rng.exponential(size=m) * (rng.random(m) < 0.8) + 1e-3
    F = rng.normal(size=(m, k)) * rng.choice([0.0, 1.0, 10.0])
    if kind == "multinomial":
        y = rng.integers(k, size=m)
    else:
        y = rng.choice([-1, 1], size=(m, k)) * (rng.random((m, k)) < (1.0 if kind == "log" else 0.7))
    return Problem(X, y, s, F, kind)


@pytest.fixture(params=["log", "multitask", "multinomial"])
def problems(request):
    """120 problems of one loss."""
    rng = np.random.default_rng(1000003)
    return [make(rng, request.param) for _ in range(120)]


@pytest.fixture
def rng():
    return np.random.default_rng(31)
