"""A penalty bound to some rows of W at a strength: what solvers and certificates see of it.

Strengths, signs and groups of the rows are in it, so that whoever holds one needs to know of none of them.

Every omega that may have signs grows with the size of each entry alone, whatever its sign. What pulls an entry the
wrong way is then as good as no pull: with [z] for z without its entries of the wrong sign, the prox is that of omega at
[z], and so are the zero test, the conjugate, and the row solves, in any diagonal metric; the dual norm is that of [g].
A norm that is taken of a difference bounds that of its [.], so that bounds of the two-sided norm hold for this one.

The columns of a group enter a model together, or not at all. With the weights w_j that multiply the strength of a
column, group g costs c_g omega((w_j W_j)_j in g), and the dual norm of its sums is that of (G_j / w_j) over c_g
(docs/math.md 6.5). Both follow from the norms of the rows, which is all that passes tell of rows that are not held.

Does not cover: which penalties may have signs and groups (``boosting.checks``), and the solves for the groups held
(``solvers.formed``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dboost.compiled.solves.group_descent import prox_of_groups
from dboost.penalties.base import Penalty
from dboost.penalties.capabilities import ChargesRows, JoinsRows, exponential_solves, faced, joins_rows
from dboost.penalties.faces import Face
from dboost.penalties.rows import BoolArray, FloatArray, IntArray, in_strengths, per_row

if TYPE_CHECKING:
    from dboost.columns.table import ColumnTable

Int8 = npt.NDArray[np.int8]


def rightly_signed(Z: FloatArray, signs: Int8) -> FloatArray:
    """Rows (rows, k) without the entries whose sign is not that of their row, (rows,); a sign of 0 is any."""
    return np.where(signs[:, None] * Z < 0.0, 0.0, Z)


def centred(W: FloatArray, signs: Int8) -> FloatArray:
    """Rows (rows, k) less one number each, which brings their mean as near to zero as their signs allow, (rows,).

    Examples
    --------
    >>> import numpy as np
    >>> centred(np.array([[1.0, 4.0], [1.0, 4.0], [-1.0, 2.0]]), np.array([1, -1, 0], np.int8)).tolist()
    [[0.0, 3.0], [-3.0, 0.0], [-1.5, 1.5]]
    """
    least, mean, most = (take(W, axis=1, keepdims=True) for take in (np.min, np.mean, np.max))
    found: FloatArray = W - np.where(signs[:, None] > 0, least, np.where(signs[:, None] < 0, most, mean))
    return found


def bind(penalty: Penalty, columns: ColumnTable, rows: IntArray | None, lam: float) -> BoundPenalty:
    """The penalty of some rows of W, or of all, at a strength."""
    some = slice(None) if rows is None else rows
    weight, sign = columns.weight[some], None if columns.sign is None else columns.sign[some]
    if columns.group is None:
        return BoundPenalty(penalty, lam, weight, sign)
    left, place = np.unique(columns.group[some], return_inverse=True)
    factors = joins_rows(penalty).of_size(columns.group_sizes[left])
    return BoundGroups(penalty, lam, weight, sign, place.astype(np.int64), factors)


@dataclass(frozen=True, eq=False)
class BoundPenalty:
    """lam sum_j w_j omega(W_j) over some rows; infinite where an entry does not have the sign of its row.

    Examples
    --------
    >>> from dboost.columns.table import ColumnTable
    >>> from dboost.penalties.mixed import L1
    >>> bound = bind(L1(), ColumnTable.alike(3).scaled(np.array([1.0, 2.0, 0.0])), np.array([1, 2]), 0.5)
    >>> bound.strength.tolist(), bound.total(np.array([[3.0], [9.0]]))
    ([1.0, 0.0], 3.0)
    """

    penalty: Penalty
    lam: float
    # w_j: 0 for a row without penalty, inf for one that never enters. (rows,)
    weight: FloatArray
    # 1 where weights are not negative, -1 where they are not positive, else 0; None where no row has a sign. (rows,)
    sign: Int8 | None

    @cached_property
    def strength(self) -> FloatArray:
        """lam w_j, (rows,); a row that is left out stays out where there is no penalty either."""
        return self.lam * self.weight if self.lam > 0.0 else np.where(np.isinf(self.weight), np.inf, 0.0)

    @property
    def signs(self) -> Int8:
        """The signs as compiled loops take them, (rows,)."""
        return np.zeros(self.weight.shape[0], np.int8) if self.sign is None else self.sign

    def __getitem__(self, rows: IntArray | BoolArray | list[int]) -> BoundPenalty:
        """The same of some of these rows: places, or a mask."""
        return replace(self, weight=self.weight[rows], sign=None if self.sign is None else self.sign[rows])

    def with_intercept(self) -> BoundPenalty:
        """With one more row, which has neither a penalty nor a sign."""
        sign = None if self.sign is None else np.append(self.sign, np.int8(0))
        return replace(self, weight=np.append(self.weight, 0.0), sign=sign)

    def _pulls(self, G: FloatArray) -> FloatArray:
        """G (rows, k) without what pulls an entry the wrong way."""
        return G if self.sign is None else rightly_signed(G, self.sign)

    # ---- values ----------------------------------------------------------------------------------------------------

    def value(self, W: FloatArray) -> FloatArray:
        """omega of each row, (rows,), of rows that have their signs."""
        return self.penalty.value(W)

    def total(self, W: FloatArray) -> float:
        """The penalty of all these rows."""
        return self.penalty.total(W, self.strength)

    def dual_norm(self, G: FloatArray) -> FloatArray:
        """sup <G_j, w> / omega(w) over rows w that have their sign, (rows,)."""
        return self.penalty.dual_norm(self._pulls(G))

    def dual_size(self, norms: FloatArray) -> float:
        """How large a dual point of these dual norms (rows,) is for all these rows: it is feasible up to lam."""
        return self.penalty.dual_size(norms, self.weight)

    def leaves_zero(self, G: FloatArray) -> BoolArray:
        """Whether a zero row is not optimal, (rows,)."""
        return self.penalty.leaves_zero(self._pulls(G), self.strength)

    def conjugate(self, G: FloatArray) -> FloatArray:
        """(lam_j omega)*(G_j) of each row, (rows,), of a penalty that charges rows."""
        assert isinstance(self.penalty, ChargesRows)
        return self.penalty.conjugate(self._pulls(G), self.strength)

    # ---- solves and scores of single rows --------------------------------------------------------------------------

    def solve_quadratic(self, W: FloatArray, G: FloatArray, D: npt.ArrayLike) -> FloatArray:
        """Minimiser of the quadratic bound plus penalty; a row of a column without data becomes zero if penalised."""
        if self.sign is None:
            return self._solve_quadratic(W, G, D)
        D = per_row(D, len(W))
        column = (D > 0.0)[:, None]
        moved = rightly_signed(np.where(column, D[:, None] * W + G, 0.0), self.sign)
        return self._solve_quadratic(np.where(column, 0.0, W), moved, D)

    def _solve_quadratic(self, W: FloatArray, G: FloatArray, D: npt.ArrayLike) -> FloatArray:
        return self.penalty.solve_quadratic(W, G, D, self.strength)

    def score_quadratic(self, G: FloatArray, D: npt.ArrayLike) -> FloatArray:
        """Decrease of that when a zero row leaves zero, each by itself, (rows,)."""
        return self.penalty.score_quadratic(self._pulls(G), D, self.strength)

    def solve_exponential(
        self, W: FloatArray, mu_plus: FloatArray, mu_minus: FloatArray, a: npt.ArrayLike
    ) -> tuple[FloatArray, BoolArray]:
        """New rows under the exponential bound, and whether each had an entry without a finite minimiser.

        A convex function of one number has its least of one sign there, or at zero. Of rows of several entries that a
        norm ties together this is not so, and they are not asked for it (``boosting.checks``).
        """
        solves = exponential_solves(self.penalty)
        rows, unbounded = solves.solve_exponential(W, mu_plus, mu_minus, a, self.strength)
        return self._pulls(rows), unbounded

    def score_exponential(self, mu_plus: FloatArray, mu_minus: FloatArray, a: npt.ArrayLike) -> FloatArray:
        """Decrease of that when a zero row leaves zero, (rows,); entries that are pulled the wrong way stay there."""
        if self.sign is not None:
            wrong = self.sign[:, None] * (mu_plus - mu_minus) < 0.0
            mu_plus, mu_minus = np.where(wrong, 0.0, mu_plus), np.where(wrong, 0.0, mu_minus)
        return exponential_solves(self.penalty).score_exponential(mu_plus, mu_minus, a, self.strength)

    def face(self, W: FloatArray) -> Face:
        """The face through W (rows, k), on which a row keeps its side of zero where it has a penalty or a sign."""
        strength = self.strength
        if self.sign is not None:
            strength = np.where((strength == 0.0) & (self.sign != 0), np.finfo(np.float64).tiny, strength)
        return faced(self.penalty).face(W, strength)


@dataclass(frozen=True, eq=False)
class BoundGroups(BoundPenalty):
    """lam sum_g c_g omega of the entries w_j W_j of all rows of a group, read as one row.

    What ``BoundPenalty`` says of single rows holds for their norms, of which those of groups are made.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from dboost.columns.table import ColumnTable
    >>> from dboost.penalties.mixed import L2
    >>> pairs = bind(L2(), replace(ColumnTable.alike(3), group=np.array([0, 0, 1])), None, 1.0)
    >>> round(pairs.total(np.array([[3.0], [4.0], [1.0]])), 4)
    8.0711
    """

    # The group of each row, numbers from 0 on, (rows,), and c_g > 0, (groups,).
    place: IntArray
    factors: FloatArray

    def __getitem__(self, rows: IntArray | BoolArray | list[int]) -> BoundGroups:
        """The same where all other rows are zero."""
        left, place = np.unique(self.place[rows], return_inverse=True)
        plain = super().__getitem__(rows)
        return replace(self, weight=plain.weight, sign=plain.sign, place=place, factors=self.factors[left])

    @property
    def norm(self) -> JoinsRows:
        """The norm, as one of several rows."""
        return joins_rows(self.penalty)

    @property
    def count(self) -> int:
        """Number of groups."""
        return int(self.factors.shape[0])

    def total(self, W: FloatArray) -> float:
        """The penalty of all groups."""
        return float(np.sum(self.factors * self.norm.joined(self.strength * self.value(W), self.place, self.count)))

    def dual_norms(self, norms: FloatArray) -> FloatArray:
        """||(G_j / w_j)_j in g||_* / c_g of every group, (groups,), from the dual norms of its rows (rows,).

        W_g = 0 is optimal iff it is at most lam. Rows of infinite weight never enter, and count for nothing.
        """
        found: FloatArray = (
            self.norm.dual_joined(in_strengths(norms, self.weight), self.place, self.count) / self.factors
        )
        return found

    def dual_size(self, norms: FloatArray) -> float:
        """max_g of `dual_norms`."""
        return float(np.max(self.dual_norms(norms), initial=0.0))

    def leaves_zero(self, G: FloatArray) -> BoolArray:
        """Whether the group of a row is not optimal at zero, (rows,)."""
        return (self.dual_norms(self.dual_norm(G)) > self.lam)[self.place]

    def _solve_quadratic(self, W: FloatArray, G: FloatArray, D: npt.ArrayLike) -> FloatArray:
        """Group by group: in V_j = lam_j W_j the penalty is c_g omega(V_g), and the metric D_j / lam_j**2."""
        rows, k = W.shape
        D, lam = per_row(D, rows)[:, None], self.strength[:, None]
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

    def with_intercept(self) -> BoundGroups:
        """With one more row, a group of its own."""
        plain, place = super().with_intercept(), np.append(self.place, self.count)
        return replace(self, weight=plain.weight, sign=plain.sign, place=place, factors=np.append(self.factors, 1.0))

    def order(self) -> IntArray:
        """The rows, those of a group beside each other, in the order of the groups."""
        return np.argsort(self.place, kind="stable")

    def starts(self, k: int) -> IntArray:
        """Where the entries of each group begin, rows of k entries in this order, and the end: (groups + 1,)."""
        found = np.zeros(self.count + 1, np.int64)
        np.cumsum(k * np.bincount(self.place, minlength=self.count), out=found[1:])
        return found
