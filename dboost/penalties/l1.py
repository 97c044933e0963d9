"""The penalty ``l1``: omega(w) = sum_r |w_r|, every entry on its own (Duchi & Singer 2009, section 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dboost.bounds import exponential
from dboost.compiled.vectors.norms import largest_entries, sums_of_entries
from dboost.penalties.base import TiltedPenalty
from dboost.penalties.faces import EntryFace
from dboost.penalties.rows import FloatArray, per_row, soft_threshold


@dataclass(frozen=True)
class L1(TiltedPenalty):
    """omega(w) = ||w||_1; its dual norm is the largest absolute entry.

    Examples
    --------
    >>> L1().value(np.array([[3.0, -4.0]])).tolist()
    [7.0]
    """

    name: ClassVar[str] = "l1"
    sizes_only: ClassVar[bool] = True
    monotone: ClassVar[bool] = True

    @property
    def compiled(self) -> tuple[int, float, float]:
        """No l2 part, l1 part of weight one."""
        return 0, 0.0, 1.0

    @property
    def single(self) -> tuple[float, float]:
        """|w|."""
        return 1.0, 0.0

    @property
    def entries(self) -> tuple[float, float]:
        """|w| for each."""
        return 1.0, 0.0

    def value(self, W: FloatArray) -> FloatArray:
        """Sum of absolute entries."""
        return sums_of_entries(W)

    def dual_norm(self, G: FloatArray) -> FloatArray:
        """Largest absolute entry."""
        return largest_entries(G)

    def prox(self, Z: FloatArray, t: npt.ArrayLike) -> FloatArray:
        """Soft threshold."""
        return soft_threshold(Z, per_row(t, len(Z)))

    def solve_tilted(self, A: FloatArray, B: FloatArray, lam: FloatArray) -> FloatArray:
        """Closed form per entry (Duchi & Singer 2009, eq. 3, in logarithms)."""
        P, N, s = exponential.sides(A, B)
        return s * exponential.shrunk_root(P, N, lam)

    def score_tilted(self, mu_plus: FloatArray, mu_minus: FloatArray, lam: FloatArray) -> FloatArray:
        """Exact: entries add up."""
        p, q = np.maximum(mu_plus, mu_minus), np.minimum(mu_plus, mu_minus)
        result: FloatArray = exponential.gain(p, q, lam[:, None]).sum(axis=1)
        return result

    def face(self, W: FloatArray, lam: npt.ArrayLike | None = None) -> EntryFace:
        """Nonzero entries are free and keep their signs."""
        return EntryFace.through(W, lam, group=0.0, entry=1.0)
