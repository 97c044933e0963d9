"""The losses again, in plain numpy and extended precision, from their formulas (docs/math.md 1).

``REFERENCES`` must name every loss of the registry: a new loss is not tested until it is written down here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from dboost.compiled.examples import fused
from dboost.compiled.examples.loss_rows import theta_row
from dboost.losses import get_loss
from dboost.losses.real import FAR

WIDE = np.longdouble


def softplus(z):
    """log(1 + e^z) in extended precision."""
    z = np.asarray(z, WIDE)
    return np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z)))


def entropy(p):
    """-p log p, 0 at 0."""
    p = np.asarray(p, WIDE)
    return np.where(p > 0, -p * np.log(np.where(p > 0, p, 1)), 0)


class Reference:
    """What most references say alike."""

    def bounded(self, F):
        """Margins at which loss and residual are numbers."""
        return F


@dataclass(frozen=True)
class Binary(Reference):
    """Sum over the outputs of softplus(-y f); y = 0 is missing."""

    k: int
    kind = "sign"

    def every_label(self):
        return [np.full(self.k, v, np.int8) for v in (1, -1, 0)]

    def sharpest(self, y):
        return np.zeros((len(y), self.k))

    def labels(self, rng, m):
        y = np.where(rng.random((m, self.k)) < 0.4, 1, -1).astype(np.int8)
        if self.k > 1:
            y[rng.random((m, self.k)) < 0.15] = 0
        return y

    def follow(self, rng, F):
        """Labels that the margins F favour."""
        y = np.where(rng.random(F[:, : self.k].shape) < 1 / (1 + np.exp(-F[:, : self.k])), 1, -1).astype(np.int8)
        if self.k > 1:
            y[rng.random(y.shape) < 0.1] = 0
        return y

    def loss(self, y, F):
        return (np.abs(y) * softplus(-y * WIDE(1) * F)).sum(axis=1)

    def residual(self, y, F):
        return y * np.exp(-softplus(y * WIDE(1) * F))

    def hessian(self, y, F):
        h = np.abs(y) * np.exp(-softplus(F) - softplus(-np.asarray(F)))
        return h[:, :, None] * np.eye(self.k)

    def probability(self, F):
        return np.exp(-softplus(-np.asarray(F)))

    def predicted(self, y, F):
        return self.probability(F)

    def dual(self, y, theta):
        """D_i(Theta) for Theta = -y-signed mass; -inf outside the domain."""
        al = y * WIDE(1) * theta
        value = (np.abs(y) * (entropy(al) + entropy(1 - al))).sum(axis=1)
        return np.where(((al >= 0) & (al <= 1) | (y == 0)).all(axis=1), value, -np.inf)

    def theta(self, y, q):
        """The dual point of predicted probabilities q."""
        return np.where(y > 0, 1 - q, np.where(y < 0, -q, 0.0))


@dataclass(frozen=True)
class Softmax(Reference):
    """log sum_r e^(f_r) - f_y."""

    k: int
    kind = "code"

    def every_label(self):
        return list(np.arange(self.k, dtype=np.int32))

    def sharpest(self, y):
        F = np.full((len(y), self.k), -40.0)
        F[:, :2] = 0.0
        return F

    def labels(self, rng, m):
        return rng.integers(0, self.k, m).astype(np.int32)

    def follow(self, rng, F):
        return (F[:, : self.k] + rng.gumbel(size=F[:, : self.k].shape)).argmax(axis=1).astype(np.int32)

    def onehot(self, y):
        return np.eye(self.k)[y]

    def _shifted(self, y, F):
        F = np.asarray(F, WIDE)
        return F - np.take_along_axis(F, y[:, None].astype(np.int64), axis=1)

    def loss(self, y, F):
        Z = self._shifted(y, F)
        top = Z.max(axis=1)
        rest = np.exp(Z - top[:, None])
        # exact also where the label's margin is the largest: 1 is taken out of the sum by name
        others = np.where(self.onehot(y) > 0, 0, rest).sum(axis=1)
        return np.where(top == 0, np.log1p(others), top + np.log(rest.sum(axis=1)))

    def predicted(self, y, F):
        """The probabilities of which the residual is the difference to the label."""
        return self.probability(F)

    def residual(self, y, F):
        q = self.predicted(y, F)
        hot = self.onehot(y) > 0
        others = np.where(hot, 0, q).sum(axis=1)
        return np.where(hot, others[:, None], -q)

    def hessian(self, y, F):
        q = self.predicted(y, F)
        return q[:, :, None] * np.eye(self.k) - q[:, :, None] * q[:, None, :]

    def probability(self, F):
        F = np.asarray(F, WIDE)
        e = np.exp(F - F.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def dual(self, y, theta):
        al = self.onehot(y) - np.asarray(theta, WIDE)
        inside = (al >= -1e-15).all(axis=1) & (np.abs(al.sum(axis=1) - 1) < 1e-12)
        return np.where(inside, entropy(np.maximum(al, 0)).sum(axis=1), -np.inf)

    def theta(self, y, q):
        return self.onehot(y) - q


@dataclass(frozen=True)
class Margin(Softmax):
    """log sum_r e^(f_r + 1[r != y]) - f_y; probabilities of new examples know no margin."""

    def offset(self, y):
        return 1 - self.onehot(y)

    def sharpest(self, y):
        return super().sharpest(y) - self.offset(y)

    def loss(self, y, F):
        return super().loss(y, np.asarray(F, WIDE) + self.offset(y))

    def predicted(self, y, F):
        return self.probability(np.asarray(F, WIDE) + self.offset(y))

    def dual(self, y, theta):
        """Beside the entropy, -<Theta, offset>."""
        return super().dual(y, theta) - (np.asarray(theta, WIDE) * self.offset(y)).sum(axis=1)


@dataclass(frozen=True)
class Exponential(Binary):
    """e^(-y f); y = 0 is missing. Its sharpest point is at infinity."""

    def sharpest(self, y):
        return -600.0 * y

    def bounded(self, F):
        return np.clip(F, -230, 230)

    def loss(self, y, F):
        return (np.abs(y) * np.exp(-y * WIDE(1) * F)).sum(axis=1)

    def residual(self, y, F):
        return y * np.exp(-y * WIDE(1) * F)

    def hessian(self, y, F):
        return (np.abs(y) * np.exp(-y * WIDE(1) * F))[:, :, None] * np.eye(self.k)

    def dual(self, y, theta):
        al = y * WIDE(1) * theta
        value = (np.abs(y) * (al + entropy(al))).sum(axis=1)
        return np.where((al >= 0).all(axis=1), value, -np.inf)


@dataclass(frozen=True)
class Squared(Reference):
    """(f - y)^2 / 2 with real labels, summed over the outputs."""

    k = 1
    kind = "real"

    def every_label(self):
        return [np.float64(v) for v in (0.0, 1.0, -3.5, 1e6)]

    def labels(self, rng, m):
        return rng.normal(size=m) * 3 + 1

    def follow(self, rng, F):
        return F[:, 0] + rng.normal(size=len(F))

    def sharpest(self, y):
        return y[:, None].copy()

    def gap(self, y, F):
        """y - f, (m, k)."""
        return np.asarray(y, WIDE).reshape(len(y), -1) - F

    def loss(self, y, F):
        return (self.residual(y, F) ** 2).sum(axis=1) / 2

    def residual(self, y, F):
        return self.gap(y, F)

    def hessian(self, y, F):
        return np.ones((len(y), 1, 1))

    def dual(self, y, theta):
        theta = np.asarray(theta, WIDE)[:, 0]
        return theta * y - theta**2 / 2


@dataclass(frozen=True)
class Targets(Squared):
    """The same of the outputs whose label is a number."""

    k: int
    kind = "reals"

    def every_label(self):
        return [np.full(self.k, v) for v in (0.0, 1.0, -3.5, 1e6, np.nan)]

    def labels(self, rng, m):
        y = rng.normal(size=(m, self.k)) * 3 + 1
        y[rng.random(y.shape) < 0.15] = np.nan
        return y

    def follow(self, rng, F):
        y = F[:, : self.k] + rng.normal(size=F[:, : self.k].shape)
        y[rng.random(y.shape) < 0.1] = np.nan
        return y

    def sharpest(self, y):
        return np.where(np.isnan(y), 0.0, y)

    def residual(self, y, F):
        return np.where(np.isnan(y), 0, self.gap(y, F))

    def hessian(self, y, F):
        return np.where(np.isnan(y), 0.0, 1.0)[:, :, None] * np.eye(self.k)

    def dual(self, y, theta):
        theta = np.asarray(theta, WIDE)
        value = np.where(np.isnan(y), 0, theta * y - theta**2 / 2).sum(axis=1)
        return np.where((np.isnan(y) & (theta != 0)).any(axis=1), -np.inf, value)


@dataclass(frozen=True)
class Epsilon(Squared):
    """softplus(f - y - eps) + softplus(y - f - eps)."""

    epsilon: float = 0.1

    def sharpest(self, y):
        C = np.cosh(self.epsilon)
        return y[:, None] + (np.arccosh(C - 2 / C) if C > 2 else 0.0)

    def _each(self, function, y, F):
        z = self.gap(y, F)
        return function(z - WIDE(self.epsilon)), function(-z - WIDE(self.epsilon))

    def loss(self, y, F):
        up, down = self._each(softplus, y, F)
        return (up + down)[:, 0]

    def residual(self, y, F):
        up, down = self._each(lambda x: np.exp(-softplus(-x)), y, F)
        return up - down

    def hessian(self, y, F):
        """Far from the label, where it is less than that, the share of the least parabola's that steps are given."""
        up, down = self._each(lambda x: np.exp(-softplus(x) - softplus(-x)), y, F)
        least = FAR * np.abs(self.residual(y, F)) / np.maximum(np.abs(self.gap(y, F)), 1.0)
        return np.maximum(up + down, least)[:, :, None]

    def dual(self, y, theta):
        """By bisection for the z at which the residual is theta: no formula."""
        theta = np.asarray(theta, WIDE)[:, 0]
        low, high = np.full(len(theta), WIDE(-200)), np.full(len(theta), WIDE(200))
        zero = np.zeros(len(theta))
        for _ in range(120):
            z = (low + high) / 2
            less = self.residual(zero, -z[:, None])[:, 0] < theta
            low, high = np.where(less, z, low), np.where(less, high, z)
        return self.loss(zero, -z[:, None]) + theta * (y - z)


@dataclass(frozen=True)
class Huber(Squared):
    """z^2 / 2 up to |z| = eps, eps |z| - eps^2 / 2 beyond."""

    epsilon: float = 1.35

    def loss(self, y, F):
        z = np.abs(self.gap(y, F)[:, 0])
        return np.where(z <= self.epsilon, z**2 / 2, self.epsilon * z - WIDE(self.epsilon) ** 2 / 2)

    def residual(self, y, F):
        return np.clip(self.gap(y, F), -WIDE(self.epsilon), WIDE(self.epsilon))

    def hessian(self, y, F):
        """Beyond eps, where it is zero, the share of the least parabola's that steps are given."""
        z = np.abs(self.gap(y, F))
        return np.where(z <= self.epsilon, 1.0, FAR * self.epsilon / np.maximum(z, self.epsilon))[:, :, None]

    def dual(self, y, theta):
        theta = np.asarray(theta, WIDE)[:, 0]
        return np.where(np.abs(theta) <= self.epsilon * (1 + 1e-15), theta * y - theta**2 / 2, -np.inf)


@dataclass(frozen=True)
class Quantile(Squared):
    """tau z for z >= h / 2, (tau - 1) z for z <= -h / 2, and the parabola that touches both between."""

    quantile: float = 0.5
    width: float = 0.1

    def sharpest(self, y):
        return y[:, None] - self.width * (0.5 - self.quantile)

    def loss(self, y, F):
        z, h = self.gap(y, F)[:, 0], WIDE(self.width)
        inside = (self.quantile - WIDE(0.5)) * z + z**2 / (2 * h) + h / 8
        outside = np.where(z > 0, self.quantile * z, (self.quantile - WIDE(1)) * z)
        return np.where(np.abs(z) < h / 2, inside, outside)

    def residual(self, y, F):
        return self.quantile - WIDE(0.5) + np.clip(self.gap(y, F) / WIDE(self.width), -0.5, 0.5)

    def hessian(self, y, F):
        z = np.abs(self.gap(y, F))
        half = WIDE(self.width) / 2
        return np.where(z <= half, 1 / WIDE(self.width), FAR / (2 * np.maximum(z, half)))[:, :, None]

    def dual(self, y, theta):
        theta = np.asarray(theta, WIDE)[:, 0]
        v = theta - self.quantile + WIDE(0.5)
        value = theta * y + self.width * (WIDE(1) / 8 - v**2 / 2)
        return np.where(np.abs(v) <= 0.5 + 1e-15, value, -np.inf)


@dataclass(frozen=True)
class Poisson(Squared):
    """e^f - y f + y log y - y with counts y. Its sharpest point is at infinity."""

    def every_label(self):
        return [np.float64(v) for v in (0.0, 1.0, 7.0, 1e6)]

    def labels(self, rng, m):
        return rng.poisson(3.0, m).astype(float)

    def follow(self, rng, F):
        return rng.poisson(np.exp(F[:, 0])).astype(float)

    def sharpest(self, y):
        return np.full((len(y), 1), 600.0)

    def bounded(self, F):
        return np.clip(F, -690, 690)

    def _label_term(self, y):
        """y log y - y, 0 at 0."""
        return -entropy(y) - y

    def loss(self, y, F):
        f = np.asarray(F, WIDE)[:, 0]
        return np.exp(f) - y * f + self._label_term(y)

    def residual(self, y, F):
        return np.asarray(y, WIDE)[:, None] - np.exp(np.asarray(F, WIDE))

    def hessian(self, y, F):
        return np.exp(np.asarray(F, WIDE))[:, :, None]

    def dual(self, y, theta):
        v = np.asarray(y, WIDE) - np.asarray(theta, WIDE)[:, 0]
        return np.where(v >= 0, v + entropy(v) + self._label_term(y), -np.inf)


REFERENCES: dict[str, Any] = {
    "log": Binary(1),
    "multinomial": Softmax(4),
    "margin_softmax": Margin(4),
    "multitask": Binary(3),
    "exp": Exponential(1),
    "squared": Squared(),
    "epsilon_insensitive": Epsilon(),
    "poisson": Poisson(),
    "huber": Huber(),
    "quantile": Quantile(),
    "multitarget": Targets(3),
}


def identity_cut(m):
    """A cut block whose margins are the rows of W themselves."""
    return np.arange(m + 1, dtype=np.int64), np.arange(m, dtype=np.int32), np.ones(m)


@njit
def _thetas(target, U, s, keep, mix, shift, prior):
    for i in range(U.shape[0]):
        theta_row(target, i, U[i], s[i], keep, mix, shift, prior)


class Rows:
    """The compiled row functions of a loss, called one example at a time through the fused kernels."""

    def __init__(self, name):
        self.loss = get_loss(name)

    def _at(self, y, F):
        F = np.ascontiguousarray(F, float)
        return *identity_cut(len(F)), F, np.zeros(F.shape[1]), self.loss.target(y)

    def residual(self, y, F, s):
        """U (m, k)."""
        return fused.residuals(*self._at(y, F), s, np.zeros(F.shape[1]))[0][:, : F.shape[1]]

    def branches(self, y, F, s):
        """The pulls up and down (m, k), and the loss."""
        return fused.branches(*self._at(y, F), s, np.zeros(F.shape[1]))

    def theta(self, y, U, s, repair):
        """Repaired residuals (m, k)."""
        out = U.copy()
        _thetas(self.loss.target(y), out, s, repair.keep, repair.mix, repair.shift, repair.prior)
        return out

    def residual_loss(self, y, F, s):
        """The loss of each example as ``residual_row`` returns it, (m,)."""
        one = np.eye(len(s)) * s
        return np.array([fused.residuals(*self._at(y, F), e, np.zeros(F.shape[1]))[1] for e in one])

    def value(self, y, F, s):
        """The loss of each example as ``loss_row`` returns it, (m,)."""
        out = np.zeros((len(s), 1))
        for i, weight in enumerate(np.eye(len(s)) * s):
            args = self._at(y, F)
            fused.losses_along(*args[:5], args[3], args[4], np.zeros(1), args[5], weight, out[i])
        return out[:, 0]

    def hessian(self, y, F, s):
        """(m, k, k)."""
        h, r = np.empty(F.shape), np.empty(len(s))
        fused.curvature(*self._at(y, F), s, h, r)
        return h[:, :, None] * np.eye(F.shape[1]) - r[:, None, None] * h[:, :, None] * h[:, None, :]

    def dual(self, y, F, s, scale, mix, shift, prior):
        """D_i of each example, (m,)."""
        one = np.eye(len(s)) * s
        return np.array([fused.dual_value(*self._at(y, F), e, scale, mix, shift, prior) for e in one])
