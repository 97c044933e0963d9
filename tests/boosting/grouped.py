"""An independent solver of the objective with groups of columns: `plain.fista`, each group being one row."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dboost.penalties import get_penalty
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
        weights = np.where(np.isfinite(self.weights), self.weights, 0.0)
        return self.data.value(self.data.X @ W + b) + lam * self.charge(weights[:, None] * W)

    def charge(self, V):
        """The penalty at strength one, of rows that are multiplied by their weights."""
        return sum(c * get_penalty(self.penalty).value(V[g].reshape(1, -1))[0] for g, c in self.groups)

    def size(self, G):
        """The least strength at which sums G leave W at zero."""
        dual_norm = get_penalty(self.penalty).dual_norm
        return max(dual_norm((G[g] / self.weights[g, None]).reshape(1, -1))[0] / c for g, c in self.groups)

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

    def solved(self, lam):
        """The optimum; columns are divided by their weights, which makes every group one of a single weight."""
        scale = np.where(self.weights > 0.0, self.weights, 1.0)

        def prox(Z, step):
            Z = np.where(np.broadcast_to(self.signs, len(Z))[:, None] * Z < 0.0, 0.0, Z)
            out = np.where((self.weights == 0.0)[:, None], Z, 0.0)
            for g, c in self.groups:
                out[g] = get_penalty(self.penalty).prox(Z[g].reshape(1, -1), step * lam * c).reshape(-1, Z.shape[1])
            return out

        data = replace(self.data, X=self.data.X / scale)
        found = plain.fista(data, prox, lambda V: lam * self.charge(V), self.intercept)
        return replace(found, W=found.W / scale[:, None])
