"""The penalty ``l1/l2``: omega(w) = ||w||_2, a row is zero or free as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dboost.penalties.base import TiltedPenalty
from dboost.penalties.faces import RowFace
from dboost.penalties.group import prox_group, score_group, solve_group
from dboost.penalties.rows import FloatArray, IntArray, norm2, per_row, sums_by


@dataclass(frozen=True)
class L2(TiltedPenalty):
    """omega(w) = ||w||_2; its own dual norm.

    Examples
    --------
    >>> L2().value(np.array([[3.0, -4.0]])).tolist()
    [5.0]
    """

    name: ClassVar[str] = "l1/l2"
    sizes_only: ClassVar[bool] = True

    @property
    def compiled(self) -> tuple[int, float, float]:
        """l2 part of weight one, no l1 part."""
        return 0, 1.0, 0.0

    @property
    def single(self) -> tuple[float, float]:
        """|w|."""
        return 1.0, 0.0

    def value(self, W: FloatArray) -> FloatArray:
        """Euclidean norm."""
        return norm2(W)

    def dual_norm(self, G: FloatArray) -> FloatArray:
        """Euclidean norm."""
        return norm2(G)

    def prox(self, Z: FloatArray, t: npt.ArrayLike) -> FloatArray:
        """Z shortened by t, or zero."""
        return prox_group(Z, per_row(t, len(Z)))

    def solve_tilted(self, A: FloatArray, B: FloatArray, lam: FloatArray) -> FloatArray:
        """Nested one-dimensional roots (docs/math.md 4.4)."""
        return solve_group(A, B, lam, np.zeros_like(lam))

    def score_tilted(self, mu_plus: FloatArray, mu_minus: FloatArray, lam: FloatArray) -> FloatArray:
        """Lower bound along the direction of G (docs/math.md 5)."""
        return score_group(mu_plus, mu_minus, lam, np.zeros_like(lam))

    def face(self, W: FloatArray, lam: npt.ArrayLike | None = None) -> RowFace:
        """All entries of nonzero rows are free."""
        return RowFace.through(W, lam)

    def joined(self, values: FloatArray, place: IntArray, count: int) -> FloatArray:
        """Euclidean norm of those of the rows."""
        # in units of the largest: squares of others than these are out of the range of float64, or next to nothing
        top = float(values.max(initial=0.0))
        if not 0.0 < top < np.inf:
            return sums_by(values, place, count)
        found: FloatArray = top * np.sqrt(sums_by((values / top) ** 2, place, count))
        return found

    def dual_joined(self, norms: FloatArray, place: IntArray, count: int) -> FloatArray:
        """The same: the norm is its own dual."""
        return self.joined(norms, place, count)

    def of_size(self, rows: FloatArray) -> FloatArray:
        """sqrt(rows)."""
        found: FloatArray = np.sqrt(rows)
        return found
