"""What AdaBoost+L1 takes from round to round, and what its budget says of the margin (docs/math.md 7 (H)).

Does not cover: the rounds (``adaboost_l1``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.problem.state import FitState


@dataclass(frozen=True)
class Progress:
    """Numbers of a fit so far.

    Parameters
    ----------
    budget : float
        r, the limit of sum al.
    margin : float
        Least normalised margin of the model.
    bound : float
        The smallest of the rounds' largest edges: no ensemble has a larger margin.
    least : float
        The least positive weight of an example.
    """

    budget: float = 0.0
    margin: float = 0.0
    bound: float = math.inf
    least: float = 0.0

    @staticmethod
    def of(state: FitState) -> Progress:
        """What a state carries."""
        kept = state.carried.get("l1")
        return Progress() if kept is None else Progress(*kept.tolist())

    def carried(self) -> dict[str, NDArray[Any]]:
        """For ``FitState.carried``."""
        return {"l1": np.array([self.budget, self.margin, self.bound, self.least])}


def budget_suffices(r: float, tol: float, margin: float, edge: float, least: float, share: float) -> bool:
    """Whether a model within the budget r must have a margin of theta* - tol (docs/math.md, eq. 17).

    For theta* between the margin reached and the largest edge, weights s_i of which the least is a share `least` of
    their sum S, and a Frank-Wolfe gap `share` in log L. An example below r (theta* - tol) would put more than
    s r tol e^(-r (theta* - tol)) into the derivative towards the best margin; all others put at most
    S r (1 - theta*) e^(-r theta*) against it, and the gap allows L share. With L <= S e^(-r margin) the first exceeds
    the others for every theta* in question where

        least r tol e^(r tol) > r (1 - margin) + share e^(r (edge - margin)).
    """
    if tol == 0.0 or (share > 0.0 and r * (edge - margin) > 700.0):
        return False
    against = r * (1.0 - margin) + (share * math.exp(r * (edge - margin)) if share > 0.0 else 0.0)
    if against == 0.0:
        return True
    return math.log(least * r * tol) + r * tol > math.log(against)
