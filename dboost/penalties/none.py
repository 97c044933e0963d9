"""The penalty ``none``: omega = 0. Every row is free and ``lam`` has no effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dboost.bounds import exponential
from dboost.penalties.base import TiltedPenalty
from dboost.penalties.faces import EntryFace
from dboost.penalties.rows import FloatArray


@dataclass(frozen=True)
class NoPenalty(TiltedPenalty):
    """omega = 0. Its conjugate is finite at zero only, so ``dual_norm`` is inf for every nonzero row.

    Examples
    --------
    >>> NoPenalty().value(np.array([[3.0, -4.0]])).tolist()
    [0.0]
    """

    name: ClassVar[str] = "none"
    certified: ClassVar[bool] = False
    threshold: ClassVar[bool] = False
    weightless: ClassVar[bool] = True
    monotone: ClassVar[bool] = True

    @property
    def compiled(self) -> tuple[int, float, float]:
        """Neither an l2 nor an l1 part."""
        return 0, 0.0, 0.0

    @property
    def single(self) -> tuple[float, float]:
        """Nothing."""
        return 0.0, 0.0

    def value(self, W: FloatArray) -> FloatArray:
        """Zero."""
        return np.zeros(len(W))

    def dual_norm(self, G: FloatArray) -> FloatArray:
        """0 for a zero row, inf otherwise."""
        return np.where(G.any(axis=1), np.inf, 0.0)

    def prox(self, Z: FloatArray, t: npt.ArrayLike) -> FloatArray:
        """A copy of Z."""
        return Z.copy()

    def solve_tilted(self, A: FloatArray, B: FloatArray, lam: FloatArray) -> FloatArray:
        """Half the difference of the logarithms, entry by entry."""
        P, N, s = exponential.sides(A, B)
        return s * exponential.shrunk_root(P, N, lam)

    def score_tilted(self, mu_plus: FloatArray, mu_minus: FloatArray, lam: FloatArray) -> FloatArray:
        """Exact: entries add up."""
        p, q = np.maximum(mu_plus, mu_minus), np.minimum(mu_plus, mu_minus)
        result: FloatArray = exponential.gain(p, q, lam[:, None]).sum(axis=1)
        return result

    def face(self, W: FloatArray, lam: npt.ArrayLike | None = None) -> EntryFace:
        """Every entry is free."""
        return EntryFace.through(W, 0.0, group=0.0, entry=0.0)

    def _weight(self, lam: npt.ArrayLike, rows: int) -> FloatArray:
        return np.zeros(rows)

    def _rest(self, W: FloatArray, lam: FloatArray) -> FloatArray:
        return W
