"""Rows of W without penalty: solved like the intercept, and what makes residuals a dual point beside them.

A row with lam_j = 0 asks of a dual point Theta that X_j'Theta = 0, as a free intercept asks that the residuals sum to
zero. Residuals U miss this by e, the sums of those rows. One Newton step (V, v) over them, H_F (V, v) = e with the
Hessian H_i of every example, takes the miss off:

    Theta_i = U_i - H_i (V'x_i + v),        X_F'Theta = e - H_F (V, v) = 0.

Near the optimum the step is short, and Theta then is as feasible as U: of a probability q it makes q_r (1 + z_r -
<q, z>), which stays one while no |z| is above a half (``losses.base.near``); where residuals have ends they are scaled
between them. A subtraction of multiples of the columns themselves would need no curvature, and would throw out of the
domain all examples that are predicted more surely than the step is long.

Entries of these rows may have a sign, as those of any row. A dual point then must not pull them into what their sign
allows, and may pull them against it. The step is the minimiser of its quadratic model among those after which every
entry has its sign (``compiled.solves.within_bounds``); at it the pulls on held entries, those that end at zero, are
such.

Covers: the step, the point, and the model in which these rows are optimal with all others held.
Does not cover: what the certificate makes of the point (``certificate.duality_gap``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dboost import passes
from dboost.compiled.solves.conjugate_gradients import conjugate_gradients
from dboost.compiled.solves.positive import solve_positive
from dboost.compiled.solves.within_bounds import held_at_zero, within_bounds
from dboost.errors import DataError
from dboost.losses.base import Repair
from dboost.passes import projected
from dboost.penalties.signed import centred
from dboost.problem import summation
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
# Products of one solve, for each unknown: rounding makes the last of them necessary.
_PRODUCTS = 3
_MOST_PRODUCTS = 600
# Up to so many unknowns their curvature is formed, by one pass in place of one for each product. It has as many
# operations as so many products, and a million numbers at most.
FORMED = 1000
# The square of what a solve leaves, as a share; of products by passes, which are formed in float32, less would mean
# nothing. What is left of the sums is measured in float64, and solved for again.
_LEFT = 1e-24
_LEFT_BY_PASSES = 1e-12
_REFINED = 6
# Sets of held entries that are tried where every product is a pass.
_MOST_SETS = 50
_FLAT = 1e-12
# Curvature of the examples that hold a column, below this share of that of the most curved one: e^-20, of labels that
# are told so surely that no finite weight would.
_VANISHED = 2e-9
# Sums may be off by this many times what their rounding is.
_SURE = 4.0


class NoFiniteOptimum(DataError):
    """Rows without penalty whose best weights are infinite, as of labels that their columns separate; not public."""


@dataclass(frozen=True)
class ProjectedRepair(Repair):
    """The repair of residuals by a projection: it differs from example to example.

    Parameters
    ----------
    step : (float64 array (a, k), float64 array (k,)) or None
        As in ``Projection``; None for residuals of which nothing but zero is known to be a dual point.
    charge : float
        What the sums that are left may take from the dual value, which they multiply the weights in.
    """

    step: tuple[Array, Array] | None = None
    charge: float = 0.0


def free_places(problem: Problem, at: Iterate) -> NDArray[np.bool_]:
    """Which of the active rows have no penalty, shape (a,)."""
    found: NDArray[np.bool_] = problem.lam_weight[at.active] == 0.0
    return found


def with_free_rows(problem: Problem, at: Iterate) -> Iterate:
    """A model that holds all rows without penalty, those it lacks at zero; sums of them are zero too."""
    free = problem.objective.free
    missing = free[~among(free, at.active[np.isin(at.active, free)])]
    return at.widened(missing, np.zeros((missing.shape[0], problem.k))) if missing.size else at


def without_sums(problem: Problem, at: Iterate) -> Iterate:
    """A model with the sums of its rows without penalty, and of its intercept, taken as zero."""
    G = np.where(free_places(problem, at)[:, None], 0.0, at.G)
    return replace(at, G=G, bias=np.zeros_like(at.bias))


# ---- the step ----------------------------------------------------------------------------------------------------


class _Solver:
    """Newton steps over the rows without penalty and the intercept at one model; products are passes."""

    def __init__(self, problem: Problem, at: Iterate) -> None:
        self.problem = problem
        self.at = at
        self.rows = np.flatnonzero(free_places(problem, at))
        self.plain = _plain_repair(problem)
        # an output with one label only has no finite optimum, and zero for its dual point
        self.outputs = self.plain.keep > 0.0
        chosen = np.append(self.rows, at.active.shape[0]) if problem.fit_intercept else self.rows
        self._formed = chosen.size * problem.k <= FORMED
        self._ends = _LEFT if self._formed else _LEFT_BY_PASSES
        if self._formed:
            place = np.full(at.active.shape[0], -1)
            place[self.rows] = np.arange(self.rows.size)
            found = problem.own_pass(projected.free_curvature, at, place, problem.fit_intercept, name="curvature")
            self._H = found.add["H"]
            scale = np.diag(self._H).copy()
        else:
            found = problem.own_pass(passes.curvature_diagonal, at, problem.fit_intercept, name="diagonal")
            scale = found.add["diagonal"][chosen].ravel()
            self._product = problem.curvature_at(at)
        self._used = np.tile(self.outputs, chosen.size)
        self.diagonal = scale.reshape(chosen.size, problem.k)
        self.scale = np.maximum(scale, _FLAT * max(float(scale.max(initial=0.0)), np.finfo(float).tiny))
        # where no entry has a sign every one is solved for at once
        self.signs = _signs_of(problem, at.active[self.rows])
        self.start = self.joined(at.W, at.intercept)
        self.allowed = self._allowed()

    def joined(self, G: Array, bias: Array) -> Array:
        """The sums that are to vanish, as one vector."""
        parts = [np.where(self.outputs, G[self.rows], 0.0).ravel()]
        return np.concatenate([*parts, np.where(self.outputs, bias, 0.0)]) if self.problem.fit_intercept else parts[0]

    def split(self, x: Array) -> tuple[Array, Array]:
        """The step of all active rows and of the intercept of such a vector."""
        V, v, size = np.zeros_like(self.at.W), np.zeros(self.problem.k), self.rows.size * self.problem.k
        V[self.rows] = x[:size].reshape(-1, self.problem.k)
        return V, x[size:] if self.problem.fit_intercept else v

    def _times(self, p: Array) -> Array:
        if not self._formed:
            return self.joined(*self._product(*self.split(p)))
        # not by BLAS, whose threads might change the bits
        return np.where(self._used, np.sum(self._H * p, axis=1), 0.0)

    def further(self, left: Array, x: Array) -> Array:
        """The step that is best by the quadratic model, from the sums `left` after the step x."""
        if self.signs is None:
            return x + self._all(left)
        # what a solve leaves of the sums is no pull
        size = np.sqrt(self._ends * float(np.sum(left * left / self.scale)))
        settled = np.maximum(0.5 * self.allowed, size * np.sqrt(self.scale))
        most = None if self._formed else _MOST_SETS
        place = within_bounds(left, self._times, self._some, self.start + x, self.signs, settled, most)
        return place - self.start

    def _some(self, right: Array, moving: NDArray[np.bool_]) -> Array:
        """H^+ of such a vector among the entries that move."""
        # what is hardly curved beside the others would go anywhere, as it would not by conjugate gradients
        moving = moving & self._used & (self.diagonal.ravel() >= self.scale)
        if not self._formed:
            return self._all(np.where(moving, right, 0.0), moving)
        few, step = np.flatnonzero(moving), np.zeros_like(right)
        step[few] = solve_positive(self._H[np.ix_(few, few)], right[few], _FLAT)
        return step

    def counted(self, sums: Array, x: Array) -> Array:
        """Of the sums after the step x those that are to vanish: what pulls a held entry against its sign may stay."""
        if self.signs is None:
            return sums
        return np.where(held_at_zero(self.start + x, self.signs) & (self.signs * sums < 0.0), 0.0, sums)

    def charge(self, left: Array, x: Array) -> float:
        """What sums that are left after the step x may take from the dual value, which they multiply the weights in.

        The weights are those at the optimum, which are near the model's, and near those after the step.
        """
        charge = 2.0 * float(np.sum(np.abs(left * self.start)))
        if self.signs is None:
            return charge
        # a weight that is zero here may still be a little more there: twice what its own curvature lets it gain
        return charge + 2.0 * float(np.sum(np.abs(left * x)) + np.sum(left * left / self.scale))

    def _all(self, right: Array, moving: NDArray[np.bool_] | None = None) -> Array:
        """H^+ of such a vector, by conjugate gradients scaled by the diagonal; of the entries that move alone."""

        def times(p: Array) -> Array:
            return self._times(p) if moving is None else np.where(moving, self._times(p), 0.0)

        def curved(p: Array, curvature: float, left: float) -> bool:
            # along columns that add up to others nothing is curved: what is left of the residual there is rounding
            return curvature > _FLAT * float(np.sum(self.scale * p * p))

        if not self.problem.loss.separable:
            # A common shift of all classes has no curvature, and its sum is zero but for rounding, which no step takes
            # off: followed for it, the shift would grow until its own rounding were all that is left of the sums.
            each = right.reshape(-1, self.problem.k)
            mean = np.sum(each, axis=1, keepdims=True) / max(int(np.count_nonzero(self.outputs)), 1)
            right = np.where(self._used, (each - mean).ravel(), 0.0)
        return conjugate_gradients(
            right,
            times,
            lambda residual: residual / self.scale,
            limit=_PRODUCTS * right.size if self._formed else min(_PRODUCTS * right.size, _MOST_PRODUCTS),
            least=lambda start: self._ends * start,
            curved=curved,
        ).x

    def _allowed(self) -> Array:
        """What the sums in such a vector may be off by, through the rounding of residuals and of their sums."""
        problem, at = self.problem, self.at
        labels = replace(at, loss=at.loss + problem.statistics.at_zero)
        rows = summation.of_norms(problem, labels, at.active[self.rows])
        each = np.repeat(rows, problem.k)
        if not problem.fit_intercept:
            return _SURE * each
        return _SURE * np.concatenate([each, np.full(problem.k, summation.of_intercept(problem, labels))])


def _signs_of(problem: Problem, rows: NDArray[np.int64]) -> NDArray[np.int8] | None:
    """Signs of the entries of some rows, and of the intercept after them; None where none of them binds.

    What all classes have in common changes no loss, and may be anything where there is no penalty: a row of classes has
    its sign once enough is added to all of its entries (`_centred`).
    """
    signs = problem.objective.signs
    if signs is None or not problem.loss.separable or not signs[rows].any():
        return None
    bias = np.zeros(problem.k if problem.fit_intercept else 0, np.int8)
    return np.concatenate([np.repeat(signs[rows], problem.k), bias])


def projection(problem: Problem, at: Iterate) -> Projection:
    """The step at a model that has its sums and all rows without penalty, refined until its rest is rounding."""
    solver = _Solver(problem, at)
    right = left = solver.joined(at.G, at.bias)
    x, best, least = np.zeros_like(right), None, np.inf

    def missed(sums: Array) -> float:
        return float(np.max(np.abs(sums) / np.maximum(solver.allowed, np.finfo(float).tiny), initial=0.0))

    def made(x: Array, rest: Array, moved: Array, keep: float, gained: float) -> Projection:
        return Projection(
            *solver.split(x), moved, keep, gained, *solver.split(rest), missed(rest) <= 1.0, solver.charge(rest, x)
        )

    for _ in range(_REFINED):
        x = solver.further(left, x)
        V, v = solver.split(x)
        sums = problem.own_pass(projected.projected_sums, at, (V, v), name="projected")
        left = solver.joined(sums.add["G"], sums.add["bias"])
        rest = solver.counted(left, x)
        size, far, moved = missed(rest), sums.peak["far"], sums.peak["moved"]
        if not size < least:
            break
        # entries that are held leave sums, and have moved
        least, gained = size, float(np.sum((right if solver.signs is None else right + left) * x))
        best = made(x, rest, moved, problem.loss.kept(far, moved), gained)
        if best.exact:
            return best
    rest = solver.counted(right, np.zeros_like(right))
    if best is None or missed(rest) <= 1.0:
        # A solve for sums that are rounding follows the directions in which nothing is curved, such as a common shift
        # of all classes, and may leave more than it takes.
        none = np.zeros(problem.k)
        best = made(np.zeros_like(right), rest, none, problem.loss.kept(none, none), 0.0)
    return best


def repaired(problem: Problem, at: Iterate, known: Projection | None = None) -> ProjectedRepair:
    """What makes the residuals at a model a dual point beside rows without penalty; `known` if the step there is."""
    found, plain = projection(problem, at) if known is None else known, _plain_repair(problem)
    none = np.zeros(problem.k)
    if not (found.exact and found.keep > 0.0):
        return ProjectedRepair(none, none, none, plain.prior, 0.0, none, none)
    # scaled residuals are shorter by 1 - keep of themselves, and no residual that has ends is longer than the longest
    longest = problem.loss.longest_residual(problem.k)
    drift = found.moved + (1.0 - found.keep) * (0.0 if found.keep == 1.0 or longest is None else longest)
    return ProjectedRepair(
        found.keep * plain.keep, none, none, plain.prior, 0.0, drift, none, step=found.step, charge=found.charge
    )


def _plain_repair(problem: Problem) -> Repair:
    """The repair of residuals that need none: what the loss keeps of each output, and where labels are measured."""
    if not problem.fit_intercept:
        return Repair.nothing(problem.k)
    stats = problem.statistics
    return problem.loss.repair(stats.mass, stats.total, np.zeros(problem.k))


def dual_value(problem: Problem, at: Iterate, repair: Repair, scale: float) -> float:
    """Value of the repaired residuals of a model, scaled; one pass (``Problem.dual_value``)."""
    if not isinstance(repair, ProjectedRepair):
        return problem.dual_value(at, repair, scale)
    if repair.step is None:
        return problem.loss.floor * problem.statistics.weight
    arguments = (repair.step, scale * repair.keep, repair.prior)
    return float(problem.own_pass(projected.projected_dual, at, *arguments, name="dual").add["dual"]) - repair.charge


# ---- the model ---------------------------------------------------------------------------------------------------


def solved(problem: Problem, at: Iterate, small: float) -> tuple[Iterate, Projection]:
    """The model with its rows without penalty, and its intercept, optimal; the others as they are.

    Parameters
    ----------
    at : Iterate
        The model, with all rows without penalty; it need not have its sums.
    small : float
        Ends where the next step would change no residual of weight one by more, and the loss by next to nothing.

    Returns
    -------
    Iterate, Projection
        The model with its sums, and the step that would come next.
    """
    at = problem.evaluate(at.active, _centred(problem, at.active, at.W), at.intercept)
    before = np.inf
    for _ in range(_MAX_STEPS):
        found = projection(problem, at)
        least = _SETTLED * max(abs(at.loss), problem.objective.resolution)
        near = found.keep > 0.0 and float(found.moved.max(initial=0.0)) <= small
        # near the optimum steps shrink like their squares, until they are the rounding of sums
        if near or found.gained <= least or (found.gained <= _ROUNDING * abs(at.loss) and found.gained >= before):
            break
        before = found.gained
        moved = _stepped(problem, at, found)
        if moved is None:
            break
        at = moved
    return at, found


def _stepped(problem: Problem, at: Iterate, found: Projection) -> Iterate | None:
    """The model after the step, halved until the loss does not rise; None where it always does."""
    V, v = found.step

    def after(t: float) -> Iterate:
        return problem.evaluate(at.active, _centred(problem, at.active, at.W + t * V), at.intercept + t * v)

    whole = after(1.0)
    if whole.shift == 0.0 and whole.loss <= at.loss + _ROUNDING * abs(at.loss):
        return whole
    values = problem.losses_along(at, V, v, _HALVINGS)
    lower = np.flatnonzero(values < at.loss)
    return after(float(_HALVINGS[lower[0]])) if lower.size else None


def _centred(problem: Problem, active: NDArray[np.int64], W: Array) -> Array:
    """W with the rows of classes that have a sign and no penalty as near to a mean of zero as the sign lets them.

    A row without a sign keeps the mean of zero that it begins with.
    """
    signs = problem.objective.signs
    if signs is None or problem.loss.separable:
        return W
    rows = (problem.lam_weight[active] == 0.0) & (signs[active] != 0)
    found = W.copy()
    found[rows] = centred(W[rows], signs[active[rows]])
    return found


def _vanishing(problem: Problem, at: Iterate) -> bool:
    """Whether the curvature of a row without penalty has all but vanished: its weight goes on to infinity.

    The loss then falls by less than its rounding. A column without a label has no curvature at all, and none to lose,
    and an entry that is held at zero goes nowhere.
    """
    solver = _Solver(problem, at)
    square = problem.statistics.square[at.active[solver.rows]]
    square = np.append(square, problem.statistics.weight) if problem.fit_intercept else square
    each = solver.diagonal[:, solver.outputs] / np.where(square > 0.0, square, 1.0)[:, None]
    low = (each > 0.0) & (each < _VANISHED * each.max(axis=0, initial=0.0))
    if solver.signs is not None:
        low &= ~held_at_zero(solver.start, solver.signs).reshape(-1, problem.k)[:, solver.outputs]
    return bool(np.any(low))


def solved_null(problem: Problem, null: Iterate) -> Iterate:
    """The model of the rows without penalty alone, from that of the intercept alone.

    Raises
    ------
    NoFiniteOptimum
        Where it has no finite optimum, as of labels that these features separate.
    """
    at, last = solved(problem, with_free_rows(problem, null), 0.0)
    if not last.keep > 0.0 or not last.exact or _vanishing(problem, at):
        raise NoFiniteOptimum(
            "the features whose penalty_factors are 0 have no finite optimum, so that no penalty holds their weights: "
            "they may separate the labels, wholly or in part",
            hint="give them a small factor such as 1e-3, or leave those out that tell the labels",
        )
    return at
