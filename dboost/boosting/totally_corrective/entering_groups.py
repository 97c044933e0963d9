"""Which groups of columns enter a round of the totally corrective loop: whole groups, and as many as fit."""

from __future__ import annotations

import numpy as np

from dboost.boosting.totally_corrective.entering import FIRST_ROWS
from dboost.penalties.bound import BoundGroups
from dboost.problem.iterate import Iterate, Rows, Score
from dboost.problem.problem import Problem


class EnteringGroups:
    """The groups of one fit that may enter, in place of ``Entering``."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        penalty = problem.objective.bound()
        assert isinstance(penalty, BoundGroups)
        self.penalty = penalty
        # the largest sum s x**2 of a group on the scale of the penalty: what a step of the group is divided by
        self._length = np.zeros(penalty.count)
        # a row without penalty is a group of its own, which every model holds
        weights = np.where(penalty.weight > 0.0, penalty.weight, 1.0)
        np.maximum.at(self._length, penalty.place, problem.statistics.square / weights**2)

    def full(self, at: Iterate) -> bool:
        """Never: there is no limit of the rows of groups."""
        return False

    def most(self, n_active: int) -> int:
        """No row enters by itself."""
        return 0

    def widened(self, at: Iterate, score: Score, lam: float) -> tuple[Iterate, int, bool]:
        """The model with all columns of its groups, and of the best that violate optimality at a strength.

        It takes a pass for their sums where the model does not hold them. Also how many rows were added for groups that
        it did not hold, and whether other groups wait.
        """
        penalty, usable = self.penalty, np.isfinite(self.penalty.weight)
        held = np.zeros(penalty.count, np.bool_)
        held[penalty.place[at.active]] = True
        new, waiting = self._best(score, held, lam, int(at.active.shape[0]))
        fresh = int(np.count_nonzero(usable & np.isin(penalty.place, new)))
        held[new] = True
        return self._with_rows(at, np.flatnonzero(usable & held[penalty.place])), fresh, waiting

    def _best(self, score: Score, held: np.ndarray, lam: float, n_active: int) -> tuple[Rows, bool]:
        """The groups that enter, and whether others wait: the first by what a step of theirs gains, at least one."""
        penalty = self.penalty
        excess = penalty.factors * (penalty.dual_norms(score.norms) - lam)
        some = np.flatnonzero((excess > 0.0) & ~held & (self._length > 0.0))
        gain = excess[some] ** 2 / self._length[some]
        some = some[np.lexsort((some, -gain))]
        rows = np.cumsum(np.bincount(penalty.place, minlength=penalty.count)[some])
        taken = max(1, int(np.searchsorted(rows, max(FIRST_ROWS, n_active), side="right")))
        return some[:taken], some.size > taken

    def _with_rows(self, at: Iterate, rows: Rows) -> Iterate:
        """The model with these rows, which hold all of its own; those that it lacks at zero."""
        if np.array_equal(rows, at.active):
            return at
        W = np.zeros((rows.shape[0], self.problem.k))
        W[np.searchsorted(rows, at.active)] = at.W
        return self.problem.evaluate(rows, W, at.intercept)
