"""One coordinate of a model of one output: which hypothesis is moved, and how far.

Covers: the choice among the best candidate of a scoring pass, the hypotheses held and the constant, all of either
sign; exact and fixed steps (docs/math.md 7 (I) and (K); Stratos, "Boosting as Coordinate Descent"; Raetsch, Mika &
Warmuth 2001). With the exponential loss and h in {-1, +1} an exact step is AdaBoost's (1/2) log((1 - err) / err).
Does not cover: the rounds (``leveraging``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.rules import rank
from dboost.bounds.exponential import CAP
from dboost.problem.iterate import Iterate, Score
from dboost.problem.problem import Problem
from dboost.solvers.one_output.exact_line import Direction, minimise

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Coordinates:
    """What may be moved in a round: the hypotheses held, the best other one, and the constant last."""

    at: Iterate  # The model with the candidate's row at zero.
    G: Array  # (c,): <d, h> of each, d = -dL/df; the constant is there where it may be moved.
    w: Array  # (c,): Weights, sum s h**2, max |h|, and the strength of the l1 penalty (0 for the constant).
    square: Array
    peak: Array
    lam: Array


def offered(problem: Problem, score: Score, lam: float) -> Coordinates:
    """The coordinates of a scoring pass."""
    held = score.iterate
    at = held.widened(score.best, score.best_G)
    active, stats = at.active, problem.statistics
    gradient, w = at.G[:, 0], at.W[:, 0]
    square, peak, strength = stats.square[active], stats.peak[active], problem.objective.bound(active, lam).strength
    if problem.fit_intercept:
        gradient, w = np.append(gradient, held.bias), np.append(w, held.intercept)
        square, peak, strength = np.append(square, stats.weight), np.append(peak, 1.0), np.append(strength, 0.0)
    return Coordinates(at, gradient, w, square, peak, strength)


@dataclass(frozen=True)
class Move:
    """Which coordinate goes which way."""

    place: int  # Among the coordinates.
    sign: float  # +1 or -1: the direction of its weight.
    slope: float  # Derivative of the objective along it, not above zero.
    linear: float  # The penalty's part of it.
    limit: float  # Where it must stop; inf if nowhere.


def best_of(problem: Problem, offer: Coordinates, rule: str) -> Move | None:
    """The coordinate of the largest `rank` that may grow, in the sign of its edge; None where there is none."""
    if not offer.G.shape[0]:
        return None
    place = int(np.argmax(rank(rule, offer.G, problem.objective.curvature_constant * offer.square, offer.lam)))
    G, lam = float(offer.G[place]), float(offer.lam[place])
    return Move(place, 1.0 if G >= 0.0 else -1.0, lam - abs(G), lam, math.inf)


def worst_held(offer: Coordinates) -> Move | None:
    """The hypothesis held, of weight al > 0 in its sign, with the least <d, h> - C_h: moved back, to zero at most."""
    held = np.flatnonzero((offer.w != 0.0) & (offer.lam > 0.0))
    if not held.shape[0]:
        return None
    sign = np.sign(offer.w[held])
    gamma = offer.G[held] * sign
    one = int(np.argmin(gamma - offer.lam[held]))
    place = int(held[one])
    lam = float(offer.lam[place])
    return Move(place, -float(sign[one]), float(gamma[one]) - lam, -lam, abs(float(offer.w[place])))


def exact_step(problem: Problem, offer: Coordinates, move: Move) -> float:
    """argmin over t of the objective along a move; capped at 30 / max |h| where there is none."""
    slope = move.slope
    if not slope < 0.0:
        return 0.0
    square, peak = float(offer.square[move.place]), float(offer.peak[move.place])
    if problem.loss.parabolic:
        return min(-slope / (problem.loss.kappa * square), move.limit)
    limit = min(move.limit, CAP / peak)
    if math.isfinite(problem.loss.kappa):
        guess = -slope / (problem.loss.kappa * square)
    else:
        # the minimiser of the bound by the chord of the exponential function over |h| <= peak
        edge = min(abs(float(offer.G[move.place])) / (peak * offer.at.loss), 1.0 - 1e-15)
        guess = math.atanh(edge) / peak
    D, d = direction(offer, move)
    return minimise(problem, offer.at, Direction(D, d, slope, move.linear, limit), min(max(guess, 0.0), limit))


def direction(offer: Coordinates, move: Move) -> tuple[Array, Array]:
    """Change of W and of the intercept per unit of a move."""
    D, d = np.zeros_like(offer.at.W), np.zeros(1)
    if move.place < D.shape[0]:
        D[move.place, 0] = move.sign
    else:
        d[0] = move.sign
    return D, d


def moved(offer: Coordinates, move: Move, step: float) -> tuple[Rows, Array, Array]:
    """Nonzero rows, their weights and the intercept after a step; a weight that reaches its limit is exactly zero."""
    D, d = direction(offer, move)
    W = offer.at.W + step * D
    if step >= move.limit and move.place < W.shape[0]:
        W[move.place] = 0.0
    keep = W[:, 0] != 0.0
    return offer.at.active[keep], W[keep], offer.at.intercept + step * d
