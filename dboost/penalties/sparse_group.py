"""The penalty ``l1/l2+l1`` (sparse group): rows vanish as a whole, and entries vanish inside the rows that stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dboost.compiled.vectors.norms import sums_of_entries
from dboost.errors import UsageError
from dboost.penalties.base import TiltedPenalty
from dboost.penalties.faces import EntryFace
from dboost.penalties.group import prox_group, score_group, solve_group
from dboost.penalties.rows import BoolArray, FloatArray, norm2, per_row, soft_threshold


@dataclass(frozen=True)
class SparseGroup(TiltedPenalty):
    """omega(w) = (1 - l1_ratio) ||w||_2 + l1_ratio ||w||_1.

    Parameters
    ----------
    l1_ratio : float
        In [0, 1]: 0 is ``l1/l2``, 1 is ``l1``.

    Raises
    ------
    UsageError
        If ``l1_ratio`` is outside [0, 1].

    Examples
    --------
    >>> SparseGroup(l1_ratio=0.5).value(np.array([[3.0, -4.0]])).tolist()
    [6.0]
    """

    l1_ratio: float = 0.5
    name: ClassVar[str] = "l1/l2+l1"
    sizes_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0.0 <= self.l1_ratio <= 1.0:
            raise UsageError(
                f"l1_ratio is {self.l1_ratio!r}, expected a number in [0, 1]", hint="0 is 'l1/l2' and 1 is 'l1'"
            )

    @property
    def compiled(self) -> tuple[int, float, float]:
        """Weights of the l2 and of the l1 part."""
        return 0, 1.0 - self.l1_ratio, self.l1_ratio

    @property
    def single(self) -> tuple[float, float]:
        """Both norms are |w|."""
        return (1.0 - self.l1_ratio) + self.l1_ratio, 0.0

    @property
    def entries(self) -> tuple[float, float] | None:
        """|w| for each entry where the group part has no weight."""
        return (self.l1_ratio, 0.0) if self.l1_ratio == 1.0 else None

    def _parts(self, lam: npt.ArrayLike, rows: int) -> tuple[FloatArray, FloatArray]:
        lam = per_row(lam, rows)
        return lam * (1.0 - self.l1_ratio), lam * self.l1_ratio

    def value(self, W: FloatArray) -> FloatArray:
        """Weighted sum of both norms."""
        result: FloatArray = (1.0 - self.l1_ratio) * norm2(W) + self.l1_ratio * sums_of_entries(W)
        return result

    def dual_norm(self, G: FloatArray) -> FloatArray:
        """Smallest t with ||soft(G, t l1_ratio)||_2 <= t (1 - l1_ratio).

        With the entries sorted, t solves a quadratic equation for the number l of entries above t l1_ratio; l is
        the first for which the left side still exceeds the right at the next breakpoint |G|_(l+1) / l1_ratio.
        """
        r, c = self.l1_ratio, 1.0 - self.l1_ratio
        if r == 0.0:
            return norm2(G)
        size = np.abs(G)
        top: FloatArray = size.max(axis=1, initial=0.0)
        if c == 0.0:
            return top
        ordered = np.sort(size / np.where(top > 0, top, 1.0)[:, None], axis=1)[:, ::-1]
        rows, k = ordered.shape
        count = np.arange(1.0, k + 1.0)
        first, second = np.cumsum(ordered, axis=1), np.cumsum(ordered * ordered, axis=1)
        following = np.hstack([ordered[:, 1:], np.zeros((rows, 1))])
        above = second - 2.0 * following * first + count * following**2 >= (c / r * following) ** 2
        above[:, -1] = True
        index = np.argmax(above, axis=1)
        at = np.arange(rows)
        s1, s2, m = first[at, index], second[at, index], count[index]
        root = np.sqrt(np.maximum(r * r * (s1 * s1 - m * s2) + c * c * s2, 0.0))
        denominator = r * s1 + root
        t = np.divide(s2, denominator, out=np.zeros(rows), where=denominator > 0)
        # One Newton step on the convex decreasing ||soft(G, t r)|| - t c removes the cancellation in ``root``.
        S = np.maximum(ordered - (r * t)[:, None], 0.0)
        length = norm2(S)
        alive = length > 0
        slope = r * np.divide(S.sum(axis=1), length, out=np.zeros(rows), where=alive) + c
        polished: FloatArray = np.where(alive, t + (length - c * t) / slope, t)
        return polished * top

    def leaves_zero(self, G: FloatArray, lam: npt.ArrayLike) -> BoolArray:
        """The condition of the dual norm at t = lam, which needs no sorting."""
        lam2, lam1 = self._parts(lam, len(G))
        result: BoolArray = norm2(soft_threshold(G, lam1)) > lam2
        return result

    def prox(self, Z: FloatArray, t: npt.ArrayLike) -> FloatArray:
        """Soft threshold, then shorten."""
        t2, t1 = self._parts(t, len(Z))
        return prox_group(soft_threshold(Z, t1), t2)

    def solve_tilted(self, A: FloatArray, B: FloatArray, lam: FloatArray) -> FloatArray:
        """Nested one-dimensional roots on the entries that pass the l1 test."""
        return solve_group(A, B, *self._parts(lam, len(A)))

    def score_tilted(self, mu_plus: FloatArray, mu_minus: FloatArray, lam: FloatArray) -> FloatArray:
        """Lower bound along the soft-thresholded G."""
        return score_group(mu_plus, mu_minus, *self._parts(lam, len(mu_plus)))

    def face(self, W: FloatArray, lam: npt.ArrayLike | None = None) -> EntryFace:
        """Nonzero entries are free and keep their signs."""
        return EntryFace.through(W, lam, group=1.0 - self.l1_ratio, entry=self.l1_ratio)
