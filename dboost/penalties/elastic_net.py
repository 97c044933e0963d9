"""The penalty ``elastic_net``: the l1 norm and a ridge, entry by entry; columns that are alike share their weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dboost.compiled.solves.row_prox import ENTRY_RIDGE
from dboost.compiled.vectors.norms import largest_entries, sums_of_entries
from dboost.penalties.faces import EntryFace
from dboost.penalties.group import solve_entries
from dboost.penalties.ridged import RidgedPenalty, entry_gains
from dboost.penalties.rows import FloatArray, soft_threshold


@dataclass(frozen=True)
class ElasticNet(RidgedPenalty):
    """omega(w) = l1_ratio ||w||_1 + (1 - l1_ratio) ||w||_2^2 / 2, every entry on its own, as in scikit-learn.

    Parameters
    ----------
    l1_ratio : float
        In (0, 1]: 1 is ``l1``.

    Raises
    ------
    UsageError
        If ``l1_ratio`` is outside (0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> ElasticNet(l1_ratio=0.5).prox(np.array([[3.0, -0.5]]), 2.0)
    array([[1., 0.]])
    """

    name: ClassVar[str] = "elastic_net"
    alone: ClassVar[str] = "l1"
    monotone: ClassVar[bool] = True

    @property
    def compiled(self) -> tuple[int, float, float]:
        """The fifth kind of row prox."""
        return ENTRY_RIDGE, self.l1_ratio, 1.0 - self.l1_ratio

    @property
    def entries(self) -> tuple[float, float]:
        """Weights of |w| and of w^2 / 2."""
        return self.single

    def _norm(self, W: FloatArray) -> FloatArray:
        return sums_of_entries(W)

    def _dual(self, G: FloatArray) -> FloatArray:
        return largest_entries(G)

    def _shrunk(self, Z: FloatArray, t: FloatArray) -> FloatArray:
        return soft_threshold(Z, t)

    def _roots(self, A: FloatArray, B: FloatArray, norm: FloatArray, ridge: FloatArray) -> FloatArray:
        return solve_entries(A, B, norm, ridge)

    def _gains(self, mu_plus: FloatArray, mu_minus: FloatArray, norm: FloatArray, ridge: FloatArray) -> FloatArray:
        """Exact: entries add up."""
        p, q = np.maximum(mu_plus, mu_minus), np.minimum(mu_plus, mu_minus)
        result: FloatArray = entry_gains(p, q, norm, ridge, p - q - norm[:, None]).sum(axis=1)
        return result

    def face(self, W: FloatArray, lam: npt.ArrayLike | None = None) -> EntryFace:
        """Nonzero entries are free and keep their signs; the ridge bends them."""
        return EntryFace.through(W, lam, group=0.0, entry=self.l1_ratio, ridge=1.0 - self.l1_ratio)
