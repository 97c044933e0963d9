"""Scoring passes by residuals in float32: how far their sums may be off, and when that is near enough.

The residuals of all examples are the largest table that a scoring pass goes through, once for every stored value. In
float32 it goes through it in little more than half of the time. Sums stay float64, so that all they may be off by is
what the residuals were rounded by: ||X_j'(U - V)||_* <= e sum_i |x_ij| ||u_i||_*, V being U rounded by no more than a
share e of each number. A certificate pays for that (``certificate.dual_bound``), and remains one: float32 does for
scoring, and not by itself for a certificate (docs/math.md 9).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dboost.problem.problem import Problem
from dboost.problem.state import FitState

Array = NDArray[np.float64]

FLOAT32 = 2.0**-24
"""What float32 rounds a number by at most, as a share of it."""
# Sums of the weights of all examples between which float32 neither overflows nor loses digits that count.
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-20, 1e30
# What sums may be off by, as a share of the gap asked for, or of the one before, which a round takes a tenth of.
_OF_TOL = 0.05
_OF_GAP = 0.01


@dataclass(frozen=True)
class Rounding:
    """What sums of rounded residuals may be off by, at one strength.

    Parameters
    ----------
    of_column : float
        e max ||u_i||_* / s_i over all residuals there are: the sum of column j is off by no more than so many times
        sum_i s_i |x_ij|.
    largest : float
        The most of that over all columns, as a share of their strengths; infinite where nothing is to be rounded.
    """

    of_column: float
    largest: float

    @classmethod
    def of(cls, problem: Problem, lam: float, unit: float = FLOAT32) -> Rounding:
        """Of a problem at the strength `lam`, sum form, where a number is rounded by a share of `unit`."""
        penalty, absolute = problem.penalty, problem.statistics.absolute
        sparse = penalty.threshold and penalty.separable and penalty.certified
        longest = problem.loss.longest_residual(problem.k)
        usual = problem.k > 1 and not problem.exponential and problem.screens and lam > 0.0
        if longest is None or not (usual and sparse and _LEAST_WEIGHT < problem.statistics.weight < _MOST_WEIGHT):
            return cls(0.0, np.inf)
        of_column = unit * float(penalty.dual_norm(longest[None])[0])
        # a column whose rows are free has to have no sum at all
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(absolute > 0.0, absolute / (lam * problem.lam_weight), 0.0)
        return cls(of_column, of_column * float(np.max(share, initial=0.0)))

    def allowed(self, tol: float, state: FitState) -> float:
        """`of_column` where sums of rounded residuals tell enough of a model, else 0.

        Parameters
        ----------
        tol : float
            Relative gap that is asked for.
        state : FitState
            The model and its last gap.
        """
        # at a model without rows all residuals of a class are the same: their sums are cheap, and their errors add up
        gap = min(state.gap, 1.0) if np.isfinite(state.gap) else 1.0
        near = self.largest <= max(_OF_TOL * tol, _OF_GAP * gap)
        return self.of_column if near and state.active.shape[0] else 0.0
