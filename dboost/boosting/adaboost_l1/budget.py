"""What AdaBoost+L1 takes from round to round, and what its budget says of the margin (docs/math.md 7 (H)).

Does not cover: the rounds (``rounds``).
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.examples import loss_of_rows
from dboost.losses import Loss
from dboost.problem.state import FitState


@dataclass(frozen=True)
class Progress:
    """Numbers of a fit so far."""

    budget: float = 0.0  # R, the limit of sum al.
    margin: float = 0.0  # Least normalised margin of the model.
    bound: float = math.inf  # The smallest of the rounds' largest edges: no ensemble has a larger margin.
    least: float = 0.0  # The least positive weight of an example.
    pulls: float = 0.0  # Sum_i |U_i| at the model; 0 where it is not known, or where it is the loss itself.

    @staticmethod
    def of(state: FitState) -> Progress:
        """What a state carries; those of earlier versions carry no `pulls`."""
        kept = state.carried.get("l1")
        return Progress() if kept is None else Progress(*kept.tolist())

    def carried(self) -> dict[str, NDArray[Any]]:
        """For ``FitState.carried``."""
        return {"l1": np.array(astuple(self))}


def at_margin(loss: Loss, z: float) -> tuple[float, float]:
    """l(z) and -l'(z) of an example of weight one whose margin y f is z."""
    u, curvature = np.zeros(1), np.zeros(1)
    target = loss.target(np.ones((1, 1), np.int8))
    with np.errstate(over="ignore"):
        value = float(loss_of_rows.single_state(target, np.array([z]), np.ones(1), u, curvature))
    return value, float(u[0])


def budget_suffices(loss: Loss, r: float, tol: float, margin: float, edge: float, least: float, share: float) -> bool:
    """Whether a model within the budget r must have a margin of theta* - tol (docs/math.md, eq. 17).

    For theta* between the margin reached and the largest edge, weights s_i of which the least is a share `least` of
    their sum S, and a Frank-Wolfe gap of a share `share` of L. An example below r (theta* - tol) would put more than
    s r tol |l'(r (theta* - tol))| into the derivative towards the best margin; all others put at most
    S r (1 - theta*) |l'(r theta*)| against it, and the gap allows L share, with L <= S l(r margin). The first exceeds
    the others for every theta* in question where

        least tol |l'(r (margin - tol))| / |l'(r margin)| > 1 - margin + share l(r margin) / (r |l'(r edge)|).

    Where -l' is log-concave, as of e^-z and log(1 + e^-z), the ratio on the left is least at the smallest theta*, which
    is not below the margin; what the gap allows is largest at the largest. Nothing is said where the slope is zero, by
    the loss or by underflow.
    """
    value, slope = at_margin(loss, r * margin)
    against, last = 1.0 - margin, at_margin(loss, r * edge)[1]
    if share > 0.0:
        against += share * value / (r * last) if last > 0.0 else math.inf
    return slope > 0.0 and (against == 0.0 or least * tol * at_margin(loss, r * (margin - tol))[1] > slope * against)
