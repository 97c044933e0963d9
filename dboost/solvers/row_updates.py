"""The paper's updates: rows of W solved on a diagonal bound, one at a time or all in a template.

``adaboost`` uses the exponential bound (Duchi & Singer 2009, figs. 2 and 4; docs/math.md 7 (A) and (C)), ``gradboost``
the quadratic one (fig. 3; sheet D). Neither needs a line search: the bound lies above the loss, so the objective falls.
The intercept is one more row, x = 1 with lam = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dboost import passes
from dboost.bounds import exponential, quadratic
from dboost.penalties.bound import BoundPenalty
from dboost.problem.iterate import Iterate
from dboost.problem.limits import UNLIMITED, Limits
from dboost.problem.problem import Problem

Array = NDArray[np.float64]

SELECTIONS = ("greedy", "cyclic", "random", "template", "template_uniform")
TEMPLATES = ("template", "template_uniform")


@dataclass(frozen=True)
class _Sums:
    """Sums of some rows at a model: G, and mu+ and mu- where the bound is exponential."""

    G: Array
    mu_plus: Array
    mu_minus: Array
    loss: float


class RowwiseSteps:
    """Diagonal-bound updates on a fixed set of rows.

    `problem`: the problem; ``problem.exponential`` chooses the bound.
    `active`, (a,): the rows A.
    `select`: one row by score, one row in turn, one row at random, or all rows at once: with the local constant of each
    row, or with the smallest step of all rows, as in the papers.
    `rng`: source of the random order.
    """

    def __init__(self, problem: Problem, active: NDArray[np.int64], select: str, rng: np.random.Generator) -> None:
        self.problem = problem
        self.active = active
        self.select = select
        self.rng = rng
        self._held: tuple[Iterate, _Sums] | None = None
        self._size = active.shape[0] + (1 if problem.fit_intercept else 0)
        self._scale = self._template() if select in TEMPLATES else self._single()

    # ---- constants of the bounds (docs/math.md 2) -----------------------------------------------------------

    def _single(self) -> Array:
        """One-row a_j or D_j; the intercept's last."""
        stats, loss = self.problem.statistics, self.problem.loss
        if self.problem.exponential:
            peak = np.append(stats.peak[self.active], 1.0)[: self._size]
            return exponential.normalisation(peak, loss.template_constant)
        return quadratic.one_row(np.append(stats.square[self.active], stats.weight)[: self._size], loss.kappa)

    def _template(self) -> Array:
        """a_j or D_j for all rows at once, local or one for all; the intercept's last."""
        peak, cross = template_sums(self.problem, self.active)
        loss, uniform = self.problem.loss, self.select == "template_uniform"
        if self.problem.exponential:
            peak = np.full(self._size, peak.max(initial=0.0)) if uniform else peak
            return exponential.normalisation(peak, loss.template_constant)
        D = quadratic.many_rows(cross, loss.kappa)
        return np.full(self._size, D.max(initial=0.0)) if uniform else D

    # ---- sums ------------------------------------------------------------------------------------------------------

    def _sums(self, iterate: Iterate, slots: NDArray[np.int64]) -> _Sums:
        """Sums of the rows in `slots` (the intercept's slot is the last) by one pass."""
        problem = self.problem
        a = self.active.shape[0]
        rows = self.active[slots[slots < a]]
        sums = problem.rows_sums(iterate, rows)
        with_bias = bool(np.any(slots >= a))

        def join(name: str, bias: str) -> Array:
            top = sums.add[name]
            return np.vstack([top, sums.add[bias]]) if with_bias else top

        if problem.exponential:
            plus, minus = join("mu_plus", "bias_plus"), join("mu_minus", "bias_minus")
            return _Sums(plus - minus, plus, minus, sums.add["loss"])
        G = join("G", "bias")
        return _Sums(G, G, G, sums.add["loss"])

    # ---- solves ----------------------------------------------------------------------------------------------------

    def _solve(self, W: Array, sums: _Sums, slots: NDArray[np.int64], lam: float) -> Array:
        """New rows: the minimiser of bound plus penalty, row by row."""
        bound = self._bound(slots, lam)
        if self.problem.exponential:
            return bound.solve_exponential(W, sums.mu_plus, sums.mu_minus, self._scale[slots])[0]
        return bound.solve_quadratic(W, sums.G, self._scale[slots])

    def _bound(self, slots: NDArray[np.int64], lam: float) -> BoundPenalty:
        """The penalty for the rows in some slots."""
        return self.problem.objective.bound(self.active, lam).with_intercept()[slots]

    def _gains(self, W: Array, new: Array, sums: _Sums, slots: NDArray[np.int64], lam: float) -> Array:
        """Decrease of bound plus penalty that each row's update guarantees (docs/math.md 5)."""
        penalty, scale = self._bound(slots, lam), self._scale[slots]
        if self.problem.exponential:
            change = exponential.change(new - W, sums.mu_plus, sums.mu_minus, scale)
        else:
            change = quadratic.change(new - W, sums.G, scale)
        return -change + penalty.strength * (penalty.value(W) - penalty.value(new))

    def sweep(self, iterate: Iterate, lam: float, limits: Limits = UNLIMITED) -> Iterate:
        """Update every row in turn (cyclic, random), or once (greedy, templates); the objective never rises.

        A sweep in turn takes a pass for each row and ends early where `limits`, for ``problem.passes``, ends the fit.
        """
        problem = self.problem
        if not self._size:
            # neither rows nor an intercept: there is nothing to move
            return iterate
        everything = np.arange(self._size)
        W = np.vstack([iterate.W, iterate.intercept]) if problem.fit_intercept else iterate.W.copy()
        now = iterate
        if self.select == "greedy" or self.select in TEMPLATES:
            held = self._held
            sums = held[1] if held is not None and held[0] is iterate else self._sums(iterate, everything)
            new = self._solve(W, sums, everything, lam)
            if self.select == "greedy":
                best = int(np.argmax(self._gains(W, new, sums, everything, lam)))
                W[best] = new[best]
            else:
                W = new
            # one pass serves as the evaluation of this update and as the sums of the next
            now = self._moved(iterate, W)
            sums = self._sums(now, everything)
            G, bias = problem.objective.split_intercept(sums.G)
            now = replace(now, loss=sums.loss, G=G, bias=bias)
            self._held = (now, sums)
            return now
        order = self.rng.permutation(self._size) if self.select == "random" else everything
        for slot in order:
            if limits.reason(problem.passes):
                break
            chosen = np.array([slot])
            sums = self._sums(now, chosen)
            W[chosen] = self._solve(W[chosen], sums, chosen, lam)
            now = self._moved(now, W)
        return problem.evaluate(now.active, now.W, now.intercept)

    def _moved(self, iterate: Iterate, W: Array) -> Iterate:
        rows, intercept = self.problem.objective.split_intercept(W)
        return replace(iterate, W=rows.copy(), intercept=intercept.copy())


def template_sums(problem: Problem, active: NDArray[np.int64]) -> tuple[Array, Array]:
    """Per active column and the intercept: max of rho_i, and sum_i s_i |x_ij| rho_i; one pass."""
    extra = 1.0 if problem.fit_intercept else 0.0
    sums = problem.runner.run(passes.template_sums, problem.held(active), extra, name="template")
    return sums.peak["peak"], sums.add["diagonal"]


def diagonal_promise(problem: Problem, iterate: Iterate, lam: float) -> float:
    """What one-row steps on the loss and a smooth penalty would gain at least, summed over the rows.

    Zero only where the gradient is zero.
    """
    return float(np.sum(one_row_promises(problem, iterate, lam)))


def one_row_promises(problem: Problem, iterate: Iterate, lam: float) -> Array:
    """What a step of each row alone would gain at least, on the loss and a smooth penalty; the intercept last."""
    stats, kappa = problem.statistics, problem.loss.kappa
    if math.isfinite(kappa):
        D, bias = kappa * stats.square[iterate.active], kappa * stats.weight
    else:
        # a (sqrt(mu+) - sqrt(mu-))^2 >= G^2 / (2 peak^2 L), the exponential bound's gain for a loss that is sum |U|
        D, bias = stats.peak[iterate.active] ** 2 * iterate.loss, iterate.loss
    bound = problem.objective.bound(iterate.active, lam)
    face = bound.face(iterate.W)
    G = iterate.G - face.expand(face.gradient(bound.strength))
    gains = np.sum(G**2, axis=1)[D > 0.0] / (2.0 * D[D > 0.0])
    if problem.fit_intercept and bias > 0.0:
        gains = np.append(gains, np.sum(iterate.bias**2) / (2.0 * bias))
    return np.asarray(gains)
