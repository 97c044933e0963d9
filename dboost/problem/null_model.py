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

# e^700 is next to the largest number there is.
_RAISED = 700.0
_MAX_RAISED = 8


class NullModel:
    """What is known of the model without features.

    `keeps`: whether sums are kept.
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
        sums: Callable[[Array], tuple[float, Array, Array]],
    ) -> Iterate:
        """The model, its sums not filled in.

        `sums`: the loss, the column sums of U (k,) and the Hessian in b (k, k) at an intercept (k,). They are asked for
        once in a fit, and only where the loss has no formula for the best intercept.
        """
        if self._intercept is None:
            self._intercept = self._best(objective, sums)
        return Iterate.unsummed(np.zeros(0, np.int64), np.zeros((0, objective.k)), self._intercept.copy())

    def _best(
        self,
        objective: Objective,
        sums: Callable[[Array], tuple[float, Array, Array]],
    ) -> Array:
        if not objective.fit_intercept:
            return np.zeros(objective.k)
        loss, stats = objective.loss, objective.statistics
        start = loss.null_intercept(stats.mass, stats.total)
        offset = objective.columns.offset
        if loss.closed_null and not offset.size:
            return start
        growing = np.array([link.exponential for link in loss.links(objective.k)])
        if offset.size and growing.any():
            start = _of_means(sums, np.where(growing, start - stats.peak[offset], start), stats.mass, growing)
        if not loss.separable:
            return best_joint_intercept(sums, start)

        def slope(b: Array) -> tuple[Array, Array]:
            _, bias, H = sums(b)
            return bias, np.diag(H)

        return best_intercept(slope, start)

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


def _of_means(
    sums: Callable[[Array], tuple[float, Array, Array]], start: Array, mass: Array, growing: NDArray[np.bool_]
) -> Array:
    """The best intercept of outputs that predict means e^(b + o) from offsets o, one pass: the means sum to the labels.

    `sums`: the Hessian has the sums of the means on its diagonal, in float64. `start`, (k,): so low that no mean
    overflows: Newton's steps from above take one off the intercept each, whatever is due. `mass`, (k,): sums of the
    labels. `growing`, (k,): which outputs are such; the others stay where they are.
    """
    for _ in range(_MAX_RAISED):
        means = np.diag(sums(start)[2])
        lost = growing & ~(means > 0.0)
        if not lost.any():
            break
        # offsets far below the largest in size: all means are zero in float64, and rise together
        start = np.where(lost, start + _RAISED, start)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = start + np.log(mass) - np.log(means)
    return np.where(growing & np.isfinite(found), found, start)
