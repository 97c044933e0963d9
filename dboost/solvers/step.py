"""What a step of any solver says of itself, and the rows that go out after one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dboost.problem.iterate import Iterate


@dataclass(frozen=True)
class Step:
    """What a step did."""

    # "descent", "conjugate", "newton" on a model whose curvature is formed (``quadratic_model``, ``group_curvature``),
    # or "template" on an upper bound.
    kind: str
    length: float  # Step length accepted; 0 when no step helped, or the model is optimal to rounding.
    promised: float  # Decrease of the linearised loss plus penalty over the full step: zero exactly at the optimum.
    # Whether its descent ended before it was done, so that it promised little however far the optimum is.
    cut: bool = False


def pruned(iterate: Iterate, free: NDArray[np.int64]) -> Iterate:
    """The model without the rows that are exactly zero (back-pruning), but for those without penalty, `free`."""
    held = np.any(iterate.W != 0.0, axis=1)
    return iterate.rows(held | np.isin(iterate.active, free) if free.size else held)
