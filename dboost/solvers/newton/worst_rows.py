"""A Newton step on the few rows that keep a model from its certificate.

The scale of a dual point is that of the worst row (docs/math.md 6), so a handful of rows that miss their
optimality leave a gap however good all others are. These are often rows of few examples, which a sample does not know
well. They are solved by themselves, with the curvature of every example that holds one of them; the other rows stay as
they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dboost.certificate.duality_gap import restricted_gap
from dboost.compiled.solves import descent
from dboost.compiled.sparse import columns
from dboost.hypotheses.held_by_model import Cut
from dboost.passes import examples
from dboost.penalties.capabilities import ChargesRows, compiled_prox
from dboost.problem.iterate import Iterate
from dboost.problem.problem import Problem
from dboost.problem.sample import MOST_NUMBERS, joined
from dboost.problem.tuning import WorstRows
from dboost.solvers.newton.damping import growth

Array = NDArray[np.float64]
Places = NDArray[np.int64]

# What the others may leave of the gap, or of the one that is wanted, for a step on the few to be worth its passes.
_OTHERS = 0.15
_WELL = 0.7
_SWEEPS = 50
# The share of what it misses now that a row may miss on the model of the step.
_SETTLED = 0.02
_RIDGE = 1e-9


def few_rows(
    problem: Problem, at: Iterate, lam: float, gap: float, target: float, solved: bool, sizes: WorstRows
) -> Places | None:
    """Places among the active rows, ascending, whose optimality would leave little of the gap; None where not few.

    The worst are those of the largest ||G_j||_* / lam_j, by which the dual point is scaled (docs/math.md 6).

    Parameters
    ----------
    problem : Problem
    at : Iterate
        A model with its sums.
    lam : float
        Strength of the penalty, sum form, above zero.
    gap, target : float
        Its gap now, sum form, and the one that is wanted.
    solved : bool
        Whether the intercept is solved apart (``restricted_gap``).
    sizes : WorstRows
        How many are few.
    """
    if isinstance(problem.penalty, ChargesRows):
        # a row that is held is beyond its strength at the optimum too: nothing tells the worst
        return None
    a = at.active.shape[0]
    if not problem.lam_weight[at.active].all():
        # rows without penalty have no strength that they could be beyond
        return None
    excess = problem.penalty.dual_norm(at.G) / (lam * problem.lam_weight[at.active]) - 1.0
    worst = np.argsort(-excess, kind="stable")
    size = sizes.first
    while size <= sizes.share * a:
        others = at.rows(np.sort(worst[size:]))
        if restricted_gap(problem, others, lam, solved) <= max(_WELL * target, _OTHERS * gap):
            return np.sort(worst[:size])
        size *= 2
    return None


def affordable(problem: Problem, rows: NDArray[np.int64], n_rows: int, stored: int, sizes: WorstRows) -> bool:
    """Whether a step on these rows of W costs little beside an ordinary one.

    Parameters
    ----------
    problem : Problem
    rows : int64 array, shape (t,)
        Columns of X.
    n_rows : int
        Number of examples.
    stored : int
        Values that an ordinary step works on.
    sizes : WorstRows
        What is cheap.
    """
    values = problem.statistics.values(rows, n_rows)
    return values <= sizes.cheap * stored and values * problem.k <= MOST_NUMBERS


def focused_step(problem: Problem, at: Iterate, lam: float, few: Places, seed: int) -> Array:
    """Step of all active rows that minimises the Newton model (``solvers.newton.step``) over a few of them; one pass.

    Parameters
    ----------
    problem, at, lam
        As for `few_rows`.
    few : int64 array, shape (t,)
        Places among the active rows, ascending.
    seed : int
        Of the order in which rows are visited.

    Returns
    -------
    float64 array, shape (a, k)
        Zero but for the few.
    """
    t, k = few.shape[0], problem.k
    parts = problem.own_pass(examples.examples_of, at, few, name="focus").parts["examples"]
    h, rank_one, weight = (np.concatenate([part[c] for part in parts]) for c in (3, 4, 5))
    by_column: Cut = columns.transpose(*joined(parts), t)
    diagonal = np.zeros((t, k))
    descent.curvature_diagonal(*by_column, np.arange(t), h, rank_one, weight, False, diagonal, np.empty_like(h))
    mine, strength = at.rows(few), lam * problem.lam_weight[at.active[few]]
    # the intercept stays as it is: along it the model is flat
    intercept = np.zeros((int(problem.fit_intercept), k))
    damping = growth(problem, mine, lam, np.vstack([diagonal, intercept]))[:t] + _RIDGE * diagonal
    settle = _SETTLED * max(float(np.max(problem.penalty.dual_norm(mine.G) / strength)) - 1.0, 0.0)
    step = np.zeros_like(mine.W)
    model = (*by_column, h, rank_one, mine.G, mine.W, strength, diagonal, damping)
    descent.newton_descent(*model, *compiled_prox(problem.penalty), _SWEEPS, seed, step, settle)
    D = np.zeros_like(at.W)
    D[few] = step
    return D
