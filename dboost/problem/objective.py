"""What a fit minimises: P(W, b) = L(W, b) + sum_j lam_j omega(W_j), and what is known of it without a pass.

Covers: values from sums that passes have found, the strengths of the rows, the intercept as one more row. Does not
cover: the passes (``problem``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dboost.columns.statistics import Statistics
from dboost.columns.table import ColumnTable
from dboost.losses import Loss
from dboost.losses.base import Repair
from dboost.penalties import Penalty
from dboost.penalties.bound import BoundPenalty, bind
from dboost.problem.iterate import Iterate

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# Residuals of 1e-12 of the labels are rounding. This is the square of it, as the loss of no features is their square or
# more.
_RESOLUTION = 1e-24
# The square of four units of float64, of labels that are far from zero beside what they differ by.
_OF_LABELS = 2.0**-102


@dataclass(frozen=True)
class Objective:
    """Loss, penalty, the columns that W has rows for, and the sums over the data that these need."""

    loss: Loss
    penalty: Penalty
    k: int
    # Whether b is optimised, unpenalised; otherwise it is 0.
    fit_intercept: bool
    # Whether a row is penalised by the standard deviation of its column.
    standardize: bool
    # Of every column that has a row in W; they never change.
    statistics: Statistics
    columns: ColumnTable
    # L at the model without features; infinite where it is not known.
    null_loss: float = math.inf
    # sum_i s_i ||c||**2 / 2 of what was taken off the labels of each output: that much of their squares is not in
    # ``statistics.at_zero``.
    taken_off: float = 0.0

    @classmethod
    def of(
        cls,
        loss: Loss,
        penalty: Penalty,
        k: int,
        fit_intercept: bool,
        standardize: bool,
        statistics: Statistics,
        columns: ColumnTable | None = None,
    ) -> Self:
        """With the strengths of columns that follow from the statistics; of columns None, nothing was asked."""
        columns = ColumnTable.alike(statistics.square.shape[0]) if columns is None else columns
        columns = columns.standardised(statistics, penalty.degree) if standardize else columns
        return cls(loss, penalty, k, fit_intercept, standardize, statistics, columns)

    def of_columns(self, statistics: Statistics) -> Self:
        """The same on other columns of the same examples, of which the user asked nothing."""
        plain = self.of(self.loss, self.penalty, self.k, self.fit_intercept, self.standardize, statistics)
        return replace(plain, null_loss=self.null_loss, taken_off=self.taken_off)

    @property
    def sparse(self) -> bool:
        """Whether rows vanish one by one."""
        return self.columns.group is None and self.penalty.threshold and self.penalty.separable

    def bound(self, rows: Rows | None = None, lam: float = 1.0) -> BoundPenalty:
        """The penalty of some rows of W, or of all, at a strength."""
        return bind(self.penalty, self.columns, rows, lam)

    def shown(self, rows: Rows, W: Array) -> NDArray[np.bool_]:
        """Which rows that are held are part of the model: all but those without penalty that their signs hold at zero.

        A row without penalty that may have any sign is zero by chance only, and is part of every model.
        """
        sign, free = self.columns.sign, self.columns.free
        if sign is None or not free.size:
            return np.ones(rows.shape[0], np.bool_)
        found: NDArray[np.bool_] = np.any(W != 0.0, axis=1) | (sign[rows] == 0) | ~np.isin(rows, free)
        return found

    # ---- values ----------------------------------------------------------------------------------------------------

    def __call__(self, iterate: Iterate, lam: float) -> float:
        """P(W, b) in the sum form at a model that has its sums; inf where it is too large for a number."""
        return iterate.loss + self.bound(iterate.active, lam).total(iterate.W)

    @cached_property
    def resolution(self) -> float:
        """The objective below which everything is rounding: relative gaps are taken to at least this.

        Scores of zero may be far worse than the model without features, where they begin at offsets.
        """
        at_zero = self.statistics.at_zero
        least = _RESOLUTION * min(at_zero, self.null_loss)
        if self.loss.by_difference(self.k).any():
            # labels less a number are still rounded as they were given
            least = max(least, _OF_LABELS * (at_zero + self.taken_off))
        return max(least, float(np.finfo(float).tiny))

    @property
    def curvature_constant(self) -> float:
        """kappa of the quadratic bound; 1 where the loss has none, and rules that ask for no bound see sum s x**2."""
        return self.loss.kappa if math.isfinite(self.loss.kappa) else 1.0

    def repair(self, iterate: Iterate) -> Repair:
        """What makes the residuals at a model feasible for the intercept; nothing where there is none."""
        if not self.fit_intercept:
            return Repair.nothing(self.k)
        plain = self.loss.repair(self.statistics.mass, self.statistics.total, iterate.bias)
        if plain.null_share == 0.0 or not self.columns.offset.size:
            return plain
        # It mixes predictions with the shares n/M of the labels. With offsets the model without features predicts
        # something else, and X'(t (q - n/M)) is bounded example by example: |q - n/M| <= max(n/M, 1 - n/M).
        t, prior = plain.mix, plain.prior
        drift = (1.0 - t) * plain.drift + t * np.maximum(prior, 1.0 - prior)
        return replace(plain, null_share=0.0, drift=drift)

    # ---- the intercept as one more row -----------------------------------------------------------------------------

    def with_intercept(self, iterate: Iterate, lam: float) -> tuple[Array, Array, BoundPenalty]:
        """G, W and the penalty of a model, with the intercept as their last row where there is one."""
        bound = self.bound(iterate.active, lam)
        if not self.fit_intercept:
            return iterate.G, iterate.W, bound
        G, W = np.concatenate([iterate.G, iterate.bias[None]]), np.concatenate([iterate.W, iterate.intercept[None]])
        return G, W, bound.with_intercept()

    def split_intercept(self, D: Array) -> tuple[Array, Array]:
        """Rows of W and intercept of an array that `with_intercept` shaped."""
        if self.fit_intercept:
            return D[:-1], D[-1]
        return D, np.zeros(self.k)
