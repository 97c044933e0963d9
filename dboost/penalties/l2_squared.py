"""The penalty ``l2_squared``: omega(w) = ||w||_2^2 / 2, the ridge; smooth, and no weight is ever exactly zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dboost.compiled.solves.row_prox import SQUARE
from dboost.penalties.base import TiltedPenalty
from dboost.penalties.group import solve_entries
from dboost.penalties.rows import BoolArray, FloatArray, in_strengths, norm2, per_row
from dboost.penalties.smooth_faces import SmoothFace


@dataclass(frozen=True)
class L2Squared(TiltedPenalty):
    """omega(w) = ||w||_2^2 / 2, with the conjugate ||g||_2^2 / (2 lam): every dual point is feasible, at a charge.

    Examples
    --------
    >>> L2Squared().value(np.array([[3.0, -4.0]])).tolist()
    [12.5]
    """

    name: ClassVar[str] = "l2_squared"
    threshold: ClassVar[bool] = False
    degree: ClassVar[int] = 2
    sizes_only: ClassVar[bool] = True

    @property
    def compiled(self) -> tuple[int, float, float]:
        """The third kind of row prox."""
        return SQUARE, 1.0, 0.0

    def value(self, W: FloatArray) -> FloatArray:
        """Half the sum of squares."""
        result: FloatArray = 0.5 * np.einsum("ij,ij->i", W, W)
        return result

    def dual_norm(self, G: FloatArray) -> FloatArray:
        """Euclidean norm: what ``dual_size`` is made of. No row of G but zero leaves W_j = 0 optimal."""
        return norm2(G)

    def dual_size(self, norms: FloatArray, weights: FloatArray) -> float:
        """sum_j ||X_j'Theta||_2^2 / w_j: twice lam times the charge."""
        return float(np.sum(norms * in_strengths(norms, weights)))

    def join_sizes(self, sizes: Sequence[float]) -> float:
        """They add up."""
        return float(sum(sizes))

    def dual_point(self, size: float, lam: float) -> tuple[float, float]:
        """No scaling; charged with the conjugate of the penalty (docs/math.md 6)."""
        return 1.0, size / (2.0 * lam)

    def leaves_zero(self, G: FloatArray, lam: npt.ArrayLike) -> BoolArray:
        """Wherever there is a pull."""
        result: BoolArray = np.any(G != 0.0, axis=1)
        return result

    def prox(self, Z: FloatArray, t: npt.ArrayLike) -> FloatArray:
        """Z / (1 + t)."""
        result: FloatArray = Z / (1.0 + per_row(t, len(Z)))[:, None]
        return result

    def solve_quadratic(self, W: FloatArray, G: FloatArray, D: npt.ArrayLike, lam: npt.ArrayLike) -> FloatArray:
        """(D W + G) / (D + lam) (docs/math.md 4.6)."""
        rows = len(W)
        D, lam = per_row(D, rows), per_row(lam, rows)
        column = D > 0
        # without a penalty the weights come back as they were moved, not rounded through a product and a quotient
        bottom = np.where(column, D + lam, 1.0)[:, None]
        new: FloatArray = (D[:, None] * W + G) / bottom
        return np.where(column[:, None], new, self._rest(W, lam))

    def score_quadratic(self, G: FloatArray, D: npt.ArrayLike, lam: npt.ArrayLike) -> FloatArray:
        """||G_j||_2^2 / (2 (D_j + lam_j)), exact."""
        D, lam = per_row(D, len(G)), per_row(lam, len(G))
        squares = np.einsum("ij,ij->i", G, G)
        with np.errstate(divide="ignore"):
            score: FloatArray = squares / np.where(squares > 0, 2.0 * (D + lam), 1.0)
        return score

    def _solve_scaled(self, A: FloatArray, B: FloatArray, lam: FloatArray, scale: FloatArray) -> FloatArray:
        return self.solve_tilted(A, B, lam * scale)

    def _score_scaled(
        self, mu_plus: FloatArray, mu_minus: FloatArray, lam: FloatArray, scale: FloatArray
    ) -> FloatArray:
        return self.score_tilted(mu_plus, mu_minus, lam * scale)

    def solve_tilted(self, A: FloatArray, B: FloatArray, lam: FloatArray) -> FloatArray:
        """Safeguarded Newton on P - g = log(e^(N + g) + lam g), entry by entry."""
        return solve_entries(A, B, np.zeros(len(A)), lam)

    def score_tilted(self, mu_plus: FloatArray, mu_minus: FloatArray, lam: FloatArray) -> FloatArray:
        """Exact: p u^2 + lam g (u - g / 2) with u = 1 - e^(-g), which stationarity makes of p u - q (e^g - 1) - ..."""
        p, q = np.maximum(mu_plus, mu_minus), np.minimum(mu_plus, mu_minus)
        strength = lam[:, None]
        with np.errstate(divide="ignore"):
            g = np.abs(self.solve_tilted(np.log(p), np.log(q), lam))
            # sums so close that their logarithms agree: the Newton step from zero is exact to rounding
            g = np.where(g > 0, g, (p - q) / np.where(p > 0, p + q + strength, 1.0))
        endless = np.isinf(g)
        g = np.where(endless, 0.0, g)
        u = np.where(endless, 1.0, -np.expm1(-g))
        result: FloatArray = (p * u * u + strength * g * (u - 0.5 * g)).sum(axis=1)
        return result

    def face(self, W: FloatArray, lam: npt.ArrayLike | None = None) -> SmoothFace:
        """All entries; slope w, bend one."""
        return SmoothFace(W.copy(), W.copy(), np.ones_like(W))
