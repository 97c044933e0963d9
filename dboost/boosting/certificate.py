"""How far a model is from the optimum: the dual point, its value, the duality gap, and what it screens out.

A feasible dual point is built from the residuals U at the model: repaired so that the free intercept's constraint
holds, then scaled into the penalty's dual ball (math notes, section 6). Its value is a lower bound on the optimum that
needs no assumption, so the gap is a certificate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.problem import Iterate, Problem, Score

Array = NDArray[np.float64]


def one_pass_gap(problem: Problem, at: Iterate, norms: Array, lam_row: Array, lam: float) -> float:
    """Gap of the scaled residuals from L, G and W alone (math notes, eq. 16); valid without an intercept.

    Parameters
    ----------
    norms, lam_row : float64 arrays of one shape
        Dual norms ||G_j||_* of every row that counts, and their strengths lam_j.
    lam : float
        Strength of the penalty.
    """
    scale = _scale(norms, lam_row)
    inner = float(np.sum(at.G * at.W)) + float(at.bias @ at.intercept)
    return (1.0 - scale) * at.loss + problem.penalty_value(at.active, at.W, lam) - scale * inner


def _scale(norms: Array, lam: Array) -> float:
    """s = min(1, min_j lam_j / ||G_j||_*); rows with G_j = 0 do not bind."""
    binding = norms > lam
    if not binding.any():
        return 1.0
    return float(np.min(lam[binding] / norms[binding]))


@dataclass(frozen=True)
class Bound:
    """A lower bound on the optimum, with what is needed to screen rows by it.

    Parameters
    ----------
    value : float
        Dual value D, in the sum form.
    norms : float64 array, shape (c,)
        Upper bounds on ||X_j' Theta||_* for the candidates, Theta the dual point.
    """

    value: float
    norms: Array


def dual_bound(problem: Problem, score: Score, null_norms: Array, lam_row: Array) -> Bound:
    """Exact value of the dual point near the residuals of a scoring pass; one DUAL pass.

    With the intercept free, Theta must sum to zero per output. With e the excess of predicted over observed mass, the
    predictions are moved to (1 - t)(q - e/M) + t n/M, which is feasible; X'Theta then changes by at most
    t ||G0_j|| + sum_i s_i|x_ij| ||e/M||, G0 being the sums of the null model.

    Parameters
    ----------
    null_norms : float64 array, shape (n,)
        Dual norms of G at the null model with its optimal intercept.
    lam_row : float64 array, shape (c,)
        Strengths lam_j of the candidates.
    """
    at = score.iterate
    k = problem.k
    stats = problem.statistics
    mix, shift, prior = np.zeros(k), np.zeros(k), np.zeros(k)
    keep = np.ones(k)
    norms = score.norms
    if problem.fit_intercept:
        seen = stats.total > 0.0
        mass = np.where(seen, stats.total, 1.0)
        prior = stats.mass / mass
        excess = np.where(seen, -at.bias, 0.0)
        shift = excess / mass
        other = stats.total - stats.mass
        if problem.loss.separable:
            # an output with one label only: Theta = 0 is feasible and optimal for it
            keep = ((stats.mass > 0.0) & (other > 0.0)).astype(float)
            mix = np.maximum(_share(excess, stats.mass), _share(-excess, other)) * keep
            shift = shift * keep
        else:
            mix = np.full(k, np.max(_share(excess, stats.mass)))
        drift = problem.penalty.dual_norm(np.abs(shift)[None, :])[0]
        norms = norms + mix.max() * null_norms[score.candidates] + stats.absolute[score.candidates] * drift
    scale = _scale(norms, lam_row)
    value = problem.dual_value(at, scale * keep, mix, shift, prior)
    return Bound(value, scale * norms)


def _share(excess: Array, mass: Array) -> Array:
    """t = [e]_+ / ([e]_+ + n), 0 where both vanish."""
    positive = np.maximum(excess, 0.0)
    total = positive + mass
    return np.where(total > 0.0, positive / np.where(total > 0.0, total, 1.0), 0.0)


def screened(problem: Problem, score: Score, bound: Bound, gap: float, lam_row: Array) -> NDArray[np.bool_]:
    """Which candidates may still be nonzero at the optimum (gap-safe rule, math notes, section 8 (ii)).

    Every dual optimum lies within sqrt(2 kappa gap) of the dual point, in the metric in which column j has length
    sqrt(sum_i s_i x_ij**2).
    """
    radius = np.sqrt(2.0 * problem.loss.kappa * max(gap, 0.0)) * problem.penalty.dual_radius(problem.k)
    reach = bound.norms + radius * np.sqrt(problem.statistics.square[score.candidates])
    # a margin for rounding, so that a row on the boundary is kept
    return reach >= lam_row * (1.0 - 1e-9)
