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
    """Where the curvature is taken, and among which rows: enough to form it again with the same bits.

    Parameters
    ----------
    active : int64 array, shape (a,)
        Rows of the model that are not zero, ascending.
    W : float64 array, shape (a, 1)
    intercept : float64 array, shape (1,)
    rows : int64 array, shape (s,)
        The rows that the curvature is known among, in the order in which they were added.
    added : int64 array
        How many were added at a time.
    """

    active: Rows
    W: Array
    intercept: Array
    rows: Rows
    added: NDArray[np.int64]

    @classmethod
    def at(cls, model: Iterate) -> Anchor:
        """Before any rows, at a model."""
        held = model.W[:, 0] != 0.0
        none = np.zeros(0, np.int64)
        return cls(model.active[held], model.W[held], model.intercept, none, none)

    def with_rows(self, rows: Rows) -> Anchor:
        """With more rows."""
        return replace(self, rows=np.concatenate([self.rows, rows]), added=np.append(self.added, rows.shape[0]))


@dataclass(frozen=True)
class Memory:
    """What a step leaves to the next; part of the state of a fit.

    Parameters
    ----------
    draws : int
        Random draws so far: they seed the samples and the order of the blocks.
    settled : bool
        Whether the last step was a full step of descent and hardly changed the support. Steps of the two kinds
        alternate: descent sends to zero the rows that conjugate gradients only shrink.
    products : int
        Products with the Hessian that the next solve by conjugate gradients may take: more where solves gain slowly.
    promised : float
        What the last of these solves promised; 0 before the first.
    refused : int
        Such solves in a row whose step was refused, or cut short.
    wait : int
        Steps of descent before the next of them.
    wide : bool
        Whether such solves need many rows to precondition with: a solve with the heaviest ones got nowhere. Of steps on
        all rows of a smooth penalty, whether they need any: a solve without took longer than it takes to form them.
    descended : float
        What the last step of descent promised; 0 before the first, and after such a solve.
    falling : bool
        Whether that was much less than the one before, on a sample of much data: descent is worth another step, which
        is cheaper.
    anchor : Anchor, optional
        Where one output has its curvature from (``quadratic``).
    """

    draws: int = 0
    settled: bool = False
    products: int = 10
    promised: float = 0.0
    refused: int = 0
    wait: int = 0
    wide: bool = False
    descended: float = 0.0
    falling: bool = False
    anchor: Anchor | None = None
