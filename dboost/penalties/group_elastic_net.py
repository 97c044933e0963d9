"""The penalty ``l1/l2+ridge``: the norm of a row and a ridge; a row is zero or free as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dboost.compiled.solves.row_prox import GROUP_RIDGE
from dboost.penalties.faces import RowFace
from dboost.penalties.group import prox_group, solve_group
from dboost.penalties.ridged import RidgedPenalty, entry_gains
from dboost.penalties.rows import FloatArray, norm2


@dataclass(frozen=True)
class GroupElasticNet(RidgedPenalty):
    """omega(w) = l1_ratio ||w||_2 + (1 - l1_ratio) ||w||_2^2 / 2: a row is zero or free as a whole.

    Parameters
    ----------
    l1_ratio : float
        In (0, 1]: 1 is ``l1/l2``.

    Raises
    ------
    UsageError
        If ``l1_ratio`` is outside (0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> GroupElasticNet(l1_ratio=0.5).prox(np.array([[3.0, 4.0], [0.3, 0.4]]), 2.0)
    array([[1.2, 1.6],
           [0. , 0. ]])
    """

    name: ClassVar[str] = "l1/l2+ridge"
    alone: ClassVar[str] = "l1/l2"

    @property
    def compiled(self) -> tuple[int, float, float]:
        """The sixth kind of row prox."""
        return GROUP_RIDGE, self.l1_ratio, 1.0 - self.l1_ratio

    def _norm(self, W: FloatArray) -> FloatArray:
        return norm2(W)

    def _dual(self, G: FloatArray) -> FloatArray:
        return norm2(G)

    def _shrunk(self, Z: FloatArray, t: FloatArray) -> FloatArray:
        return prox_group(Z, t)

    def _roots(self, A: FloatArray, B: FloatArray, norm: FloatArray, ridge: FloatArray) -> FloatArray:
        """Nested one-dimensional roots (docs/math.md 4.4), each bent by the ridge."""
        return solve_group(A, B, norm, np.zeros_like(norm), ridge)

    def _gains(self, mu_plus: FloatArray, mu_minus: FloatArray, norm: FloatArray, ridge: FloatArray) -> FloatArray:
        """Lower bound along the direction of G (docs/math.md 5), where the ridge is that of one entry."""
        G = mu_plus - mu_minus
        length = norm2(G)
        u = np.abs(G) / np.where(length > 0.0, length, 1.0)[:, None]
        p = (u * np.maximum(mu_plus, mu_minus)).sum(axis=1)
        q = (u * np.minimum(mu_plus, mu_minus)).sum(axis=1)
        return entry_gains(p[:, None], q[:, None], norm, ridge, (length - norm)[:, None])[:, 0]

    def face(self, W: FloatArray, lam: npt.ArrayLike | None = None) -> RowFace:
        """All entries of nonzero rows are free; the ridge bends them."""
        return RowFace.through(W, lam, group=self.l1_ratio, ridge=1.0 - self.l1_ratio)
