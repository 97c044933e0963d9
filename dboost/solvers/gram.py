"""Steps on the Gram bound: a majoriser of the loss on the active rows, minimised without communication.

L(W + D) - L(W) <= -<G, D> + kappa/2 tr(D' K D) with K = X_A' diag(s) X_A (docs/math.md, eq. 5). Minimising it with the
penalty cannot raise the objective, so this is the step that a Newton step falls back to; it is also a method of its
own, one pass a step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dboost import passes
from dboost.compiled.solves.gram_descent import gram_descent
from dboost.penalties.capabilities import compiled_prox
from dboost.problem.iterate import Iterate
from dboost.problem.problem import Problem
from dboost.solvers.row_updates import template_sums

Array = NDArray[np.float64]

_MAX_SWEEPS = 200
# A sweep costs about 2 a**2 k operations on the driver; one alone is a step that cannot fail, more only help it.
_SWEEP_WORK = 4e9
_TOLERANCE = 1e-4
# Above this many rows the Gram matrix (n**2 numbers) would not fit the driver; the diagonal bound is used instead.
_MAX_ROWS = 4000


class GramSteps:
    """Steps on the Gram bound, the matrix kept while the rows stay the same."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._rows: NDArray[np.int64] | None = None
        self._gram: Array = np.zeros((0, 0))

    def _matrix(self, active: NDArray[np.int64]) -> Array:
        if self._rows is None or not np.array_equal(self._rows, active):
            if active.shape[0] <= _MAX_ROWS:
                self._gram = _gram(self.problem, active)
            else:
                self._gram = np.diag(template_sums(self.problem, active)[1])
            self._rows = active
        return self._gram

    def minimise(self, at: Iterate, lam: float) -> tuple[Array, Array]:
        """Rows and intercept that minimise the bound around `at` plus the penalty; no pass over the data."""
        problem = self.problem
        G, W, strength = problem.objective.with_intercept(at, lam)
        D = np.zeros_like(W)
        sweeps = int(max(1, min(_MAX_SWEEPS, _SWEEP_WORK / (2.0 * W.shape[0] ** 2 * problem.k))))
        gram_descent(
            self._matrix(at.active),
            problem.loss.kappa,
            not problem.loss.separable,
            G,
            W,
            strength,
            *compiled_prox(problem.penalty),
            sweeps,
            _TOLERANCE,
            D,
        )
        rows, bias = problem.objective.split_intercept(D)
        return at.W + rows, at.intercept + bias

    def step(self, at: Iterate, lam: float) -> Iterate:
        """Minimise the bound around `at`, and evaluate the result: one pass, never a rise."""
        return self.problem.evaluate(at.active, *self.minimise(at, lam))


def _gram(problem: Problem, active: NDArray[np.int64]) -> Array:
    """X_A' diag(s) X_A with the intercept last, symmetric; one pass."""
    extra = 1.0 if problem.fit_intercept else 0.0
    upper = problem.runner.run(passes.gram, problem.held(active), extra, name="gram").add["gram"]
    found: Array = upper + np.triu(upper, 1).T
    return found
