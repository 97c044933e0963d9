"""A Newton step on curvature that is formed: a table among all entries held, and block descent on it.

The loss is replaced by its quadratic model at the point, with the Hessian itself (``passes.projected``). The intercept
and rows without penalty are minimised over in closed form: what is left is a quadratic in W with the Schur complement
for its matrix, less collinear than before where columns add up to one. The penalty is a norm of blocks of entries: of
groups of columns, of rows, or of single entries. In V_j = w_j W_j every block is charged with c_g omega(V_g), and block
coordinate descent solves for one block after the other.

Covers: the step, and where it is affordable. Does not cover: steps where the curvature would be too large a table
(``dboost.solvers.newton.step``, and of groups ``dboost.solvers.proximal``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dboost import passes
from dboost.compiled.solves import row_prox
from dboost.compiled.solves.group_descent import group_descent
from dboost.compiled.solves.positive import inverse_positive
from dboost.penalties.bound import BoundGroups
from dboost.penalties.capabilities import CompiledProx, compiled_prox
from dboost.problem.iterate import Iterate
from dboost.problem.problem import Problem
from dboost.problem.tuning import Groups
from dboost.solvers.faces import face_step
from dboost.solvers.line_search import LONG, line_search
from dboost.solvers.newton.damping import growth
from dboost.solvers.step import Step

Array = NDArray[np.float64]
Places = NDArray[np.int64]

# Sweeps over the blocks of one model before steps on the face of the penalty, such steps at most, the sweeps after
# each, and those after the last where the model is not settled.
_FIRST_SWEEPS = 10
_MOST_FACES = 100
_SWEEPS_AFTER = 4
_LAST_SWEEPS = 50
# A step on a face that lowers the model by less than this share of all so far is rounding.
_LITTLE = 1e-12
# What the last sweep moves, as a share of the first, in squares.
_SETTLED = 1e-16
# Curvature that is left of an output of the intercept beside the others, as a share; all classes together have none.
_FLAT = 1e-12
# A table is kept while the next step on it promises at most this share of what the last one did.
_KEPT = 0.1
# While a step promises more than this share of the objective, and no more than this share of what the one before did, a
# table is formed from so many examples for each entry, each of which has at least this share of its curvature.
_FAR = 1e-2
_GAINS = 0.5
_EXAMPLES = 5
_SEEN = 0.2


@dataclass(frozen=True)
class _Blocks:
    """The penalty of the rows held: sum_g c_g omega(V_g) + ridge' (W * W) / 2, V = weights * W."""

    # Places of the rows with a penalty among those held, (rows,), and where the entries of each block begin among
    # theirs, (blocks + 1,).
    order: Places
    starts: Places
    # Of entries, (rows * k,); c of the blocks.
    weights: Array
    ridge: Array
    strength: Array
    # Code, a and b of omega (``row_prox``).
    norm: tuple[int, float, float]

    @classmethod
    def of(cls, problem: Problem, active: Places, lam: float) -> _Blocks:
        """The blocks of the rows `active` of W."""
        k, of_all = problem.k, problem.objective.bound(active, lam)
        order = np.flatnonzero(of_all.weight)
        bound = of_all[order]
        if isinstance(bound, BoundGroups):
            order = order[bound.order()]
            weights = np.repeat(of_all.weight[order], k)
            strength = lam * bound.factors
            return cls(order, bound.starts(k), weights, np.zeros(weights.size), strength, bound.norm.compiled[:3])
        strength, (code, a, b, c) = bound.strength, compiled_prox(problem.penalty)
        # a sum over entries has blocks of one
        size = 1 if a == 0.0 else k
        starts = np.arange(0, order.size * k + 1, size, dtype=np.int64)
        strength = np.repeat(strength, k // size)
        return cls(order, starts, np.ones(order.size * k), np.repeat(c * bound.strength, k), strength, (code, a, b))


def affordable(problem: Problem, iterate: Iterate, lam: float, sizes: Groups) -> bool:
    """Whether the curvature among the rows that move may be formed: the table is small, and so is the work on it."""
    penalty, objective = problem.penalty, problem.objective
    if problem.loss.exponential or objective.columns.sign is not None or not isinstance(penalty, CompiledProx):
        return False
    entries = (np.count_nonzero(_moving(problem, iterate, lam)) + problem.fit_intercept) * problem.k
    return bool(entries <= sizes.entries and problem.n_rows * met(problem, iterate, lam) ** 2 <= sizes.work)


def met(problem: Problem, iterate: Iterate, lam: float) -> float:
    """How many entries of the rows that move an example has a value for: half of its square is the work on it."""
    active = iterate.active[_moving(problem, iterate, lam)]
    values = problem.statistics.values(active, problem.n_rows) / max(problem.n_rows, 1)
    return (values + problem.fit_intercept) * problem.k


def flat(problem: Problem) -> bool:
    """Whether the penalty is one of rows, and nowhere curved but where a row or entry is zero or entries tie."""
    if not isinstance(problem.penalty, CompiledProx):
        return False
    code, a, *_ = problem.penalty.compiled
    return code == row_prox.BOUND or a == 0.0


def _moving(problem: Problem, iterate: Iterate, lam: float) -> NDArray[np.bool_]:
    """Which rows held are not zero, or would leave it, or have no penalty."""
    bound = problem.objective.bound(iterate.active, lam)
    found: NDArray[np.bool_] = np.any(iterate.W != 0.0, axis=1) | bound.leaves_zero(iterate.G) | (bound.strength == 0.0)
    return found


@dataclass(frozen=True)
class _Table:
    """The curvature among some rows of W, ascending, and the intercept last, as it was at some model."""

    rows: Places
    H: Array
    every: int  # Of so many examples one was looked at.

    def among(self, rows: Places, k: int) -> Array | None:
        """The part of some rows, in their order, and of the intercept; None where it does not have all of them."""
        if not np.isin(rows, self.rows).all():
            return None
        return _ordered(self.H, np.searchsorted(self.rows, rows), self.rows.size, k)


def _ordered(H: Array, places: Places, held: int, k: int) -> Array:
    """The part of the rows at some places, in their order, and of the intercept, which is last in both."""
    every = np.concatenate([places, np.arange(held, H.shape[0] // k)])
    entries = (every[:, None] * k + np.arange(k)).ravel()
    return H[np.ix_(entries, entries)]


class Steps:
    """Newton steps from one model to the next, on a table that is formed anew once a step on it gains too little.

    Far from the optimum, where a table does not last, it is formed from some of the examples.

    `lam`: strength of the penalty, sum form.
    Attribute `formed`: how many tables were formed.
    """

    def __init__(self, problem: Problem, lam: float) -> None:
        self.problem = problem
        self.lam = lam
        self.formed = 0
        self._table: _Table | None = None
        self._promised = math.inf

    def step(self, iterate: Iterate) -> tuple[Iterate, Step]:
        """A step from a model that has its sums, and whole groups; of length zero where none helps."""
        moving = _moving(self.problem, iterate, self.lam)
        table, before = self._table, self._promised
        H = None if table is None else table.among(iterate.active[moving], self.problem.k)
        if H is not None:
            iterate, step = self._on(iterate, moving, H)
            self._promised = step.promised
            # a promise of nothing is no share of another: such steps would follow each other without end
            if step.length == 1.0 and 0.0 < step.promised <= _KEPT * before:
                return iterate, step
            moving = _moving(self.problem, iterate, self.lam)
        # some of the examples tell little of the directions that are left in the end
        some = table is None or (table.every > 1 and self._promised <= _GAINS * before)
        far = some and self._promised > _FAR * abs(self.problem.objective(iterate, self.lam))
        while True:
            table = self._form(iterate.rows(moving), far)
            found, step = self._on(iterate, moving, table.H.copy())
            if step.length > 0.0 or table.every == 1:
                self._table, self._promised, self.formed = table, step.promised, self.formed + 1
                return found, step
            far = False

    def _form(self, iterate: Iterate, far: bool) -> _Table:
        """Form the table at a model, among its rows; a pass, or two of which the first sums some examples only."""
        problem, places = self.problem, np.arange(iterate.active.size)
        every = max(1, int(problem.n_rows // (_EXAMPLES * (places.size + 1) * problem.k))) if far else 1
        H = problem.curvature_among(iterate, places, every)
        if every > 1:
            # A column or class of few examples may have none of them there, and its step would be unbounded. What is
            # found here is at most twice the curvature.
            found = problem.own_pass(passes.curvature_diagonal, iterate, problem.fit_intercept, name="diagonal")
            own = np.diag_indices(H.shape[0])
            H[own] = np.maximum(H[own], _SEEN * found.add["diagonal"].ravel())
        return _Table(iterate.active, H, every)

    def _on(self, iterate: Iterate, moving: NDArray[np.bool_], H: Array) -> tuple[Iterate, Step]:
        """The step on a table, which is overwritten."""
        problem, lam, D = self.problem, self.lam, np.zeros_like(iterate.W)
        D[moving], d = _direction(problem, iterate.rows(moving), lam, H)
        bound = problem.objective.bound(iterate.active, lam)
        promised = float(np.sum(iterate.G * D) + iterate.bias @ d) + bound.total(iterate.W) - bound.total(iterate.W + D)
        if not (D.any() or d.any()):
            return iterate, Step("newton", 0.0, 0.0)
        # near the optimum a promise is less than the rounding of its parts, and the step still leads there
        promised = max(promised, 0.0)
        found = line_search(problem, iterate, lam, D, d, promised, grid=LONG)
        return (
            (iterate, Step("newton", 0.0, promised))
            if found is None
            else (found[0], Step("newton", found[1], promised))
        )


def _direction(problem: Problem, iterate: Iterate, lam: float, H: Array) -> tuple[Array, Array]:
    """Rows and intercept that minimise the model of curvature H plus the penalty, less those of `iterate`."""
    blocks = _Blocks.of(problem, iterate.active, lam)
    order, weights = blocks.order, blocks.weights
    free = np.setdiff1d(np.arange(iterate.active.size), order)
    H = _damped(problem, iterate, lam, H, np.append(order, free))
    H, pull, back = _without_free(problem, iterate, H, order, free)
    W = iterate.W[order].ravel()
    H[np.diag_indices(W.size)] += blocks.ridge
    pull = pull - blocks.ridge * W
    V = weights * W
    model = (H / weights / weights[:, None], pull / weights, V, blocks.strength, blocks.starts)
    norm = blocks.norm
    done, first = group_descent(*model, *norm, _FIRST_SWEEPS, _SETTLED, 0.0)
    creeps = done == _FIRST_SWEEPS
    fallen = first
    for _ in range(_MOST_FACES):
        if not creeps:
            break
        fall = face_step(*model, *norm, _LITTLE * fallen)
        fallen += fall
        if fall <= _LITTLE * fallen:
            break
        done, _ = group_descent(*model, *norm, _SWEEPS_AFTER, 0.0, _SETTLED * first)
        creeps = done == _SWEEPS_AFTER
    if creeps:
        # what is left is for the next step, on sums that are not rounded as often
        group_descent(*model, *norm, _LAST_SWEEPS, 0.0, _SETTLED * first)
    D = np.zeros_like(iterate.W)
    # what becomes zero does so exactly: W - W
    D[order] = (V / weights).reshape(-1, problem.k) - iterate.W[order]
    D[free], d = back(D[order].ravel())
    return D, d


def _damped(problem: Problem, iterate: Iterate, lam: float, H: Array, order: Places) -> Array:
    """The curvature in the rows held, in an order, and the intercept, with what keeps a step from overshooting."""
    k = problem.k
    if problem.objective.columns.group is None:
        own = np.diag_indices(H.shape[0])
        H[own] += growth(problem, iterate, lam, H[own].reshape(-1, k)).ravel()
    return H if np.array_equal(order, np.arange(order.size)) else _ordered(H, order, order.size, k)


def _without_free(
    problem: Problem, iterate: Iterate, H: Array, order: Places, free: Places
) -> tuple[Array, Array, Callable[[Array], tuple[Array, Array]]]:
    """The model less its intercept and rows without penalty: matrix, pull, and the step of these beside another."""
    k, size = problem.k, order.size * problem.k
    right = np.concatenate([iterate.G[free].ravel(), iterate.bias if problem.fit_intercept else np.zeros(0)])
    pull = iterate.G[order].ravel()
    if not right.size:
        return H, pull, lambda D: (np.zeros((0, k)), np.zeros(k))
    across, inverse = H[:size, size:], inverse_positive(H[size:, size:], _FLAT)
    # not by BLAS, whose threads might change the bits
    gone = np.einsum("ir,rs->is", across, inverse)
    left = H[:size, :size] - np.einsum("ir,jr->ij", gone, across)

    def back(D: Array) -> tuple[Array, Array]:
        found = np.einsum("rs,s->r", inverse, right - np.einsum("ir,i->r", across, D))
        rows, bias = found[: free.size * k].reshape(-1, k), found[free.size * k :]
        return rows, bias if problem.fit_intercept else np.zeros(k)

    return left, pull - np.einsum("ir,r->i", gone, right), back
