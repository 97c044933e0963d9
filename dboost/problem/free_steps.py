"""Newton steps over the rows of W without penalty and the intercept, solved for by conjugate gradients.

``free_rows`` says what a step is for. Where entries have signs that bind it is the best one after which every
entry has its sign (``compiled.solves.within_bounds``).

Covers: the curvature, formed or by passes, its solves, and the step refined until what it leaves is rounding. Does not
cover: what the step makes of residuals or of the model.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dboost import passes
from dboost.compiled.solves.conjugate_gradients import conjugate_gradients
from dboost.compiled.solves.positive import solve_positive
from dboost.compiled.solves.within_bounds import held_at_zero, within_bounds
from dboost.losses.base import Repair
from dboost.passes import projected
from dboost.problem import summation
from dboost.problem.iterate import Iterate, Projection
from dboost.problem.problem import Problem

Array = NDArray[np.float64]

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
# Curvature below this share of what it might be is none.
_FLAT = 1e-12
# Sums may be off by this many times what their rounding is.
_SURE = 4.0


def free_places(problem: Problem, iterate: Iterate) -> NDArray[np.bool_]:
    """Which of the active rows have no penalty, shape (a,)."""
    found: NDArray[np.bool_] = problem.objective.columns.weight[iterate.active] == 0.0
    return found


def plain_repair(problem: Problem) -> Repair:
    """The repair of residuals that need none: what the loss keeps of each output, and where labels are measured."""
    if not problem.fit_intercept:
        return Repair.nothing(problem.k)
    stats = problem.statistics
    return problem.loss.repair(stats.mass, stats.total, np.zeros(problem.k))


class FreeSteps:
    """Newton steps over the rows without penalty and the intercept at one model; products are passes.

    Sums and steps are vectors: the entries of these rows one row after the other, then those of the intercept.

    `iterate`: the model, with its sums and all rows without penalty.
    `rows`: places of these rows among the active ones.
    `outputs`, (k,): those that have a finite optimum.
    `diagonal`, (rows, k): that of the curvature, the intercept last.
    `start`: the weights.
    `signs`: those of the weights; None where none binds.
    `allowed`: what the sums may be off by.
    """

    def __init__(self, problem: Problem, iterate: Iterate) -> None:
        self.problem = problem
        self.iterate = iterate
        self.rows = np.flatnonzero(free_places(problem, iterate))
        # an output with one label only has no finite optimum, and zero for its dual point
        self.outputs = plain_repair(problem).keep > 0.0
        chosen = np.append(self.rows, iterate.active.shape[0]) if problem.fit_intercept else self.rows
        self._formed = chosen.size * problem.k <= FORMED
        self._ends = _LEFT if self._formed else _LEFT_BY_PASSES
        if self._formed:
            self._H = problem.curvature_among(iterate, self.rows)
            scale = np.diag(self._H).copy()
        else:
            found = problem.own_pass(passes.curvature_diagonal, iterate, problem.fit_intercept, name="diagonal")
            scale = found.add["diagonal"][chosen].ravel()
            self._product = problem.curvature_at(iterate)
        self._used = np.tile(self.outputs, chosen.size)
        self.diagonal = scale.reshape(chosen.size, problem.k)
        self.scale = np.maximum(scale, _FLAT * max(float(scale.max(initial=0.0)), np.finfo(float).tiny))
        # where no entry has a sign every one is solved for at once
        self.signs = _signs_of(problem, iterate.active[self.rows])
        self.start = self.joined(iterate.W, iterate.intercept)
        self.allowed = self._allowed()

    def joined(self, G: Array, bias: Array) -> Array:
        """The sums that are to vanish, as one vector."""
        parts = [np.where(self.outputs, G[self.rows], 0.0).ravel()]
        return np.concatenate([*parts, np.where(self.outputs, bias, 0.0)]) if self.problem.fit_intercept else parts[0]

    def split(self, x: Array) -> tuple[Array, Array]:
        """The step of all active rows and of the intercept of such a vector."""
        V, v, size = np.zeros_like(self.iterate.W), np.zeros(self.problem.k), self.rows.size * self.problem.k
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
            right.copy(),
            times,
            lambda residual: residual / self.scale,
            limit=_PRODUCTS * right.size if self._formed else min(_PRODUCTS * right.size, _MOST_PRODUCTS),
            least=lambda start: self._ends * start,
            curved=curved,
        ).x

    def _allowed(self) -> Array:
        """What the sums in such a vector may be off by, through the rounding of residuals and of their sums."""
        problem, iterate = self.problem, self.iterate
        labels = replace(iterate, loss=iterate.loss + problem.statistics.at_zero)
        rows = summation.of_norms(problem, labels, iterate.active[self.rows])
        each = np.repeat(rows, problem.k)
        if not problem.fit_intercept:
            return _SURE * each
        return _SURE * np.concatenate([each, np.full(problem.k, summation.of_intercept(problem, labels))])


def _signs_of(problem: Problem, rows: NDArray[np.int64]) -> NDArray[np.int8] | None:
    """Signs of the entries of some rows, and of the intercept after them; None where none of them binds.

    What all classes have in common changes no loss, and may be anything where there is no penalty: a row of classes has
    its sign once enough is added to all of its entries (`_centred`).
    """
    signs = problem.objective.columns.sign
    if signs is None or not problem.loss.separable or not signs[rows].any():
        return None
    bias = np.zeros(problem.k if problem.fit_intercept else 0, np.int8)
    return np.concatenate([np.repeat(signs[rows], problem.k), bias])


def projection(problem: Problem, iterate: Iterate) -> Projection:
    """The step at a model that has its sums and all rows without penalty, refined until its rest is rounding."""
    solver = FreeSteps(problem, iterate)
    right = left = solver.joined(iterate.G, iterate.bias)
    x, best, least = np.zeros_like(right), None, np.inf

    def missed(sums: Array) -> float:
        return float(np.max(np.abs(sums) / np.maximum(solver.allowed, np.finfo(float).tiny), initial=0.0))

    def made(x: Array, rest: Array, moved: Array, keep: float, gained: float) -> Projection:
        return Projection(*solver.split(x), moved, keep, gained, missed(rest) <= 1.0, solver.charge(rest, x))

    for _ in range(_REFINED):
        x = solver.further(left, x)
        V, v = solver.split(x)
        sums = problem.own_pass(projected.projected_sums, iterate, (V, v), name="projected")
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
