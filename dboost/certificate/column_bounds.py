"""Columns that a scoring pass need not look at, as their sums cannot have moved far (docs/math.md 8 (ii)).

The residuals U are minus the gradient of a loss whose curvature is kappa s_i at most, so that for two models a and b

    sum_i ||u_i(b) - u_i(a)||**2 / s_i  <=  2 kappa [L(a) - L(b) + <G(b), W_a - W_b>],

and ||G_j(b)||_* <= ||G_j(a)||_* + r sqrt(sum_i s_i x_ij**2), r**2 being the right side. The notes bound the same move
through ||F(b) - F(a)||, which is never less, and takes a pass. Near the end of a fit r falls like the distance to the
optimum, where the radius of gap-safe screening falls like its root: most columns that are not ruled out are still low.
Along a path the bounds of one strength go on at the next: its first pass, over the rows that the strong rule keeps,
forms all that r asks for (``moved_from``).

Covers: the bounds and who is left. Does not cover: ruling columns out for good (``certificate.screened``).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dboost.problem.iterate import Iterate, Score
from dboost.problem.problem import Problem

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# Sums over all examples are off by no more than this share of their size.
_ROUNDING = 1e-12
# A pass over more than this share of the candidates may as well take them all.
_MOST = 0.8


def bounded(problem: Problem) -> bool:
    """Whether sums can be bounded, and a low one tells that its row stays at zero."""
    penalty = problem.penalty
    return problem.screens and penalty.threshold and penalty.separable and bool(np.isfinite(problem.loss.kappa))


def moved(problem: Problem, before: Iterate, after: Iterate, rounding: float = 0.0) -> float:
    """r: how far the residuals may have moved between two models with the same rows; no pass.

    Of the sums only those of `after` are asked for; `rounding` is what they may be off by (``Score``).
    """
    if before.shift > 0.0 or after.shift > 0.0 or not bounded(problem):
        return math.inf
    step, shift = before.W - after.W, before.intercept - after.intercept
    ahead = float(np.sum(after.G * step)) + float(after.bias @ shift)
    # what the two losses and the sums are rounded by, the latter times the margins that the step moves
    length = np.sum(problem.statistics.absolute[after.active] * np.abs(step).sum(axis=1))
    size = abs(before.loss) + abs(after.loss) + float(length) + problem.statistics.weight * float(np.abs(shift).sum())
    apart = before.loss - after.loss + ahead + max(_ROUNDING, rounding) * size
    return math.sqrt(2.0 * problem.loss.kappa * max(apart, 0.0))


def moved_from(problem: Problem, origin: Iterate, score: Score) -> float:
    """r from a model to the one that was just scored, which holds all rows of the first; infinite where it does not.

    Parameters
    ----------
    origin : Iterate
        A model with its loss; its sums are not looked at.
    score : Score
        Of the other one, with the sums of its rows.
    """
    after = score.iterate
    held = np.searchsorted(after.active, origin.active)
    if after.active.shape[0] < origin.active.shape[0] or not np.array_equal(
        after.active[np.minimum(held, after.active.shape[0] - 1)], origin.active
    ):
        return math.inf
    W = np.zeros_like(after.W)
    W[held] = origin.W
    return moved(problem, replace(origin, active=after.active, W=W, G=after.G), after, score.rounding)


def moved_by_intercept(problem: Problem, before: Array, after: Array) -> float:
    """The same for a move of the intercept alone: u_i moves by kappa s_i times that at most."""
    return problem.loss.kappa * float(np.linalg.norm(after - before)) * math.sqrt(problem.statistics.weight)


def reach(problem: Problem, norms: Array | None, drift: float) -> Array | None:
    """Bounds on ||G_j||_* of all columns, from those at a model from where the residuals moved by `drift` at most."""
    if norms is None or not math.isfinite(drift):
        return None
    found = np.sqrt(problem.statistics.square)
    found *= drift * problem.penalty.dual_radius(problem.k)
    found += norms
    return found


def unsure(problem: Problem, norms: Array | None, candidates: Rows | None, active: Rows, lam: float) -> Rows | None:
    """Those of the candidates (None: all columns) whose sums have to be formed: the others are below `lam` for sure."""
    if norms is None or not active.shape[0]:
        return candidates
    among = norms > lam * problem.lam_weight
    among[active] = True
    found = np.flatnonzero(among) if candidates is None else candidates[among[candidates]]
    count = problem.n if candidates is None else candidates.shape[0]
    return candidates if found.shape[0] > _MOST * count else found


def known(problem: Problem, score: Score, candidates: Rows | None, norms: Array | None, drift: float) -> Score:
    """The score of some of the candidates as one of them all, with bounds of all columns; others within `reach`."""
    stats = problem.statistics
    off = score.rounding * stats.absolute[score.candidates] if score.rounding > 0.0 else 0.0
    if score.norms.shape[0] == problem.n:
        return replace(score, bounds=score.norms + off)
    bounds = reach(problem, norms, drift)
    if bounds is None:
        bounds = np.full(problem.n, np.inf)
    bounds[score.candidates] = score.norms + off
    if candidates is not None and score.norms.shape == candidates.shape:
        return replace(score, bounds=bounds)
    chosen = np.arange(problem.n) if candidates is None else candidates
    found = bounds.copy()
    found[score.candidates] = score.norms
    return replace(score, candidates=chosen, norms=found[chosen], bounds=bounds)
