"""A penalty of rows whose weights may have one sign only: omega(w) where every entry has it, else infinite.

Every omega here grows with the size of each entry alone, whatever its sign. What pulls an entry the wrong way is then
as good as no pull: with [z] for z without its entries of the wrong sign, the prox is that of omega at [z], and so are
the zero test, the conjugate, and the row solves, in any diagonal metric; the dual norm is that of [g]. A norm that is
taken of a difference bounds that of its [.], so that bounds of the two-sided norm hold for this one.

Covers: the members of ``Penalty`` that solvers and certificates ask for rows by place. Does not cover: penalties that
look at more than sizes, or have no certificate (``boosting.checks`` refuses them).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dboost.bounds import exponential
from dboost.penalties.base import Penalty
from dboost.penalties.capabilities import ChargesRows, exponential_solves
from dboost.penalties.rows import BoolArray, FloatArray, per_row

Int8 = npt.NDArray[np.int8]


def rightly_signed(Z: FloatArray, signs: Int8) -> FloatArray:
    """Rows (rows, k) without the entries whose sign is not that of their row, (rows,); a sign of 0 is any."""
    found: FloatArray = np.where(signs[:, None] * Z < 0.0, 0.0, Z)
    return found


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


@dataclass(frozen=True, eq=False)
class Signed:
    """A penalty on some rows, with their signs."""

    inner: Penalty
    # 1 where weights are not negative, -1 where they are not positive, else 0. (rows,)
    signs: Int8

    def value(self, W: FloatArray) -> FloatArray:
        """omega of each row, of rows that have their signs."""
        return self.inner.value(W)

    def dual_norm(self, G: FloatArray) -> FloatArray:
        """That of what pulls the right way: sup <G_j, w> / omega(w) over rows that have their signs."""
        return self.inner.dual_norm(rightly_signed(G, self.signs))

    def dual_size(self, norms: FloatArray, weights: FloatArray) -> float:
        """As of the penalty."""
        return self.inner.dual_size(norms, weights)

    def leaves_zero(self, G: FloatArray, lam: npt.ArrayLike) -> BoolArray:
        """As of the penalty, at what pulls the right way."""
        return self.inner.leaves_zero(rightly_signed(G, self.signs), lam)

    def conjugate(self, G: FloatArray, lam: npt.ArrayLike) -> FloatArray:
        """As of the penalty, at what pulls the right way."""
        assert isinstance(self.inner, ChargesRows)
        return self.inner.conjugate(rightly_signed(G, self.signs), lam)

    def solve_quadratic(self, W: FloatArray, G: FloatArray, D: npt.ArrayLike, lam: npt.ArrayLike) -> FloatArray:
        """Minimiser of the quadratic bound plus penalty; a row of a column without data becomes zero if penalised."""
        D = per_row(D, len(W))
        column = (D > 0.0)[:, None]
        moved = rightly_signed(np.where(column, D[:, None] * W + G, 0.0), self.signs)
        return self.inner.solve_quadratic(np.where(column, 0.0, W), moved, D, lam)

    def score_quadratic(self, G: FloatArray, D: npt.ArrayLike, lam: npt.ArrayLike) -> FloatArray:
        """As of the penalty, at what pulls the right way."""
        return self.inner.score_quadratic(rightly_signed(G, self.signs), D, lam)

    def score_exponential(
        self, mu_plus: FloatArray, mu_minus: FloatArray, a: npt.ArrayLike, lam: npt.ArrayLike
    ) -> FloatArray:
        """As of the penalty, without the entries that are pulled the wrong way: they stay at zero."""
        wrong = self.signs[:, None] * (mu_plus - mu_minus) < 0.0
        plus, minus = np.where(wrong, 0.0, mu_plus), np.where(wrong, 0.0, mu_minus)
        return exponential_solves(self.inner).score_exponential(plus, minus, a, lam)

    def solve_exponential(
        self,
        W: FloatArray,
        mu_plus: FloatArray,
        mu_minus: FloatArray,
        a: npt.ArrayLike,
        lam: npt.ArrayLike,
        caps: npt.ArrayLike = exponential.CAP,
    ) -> tuple[FloatArray, BoolArray]:
        """As of a penalty of single entries: a convex function of one number has its least, of one sign, there or at 0.

        Of rows of several entries that a norm ties together this is not so, and they are not asked for it
        (``boosting.checks``).
        """
        rows, unbounded = exponential_solves(self.inner).solve_exponential(W, mu_plus, mu_minus, a, lam, caps)
        return rightly_signed(rows, self.signs), unbounded
