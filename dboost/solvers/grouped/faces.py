"""Newton's step for a quadratic and a norm of groups, where the norm is smooth.

Block descent creeps where groups hold nearly the same: of more columns than examples any may stand for others. On the
face of the norm at a point (the entries that are not zero, or the common size of those at a bound) it bends little, and
the minimum is one solve away. What leaves the face on the way is the descent's to settle.

Covers: the step. Does not cover: the descent (``dboost.compiled.solves.group_descent``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.solves.positive import solve_positive
from dboost.compiled.solves.row_prox import BOUND

Array = NDArray[np.float64]

# Of the diagonal: below it a pivot is rounding, of a column that the others hold already.
_FLAT = 1e-14
# An entry is at the bound of its group if it is below it by no more than this share.
_AT_BOUND = 1e-10
_HALVINGS = 12


def face_step(
    H: Array, R: Array, V: Array, lam: Array, starts: NDArray[np.int64], code: int, a: float, b: float
) -> bool:
    """Lower -<R, d> + d'H d / 2 + sum_g lam_g omega(V_g + d_g) by a step d; whether it did. Arguments are those of
    ``group_descent``: V and R are overwritten.
    """
    sign, size = np.sign(V), np.abs(V)
    bent = np.zeros_like(H)
    pull = R.copy()
    # the coordinate of each entry that moves, alone or with others; -1 for those that are held at zero
    place, count = np.full(V.size, -1, np.int64), 0
    shared = np.zeros(V.size, np.bool_)
    for g in range(lam.size):
        mine = slice(int(starts[g]), int(starts[g + 1]))
        v = V[mine]
        moving = np.flatnonzero(v) + mine.start
        if not moving.size:
            continue
        if code == BOUND:
            top = float(size[mine].max())
            tied = moving[size[moving] >= top * (1.0 - _AT_BOUND)]
            loose = np.setdiff1d(np.arange(mine.start, mine.stop), tied)
            place[tied], place[loose] = count, count + 1 + np.arange(loose.size)
            pull[tied] -= lam[g] * sign[tied] / tied.size
            shared[tied] = True
            count += 1 + loose.size
            continue
        length = float(np.sqrt(np.sum(v * v)))
        unit = V[moving] / length
        pull[moving] -= lam[g] * (a * unit + b * sign[moving])
        bent[np.ix_(moving, moving)] = lam[g] * a / length * (np.eye(moving.size) - unit[:, None] * unit)
        place[moving] = count + np.arange(moving.size)
        count += moving.size
    held = np.flatnonzero(place >= 0)
    if not held.size:
        return False
    # entries of one coordinate move by its sign each
    along = np.where(np.bincount(place[held], minlength=count)[place[held]] > 1, sign[held], 1.0)
    whole = along[:, None] * (H + bent)[np.ix_(held, held)] * along
    joined = np.zeros((count, held.size))
    np.add.at(joined, place[held], whole)
    among, right = np.zeros((count, count)), np.zeros(count)
    np.add.at(among.T, place[held], joined.T)
    np.add.at(right, place[held], along * pull[held])
    d = np.zeros_like(V)
    d[held] = along * solve_positive(among, right, _FLAT)[place[held]]
    if not np.all(np.isfinite(d)):
        return False

    def norms(v: Array) -> float:
        if code == BOUND:
            return float(np.sum(lam * np.maximum.reduceat(np.abs(v), starts[:-1])))
        lengths = np.sqrt(np.add.reduceat(v * v, starts[:-1]))
        return float(np.sum(lam * (a * lengths + b * np.add.reduceat(np.abs(v), starts[:-1]))))

    before, t = norms(V), 1.0
    for _ in range(_HALVINGS):
        after = V + t * d
        if code == BOUND:
            # an entry that meets the bound of its group stays there
            bound = np.where(shared, np.abs(after), 0.0)
            bound = np.repeat(np.maximum.reduceat(bound, starts[:-1]), np.diff(starts))
            after = np.clip(after, -bound, bound)
        step = after - V
        moved = np.sum(H * step, axis=1)
        if float(np.sum(step * (0.5 * moved - R))) + norms(after) - before < 0.0:
            V[:] = after
            R -= moved
            return True
        t *= 0.5
    return False
