"""Sweeps of exact solves over single entries of W, groups of outputs side by side.

Two groups of outputs are solved at the same time, each as if the other stood still, and what they did is added before
the next two have their turn (docs/math.md 8). Solved exactly, two groups would never raise the model, however
they pull on one another: with H its Hessian and B the curvature within each of them, their steps D gain at least
1/2 D'(2B - H)D, and 2B - H is H with the sign of what is between the groups turned round, so never negative. A sweep is
not quite such a solve; the step that sweeps lead to is taken only if the objective falls. How the outputs are grouped
depends on the data alone, so that no number of threads changes a bit.

With few outputs two of them that an example is undecided between would often have the same turn, and then both would go
all the way that one of them should: they are solved one after another.

Does not cover: which entries move (``entrywise``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.solves import entries

Array = NDArray[np.float64]
Single = NDArray[np.float32]
Rows = NDArray[np.int64]
Marks = NDArray[np.bool_]
OnDriver = Callable[[Any, Sequence[Any]], list[Any]]

TURN = 400_000
"""Stored values that a group looks at in its turn, which then takes ten times as long as to set two of them off."""
MANY = 32
"""Outputs from which on two of them, drawn at random, hardly pull on one another."""
_SWEEPS_AFTER_FIRST = 0.1


@dataclass(frozen=True)
class Listed:
    """Entries of W, output by output.

    Parameters
    ----------
    rows, outputs : int64 arrays, shape (e,)
        Of each entry.
    bounds : int64 array, shape (k + 1,)
        Those of output r are bounds[r]..bounds[r + 1] - 1.
    """

    rows: Rows
    outputs: Rows
    bounds: Rows

    @classmethod
    def of(cls, held: Marks) -> Listed:
        """The entries that are true, of an array of the shape of W."""
        outputs, rows = np.nonzero(held.T)
        return cls(rows, outputs, np.searchsorted(outputs, np.arange(held.shape[1] + 1)))

    def loads(self, stored: Rows, visited: Marks) -> Array:
        """Stored values of the entries that are visited, for each output."""
        weights = np.where(visited, stored[self.rows], 0)
        return np.asarray(np.bincount(self.outputs, weights, minlength=self.bounds.shape[0] - 1), np.float64)


@dataclass(frozen=True)
class EntrySweeps:
    """The model of a step while it is solved.

    Parameters
    ----------
    columns : tuple
        The columns of the model, as ``compiled.solves.entries`` takes them.
    stored : int64 array, shape (a,) or (a + 1,)
        Values of each.
    pairs : float32 array, shape (k, m, 2)
    t : float32 array, shape (m,)
        As in ``compiled.solves.entries``: what the step does to the examples.
    tied : bool
        Whether outputs pull on one another.
    G, W : float64 arrays, shape (a, k) or (a + 1, k)
        Sums and weights.
    lam : float64 array
        Weight of |w_jr| in row j.
    damping : float64 array, shape of W
        Curvature that is added.
    settle : float
        As for ``descent.newton_descent``: an entry is visited again until it misses its optimality by no more than
        this share of its lam, or, with 0, all of them until a sweep gains less than a tenth of what the first did.
    D : float64 array, shape of W
        The step so far.
    on_driver : callable
        ``Engine.on_driver``.
    turn : int
        Stored values that a group looks at in its turn.
    """

    columns: tuple[Rows, NDArray[np.int32], Single]
    stored: Rows
    pairs: Single
    t: Single
    tied: bool
    G: Array
    W: Array
    lam: Array
    damping: Array
    settle: float
    D: Array
    on_driver: OnDriver
    turn: int = TURN

    def solve(self, listed: Listed, curvature: Array, fresh: Marks, budget: int, seed: int) -> tuple[int, int]:
        """Sweeps over the listed entries, beginning with those that are `fresh`.

        Parameters
        ----------
        listed : Listed
        curvature : float64 array, shape (e,)
            Of each entry.
        fresh : bool array, shape (e,)
            The others have been solved before these came in.
        budget : int
            Stored values that may be looked at.
        seed : int
            Of the orders of outputs and entries.

        Returns
        -------
        budget, sweeps : int
            What is left of the budget; sweeps over all of the entries or some.
        """
        rng = np.random.default_rng(seed)
        everyone, again = np.ones_like(fresh), fresh.copy()
        whole, first, sweeps = bool(fresh.all()), 0.0, 0
        while True:
            looked, gain = self._sweep(listed, curvature, everyone if whole else again, again, rng)
            budget -= looked
            sweeps += 1
            # some of the entries alone may have nothing left to gain: the others are still to be visited
            if (whole and gain == 0.0) or budget <= 0:
                break
            if self.settle > 0.0:
                calm = not again.any()
                if whole and calm:
                    break
                whole = calm
            elif sweeps == 1:
                first = gain
            elif gain <= _SWEEPS_AFTER_FIRST * first:
                break
        return budget, sweeps

    def _sweep(
        self, listed: Listed, curvature: Array, visited: Marks, again: Marks, rng: np.random.Generator
    ) -> tuple[int, float]:
        """One sweep over the visited entries; marks those that missed their optimality in `again`."""
        k = self.W.shape[1]
        groups = in_groups(rng.permutation(k), listed.loads(self.stored, visited), self.turn)
        seeds = rng.integers(2**62, size=len(groups))
        aside, before = (self.t.copy(), self.t.copy()) if len(groups) > 1 else (self.t, self.t)

        def visit(turn: tuple[int, Single]) -> tuple[int, float]:
            group, t = turn
            model = (*self.columns, self.pairs, t, self.tied, self.G, self.W, self.lam, self.damping)
            those = (listed.rows, listed.bounds, curvature, groups[group], visited)
            found: tuple[int, float] = entries.visit_entries(*model, *those, self.settle, seeds[group], again, self.D)
            return found

        looked, gain = 0, 0.0
        for group in range(0, len(groups), 2):
            turns = list(zip(range(group, min(group + 2, len(groups))), (self.t, aside), strict=False))
            for values, gained in self.on_driver(visit, turns):
                looked += values
                gain += gained
            if self.tied and len(turns) > 1:
                entries.merge(self.t, aside, before)
        return looked, gain


def in_groups(outputs: Rows, loads: Array, turn: int = TURN) -> list[Rows]:
    """Outputs in groups of about equal loads, in their order; one group where there is little to do, or few of them."""
    parts = int(loads.sum() // turn) if outputs.shape[0] >= MANY else 1
    if parts < 2:
        return [outputs]
    ends = np.cumsum(loads[outputs])
    inner = np.searchsorted(ends, ends[-1] * np.arange(1, parts) / parts)
    return [group for group in np.split(outputs, np.unique(inner)) if group.size]
