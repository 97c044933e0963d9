"""ShareBoost's costlier rules: what each group of a shortlist would gain (paper, section 3.1; math notes, sheet J).

- ``"line"`` (rule 1): min over alpha of L(W + alpha D), D = G_j / S_j on the rows of the group and zero elsewhere.
- ``"row"`` (rule 2): min over u of L(W + e_j u'), the rest of the model held.
- ``"full"`` (rule 3): all weights solved again with the group.

L includes the penalty.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.corrective import Free, Solved, solve
from dboost.boosting.greedy import Group, row_lengths
from dboost.boosting.iterate import Iterate
from dboost.boosting.problem import Problem

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# Steps along a line, as multiples of the one that the bound promises; then a finer grid around the best, thrice.
_DOUBLINGS = 2.0 ** np.arange(-2, 13)
_FINER = np.linspace(0.0, 1.0, 17)
_ZOOMS = 3
# A trial is worth no more than this share of the gradient of its group.
_ACCURACY = 1e-2


def widened(problem: Problem, at: Iterate, rows: Rows) -> Iterate:
    """The model with more rows at zero, its sums taken again; one pass."""
    active = np.concatenate([at.active, rows])
    order = np.argsort(active, kind="stable")
    W = np.concatenate([at.W, np.zeros((rows.shape[0], problem.k))])[order]
    return problem.evaluate(active[order], W, at.intercept)


def only(at: Iterate, rows: Rows) -> Iterate:
    """A model with some of its rows, which ascend; the others must be zero."""
    keep = np.searchsorted(at.active, rows)
    return replace(at, active=rows, W=at.W[keep], G=at.G[keep])


def gains(
    problem: Problem,
    at: Iterate,
    shortlist: list[Group],
    rule: str,
    lam: float,
    tol: float,
    n_rows: int,
) -> list[float]:
    """What the objective falls by for each group of a shortlist.

    Parameters
    ----------
    at : Iterate
        The corrected model, with all rows of the shortlist at zero.
    rule : {"line", "row", "full"}
    tol : float
        Of the corrective steps of "full", as a share of the gradient of the group.
    n_rows : int
        Number of examples.
    """
    value = problem.objective(at, lam)
    if rule == "line":
        return [value - _on_line(problem, at, group.rows, lam) for group in shortlist]
    if rule == "row":
        alone = (_on_rows(problem, at, group.rows, lam, n_rows).at for group in shortlist)
        return [value - problem.objective(one, lam) for one in alone]
    fresh = np.concatenate([group.rows for group in shortlist])
    found = []
    for group in shortlist:
        others = np.setdiff1d(fresh, group.rows)
        mine = only(at, np.setdiff1d(at.active, others))
        found.append(value - problem.objective(corrected(problem, mine, lam, group.rows, tol, n_rows).at, lam))
    return found


def pull(at: Iterate, rows: Rows, length: Array) -> float:
    """The mean ||G_j||_1 / length_j of some rows: the gradient that a corrective step has to bring down.

    Groups are ranked by sums over their rows. Measured by its largest row, a group that enters could leave more of
    itself, all rows together, than it began with, and copies of it would look better than what is new.
    """
    places = np.searchsorted(at.active, rows)
    return float(np.sum(np.abs(at.G[places]).sum(axis=1) / length[places])) / max(1, places.shape[0])


def corrected(problem: Problem, at: Iterate, lam: float, fresh: Rows, tol: float, n_rows: int) -> Solved:
    """The fully corrective step: its gradient ends at `tol` of the one that the fresh rows began with."""
    length = row_lengths(problem, at.active)
    free = Free(np.ones(at.active.shape[0], np.bool_), problem.fit_intercept, length, n_rows)
    return solve(problem, at, lam, free, tol * pull(at, fresh, length))


def _on_rows(problem: Problem, at: Iterate, rows: Rows, lam: float, n_rows: int) -> Solved:
    """The rows of one group alone, from zero."""
    length = row_lengths(problem, at.active)
    free = Free(np.isin(at.active, rows), False, length, n_rows)
    return solve(problem, at, lam, free, _ACCURACY * pull(at, rows, length))


def _on_line(problem: Problem, at: Iterate, rows: Rows, lam: float) -> float:
    """The lowest objective along the gradient of one group."""
    places, length = np.searchsorted(at.active, rows), row_lengths(problem, rows)
    D = np.zeros_like(at.W)
    D[places] = at.G[places] / (length**2)[:, None]
    still = np.zeros(problem.k)

    def values(steps: Array) -> Array:
        found = problem.losses_along(at, D, still, steps)
        return found + np.array([problem.penalty_value(at.active, at.W + t * D, lam) for t in steps.tolist()])

    steps = np.append(0.0, _DOUBLINGS)
    for _ in range(_ZOOMS + 1):
        seen = values(steps)
        best = int(np.argmin(seen))
        low, high = steps[max(best - 1, 0)], steps[min(best + 1, steps.shape[0] - 1)]
        lowest = float(seen[best])
        # convex along the line: the minimum is between the neighbours of the best
        steps = low + (high - low) * _FINER
    return lowest
