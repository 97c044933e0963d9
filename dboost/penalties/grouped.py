"""A penalty of groups of rows: lam sum_g c_g omega of all entries of the rows of a group, read as one row.

The columns of a group enter a model together, or not at all. With the row weights w_j that multiply the strength of a
column, group g costs c_g omega((w_j W_j)_j in g), and the dual norm of its sums is that of (G_j / w_j) over c_g
(docs/math.md 6.5). Both follow from the norms of the rows, which is all that passes tell of rows that are not held.

Covers: the members of ``Penalty``, of rows whose groups are known. Does not cover: which columns belong together
(``columns.given``), and the solves for the groups held (``solvers.formed``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from dboost.compiled.solves.group_descent import prox_of_groups
from dboost.penalties.base import Penalty
from dboost.penalties.capabilities import JoinsRows, joins_rows
from dboost.penalties.rows import BoolArray, FloatArray, IntArray, in_strengths, per_row, sums_by


@dataclass(frozen=True, eq=False)
class Grouped:
    """A norm of rows, of the groups of some rows.

    Examples
    --------
    >>> from dboost.penalties.l1_l2 import L2
    >>> pairs = Grouped(L2(), np.array([0, 0, 1]), np.sqrt([2.0, 1.0]))
    >>> round(pairs.total(np.array([[3.0], [4.0], [1.0]]), 1.0), 4)
    8.0711
    """

    certified: ClassVar[bool] = True
    threshold: ClassVar[bool] = True
    separable: ClassVar[bool] = False
    degree: ClassVar[int] = 1
    weightless: ClassVar[bool] = False
    monotone: ClassVar[bool] = False
    single: ClassVar[None] = None
    entries: ClassVar[None] = None

    # A norm of rows that is one of several rows too (``JoinsRows``).
    inner: Penalty
    # The group of each row, numbers from 0 on. (rows,)
    place: IntArray
    # c_g > 0. (groups,)
    factors: FloatArray

    @classmethod
    def of(cls, inner: Penalty, place: IntArray, counted: BoolArray) -> Self:
        """With the factors that groups of so many counted rows have; others are no part of the size of their group."""
        sizes = sums_by(counted.astype(np.float64), place, int(place.max(initial=-1)) + 1)
        return cls(inner, place, joins_rows(inner).of_size(np.maximum(sizes, 1.0)))

    def of_rows(self, rows: IntArray) -> Self:
        """The same for some of the rows."""
        left, place = np.unique(self.place[rows], return_inverse=True)
        return type(self)(self.inner, place.astype(np.int64), self.factors[left])

    @property
    def name(self) -> str:
        """That of the norm."""
        return self.inner.name

    @property
    def norm(self) -> JoinsRows:
        """The norm, as one of several rows."""
        return joins_rows(self.inner)

    @property
    def count(self) -> int:
        """Number of groups."""
        return int(self.factors.shape[0])

    # ---- rows ------------------------------------------------------------------------------------------------------

    def value(self, W: FloatArray) -> FloatArray:
        """omega of each row, (rows,): what `total` is made of."""
        return self.inner.value(W)

    def dual_norm(self, G: FloatArray) -> FloatArray:
        """Dual norm of each row, (rows,): what `dual_size` is made of."""
        return self.inner.dual_norm(G)

    def dual_radius(self, k: int) -> float:
        """As of the norm, for each row."""
        return self.inner.dual_radius(k)

    def score_quadratic(self, G: FloatArray, D: npt.ArrayLike, lam: npt.ArrayLike) -> FloatArray:
        """The score of each row by itself; it only ranks rows."""
        return self.inner.score_quadratic(G, D, lam)

    # ---- groups ----------------------------------------------------------------------------------------------------

    def values(self, W: FloatArray, weights: npt.ArrayLike = 1.0) -> FloatArray:
        """c_g omega((w_j W_j)_j in g) of every group, (groups,)."""
        found: FloatArray = self.factors * self.norm.joined(
            per_row(weights, len(W)) * self.inner.value(W), self.place, self.count
        )
        return found

    def total(self, W: FloatArray, lam: npt.ArrayLike) -> float:
        """The penalty of all rows, lam_j = lam w_j."""
        return float(np.sum(self.values(W, lam)))

    def dual_norms(self, norms: FloatArray, weights: FloatArray) -> FloatArray:
        """||(G_j / w_j)_j in g||_* / c_g of every group, (groups,), from the dual norms of its rows (rows,).

        W_g = 0 is optimal iff it is at most lam. Rows of infinite weight never enter, and count for nothing.
        """
        found: FloatArray = self.norm.dual_joined(in_strengths(norms, weights), self.place, self.count) / self.factors
        return found

    def dual_size(self, norms: FloatArray, weights: FloatArray) -> float:
        """max_g of `dual_norms`."""
        return float(np.max(self.dual_norms(norms, weights), initial=0.0))

    def join_sizes(self, sizes: Sequence[float]) -> float:
        """Largest of those of parts that cut no group."""
        return max(sizes, default=0.0)

    def dual_point(self, size: float, lam: float) -> tuple[float, float]:
        """Scaled into the ball of radius lam, at no charge."""
        return (lam / size if size > lam else 1.0), 0.0

    def leaves_zero(self, G: FloatArray, lam: npt.ArrayLike) -> BoolArray:
        """Whether the group of a row is not optimal at zero, (rows,)."""
        found: BoolArray = (self.dual_norms(self.dual_norm(G), per_row(lam, len(G))) > 1.0)[self.place]
        return found

    def prox(self, Z: FloatArray, t: npt.ArrayLike) -> FloatArray:
        """argmin_W ||W - Z||_F^2 / 2 + the penalty of strengths t_j, (rows, k)."""
        return self.solve_quadratic(np.zeros_like(Z), Z, 1.0, t)

    def solve_quadratic(self, W: FloatArray, G: FloatArray, D: npt.ArrayLike, lam: npt.ArrayLike) -> FloatArray:
        """Minimiser of the quadratic bound plus penalty, group by group, as ``RowPenalty.solve_quadratic``.

        In V_j = lam_j W_j the penalty is c_g omega(V_g), and the metric D_j / lam_j**2. Rows with lam_j = 0 are free.
        """
        rows, k = W.shape
        D, lam = per_row(D, rows)[:, None], per_row(lam, rows)[:, None]
        column, free = D > 0.0, lam == 0.0
        lam = np.where(free, 1.0, lam)
        order = self.order()
        centre = lam * (W + np.where(column, G, 0.0) / np.where(column, D, 1.0))
        z = np.where(column & ~free, centre, 0.0)[order].ravel()
        metric = np.broadcast_to(D / lam**2, W.shape)[order].ravel()
        out = np.empty(z.size)
        prox_of_groups(*self.norm.compiled, z, metric, self.factors, self.starts(k), out)
        new = np.empty_like(W)
        new[order] = out.reshape(rows, k)
        return np.where(free, centre, new / lam)

    def order(self) -> IntArray:
        """The rows, those of a group beside each other, in the order of the groups."""
        return np.argsort(self.place, kind="stable")

    def starts(self, k: int) -> IntArray:
        """Where the entries of each group begin, rows of k entries in this order, and the end: (groups + 1,)."""
        found = np.zeros(self.count + 1, np.int64)
        np.cumsum(k * np.bincount(self.place, minlength=self.count), out=found[1:])
        return found
