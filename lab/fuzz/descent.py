"""The oracle's own minimiser: accelerated proximal descent in long double, on centred and scaled columns.

What it finds is an upper bound on the optimum, however far it comes: a fit whose certificate says that no model is
better is refuted by one that is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lab.fuzz.objective import DEGREE, Long, Number, Objective, long, omega, prox

_STEPS = 1200
# Steps in which the objective must fall by more than this share, or the descent has ended.
_PATIENCE = 60
_FLAT = 1e-13
_HALVINGS = 200


@dataclass(frozen=True)
class _Scaled:
    """The problem in V_j = c_j W_j over the columns that may move; the intercept is the last row where there is one."""

    objective: Objective
    used: NDArray[np.bool_]
    unit: Long
    mean: Long
    Z: Long

    @classmethod
    def of(cls, objective: Objective) -> _Scaled:
        X, share = objective.X, objective.share
        mean = share @ X if objective.free else np.zeros(X.shape[1], np.longdouble)
        Z = X - mean
        unit = np.sqrt(share @ (Z * Z))
        used = (unit > 0) & np.isfinite(objective.scale)
        Z = Z[:, used] / unit[used]
        if objective.free:
            Z = np.concatenate([Z, np.ones((len(Z), 1), np.longdouble)], axis=1)
        return cls(objective, used, unit[used], mean, Z)

    def forth(self, W: Long, b: Long) -> Long:
        V = self.unit[:, None] * W[self.used]
        return np.concatenate([V, (self.objective.seen(W, b) + self.mean @ W)[None]]) if self.objective.free else V

    def back(self, V: Long) -> tuple[Long, Long]:
        W = np.zeros((len(self.used), V.shape[1]), np.longdouble)
        count = len(self.unit)
        W[self.used] = V[:count] / self.unit[:, None]
        if not self.objective.free:
            return W, np.zeros(V.shape[1], np.longdouble)
        return W, V[count] - self.mean @ W

    @property
    def strength(self) -> Long:
        found: Long = self.objective.strength[self.used] / self.unit ** DEGREE.get(self.objective.penalty, 1)
        return found

    def smooth(self, V: Long) -> tuple[Number, Long]:
        value, U = self.objective.loss_at(self.Z @ V + self.objective.offset)
        return value, self.Z.T @ U

    def moved(self, V: Long, gradient: Long, L: Number) -> Long:
        new = V - gradient / L
        count, penalty, strength = len(self.unit), self.objective.penalty, self.strength
        new[:count] = prox(penalty, new[:count], strength / L)
        found: Long = new
        return found

    def penalty(self, V: Long) -> Number:
        return omega(self.objective.penalty, V[: len(self.unit)], self.strength)


def improved(objective: Objective, W: Long, b: Long, steps: int = _STEPS) -> tuple[Number, Long, Long]:
    """The lowest objective found from a model, and from the model without features; its weights and intercept."""
    problem = _Scaled.of(objective)
    W, b = long(W), long(b)
    best, found = objective.value(W, b), (W, objective.seen(W, b))
    zero = np.zeros_like(problem.forth(W, b))
    for start in (problem.forth(W, b), zero):
        if not np.all(np.isfinite(start)):
            continue
        V = _descended(problem, start, steps)
        here = problem.back(V)
        value = objective.value_seen(*here)
        if value < best:
            best, found = value, here
    return best, *found


def _descended(problem: _Scaled, V: Long, steps: int) -> Long:
    """FISTA with backtracking, restarted whenever the objective rises; the best point it saw."""
    value, gradient = problem.smooth(V)
    total = value + problem.penalty(V)
    if not np.isfinite(total):
        return V
    best, lowest, marked = V, total, total
    Y, momentum, L = V, np.longdouble(1), np.longdouble(1)
    for step in range(1, steps + 1):
        value, gradient = problem.smooth(Y)
        L = L / 2
        for _ in range(_HALVINGS):
            new = problem.moved(Y, gradient, L)
            D = new - Y
            there, _ = problem.smooth(new)
            if there <= value + (gradient * D).sum() + L / 2 * (D * D).sum() + np.longdouble(1e-18) * abs(value):
                break
            L = 2 * L
        else:
            return best
        after = there + problem.penalty(new)
        if after <= total:
            following = (1 + np.sqrt(1 + 4 * momentum * momentum)) / 2
            Y = new + (momentum - 1) / following * (new - V)
            momentum = following
            V, total = new, after
        elif momentum > 1:
            Y, momentum = V, np.longdouble(1)
        else:
            return best
        if total < lowest:
            best, lowest = V, total
        if step % _PATIENCE == 0:
            if marked - lowest <= _FLAT * abs(lowest):
                return best
            marked = lowest
    return best
