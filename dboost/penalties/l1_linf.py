"""The penalty ``l1/linf``: omega(w) = max_r |w_r|; a row is zero or free, and its largest entries are tied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dboost.bounds import exponential
from dboost.compiled.solves.row_prox import BOUND
from dboost.compiled.vectors.norms import largest_entries, sums_of_entries
from dboost.penalties.base import TiltedPenalty
from dboost.penalties.faces import BoundFace
from dboost.penalties.rows import FloatArray, IntArray, per_row, sums_by

_LOG2, _LOG4 = np.log(2.0), np.log(4.0)


@dataclass(frozen=True)
class Linf(TiltedPenalty):
    """omega(w) = max_r |w_r|; its dual norm is the sum of absolute entries.

    Examples
    --------
    >>> Linf().value(np.array([[3.0, -4.0]])).tolist()
    [4.0]
    """

    name: ClassVar[str] = "l1/linf"
    sizes_only: ClassVar[bool] = True
    monotone: ClassVar[bool] = True
    compiled: ClassVar[tuple[int, float, float, float]] = (BOUND, 1.0, 0.0, 0.0)
    single: ClassVar[tuple[float, float]] = (1.0, 0.0)

    def value(self, W: FloatArray) -> FloatArray:
        """Largest absolute entry."""
        return largest_entries(W)

    def dual_norm(self, G: FloatArray) -> FloatArray:
        """Sum of absolute entries."""
        return sums_of_entries(G)

    def dual_radius(self, k: int) -> float:
        """sqrt(k): the l1 norm against the l2 norm."""
        return float(np.sqrt(k))

    def prox(self, Z: FloatArray, t: npt.ArrayLike) -> FloatArray:
        """Clip at xi = max_l (sum of the l largest - t) / l, or zero if the sum of all is <= t."""
        t = per_row(t, len(Z))
        size = np.abs(Z)
        total = self.dual_norm(Z)
        k = Z.shape[1]
        partial = np.cumsum(-np.sort(-size, axis=1), axis=1)
        xi = ((partial - t[:, None]) / np.arange(1.0, k + 1.0)).max(axis=1, initial=-np.inf)
        # The last candidate again, from the sum that ``dual_norm`` forms: so both agree on which rows are zero.
        xi = np.where(total > t, np.maximum(xi, (total - t) / k), 0.0)
        # Without a threshold the largest entry must come back as it was, not rounded through the running sum.
        xi = np.where(t > 0, xi, np.inf)[:, None]
        return np.clip(Z, -xi, xi) + 0.0

    def solve_tilted(self, A: FloatArray, B: FloatArray, lam: FloatArray, scale: FloatArray) -> FloatArray:
        """Sort by unpenalised size, find the common bound (Duchi & Singer 2009, eq. 6-9, in logarithms)."""
        P, N, s = exponential.sides(A, B)
        t = _unpenalised(P, N)
        return s * np.minimum(t, _bound(P, N, t, lam)[:, None])

    def score_tilted(self, mu_plus: FloatArray, mu_minus: FloatArray, lam: FloatArray, scale: FloatArray) -> FloatArray:
        """Exact: tied entries act as one with summed weights, the others are unpenalised (docs/math.md 5)."""
        p, q = np.maximum(mu_plus, mu_minus), np.minimum(mu_plus, mu_minus)
        with np.errstate(divide="ignore"):
            P, N = np.log(p), np.log(q)
        t = _unpenalised(P, N)
        tied = t >= _bound(P, N, t, lam)[:, None]
        loose = np.where(tied, 0.0, (np.sqrt(p) - np.sqrt(q)) ** 2).sum(axis=1)
        exact = loose + exponential.gain((p * tied).sum(axis=1), (q * tied).sum(axis=1), lam)
        # All entries tied is a lower bound whose excess is the zero-row test itself: the score cannot round to zero.
        excess = np.abs(mu_plus - mu_minus).sum(axis=1) - lam
        together = exponential.gain(p.sum(axis=1), q.sum(axis=1), lam, excess=excess)
        result: FloatArray = np.maximum(exact, together)
        return result

    def face(self, W: FloatArray, lam: npt.ArrayLike | None = None) -> BoundFace:
        """One size per nonzero row for its tied entries, the other entries free."""
        return BoundFace.through(W, lam)

    def joined(self, values: FloatArray, place: IntArray, count: int) -> FloatArray:
        """Largest of those of the rows."""
        found = np.zeros(count)
        np.maximum.at(found, place, values)
        return found

    def dual_joined(self, norms: FloatArray, place: IntArray, count: int) -> FloatArray:
        """Sum of those of the rows."""
        return sums_by(norms, place, count)

    def of_size(self, rows: FloatArray) -> FloatArray:
        """The number itself."""
        return rows


def _unpenalised(P: FloatArray, N: FloatArray) -> FloatArray:
    """Minimiser of e^(P - g) + e^(N + g): (P - N) / 2; inf if only N is -inf, 0 if both are."""
    with np.errstate(invalid="ignore"):
        t = 0.5 * (P - N)
    return np.where(np.isneginf(P), 0.0, t)


def _bound(P: FloatArray, N: FloatArray, t: FloatArray, lam: FloatArray) -> FloatArray:
    """The common size xi >= 0 of the tied entries of each row, (rows,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log_lam = np.log(lam)[:, None]
        order = np.argsort(-t, axis=1, kind="stable")
        LP = np.logaddexp.accumulate(np.take_along_axis(P, order, axis=1), axis=1)
        LN = np.logaddexp.accumulate(np.take_along_axis(N, order, axis=1), axis=1)
        following = np.take_along_axis(t, order, axis=1)[:, 1:]
        half = 0.5 * np.logaddexp(2.0 * log_lam, _LOG4 + LP + LN)
        xi = _LOG2 + LP - np.logaddexp(log_lam, half)
        ends = np.ones(xi.shape, dtype=np.bool_)
        ends[:, :-1] = xi[:, :-1] >= following
        chosen = np.take_along_axis(xi, np.argmax(ends, axis=1)[:, None], axis=1)[:, 0]
        zero = LP[:, -1] <= np.logaddexp(log_lam[:, 0], LN[:, -1])
    return np.where(zero, 0.0, np.maximum(chosen, 0.0))
