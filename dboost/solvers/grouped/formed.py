"""A Newton step over groups of columns: the curvature among all entries held is formed, and the model solved by blocks.

The loss is replaced by its quadratic model at the point, with the Hessian itself (``passes.projected``). The intercept
has no penalty, so that the model is minimised over it in closed form: what is left is a quadratic in W with the Schur
complement for its matrix, less collinear than before where the columns of a group add up to one. In V_j = w_j W_j every
group is charged with c_g omega(V_g), and block coordinate descent solves for one group after the other.

Covers: the step, and where it pays. Does not cover: where the curvature would be too large a table
(``dboost.solvers.grouped.proximal``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.solves.group_descent import group_descent
from dboost.compiled.solves.positive import inverse_positive
from dboost.passes import projected
from dboost.penalties.grouped import Grouped
from dboost.problem.iterate import Iterate
from dboost.problem.problem import Problem
from dboost.problem.tuning import Groups
from dboost.solvers.grouped.faces import face_step
from dboost.solvers.line_search import LONG, line_search
from dboost.solvers.step import Step

Array = NDArray[np.float64]

# Sweeps over the groups of one model before steps on the face of the penalty, such steps at most, the sweeps after
# each, and those after the last where the model is not settled.
_FIRST_SWEEPS = 10
_MOST_FACES = 50
_SWEEPS_AFTER = 4
_LAST_SWEEPS = 50
# What the last sweep moves, as a share of the first, in squares.
_SETTLED = 1e-16
# Curvature that is left of an output of the intercept beside the others, as a share; all classes together have none.
_FLAT = 1e-12


def pays(problem: Problem, at: Iterate, sizes: Groups) -> bool:
    """Whether the curvature among the rows of a model is formed: the table is small, and so is the work on it."""
    entries = (at.active.shape[0] + problem.fit_intercept) * problem.k
    values = problem.statistics.values(at.active, problem.n_rows) / max(problem.n_rows, 1)
    work = problem.n_rows * ((values + problem.fit_intercept) * problem.k) ** 2
    return not problem.loss.exponential and entries <= sizes.entries and work <= sizes.work


def step(problem: Problem, at: Iterate, lam: float) -> tuple[Iterate, Step]:
    """A Newton step from a model that has its sums and whole groups; of length zero where none helps.

    Parameters
    ----------
    problem : Problem
        Its penalty is a ``Grouped`` one.
    at : Iterate
    lam : float
        Strength of the penalty, sum form.
    """
    D, d = _direction(problem, at, lam)
    value = problem.objective.penalty_value
    promised = float(np.sum(at.G * D) + at.bias @ d) + value(at.active, at.W, lam) - value(at.active, at.W + D, lam)
    if not (D.any() or d.any()):
        return at, Step("newton", 0.0, 0.0)
    # near the optimum a promise is less than the rounding of its parts, and the step still leads there
    promised = max(promised, 0.0)
    found = line_search(problem, at, lam, D, d, promised, grid=LONG)
    return (at, Step("newton", 0.0, promised)) if found is None else (found[0], Step("newton", found[1], promised))


def _direction(problem: Problem, at: Iterate, lam: float) -> tuple[Array, Array]:
    """Rows and intercept that minimise the model plus the penalty, less those of `at`."""
    assert isinstance(problem.penalty, Grouped)
    k, weight = problem.k, problem.lam_weight[at.active]
    tied, free = np.flatnonzero(weight > 0.0), np.flatnonzero(weight == 0.0)
    penalty = problem.penalty.of_rows(at.active[tied])
    tied = tied[penalty.order()]
    order = np.concatenate([tied, free])
    pull = np.append(at.G[order].ravel(), at.bias if problem.fit_intercept else np.zeros(0))
    H, pull, back = _without_free(_curvature(problem, at, order), pull, tied.size * k)
    weights = np.repeat(weight[tied], k)
    V = weights * at.W[tied].ravel()
    model = (H / weights / weights[:, None], pull / weights, V, lam * penalty.factors, penalty.starts(k))
    norm = penalty.norm.compiled
    done, first = group_descent(*model, *norm, _FIRST_SWEEPS, _SETTLED, 0.0)
    creeps = done == _FIRST_SWEEPS
    for _ in range(_MOST_FACES):
        if not (creeps and face_step(*model, *norm)):
            break
        done, _ = group_descent(*model, *norm, _SWEEPS_AFTER, 0.0, _SETTLED * first)
        creeps = done == _SWEEPS_AFTER
    if creeps:
        # what is left is for the next step, on sums that are not rounded as often
        group_descent(*model, *norm, _LAST_SWEEPS, 0.0, _SETTLED * first)
    # what becomes zero does so exactly: W - W
    D = np.zeros_like(at.W)
    D[tied] = (V / weights).reshape(-1, k) - at.W[tied]
    rest = back(D[tied].ravel()).reshape(-1, k)
    D[free] = rest[: free.size]
    return D, rest[-1] if problem.fit_intercept else np.zeros(k)


def _without_free(H: Array, pull: Array, size: int) -> tuple[Array, Array, Callable[[Array], Array]]:
    """The model of the first entries alone: matrix, pull, and the step of the others that goes with one of theirs.

    The others, of rows without penalty and of the intercept, are at their best for any step of the first.
    """
    if size == pull.size:
        return H, pull, lambda D: np.zeros(0)
    across, inverse, rest = H[:size, size:], inverse_positive(H[size:, size:], _FLAT), pull[size:]
    # not by BLAS, whose threads might change the bits
    gone = np.einsum("ir,rs->is", across, inverse)
    left = H[:size, :size] - np.einsum("ir,jr->ij", gone, across)

    def back(D: Array) -> Array:
        found: Array = np.einsum("rs,s->r", inverse, rest - np.einsum("ir,i->r", across, D))
        return found

    return left, pull[:size] - np.einsum("ir,r->i", gone, rest), back


def _curvature(problem: Problem, at: Iterate, order: NDArray[np.int64]) -> Array:
    """The Hessian of the loss in all entries held, rows in an order, and the intercept's last; one pass."""
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    found = problem.own_pass(projected.free_curvature, at, place, problem.fit_intercept, name="curvature")
    H: Array = found.add["H"]
    return 0.5 * (H + H.T)
