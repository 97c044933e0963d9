"""Rows of W without penalty: solved like the intercept, and what makes residuals a dual point beside them.

A row with lam_j = 0 asks of a dual point Theta that X_j'Theta = 0, as a free intercept asks that the residuals sum to
zero. Residuals U miss this by e, the sums of those rows. One Newton step (V, v) over them, H_F (V, v) = e with the
Hessian H_i of every example, takes the miss off:

    Theta_i = U_i - H_i (V'x_i + v),        X_F'Theta = e - H_F (V, v) = 0.

Near the optimum the step is short, and Theta then is as feasible as U: of a probability q it makes q_r (1 + z_r -
<q, z>), which stays one while no |z| is above a half (``Loss.kept``); where residuals have ends they are scaled
between them. A subtraction of multiples of the columns themselves would need no curvature, and would throw out of the
domain all examples that are predicted more surely than the step is long.

Entries of these rows may have a sign, as those of any row. A dual point then must not pull them into what their sign
allows, and may pull them against it. The step is the minimiser of its quadratic model among those after which every
entry has its sign (``compiled.solves.within_bounds``); at it the pulls on held entries, those that end at zero, are
such.

Covers: the point, and the model in which these rows are optimal with all others held.
Does not cover: how the step is solved for (``free_steps``), or what the certificate makes of the point
(``certificate.duality_gap``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.solves.within_bounds import held_at_zero
from dboost.errors import DataError
from dboost.losses.base import Repair
from dboost.passes import projected
from dboost.penalties.bound import centred
from dboost.problem.free_steps import FreeSteps, free_places, plain_repair, projection
from dboost.problem.iterate import Iterate, Projection
from dboost.problem.problem import Problem
from dboost.problem.shards import among

Array = NDArray[np.float64]

_MAX_STEPS = 60
# A step that would lower the loss by so small a share of it is rounding.
_SETTLED = 1e-24
# Sums of the loss carry about this relative error.
_ROUNDING = 1e-14
_HALVINGS = 0.5 ** np.arange(1.0, 12.0)
# Curvature of the examples that hold a column, below this share of that of the most curved one: e^-20, of labels that
# are predicted so surely that no finite weight would.
_VANISHED = 2e-9


class NoFiniteOptimum(DataError):
    """Rows without penalty whose best weights are infinite, as of labels that their columns separate; not public."""


@dataclass(frozen=True)
class ProjectedRepair(Repair):
    """The repair of residuals by a projection: it differs from example to example."""

    # As in ``Projection``; None for residuals of which nothing but zero is known to be a dual point.
    step: tuple[Array, Array] | None = None
    # What the sums that are left may take from the dual value, which they multiply the weights in.
    charge: float = 0.0


def with_free_rows(problem: Problem, iterate: Iterate) -> Iterate:
    """A model that holds all rows without penalty, those it lacks at zero; sums of them are zero too."""
    free = problem.objective.columns.free
    missing = free[~among(free, iterate.active[np.isin(iterate.active, free)])]
    return iterate.widened(missing, np.zeros((missing.shape[0], problem.k))) if missing.size else iterate


def without_sums(problem: Problem, iterate: Iterate) -> Iterate:
    """A model with the sums of its rows without penalty, and of its intercept, taken as zero."""
    G = np.where(free_places(problem, iterate)[:, None], 0.0, iterate.G)
    return replace(iterate, G=G, bias=np.zeros_like(iterate.bias))


def repaired(problem: Problem, iterate: Iterate, known: Projection | None = None) -> ProjectedRepair:
    """What makes the residuals at a model a dual point beside rows without penalty; `known` if the step there is."""
    found, plain = projection(problem, iterate) if known is None else known, plain_repair(problem)
    none = np.zeros(problem.k)
    if not (found.exact and found.keep > 0.0):
        return ProjectedRepair(none, none, none, plain.prior, 0.0, none, none)
    # scaled residuals are shorter by 1 - keep of themselves, and no residual that has ends is longer than the longest
    longest = problem.loss.longest_residual(problem.k)
    drift = found.moved + (1.0 - found.keep) * (0.0 if found.keep == 1.0 or longest is None else longest)
    return ProjectedRepair(
        found.keep * plain.keep, none, none, plain.prior, 0.0, drift, none, step=found.step, charge=found.charge
    )


def dual_value(problem: Problem, iterate: Iterate, repair: Repair, scale: float) -> float:
    """Value of the repaired residuals of a model, scaled; one pass (``Problem.dual_value``)."""
    if not isinstance(repair, ProjectedRepair):
        return problem.dual_value(iterate, repair, scale)
    if repair.step is None:
        return problem.loss.floor * problem.statistics.weight
    arguments = (repair.step, scale * repair.keep, repair.prior)
    return (
        float(problem.own_pass(projected.projected_dual, iterate, *arguments, name="dual").add["dual"]) - repair.charge
    )


# ---- the model ---------------------------------------------------------------------------------------------------


def solved(problem: Problem, iterate: Iterate, small: float) -> tuple[Iterate, Projection]:
    """The model, with its sums, whose rows without penalty and intercept are optimal, and the next step there.

    `iterate` has all these rows, and need not have its sums. It ends where the next step would change no residual of
    weight one by more than `small`, and the loss by next to nothing.
    """
    iterate = problem.evaluate(iterate.active, _centred(problem, iterate.active, iterate.W), iterate.intercept)
    before = np.inf
    for _ in range(_MAX_STEPS):
        found = projection(problem, iterate)
        least = _SETTLED * max(abs(iterate.loss), problem.objective.resolution)
        near = found.keep > 0.0 and float(found.moved.max(initial=0.0)) <= small
        # near the optimum steps shrink like their squares, until they are the rounding of sums
        if near or found.gained <= least or (found.gained <= _ROUNDING * abs(iterate.loss) and found.gained >= before):
            break
        before = found.gained
        moved = _stepped(problem, iterate, found)
        if moved is None:
            break
        iterate = moved
    return iterate, found


def _stepped(problem: Problem, iterate: Iterate, found: Projection) -> Iterate | None:
    """The model after the step, halved until the loss does not rise; None where it always does."""
    V, v = found.step

    def after(t: float) -> Iterate:
        return problem.evaluate(
            iterate.active, _centred(problem, iterate.active, iterate.W + t * V), iterate.intercept + t * v
        )

    whole = after(1.0)
    if whole.loss <= iterate.loss + _ROUNDING * abs(iterate.loss):
        return whole
    values = problem.losses_along(iterate, V, v, _HALVINGS)
    lower = np.flatnonzero(values < iterate.loss)
    return after(float(_HALVINGS[lower[0]])) if lower.size else None


def _centred(problem: Problem, active: NDArray[np.int64], W: Array) -> Array:
    """W with the rows of classes that have no penalty as near to a mean of zero as their signs let them.

    What all classes have in common changes no loss, and nothing else says what it is.
    """
    if problem.loss.separable:
        return W
    signs = problem.objective.columns.sign
    rows = problem.objective.columns.weight[active] == 0.0
    found = W.copy()
    found[rows] = centred(W[rows], np.zeros(int(rows.sum()), np.int8) if signs is None else signs[active[rows]])
    return found


def _vanishing(problem: Problem, iterate: Iterate) -> bool:
    """Whether the curvature of a row without penalty has all but vanished: its weight goes on to infinity.

    The loss then falls by less than its rounding. A column without a label has no curvature at all, and none to lose,
    and an entry that is held at zero goes nowhere.
    """
    solver = FreeSteps(problem, iterate)
    square = problem.statistics.square[iterate.active[solver.rows]]
    square = np.append(square, problem.statistics.weight) if problem.fit_intercept else square
    each = solver.diagonal[:, solver.outputs] / np.where(square > 0.0, square, 1.0)[:, None]
    low = (each > 0.0) & (each < _VANISHED * each.max(axis=0, initial=0.0))
    if solver.signs is not None:
        low &= ~held_at_zero(solver.start, solver.signs).reshape(-1, problem.k)[:, solver.outputs]
    return bool(np.any(low))


def solved_null(problem: Problem, null: Iterate) -> Iterate:
    """The model of the rows without penalty alone, from that of the intercept alone.

    Raises NoFiniteOptimum where it has no finite optimum, as of labels that these features separate.
    """
    iterate, last = solved(problem, with_free_rows(problem, null), 0.0)
    if not last.keep > 0.0 or not last.exact or _vanishing(problem, iterate):
        raise NoFiniteOptimum(
            "the features whose penalty_factors are 0 have no finite optimum, so that no penalty holds their weights: "
            "they may separate the labels, wholly or in part",
            hint="give them a small factor such as 1e-3, or leave those out that tell the labels",
        )
    return iterate
