"""The least that a penalty has, and what every penalty of rows derives from it.

Covers: ``Penalty``, which derives row solves and scores from three primitives (``value``, ``dual_norm``, ``prox``);
``TiltedPenalty``, which adds the exponential bound. Does not cover: the penalties themselves
(one file each), the capabilities that only some have (``capabilities``), and the compiled row prox (``row_prox``).

A penalty here is ``sum_j lam_j omega(W_j)`` with omega a norm of one row of W, or another convex function of it that
is zero at zero; one penalty (``l2``) ties all rows together instead. Names follow the papers:
G = -grad of the loss, D = curvature of the quadratic bound, (mu_plus, mu_minus, a) = sums and normalisation of the
exponential bound. Arrays are float64; ``lam``, ``t``, ``D`` and ``a`` are scalars or arrays (rows,), and lam_j = 0
means a row without penalty.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dboost.bounds import exponential
from dboost.penalties.rows import BoolArray, FloatArray, in_strengths, per_row


class Penalty(ABC):
    """A penalty of rows given by ``value``, ``dual_norm`` and ``prox``; all else is derived from them.

    What only some solvers need is a capability, a Protocol of its own: ``ExponentialSolves``, ``CompiledProx``,
    ``Faced``, ``ChargesRows``. A solver asks for it and refuses a penalty that lacks it (``boosting.checks``).

    A subclass is a frozen dataclass: it is sent to workers, compared and hashed. With nothing but the three it is a
    norm that is fitted with ``update="gradboost"``, screened and certified.

    Attributes
    ----------
    certified : bool
        Whether ``dual_point`` bounds the optimum, so that a fit can prove its gap.
    threshold : bool
        Whether W = 0 is optimal from some strength on. Together with `separable`: whether rows vanish one by one.
    separable : bool
        Whether the penalty is a sum over rows, so that one row can be solved for alone.
    degree : int
        omega(t w) = t**degree omega(w) for t > 0; 0 where no power fits. A column scaled by 1/t has its lam_j
        multiplied by t**degree.
    weightless : bool
        Whether omega = 0, so that there is no strength to choose.
    monotone : bool
        Whether the score under the exponential bound grows with the larger of mu+ and mu- and falls with the smaller.
        Where it is not known to, a score is at most what it would be without a penalty.
    sizes_only : bool
        Whether omega looks at the sizes of the entries alone, and grows with each of them: what ``penalties.bound``
        needs. Where it is not known to, signs of weights are refused.
    single, entries : (float, float) or None
        ``(u, c)`` with omega(w) = u |w| + c w**2 / 2 for rows of one entry, and for each entry of longer rows; None
        where omega is not of that form. Solves of one output, and entry by entry, need it.

    Examples
    --------
    >>> from dboost.penalties import get_penalty
    >>> isinstance(get_penalty("l1/l2"), Penalty), get_penalty("l1/l2").degree
    (True, 1)
    """

    name: ClassVar[str]
    certified: ClassVar[bool] = True
    threshold: ClassVar[bool] = True
    separable: ClassVar[bool] = True
    degree: ClassVar[int] = 1
    weightless: ClassVar[bool] = False
    monotone: ClassVar[bool] = False
    sizes_only: ClassVar[bool] = False

    @property
    def single(self) -> tuple[float, float] | None:
        """None: nothing is known of rows of one entry."""
        return None

    @property
    def entries(self) -> tuple[float, float] | None:
        """None: entries are tied, or nothing is known of them."""
        return None

    @abstractmethod
    def value(self, W: FloatArray) -> FloatArray:
        """omega(W_j) for each row, shape (rows,)."""

    def total(self, W: FloatArray, lam: npt.ArrayLike) -> float:
        """The penalty of all rows, sum_j lam_j omega(W_j)."""
        return float((per_row(lam, len(W)) * self.value(W)).sum())

    @abstractmethod
    def dual_norm(self, G: FloatArray) -> FloatArray:
        """sup_w <G_j, w> / omega(w) for each row, shape (rows,); W_j = 0 is optimal iff it is <= lam_j."""

    def dual_radius(self, k: int) -> float:
        """Largest ||g||_* over rows g of k numbers with ||g||_2 = 1: how fast the dual norm can change.

        1 unless overridden: omega(w) >= ||w||_2 for every penalty but l1/linf.
        """
        return 1.0

    def dual_size(self, norms: FloatArray, weights: FloatArray) -> float:
        """How large a dual point is for the whole penalty: max_j ||X_j'Theta||_* / w_j, with lam_j = lam w_j.

        The smallest lam at which W = 0 is optimal is its value at the null model.

        Parameters
        ----------
        norms : ndarray (rows,)
            ||X_j'Theta||_*, or upper bounds on them.
        weights : ndarray (rows,)
            w_j; inf for a row that never enters, 0 for one without penalty, which counts for nothing here.
        """
        return float(np.max(in_strengths(norms, weights), initial=0.0))

    def join_sizes(self, sizes: Sequence[float]) -> float:
        """`dual_size` of all rows from those of parts of them."""
        return max(sizes, default=0.0)

    def dual_point(self, size: float, lam: float) -> tuple[float, float]:
        """(scale, charge): D(scale Theta) - charge bounds the optimum from below, Theta of that `dual_size`."""
        return (lam / size if size > lam else 1.0), 0.0

    @abstractmethod
    def prox(self, Z: FloatArray, t: npt.ArrayLike) -> FloatArray:
        """argmin_w ||w - Z_j||^2 / 2 + t_j omega(w) for each row, shape (rows, k)."""

    def leaves_zero(self, G: FloatArray, lam: npt.ArrayLike) -> BoolArray:
        """Whether a zero row with G_j at W_j = 0 is not optimal, shape (rows,)."""
        return self.dual_norm(G) > per_row(lam, len(G))

    def solve_quadratic(self, W: FloatArray, G: FloatArray, D: npt.ArrayLike, lam: npt.ArrayLike) -> FloatArray:
        """Minimiser of the quadratic bound plus penalty, row by row (Duchi & Singer 2009, eq. 11 and 14).

        Parameters
        ----------
        W, G : ndarray (rows, k)
            Current rows and minus the gradient of the loss there.
        D : float or ndarray (rows,)
            Curvature, >= 0. A row with D = 0 (zero column) becomes zero if lam > 0 and stays otherwise.
        lam : float or ndarray (rows,)

        Returns
        -------
        ndarray (rows, k)
        """
        rows = len(W)
        D = per_row(D, rows)
        lam = self._weight(lam, rows)
        # prox_{lam/D}(W + G/D) = prox_lam(D W + G) / D: the same point, but a small D cannot overflow and the test
        # for zero compares the very numbers of the zero-row condition.
        moved = self._shrunk(D[:, None] * W + G, lam)
        column = D > 0
        new: FloatArray = moved / np.where(column, D + self._bend(lam), 1.0)[:, None]
        return np.where(column[:, None], new, np.where((lam > 0)[:, None], 0.0, W))

    def score_quadratic(self, G: FloatArray, D: npt.ArrayLike, lam: npt.ArrayLike) -> FloatArray:
        """Decrease of quadratic bound plus penalty when a zero row leaves zero, shape (rows,).

        dist_2(G_j, lam B)^2 / (2 D_j) with B the unit ball of the dual norm; by Moreau's identity the distance is
        ||prox_lam(G_j)||_2. Positive exactly where the zero row is not optimal.
        """
        D, lam = per_row(D, len(G)), per_row(lam, len(G))
        score = np.zeros(len(G))
        rows = np.flatnonzero(self.leaves_zero(G, lam))
        moved = self._shrunk(G[rows], lam[rows])
        with np.errstate(divide="ignore"):
            score[rows] = np.einsum("ij,ij->i", moved, moved) / (2.0 * (D[rows] + self._bend(lam[rows])))
        return score

    def _shrunk(self, Z: FloatArray, t: FloatArray) -> FloatArray:
        """The prox of the part of the penalty that is a norm, (rows, k)."""
        return self.prox(Z, t)

    def _bend(self, lam: FloatArray) -> FloatArray:
        """The curvature of the other part, which is a multiple of ||w||_2^2 / 2, (rows,)."""
        return np.zeros_like(lam)

    def _weight(self, lam: npt.ArrayLike, rows: int) -> FloatArray:
        """The factor of omega for each row, (rows,)."""
        return per_row(lam, rows)


RowPenalty = Penalty
"""The name that it had."""


class TiltedPenalty(Penalty):
    """A penalty of rows with a solve and a score under the exponential bound, from two more primitives."""

    @abstractmethod
    def solve_tilted(self, A: FloatArray, B: FloatArray, lam: FloatArray, scale: FloatArray) -> FloatArray:
        """argmin_gamma sum_r e^(A_r - gamma_r) + e^(B_r + gamma_r) + lam omega(scale gamma) / scale for each row.

        Parameters
        ----------
        A, B : ndarray (rows, k) of float64
            Logarithms, -inf allowed.
        lam, scale : ndarray (rows,) of float64
            The row of W is scale * gamma, and the bound is divided by it: of a norm that leaves lam omega(gamma).

        Returns
        -------
        ndarray (rows, k)
            +-inf for an entry that has no finite minimiser, which needs lam = 0.
        """

    @abstractmethod
    def score_tilted(self, mu_plus: FloatArray, mu_minus: FloatArray, lam: FloatArray, scale: FloatArray) -> FloatArray:
        """``score_exponential`` on rows that leave zero, over a, of the same scaled row; positive."""

    def solve_exponential(
        self, W: FloatArray, mu_plus: FloatArray, mu_minus: FloatArray, a: npt.ArrayLike, lam: npt.ArrayLike
    ) -> tuple[FloatArray, BoolArray]:
        """Minimiser of the exponential bound plus penalty, row by row (docs/math.md 4).

        Parameters
        ----------
        W, mu_plus, mu_minus : ndarray (rows, k)
            Current rows and the two sums of the bound there, both >= 0.
        a : float or ndarray (rows,)
            Normalisation of the template, > 0; inf for a zero column.
        lam : float or ndarray (rows,)

        Returns
        -------
        new rows (rows, k), unbounded (rows,) of bool
            ``unbounded`` marks rows in which some entry had no finite minimiser and was capped.
        """
        rows = len(W)
        a, lam = per_row(a, rows), self._weight(lam, rows)
        scale = np.where(np.isfinite(a), a, 1.0)

        def solve(A: FloatArray, B: FloatArray, strength: FloatArray) -> FloatArray:
            return self.solve_tilted(A, B, strength, scale)

        return exponential.solve_rows(solve, W, mu_plus, mu_minus, a, lam)

    def score_exponential(
        self, mu_plus: FloatArray, mu_minus: FloatArray, a: npt.ArrayLike, lam: npt.ArrayLike
    ) -> FloatArray:
        """Decrease of exponential bound plus penalty (or a lower bound of it) when a zero row leaves zero, (rows,).

        Positive exactly where the zero row is not optimal (docs/math.md 5).
        """
        rows = len(mu_plus)
        a, lam = per_row(a, rows), self._weight(lam, rows)
        score = np.zeros(rows)
        chosen = np.flatnonzero(self.leaves_zero(mu_plus - mu_minus, lam))
        a = a[chosen]
        score[chosen] = a * self.score_tilted(mu_plus[chosen], mu_minus[chosen], lam[chosen], a)
        return score
