"""The model without features: its best intercept, and its sums until they are asked for again.

A fit scores it for alpha_max, and its first round again, at the strength that this has told.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dboost.partition import Sums
from dboost.problem.iterate import Iterate
from dboost.problem.null_intercept import best_intercept, best_joint_intercept
from dboost.problem.objective import Objective

Array = NDArray[np.float64]


class NullModel:
    """What is known of the model without features.

    Parameters
    ----------
    keeps : bool
        Whether sums are kept.
    """

    def __init__(self, keeps: bool) -> None:
        self._keeps = keeps
        self._intercept: Array | None = None
        self._of: bytes | None = None
        self._sums: Sums | None = None
        self._left = 0

    def iterate(
        self,
        objective: Objective,
        slope: Callable[[Array], tuple[Array, Array]],
        sums: Callable[[Array], tuple[float, Array, Array]],
    ) -> Iterate:
        """The model, its sums not filled in.

        Parameters
        ----------
        objective : Objective
        slope : function (b) -> (float64 array (k,), float64 array (k,))
            The column sums of U at an intercept, and minus their slope. It is called once in a fit, and only where the
            loss has no formula for the best intercept.
        sums : function (b) -> (float, float64 array (k,), float64 array (k, k))
            The loss, the column sums of U and the Hessian in b; in place of `slope` where outputs are not separable.
        """
        if self._intercept is None:
            self._intercept = self._best(objective, slope, sums)
        none = np.zeros((0, objective.k))
        return Iterate(np.zeros(0, np.int64), none, self._intercept.copy(), np.nan, none, np.zeros(objective.k))

    def _best(
        self,
        objective: Objective,
        slope: Callable[[Array], tuple[Array, Array]],
        sums: Callable[[Array], tuple[float, Array, Array]],
    ) -> Array:
        if not objective.fit_intercept:
            return np.zeros(objective.k)
        start = objective.loss.null_intercept(objective.statistics.mass, objective.statistics.total)
        if objective.loss.closed_null:
            return start
        return best_intercept(slope, start) if objective.loss.separable else best_joint_intercept(sums, start)

    # ---- sums of a scoring pass ------------------------------------------------------------------------------------

    def keep(self, intercept: Array, sums: Sums, times: int) -> None:
        """Keep the sums of all columns at an intercept until they have been asked for so many times."""
        if self._keeps:
            self._of, self._sums, self._left = intercept.tobytes(), sums, times

    def sums(self, intercept: Array) -> Sums | None:
        """Those sums; None where they are not kept, and those of another intercept are then forgotten."""
        if self._of != intercept.tobytes():
            self.forget()
        found = self._sums
        self._left -= 1
        if self._left <= 0:
            self.forget()
        return found

    def forget(self) -> None:
        """Keep no sums any longer."""
        self._of, self._sums, self._left = None, None, 0
