"""The penalty ``smooth_l1/linf``: the largest absolute entry of a row, rounded (ShareBoost, section 3.3).

omega(w) = (1 / b) log sum_r 2 cosh(b w_r), less its value log(2 k) / b at zero, so that rows may enter without a charge
(docs/math.md 7 (J)). There is no solve of a row under the exponential bound, and no compiled one; fits that need these
refuse it (``dboost.boosting.checks``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dboost.compiled.vectors.norms import sums_of_entries
from dboost.penalties.faces import SmoothFace
from dboost.penalties.rounded import RoundedPenalty
from dboost.penalties.rows import FloatArray, per_row

_STEPS = 100
_HALVINGS = 40
_ROUNDING = 1e-14
# What is left of a matrix of condition 1 / it, as far as float64 tells.
_LEAST = 1e-12


@dataclass(frozen=True)
class SmoothLinf(RoundedPenalty):
    """omega(w) = log(sum_r cosh(b w_r) / k) / b, between max_r |w_r| - log(2 k) / b and max_r |w_r|; never sparse.

    Parameters
    ----------
    sharpness : float
        b > 0; the larger, the closer to ``l1/linf``.

    Raises
    ------
    UsageError
        If ``sharpness`` is not a positive number.

    Examples
    --------
    >>> bool(SmoothLinf(sharpness=10.0).value(np.array([[3.0, -4.0]]))[0] >= 0.0)
    True
    """

    name: ClassVar[str] = "smooth_l1/linf"

    def _shares(self, W: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """log mean_r cosh(b w_r) (rows,), its slope in b w, and cosh(b w_r) / sum_r cosh(b w_r), (rows, k)."""
        u = self.sharpness * np.abs(W)
        top = u.max(axis=1, keepdims=True, initial=0.0)
        plus, minus = np.exp(u - top), np.exp(-u - top)
        total = (plus + minus).sum(axis=1, keepdims=True)
        # sum (cosh u - 1) = 2 sum sinh(u / 2)^2 keeps small weights to full precision
        small = np.log1p(2.0 * np.mean(np.sinh(0.5 * np.minimum(u, 1.0)) ** 2, axis=1))
        large = top[:, 0] + np.log(total[:, 0] / (2.0 * max(W.shape[1], 1)))
        value = np.where(top[:, 0] < 1.0, small, large)
        return value, np.sign(W) * (plus - minus) / total, (plus + minus) / total

    def value(self, W: FloatArray) -> FloatArray:
        """log(mean_r cosh(b w_r)) / b for each row."""
        result: FloatArray = self._shares(W)[0] / self.sharpness
        return result

    def dual_norm(self, G: FloatArray) -> FloatArray:
        """Sum of absolute entries, as for ``l1/linf``: a G beyond lam has no minimiser of -<G, w> + lam omega(w)."""
        return sums_of_entries(G)

    def prox(self, Z: FloatArray, t: npt.ArrayLike) -> FloatArray:
        """Minimiser of ||w - z||^2 / 2 + t omega(w) for each row, by Newton's method with halved steps."""
        t = per_row(t, len(Z))[:, None]
        b, w = self.sharpness, Z.copy()

        def objective(w: FloatArray) -> FloatArray:
            found: FloatArray = 0.5 * ((w - Z) ** 2).sum(axis=1) + t[:, 0] * self.value(w)
            return found

        here = objective(w)
        for _ in range(_STEPS):
            _, slope, share = self._shares(w)
            gradient = w - Z + t * slope
            if not np.any(np.abs(gradient) > _ROUNDING * (1.0 + np.abs(Z))):
                break
            # (diag(1 + t b share) - t b slope slope')^-1 by Sherman & Morrison
            bottom = 1.0 + t * b * share
            step, other = gradient / bottom, slope / bottom
            # where t b is large, all that keeps this from zero is lost in the difference
            left = np.maximum(1.0 - t * b * (slope * other).sum(axis=1, keepdims=True), _LEAST)
            step = step + t * b * other * (slope * step).sum(axis=1, keepdims=True) / left
            length = np.ones((len(Z), 1))
            for _ in range(_HALVINGS):
                after = objective(w - length * step)
                worse = after > here + _ROUNDING * np.abs(here)
                if not worse.any():
                    break
                length = np.where(worse[:, None], 0.5 * length, length)
            w = w - length * step
            here = objective(w)
        return w

    def solve_quadratic(self, W: FloatArray, G: FloatArray, D: npt.ArrayLike, lam: npt.ArrayLike) -> FloatArray:
        """prox_{lam / D}(W + G / D) for each row."""
        rows = len(W)
        D, lam = per_row(D, rows), per_row(lam, rows)
        column = D > 0.0
        bottom = np.where(column, D, 1.0)
        moved = self.prox(W + G / bottom[:, None], lam / bottom)
        return np.where(column[:, None], moved, np.where((lam > 0.0)[:, None], 0.0, W))

    def face(self, W: FloatArray, lam: npt.ArrayLike | None = None) -> SmoothFace:
        """All entries; the entries of a row bend together."""
        _, slope, share = self._shares(W)
        b = self.sharpness
        return SmoothFace.through(W, slope, b * share, math.sqrt(b) * slope)
