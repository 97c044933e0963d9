"""What a Newton step leaves to the next, in the next round or after a restart."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dboost.problem.iterate import Iterate

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Anchor:
    """Where the curvature is taken, and among which rows: enough to form it again with the same bits."""

    active: Rows  # (a,): Rows of the model that are not zero, ascending.
    W: Array  # (a, 1)
    intercept: Array  # (1,)
    rows: Rows  # (s,): The rows that the curvature is known among, in the order in which they were added.
    added: NDArray[np.int64]  # How many were added at a time.

    @classmethod
    def of(cls, model: Iterate) -> Anchor:
        """Before any rows, at a model."""
        held = model.W[:, 0] != 0.0
        none = np.zeros(0, np.int64)
        return cls(model.active[held], model.W[held], model.intercept, none, none)

    def with_rows(self, rows: Rows) -> Anchor:
        """With more rows."""
        return replace(self, rows=np.concatenate([self.rows, rows]), added=np.append(self.added, rows.shape[0]))


@dataclass(frozen=True)
class Memory:
    """What a step leaves to the next; part of the state of a fit."""

    draws: int = 0  # Random draws so far: they seed the samples and the order of the blocks.
    # Whether the last step was a full step of descent and hardly changed the support. Steps of the two kinds alternate:
    # descent sends to zero the rows that conjugate gradients only shrink.
    settled: bool = False
    # Products with the Hessian that the next solve by conjugate gradients may take: more where solves gain slowly.
    products: int = 10
    promised: float = 0.0  # What the last of these solves promised; 0 before the first.
    refused: int = 0  # Such solves in a row whose step was refused, or cut short.
    wait: int = 0  # Steps of descent before the next of them.
    # Whether such solves need many rows to precondition with: a solve with the heaviest ones got nowhere. Of steps on
    # all rows of a smooth penalty, whether they need any: a solve without took longer than it takes to form them.
    wide: bool = False
    descended: float = 0.0  # What the last step of descent promised; 0 before the first, and after such a solve.
    # Whether that was much less than the one before, on a sample of much data: descent is worth another step, which is
    # cheaper.
    falling: bool = False
    # How many steps of descent had to be cut short because their sample lacks the examples that tell of rare columns:
    # each of them asks for more.
    misled: int = 0
    # Whether the last step of one output was a descent that was cut: two rounds in a row do not end so.
    cut: bool = False
    # Whether steps crept, so that the curvature among the rows held was formed: the next solve begins with it.
    creeps: bool = False
    anchor: Anchor | None = None  # Where one output has its curvature from (``quadratic``).
