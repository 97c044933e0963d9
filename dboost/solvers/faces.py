"""Newton's step for a quadratic and a norm of groups, where the norm is smooth.

Block descent creeps where groups hold nearly the same: of more columns than examples any may stand for others. On the
face of the norm that a point lies on, the norm bends little or not at all, and the minimum is one solve away: among the
entries that are not zero, or, of a largest entry, among the entries below it and the size that the largest ones share.
What would leave the face on the way ends on its boundary, and the rest is solved again from there.

Covers: the step. Does not cover: the descent (``dboost.compiled.solves.group_descent``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.solves.positive import solve_positive
from dboost.compiled.solves.row_prox import BOUND

Array = NDArray[np.float64]
Places = NDArray[np.int64]

# Of the diagonal: below it a pivot is rounding, of a column that the others hold already.
_FLAT = 1e-14
# No entry moves further: its square is still a number.
_FARTHEST = 1e100
# Lengths of a step that are tried, as shares of the one at which an entry first leaves the face.
_LENGTHS: Array = 0.5 ** np.arange(20.0)
# Of the diagonal, added where only the price of a size tells how far to go: far, up to where an entry ties.
_RIDGE = 1e-10
# An entry is as large as the largest of its group, or zero, but for this share, which is rounding.
_TIED = 1e-12
# Steps to the minimum of a face, and of those that it leads to, at most.
_MOST_STEPS = 50


def face_step(
    H: Array, R: Array, V: Array, lam: Array, starts: Places, code: int, a: float, b: float, least: float
) -> float:
    """Lower -<R, d> + d'H d / 2 + sum_g lam_g omega(V_g + d_g) by a step d, and say by how much.

    The arguments are those of ``group_descent``, which overwrites V and R as this does: omega is the largest size, or
    a times the Euclidean norm and b times the sum of the sizes. What lowers it by `least` at most is not followed.
    """
    first = starts[:-1]
    group = np.repeat(np.arange(lam.size), np.diff(starts))

    def norms(v: Array) -> float:
        if code == BOUND:
            return float(np.sum(lam * np.maximum.reduceat(np.abs(v), first)))
        lengths = np.sqrt(np.add.reduceat(v * v, first))
        return float(np.sum(lam * (a * lengths + b * np.add.reduceat(np.abs(v), first))))

    def on_face(new: Array) -> Array:
        """A point, with what has left the face of V pulled back to it."""
        if code == BOUND:
            size = np.maximum.reduceat(np.abs(V), first)[group]
            tied = np.where(np.abs(V) >= (1.0 - _TIED) * size, np.sign(V) * new, -np.inf)
            size = np.maximum(np.maximum.reduceat(tied, first), 0.0)[group]
            return np.clip(new, -size, size)
        turned = (np.add.reduceat(new * V, first) <= 0.0)[group]
        return np.where(turned | ((b > 0.0) & (new * V <= _TIED * V * V)), 0.0, new)

    def leaving(d: Array) -> Array:
        """How far along d each entry leaves the face of V."""
        if code != BOUND:
            return np.where((b > 0.0) & (V * d < 0.0), -V / np.where(d == 0.0, 1.0, d), np.inf)
        size = np.maximum.reduceat(np.abs(V), first)[group]
        tied = np.abs(V) >= (1.0 - _TIED) * size
        growth = np.maximum.reduceat(np.where(tied, np.sign(V) * d, -np.inf), first)[group]
        side = np.where(d > 0.0, 1.0, -1.0)
        nearing = np.where(tied, -growth, np.abs(d) - growth)
        room = np.where(tied, size, size - side * V)
        return np.where((nearing > 0.0) & (size > 0.0), room / np.where(nearing > 0.0, nearing, 1.0), np.inf)

    fallen = 0.0
    for _ in range(_MOST_STEPS):
        if not V.any():
            break
        # next to zero a norm is curved beyond all numbers, and a step on that is none
        with np.errstate(over="ignore", invalid="ignore"):
            model = (H, R, V, lam, group, first)
            d = _on_bound(*model) if code == BOUND else _on_support(*model, a, b)
        if not np.all(np.abs(d) <= _FARTHEST):
            break
        events = np.sort(leaving(d))
        events = events[events < 1.0]
        # as far as to the minimum, or to where half of what leaves the face has left it, and so on
        halves = events[[events.size >> n for n in range(1, int(events.size).bit_length() + 1)]]
        lengths = np.concatenate([[1.0], halves, np.min(events, initial=1.0) * _LENGTHS[1:]])
        fall = _lowered(H, R, V, d, norms, on_face, lengths)
        fallen += fall
        if not events.size or fall <= least:
            break
    return fallen


def _lowered(
    H: Array,
    R: Array,
    V: Array,
    d: Array,
    norms: Callable[[Array], float],
    on_face: Callable[[Array], Array],
    lengths: Array,
) -> float:
    """Go the first of some lengths along d that is lower, and say by how much; 0 where none of them is."""
    before = norms(V)
    for t in lengths.tolist():
        change = on_face(V + t * d) - V
        # not by BLAS, whose threads might change the bits
        bent = np.einsum("ij,j->i", H, change)
        fall = before - norms(V + change) - float(np.sum(change * (0.5 * bent - R)))
        if fall > 0.0:
            V += change
            R -= bent
            return fall
    return 0.0


def _on_support(H: Array, R: Array, V: Array, lam: Array, group: Places, first: Places, a: float, b: float) -> Array:
    """The step to the minimum among the entries that are not zero, on their sides of it."""
    held = np.flatnonzero(V)
    mine, v = group[held], V[held]
    length = np.sqrt(np.add.reduceat(V * V, first))[mine]
    bend, unit = lam[mine] * a / length, v / length
    table = H[np.ix_(held, held)]
    if a > 0.0:
        table = table - np.where(mine[:, None] == mine, bend[:, None] * unit[:, None] * unit, 0.0)
        table[np.diag_indices(held.size)] += bend
    d = np.zeros_like(V)
    d[held] = solve_positive(table, R[held] - lam[mine] * (a * unit + b * np.sign(v)), _FLAT)
    return d


def _on_bound(H: Array, R: Array, V: Array, lam: Array, group: Places, first: Places) -> Array:
    """The step to the minimum in the size that the largest entries of a group share, and in the entries below it."""
    size = np.abs(V)
    largest = np.maximum.reduceat(size, first)[group]
    tied = size >= (1.0 - _TIED) * largest
    # the largest entries of a group first: they are one unknown, each other entry is one of its own
    entries = np.lexsort((~tied, group))
    entries = entries[largest[entries] > 0.0]
    shared, mine = tied[entries], group[entries]
    own = ~shared
    own[0] = True
    own[1:] |= mine[1:] != mine[:-1]
    start = np.flatnonzero(own)
    side = np.where(shared, np.sign(V[entries]), 1.0)
    table = side[:, None] * side * H[np.ix_(entries, entries)]
    table = np.add.reduceat(np.add.reduceat(table, start, axis=0), start, axis=1)
    table[np.diag_indices(start.size)] *= 1.0 + _RIDGE
    pull = np.add.reduceat(side * R[entries], start) - np.where(shared[start], lam[mine[start]], 0.0)
    d = np.zeros_like(V)
    d[entries] = side * solve_positive(table, pull, _FLAT)[np.cumsum(own) - 1]
    return d
