"""An independent solver of the objective with groups of columns: plain accelerated gradients in dense numpy.

Nothing of the penalties under test is used: values, dual norms and proxes are written from their definitions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tests.boosting import plain


@dataclass(frozen=True)
class Oracle:
    """lam sum_g c_g omega((w_j W_j)_j in g), with the loss of some data.

    Parameters
    ----------
    data : plain.Data
    penalty : {"l1/l2", "l1/linf"}
    labels : array (n,)
    weights : array (n,)
        w_j; inf for a column that is left out, 0 for one without penalty.
    intercept : bool
    signs : array (n,)
        Of the weights; 0 for any.
    """

    data: plain.Data
    penalty: str
    labels: np.ndarray
    weights: np.ndarray
    intercept: bool = True
    signs: np.ndarray | float = 0.0

    @property
    def groups(self):
        """Columns of each group that may have a weight that costs something, and c_g."""
        usable = np.isfinite(self.weights) & (self.weights > 0.0)
        found = [np.flatnonzero((self.labels == g) & usable) for g in np.unique(self.labels)]
        return [(g, np.sqrt(g.size) if self.penalty == "l1/l2" else float(g.size)) for g in found if g.size]

    def value(self, W, b, lam):
        """P, sum form."""
        return self.data.value(self.data.X @ W + b) + lam * self.charge(W)

    def charge(self, W):
        """The penalty at strength one."""
        total = 0.0
        for g, c in self.groups:
            V = self.weights[g, None] * W[g]
            total += c * (np.sqrt(np.sum(V**2)) if self.penalty == "l1/l2" else np.abs(V).max())
        return total

    def size(self, G):
        """The least strength at which sums G leave W at zero."""
        dual = [G[g] / self.weights[g, None] for g, _ in self.groups]
        norms = [np.sqrt(np.sum(d**2)) if self.penalty == "l1/l2" else np.abs(d).sum() for d in dual]
        return max(norm / c for norm, (_, c) in zip(norms, self.groups, strict=True))

    def alpha_max(self):
        """The least alpha without a feature, at the null model's residuals."""
        b = plain.null_intercept(self.data) if self.intercept else np.zeros(self.data.k)
        U = self.data.residual(np.ones((len(self.data.s), 1)) * b)
        return self.size(self.data.X.T @ U) / self.data.s.sum()

    def gap(self, W, b, lam):
        """P - D(t U), t the scale that makes the residuals feasible; of fits without an intercept."""
        assert not self.intercept
        U = self.data.residual(self.data.X @ W + b)
        t = min(1.0, lam / self.size(self.data.X.T @ U))
        return self.value(W, b, lam) - self.data.dual(t * U)

    def prox(self, W, step):
        """argmin_V ||V - W||^2 / 2 + the penalty of strength `step`, of columns of weight one or zero."""
        W = np.where(np.broadcast_to(self.signs, len(W))[:, None] * W < 0.0, 0.0, W)
        out = np.where((self.weights == 0.0)[:, None], W, 0.0)
        for g, c in self.groups:
            V = W[g]
            if self.penalty == "l1/l2":
                size = np.sqrt(np.sum(V**2))
                out[g] = V * max(0.0, 1.0 - step * c / size) if size > 0 else V
            else:
                out[g] = V - _onto_l1_ball(V.ravel(), step * c).reshape(V.shape)
        return out

    def solved(self, lam, steps=5000):
        """(W, b, P) by FISTA with restarts and backtracking, until nothing moves."""
        # columns are scaled by their weights, which makes every group one of a single weight
        scale = np.where(self.weights > 0.0, self.weights, 1.0)
        data = replace(self.data, X=self.data.X / scale)
        ones = np.where(np.isinf(scale), np.inf, np.sign(self.weights))
        W, b, value = replace(self, data=data, weights=ones).fista(lam, steps)
        return W / scale[:, None], b, value

    def fista(self, lam, steps):
        data, n = self.data, self.data.X.shape[1]
        W, b = np.zeros((n, data.k)), np.zeros(data.k)
        ahead, momentum, step = (W, b), 1.0, 1.0 / np.sum(data.X**2)

        def gradient(W, b):
            U = data.residual(data.X @ W + b)
            return -data.X.T @ U, -U.sum(axis=0) if self.intercept else np.zeros(data.k)

        for _ in range(steps):
            g, g0 = gradient(*ahead)
            step *= 1.2
            while True:
                V, v = self.prox(ahead[0] - step * g, step * lam), ahead[1] - step * g0
                D, d = V - ahead[0], v - ahead[1]
                square = np.sum(D**2) + d @ d
                h, h0 = gradient(V, v)
                # by convexity the change of the gradient bounds that of the value, without cancellation
                if np.sum((h - g) * D) + (h0 - g0) @ d <= square / (2.0 * step) or square == 0.0:
                    break
                step /= 2.0
            moved = (V - W, v - b)
            if np.sum((ahead[0] - V) * moved[0]) + (ahead[1] - v) @ moved[1] > 0.0:
                momentum = 1.0
            then = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            share = (momentum - 1.0) / then
            W, b, momentum = V, v, then
            ahead = (W + share * moved[0], b + share * moved[1])
            if max(np.abs(moved[0]).max(), np.abs(moved[1]).max()) <= 1e-11:
                break
        return W, b, self.value(W, b, lam)


def _onto_l1_ball(z, radius):
    """The nearest point of ||v||_1 <= radius: entries shrunk by the one number that leaves so much."""
    size = np.abs(z)
    if size.sum() <= radius:
        return z
    falling = np.sort(size)[::-1]
    shrunk = (np.cumsum(falling) - radius) / np.arange(1, size.size + 1)
    by = shrunk[np.flatnonzero(falling > shrunk)[-1]]
    return np.sign(z) * np.maximum(size - by, 0.0)
