"""Penalties that are a mix of a row's norm, the sizes of its entries and its squares; a penalty is what it mixes.

    omega(w) = a ||w||_2 + b ||w||_1 + c ||w||_2^2 / 2

With u = soft(z, b) the prox is u [1 - a / ||u||_2]_+ / (1 + c): a row is zero where ||u||_2 <= a, and the ridge c is so
much more curvature for one that is not. Next to zero nothing is left of the ridge, so that the dual norm is that of the
two norms; beyond it a dual point is charged (docs/math.md 6.1).

Covers: ``l1``, ``l1/l2``, ``l1/l2+l1``, ``elastic_net``, ``l1/l2+ridge``, ``l2_squared`` and ``none``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dboost.bounds import exponential
from dboost.compiled.solves.row_prox import GROUP
from dboost.compiled.vectors.norms import largest_entries, sums_of_entries
from dboost.errors import UsageError
from dboost.penalties.base import TiltedPenalty
from dboost.penalties.faces import EntryFace, RowFace
from dboost.penalties.group import prox_group, ridged_gain, solve_group
from dboost.penalties.rows import BoolArray, FloatArray, IntArray, in_strengths, norm2, per_row, soft_threshold, sums_by


class MixedPenalty(TiltedPenalty):
    """omega(w) = a ||w||_2 + b ||w||_1 + c ||w||_2^2 / 2; a subclass says a, b and c, all >= 0."""

    sizes_only: ClassVar[bool] = True

    @property
    @abstractmethod
    def mix(self) -> tuple[float, float, float]:
        """a, b and c."""

    @property
    def compiled(self) -> tuple[int, float, float, float]:
        """The row prox of a mix."""
        return GROUP, *self.mix

    @property
    def single(self) -> tuple[float, float]:
        """Both norms are |w|."""
        a, b, c = self.mix
        return a + b, c

    @property
    def entries(self) -> tuple[float, float] | None:
        """|w| and w^2 / 2 for each entry, where the norm of the row has no weight."""
        a, b, c = self.mix
        return (b, c) if b and not a else None

    @property
    def monotone(self) -> bool:  # type: ignore[override]
        """True where entries are solved for one by one."""
        return not self.mix[0]

    def value(self, W: FloatArray) -> FloatArray:
        """The weighted sum."""
        a, b, c = self.mix
        found = np.zeros(len(W))
        if a:
            found += a * norm2(W)
        if b:
            found += b * sums_of_entries(W)
        return found + 0.5 * c * np.einsum("ij,ij->i", W, W) if c else found

    def dual_norm(self, G: FloatArray) -> FloatArray:
        """Smallest t with ||soft(G, t b)||_2 <= t a.

        With the entries sorted, t solves a quadratic equation for the number l of entries above t b; l is the first for
        which the left side still exceeds the right at the next breakpoint |G|_(l+1) / b.
        """
        a, b, _ = self.mix
        if not b:
            return norm2(G) / a if a else np.where(G.any(axis=1), np.inf, 0.0)
        if not a:
            return largest_entries(G) / b
        size = np.abs(G)
        top: FloatArray = size.max(axis=1, initial=0.0)
        ordered = np.sort(size / np.where(top > 0, top, 1.0)[:, None], axis=1)[:, ::-1]
        rows, k = ordered.shape
        count = np.arange(1.0, k + 1.0)
        first, second = np.cumsum(ordered, axis=1), np.cumsum(ordered * ordered, axis=1)
        following = np.hstack([ordered[:, 1:], np.zeros((rows, 1))])
        above = second - 2.0 * following * first + count * following**2 >= (a / b * following) ** 2
        above[:, -1] = True
        index = np.argmax(above, axis=1)
        at = np.arange(rows)
        s1, s2, m = first[at, index], second[at, index], count[index]
        root = np.sqrt(np.maximum(b * b * (s1 * s1 - m * s2) + a * a * s2, 0.0))
        denominator = b * s1 + root
        t = np.divide(s2, denominator, out=np.zeros(rows), where=denominator > 0)
        # One Newton step on the convex decreasing ||soft(G, t b)|| - t a removes the cancellation in ``root``.
        S = np.maximum(ordered - (b * t)[:, None], 0.0)
        length = norm2(S)
        alive = length > 0
        slope = b * np.divide(S.sum(axis=1), length, out=np.zeros(rows), where=alive) + a
        polished: FloatArray = np.where(alive, t + (length - a * t) / slope, t)
        return polished * top

    def dual_radius(self, k: int) -> float:
        """1 / (a + b): omega(w) >= (a + b) ||w||_2."""
        return 1.0 / sum(self.mix[:2]) if any(self.mix[:2]) else 1.0

    def leaves_zero(self, G: FloatArray, lam: npt.ArrayLike) -> BoolArray:
        """The condition of the dual norm in the very numbers of the prox, which needs no sorting."""
        a, b, _ = self.mix
        lam = per_row(lam, len(G))
        found: BoolArray
        if not a:
            found = largest_entries(G) > lam * b
        else:
            found = norm2(soft_threshold(G, lam * b) if b else G) > lam * a
        return found

    def prox(self, Z: FloatArray, t: npt.ArrayLike) -> FloatArray:
        """Soft threshold, then shorten."""
        t = per_row(t, len(Z))
        moved = self._shrunk(Z, t)
        return moved / (1.0 + self._bend(t))[:, None] if self.mix[2] else moved

    def _shrunk(self, Z: FloatArray, t: FloatArray) -> FloatArray:
        a, b, _ = self.mix
        moved = soft_threshold(Z, t * b) if b else Z
        return prox_group(moved, t * a) if a else moved.copy()

    def _bend(self, lam: FloatArray) -> FloatArray:
        return lam * self.mix[2]

    def _weight(self, lam: npt.ArrayLike, rows: int) -> FloatArray:
        return per_row(lam, rows) if any(self.mix) else np.zeros(rows)

    def solve_tilted(self, A: FloatArray, B: FloatArray, lam: FloatArray, scale: FloatArray) -> FloatArray:
        """Entry by entry, or nested one-dimensional roots where the norm of the row has a weight (docs/math.md 4.4)."""
        a, b, c = self.mix
        return solve_group(A, B, lam * a, lam * b, lam * c * scale)

    def score_tilted(self, mu_plus: FloatArray, mu_minus: FloatArray, lam: FloatArray, scale: FloatArray) -> FloatArray:
        """Exact where entries add up; else a lower bound along the soft-thresholded G (docs/math.md 5).

        There the row moves along u = S / ||S||_2 with S = soft(|G|, lam1). As e^(-u d) - 1 <= u (e^(-d) - 1) for
        0 <= u <= 1, that is a one-dimensional problem with weights sum u p, sum u q and penalty lam2 + lam1 sum u,
        whose zero is optimal exactly when ||S||_2 <= lam2, as for the row.
        """
        lam2, lam1, ridge = (lam * weight for weight in self.mix)
        p, q = np.maximum(mu_plus, mu_minus), np.minimum(mu_plus, mu_minus)
        if self.mix[0]:
            S = soft_threshold(np.abs(mu_plus - mu_minus), lam1)
            length = norm2(S)
            u = S / length[:, None]
            p, q = ((u * sums).sum(axis=1, keepdims=True) for sums in (p, q))
            lam1, excess = lam2 + lam1 * u.sum(axis=1), (length - lam2)[:, None]
        else:
            excess = p - q - lam1[:, None]
        if self.mix[2]:
            gained = ridged_gain(p, q, lam1, ridge * scale, excess)
        else:
            gained = exponential.gain(p, q, lam1[:, None], excess=excess)
        found: FloatArray = gained.sum(axis=1)
        return found

    def face(self, W: FloatArray, lam: npt.ArrayLike | None = None) -> EntryFace:
        """Nonzero entries, or all of nonzero rows, are free and keep their sides of zero; without a norm all are."""
        a, b, c = self.mix
        kind = RowFace if a and not b else EntryFace
        return kind.through(W, lam if a or b else 0.0, group=a, entry=b, ridge=c)


@dataclass(frozen=True)
class L1(MixedPenalty):
    """omega(w) = ||w||_1, every entry on its own (Duchi & Singer 2009, section 2).

    Its dual norm is the largest absolute entry.

    Examples
    --------
    >>> L1().value(np.array([[3.0, -4.0]])).tolist()
    [7.0]
    """

    name: ClassVar[str] = "l1"
    mix: ClassVar[tuple[float, float, float]] = (0.0, 1.0, 0.0)


@dataclass(frozen=True)
class L2(MixedPenalty):
    """omega(w) = ||w||_2, a row is zero or free as a whole; its own dual norm.

    Examples
    --------
    >>> L2().value(np.array([[3.0, -4.0]])).tolist()
    [5.0]
    """

    name: ClassVar[str] = "l1/l2"
    mix: ClassVar[tuple[float, float, float]] = (1.0, 0.0, 0.0)

    def joined(self, values: FloatArray, place: IntArray, count: int) -> FloatArray:
        """Euclidean norm of those of the rows."""
        # in units of the largest: squares of others than these are out of the range of float64, or next to nothing
        top = float(values.max(initial=0.0))
        if not 0.0 < top < np.inf:
            return sums_by(values, place, count)
        return top * np.sqrt(sums_by((values / top) ** 2, place, count))

    def dual_joined(self, norms: FloatArray, place: IntArray, count: int) -> FloatArray:
        """The same: the norm is its own dual."""
        return self.joined(norms, place, count)

    def of_size(self, rows: FloatArray) -> FloatArray:
        """sqrt(rows)."""
        return np.sqrt(rows)


@dataclass(frozen=True)
class SparseGroup(MixedPenalty):
    """omega(w) = (1 - l1_ratio) ||w||_2 + l1_ratio ||w||_1.

    Rows vanish as a whole, and entries vanish inside the rows that stay.

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

    def __post_init__(self) -> None:
        if not 0.0 <= self.l1_ratio <= 1.0:
            raise UsageError(
                f"l1_ratio is {self.l1_ratio!r}, expected a number in [0, 1]", hint="0 is 'l1/l2' and 1 is 'l1'"
            )

    @property
    def mix(self) -> tuple[float, float, float]:
        """Weights of the two norms."""
        return 1.0 - self.l1_ratio, self.l1_ratio, 0.0


@dataclass(frozen=True)
class RidgedPenalty(MixedPenalty):
    """omega(w) = l1_ratio ||w|| + (1 - l1_ratio) ||w||_2^2 / 2; a subclass says which norm.

    No dual point is out of reach, at the charge of docs/math.md 6.1.
    """

    # In (0, 1]: the share of the norm; 1 is the norm alone. It means what it means in scikit-learn.
    l1_ratio: float = 0.5
    degree: ClassVar[int] = 0
    alone: ClassVar[str]

    def __post_init__(self) -> None:
        number = isinstance(self.l1_ratio, int | float) and not isinstance(self.l1_ratio, bool)
        if not (number and 0.0 < self.l1_ratio <= 1.0):
            raise UsageError(
                f"l1_ratio is {self.l1_ratio!r}, expected a number in (0, 1]",
                hint=f"1 is {self.alone!r}; the ridge alone is 'l2_squared'",
            )

    def conjugate(self, G: FloatArray, lam: npt.ArrayLike) -> FloatArray:
        """||prox of the norm's part||_2^2 / (2 lam (1 - l1_ratio)) (docs/math.md 6.1)."""
        lam = per_row(lam, len(G))
        rest = self._shrunk(G, lam)
        squares = np.einsum("ij,ij->i", rest, rest)
        with np.errstate(divide="ignore"):
            bent: FloatArray = squares / np.where(squares > 0.0, 2.0 * self._bend(lam), 1.0)
        return bent


@dataclass(frozen=True)
class ElasticNet(RidgedPenalty):
    """omega(w) = l1_ratio ||w||_1 + (1 - l1_ratio) ||w||_2^2 / 2, every entry on its own, as in scikit-learn.

    Columns that are alike share their weight.

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

    @property
    def mix(self) -> tuple[float, float, float]:
        """Weights of the sizes of the entries and of the ridge."""
        return 0.0, self.l1_ratio, 1.0 - self.l1_ratio


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
    def mix(self) -> tuple[float, float, float]:
        """Weights of the norm and of the ridge."""
        return self.l1_ratio, 0.0, 1.0 - self.l1_ratio


@dataclass(frozen=True)
class L2Squared(MixedPenalty):
    """omega(w) = ||w||_2^2 / 2, the ridge; smooth, and no weight is ever exactly zero.

    With the conjugate ||g||_2^2 / (2 lam) every dual point is feasible, at a charge.

    Examples
    --------
    >>> L2Squared().value(np.array([[3.0, -4.0]])).tolist()
    [12.5]
    """

    name: ClassVar[str] = "l2_squared"
    threshold: ClassVar[bool] = False
    degree: ClassVar[int] = 2
    mix: ClassVar[tuple[float, float, float]] = (0.0, 0.0, 1.0)

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


@dataclass(frozen=True)
class NoPenalty(MixedPenalty):
    """omega = 0. Every row is free and ``lam`` has no effect.

    Its conjugate is finite at zero only, so ``dual_norm`` is inf for every nonzero row.

    Examples
    --------
    >>> NoPenalty().value(np.array([[3.0, -4.0]])).tolist()
    [0.0]
    """

    name: ClassVar[str] = "none"
    certified: ClassVar[bool] = False
    threshold: ClassVar[bool] = False
    weightless: ClassVar[bool] = True
    sizes_only: ClassVar[bool] = False
    mix: ClassVar[tuple[float, float, float]] = (0.0, 0.0, 0.0)
