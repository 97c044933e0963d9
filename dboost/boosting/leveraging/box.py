"""Leveraging within a box: the weight of every hypothesis stays between two bounds.

Raetsch, Mika & Warmuth, "On the Convergence of Leveraging" (2001), Theorem 1: coordinate descent for

    F(al) = G(H al) + <gamma, al>   over   low_j <= al_j <= high_j,

gamma being the strengths of the l1 penalty in the signs of al. Their Algorithm 2 is the box al >= 0 of hypotheses and
their negatives. A round moves one weight as far as its bound allows, and so does the choice of the learner: a weight at
its bound is offered in the other direction only.

Covers: bounds as they were given, the best move within them. Does not cover: the rounds (``rounds``).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.forward.coordinate import Coordinates, Move
from dboost.errors import UsageError
from dboost.problem.problem import Problem

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Bound = float | tuple[float, ...]

_EXPECTED = "expected (low, high) with low <= 0 <= high and low < high, each a number or one for each feature"


def given_bounds(bounds: Any) -> tuple[Bound, Bound]:
    """Bounds as plain values: a number or a tuple of them for each side.

    Raises
    ------
    UsageError
        For what are no bounds, or bounds that leave zero out, where every fit begins.
    """
    if isinstance(bounds, str) or not hasattr(bounds, "__len__") or len(bounds) != 2:
        raise UsageError(f"bounds={bounds!r}", hint=_EXPECTED)
    low, high = (_side(bounds, side) for side in bounds)
    least, most = np.asarray(low), np.asarray(high)
    if least.ndim == most.ndim == 1 and least.shape != most.shape:
        raise UsageError(f"bounds has {least.shape[0]} low and {most.shape[0]} high ones", hint=_EXPECTED)
    if np.isnan(least).any() or np.isnan(most).any() or (least > 0.0).any() or (most < 0.0).any():
        raise UsageError(f"bounds={bounds!r} leaves out the weight 0, where a fit begins", hint=_EXPECTED)
    if not (least < most).any():
        raise UsageError(f"bounds={bounds!r} leaves every weight at 0", hint=_EXPECTED)
    return low, high


def _side(bounds: Any, side: Any) -> Bound:
    if isinstance(side, int | float | np.number) and not isinstance(side, bool):
        return float(side)
    try:
        found = np.asarray(side, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.zeros(())
    if found.ndim != 1 or isinstance(side, str):
        raise UsageError(f"bounds={bounds!r}", hint=_EXPECTED)
    return tuple(found.tolist())


def bounds_of(bounds: tuple[Bound, Bound], problem: Problem, rows: Rows) -> tuple[Array, Array]:
    """Bounds of some rows of W, (a,) each.

    Raises
    ------
    UsageError
        For a number of bounds that is not that of the columns, or bounds for each of hypotheses that are made.
    """
    found = []
    for side in bounds:
        if isinstance(side, float):
            found.append(np.full(rows.shape[0], side))
        elif problem.pool is not None:
            raise UsageError(
                "bounds for each feature are those of raw columns, and hypotheses= makes other ones",
                hint="give (low, high) as two numbers",
            )
        elif len(side) != problem.n:
            raise UsageError(f"bounds has {len(side)} numbers for {problem.n} features", hint=_EXPECTED)
        else:
            found.append(np.array(side)[rows])
    return found[0], found[1]


def best_within(problem: Problem, offer: Coordinates, low: Array, high: Array, rule: str) -> Move | None:
    """The coordinate and sign of the best move that the bounds allow; None where nothing falls.

    A move ends at the bound, or where a weight that is penalised passes zero, at which its penalty has a kink.

    Parameters
    ----------
    offer : Coordinates
        All hypotheses, and the constant last where it may be moved, which has no bounds.
    low, high : float64 arrays, shape (a,)
        Bounds of the hypotheses.
    rule : {"edge", "joint"}
        Whether the steepest move is best, or that of the largest fall of the squared loss.
    """
    more = offer.G.shape[0] - low.shape[0]
    low, high = np.append(low, np.full(more, -np.inf)), np.append(high, np.full(more, np.inf))
    w, G, lam = offer.w, offer.G, offer.lam
    signs, slopes, linear, limits = [], [], [], []
    for sign, room in ((1.0, high - w), (-1.0, w - low)):
        back = (w * sign < 0.0) & (lam > 0.0)
        part = np.where(back, -lam, lam)
        slope = part - sign * G
        signs.append(np.full(w.shape[0], sign))
        slopes.append(np.where(room > 0.0, slope, np.inf))
        linear.append(part)
        limits.append(np.where(back, np.minimum(np.abs(w), room), room))
    slope, limit = np.concatenate(slopes), np.concatenate(limits)
    falls = slope < 0.0
    if not falls.any():
        return None
    worth = np.where(falls, -slope, 0.0)
    if rule == "joint":
        bend = problem.objective.curvature_constant * np.tile(offer.square, 2)
        step = np.minimum(np.divide(worth, bend, out=np.zeros_like(worth), where=bend > 0.0), limit)
        worth = worth * step - 0.5 * bend * step * step
    best = int(np.argmax(worth))
    way, own = float(np.concatenate(signs)[best]), float(np.concatenate(linear)[best])
    return Move(best % w.shape[0], way, float(slope[best]), own, float(limit[best]))


def after(move: Move, w: float, step: float, low: float, high: float) -> float:
    """The weight of a coordinate after a step, exactly at zero or its bound where the move ended there."""
    if step < move.limit:
        return min(max(w + move.sign * step, low), high)
    if w * move.sign < 0.0 and math.isclose(move.limit, abs(w), rel_tol=1e-15):
        return 0.0
    return high if move.sign > 0.0 else low
