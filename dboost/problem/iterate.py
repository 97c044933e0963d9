"""What the passes say of a model: its sums, and the standing of every candidate."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Iterate:
    """A model, with the sums of the last pass at it."""

    active: Rows  # (a,): Rows of W that are held, ascending.
    W: Array  # (a, k)
    intercept: Array  # (k,)
    loss: float  # L at the model.
    G: Array  # (a, k): Rows of X'U for the active rows.
    bias: Array  # (k,): Column sums of U: minus the gradient of the intercept.

    @classmethod
    def unsummed(cls, active: Rows, W: Array, intercept: Array) -> Iterate:
        """A model alone: its sums are to be filled in by a pass."""
        return cls(active, W, intercept, np.nan, np.zeros_like(W), np.zeros(W.shape[1]))

    def rows(self, chosen: NDArray[np.int64] | NDArray[np.bool_]) -> Iterate:
        """The model with some of its rows only: places among the active ones, ascending, or a mask (a,) of them."""
        return replace(self, active=self.active[chosen], W=self.W[chosen], G=self.G[chosen])

    def widened(self, new: Rows, G: Array) -> Iterate:
        """The model with more rows, at zero: columns `new` (t,), none of them active, and their rows of G (t, k)."""
        active = np.concatenate([self.active, new])
        order = np.argsort(active, kind="stable")
        W = np.concatenate([self.W, np.zeros_like(G)])
        return replace(self, active=active[order], W=W[order], G=np.concatenate([self.G, G])[order])


@dataclass(frozen=True)
class Projection:
    """A Newton step over the rows without penalty and the intercept, and what it leaves."""

    V: Array  # (a, k) and (k,): The step, zero where a row has a penalty.
    v: Array
    moved: Array  # (k,): The largest |H_i z_i| of an example of weight one, z_i = V'x_i + v.
    keep: float  # The share of Theta that is a dual point, but for the rest (``Loss.kept``); 0 where none is.
    gained: float  # <e, (V, v)>: twice what the step lowers the quadratic model of the loss by.
    # Whether X_F'Theta and the sums of Theta are but rounding. Of entries that have a sign and are zero after the step,
    # only what pulls them into what it allows counts.
    exact: bool
    charge: float  # What these sums may take from the dual value.

    @property
    def step(self) -> tuple[Array, Array]:
        """(V, v)."""
        return self.V, self.v


@dataclass(frozen=True)
class Score:
    """Result of a full scoring pass: sums at the model, and every candidate's standing."""

    iterate: Iterate  # The model with its sums.
    candidates: Rows  # (c,): Columns that were scored.
    norms: Array  # (c,): Dual norms ||G_j||_*.
    best: Rows  # The best columns that left the optimality test, best first.
    best_G: Array  # (len(best): Their rows of G.
    # ``penalty.dual_size`` of the repaired residuals over everything that may enter, where the pass formed it.
    size: float | None = None
    opened: int = 0  # Subtrees opened by the search of a class that is too large to be summed whole.
    complete: bool = True  # Whether that search was within its budget.
    # The step of the rows without penalty at the model, where it is known already.
    projection: Projection | None = None

    def over(self, norms: Array) -> Array:
        """Dual norms of all columns (n,): of the candidates those found here, of the others those given."""
        if self.norms.shape == norms.shape:
            return self.norms
        found = norms.copy()
        found[self.candidates] = self.norms
        return found
