"""Newton's step for a quadratic and a norm of groups, where the norm is smooth.

Block descent creeps where groups hold nearly the same: of more columns than examples any may stand for others. On the
face of the norm that a point lies on, the norm bends little or not at all, and the minimum is one solve away: among the
entries that are not zero, or, of a largest entry, among the entries below it and the size that the largest ones share.
What leaves the face on the way is the descent's to settle.

Covers: the step. Does not cover: the descent (``dboost.compiled.solves.group_descent``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.solves.positive import solve_positive
from dboost.compiled.solves.row_prox import BOUND

Array = NDArray[np.float64]

# Of the diagonal: below it a pivot is rounding, of a column that the others hold already.
_FLAT = 1e-14
# No entry moves further: its square is still a number.
_FARTHEST = 1e100
# Lengths of a step that are tried.
_LENGTHS: Array = 0.5 ** np.arange(40.0)
# Of the diagonal, added where only the price of a size tells how far to go: far, up to where an entry ties.
_RIDGE = 1e-10
# An entry is as large as the largest of its group but for this share, which is rounding.
_TIED = 1e-12
# Steps to the minimum of a face, and of those that it leads to, at most.
_MOST_STEPS = 50


def face_step(
    H: Array, R: Array, V: Array, lam: Array, starts: NDArray[np.int64], code: int, a: float, b: float
) -> bool:
    """Lower -<R, d> + d'H d / 2 + sum_g lam_g omega(V_g + d_g) by a step d, and say whether that was possible.

    The arguments are those of ``group_descent``, which overwrites V and R as this does: omega is the largest size, or
    a times the Euclidean norm and b times the sum of the sizes.
    """
    bound = code == BOUND

    def norms(v: Array) -> float:
        if bound:
            return float(np.sum(lam * np.maximum.reduceat(np.abs(v), starts[:-1])))
        lengths = np.sqrt(np.add.reduceat(v * v, starts[:-1]))
        return float(np.sum(lam * (a * lengths + b * np.add.reduceat(np.abs(v), starts[:-1]))))

    lower = False
    for _ in range(_MOST_STEPS):
        d = _on_bound(H, R, V, lam, starts) if bound else _on_support(H, R, V, lam, starts, a, b)
        if d is None:
            break
        lengths = np.append(_LENGTHS, _first_tie(V, d, starts)) if bound else _LENGTHS
        length = _lowered(H, R, V, d, norms, lengths)
        lower = lower or length > 0.0
        if not (bound and 0.0 < length < 1.0):
            break
        # an entry that tied on the way goes on with those that it ties with
    return lower


def _lowered(H: Array, R: Array, V: Array, d: Array, norms: Callable[[Array], float], lengths: Array) -> float:
    """Go the best of some lengths along d, and say which; 0 where none of them is lower."""
    if not np.all(np.abs(d) <= _FARTHEST):
        return 0.0
    bent = np.sum(H * d, axis=1)
    slope, curvature = float(np.sum(R * d)), float(np.sum(d * bent))
    values = [t * (0.5 * t * curvature - slope) + norms(V + t * d) for t in lengths]
    best = int(np.argmin(values))
    if not values[best] < norms(V):
        return 0.0
    V += lengths[best] * d
    R -= lengths[best] * bent
    return float(lengths[best])


def _first_tie(V: Array, d: Array, starts: NDArray[np.int64]) -> float:
    """How far along d an entry first becomes as large as the largest of its group; at most 1."""
    found = 1.0
    for s, e in zip(starts[:-1], starts[1:], strict=True):
        v, step = V[s:e], d[s:e]
        first = int(np.argmax(np.abs(v)))
        largest = abs(float(v[first]))
        if not largest > 0.0:
            continue
        growth = float(np.sign(v[first]) * step[first])
        below = np.abs(v) < (1.0 - _TIED) * largest
        for side in (1.0, -1.0):
            nearing = side * step[below] - growth
            room = largest - side * v[below]
            some = nearing > 0.0
            found = min(found, float(np.min(room[some] / nearing[some], initial=1.0)))
        if growth < 0.0:
            found = min(found, -largest / growth)
    return found


def _on_support(
    H: Array, R: Array, V: Array, lam: Array, starts: NDArray[np.int64], a: float, b: float
) -> Array | None:
    """The step to the minimum among the entries that are not zero, on their sides of it; None where all are zero."""
    sign = np.sign(V)
    bent = np.zeros_like(H)
    pull = R.copy()
    for g in range(lam.size):
        mine = slice(int(starts[g]), int(starts[g + 1]))
        v = V[mine]
        moving = np.flatnonzero(v) + mine.start
        if not moving.size:
            continue
        length = float(np.sqrt(np.sum(v * v)))
        unit = V[moving] / length
        pull[moving] -= lam[g] * (a * unit + b * sign[moving])
        bent[np.ix_(moving, moving)] = lam[g] * a / length * (np.eye(moving.size) - unit[:, None] * unit)
    held = np.flatnonzero(V)
    if not held.size:
        return None
    d = np.zeros_like(V)
    d[held] = solve_positive((H + bent)[np.ix_(held, held)], pull[held], _FLAT)
    return d


def _on_bound(H: Array, R: Array, V: Array, lam: Array, starts: NDArray[np.int64]) -> Array | None:
    """The step to the minimum in the size that the largest entries of a group share, and in the entries below it."""
    order: list[NDArray[np.int64]] = []
    firsts: list[NDArray[np.int64]] = []
    prices: list[Array] = []
    sign = np.ones_like(V)
    place = 0
    for g in range(lam.size):
        size = np.abs(V[starts[g] : starts[g + 1]])
        largest = float(size.max())
        if not largest > 0.0:
            continue
        tied = size >= (1.0 - _TIED) * largest
        shared, own = np.flatnonzero(tied) + starts[g], np.flatnonzero(~tied) + starts[g]
        sign[shared] = np.sign(V[shared])
        order += [shared, own]
        # the shared size is one unknown, each other entry one of its own
        firsts.append(np.append(place, place + shared.size + np.arange(own.size)))
        prices.append(np.append(lam[g], np.zeros(own.size)))
        place += shared.size + own.size
    if not order:
        return None
    entries, first = np.concatenate(order), np.concatenate(firsts)
    side = sign[entries]
    table = side[:, None] * side * H[np.ix_(entries, entries)]
    table = np.add.reduceat(np.add.reduceat(table, first, axis=0), first, axis=1)
    table += np.diag(_RIDGE * np.diag(table))
    x = solve_positive(table, np.add.reduceat(side * R[entries], first) - np.concatenate(prices), _FLAT)
    d = np.zeros_like(V)
    d[entries] = side * np.repeat(x, np.diff(np.append(first, entries.size)))
    return d
