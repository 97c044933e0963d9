"""Newton's step for a quadratic and a norm of groups, where the norm is smooth.

Block descent creeps where groups hold nearly the same: of more columns than examples any may stand for others. Among
the entries that are not zero the norm bends little, and the minimum is one solve away. What leaves the face on the way
is the descent's to settle.

Covers: the step. Does not cover: the descent (``dboost.compiled.solves.group_descent``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.solves.positive import solve_positive

Array = NDArray[np.float64]

# Of the diagonal: below it a pivot is rounding, of a column that the others hold already.
_FLAT = 1e-14
_HALVINGS = 12


def face_step(H: Array, R: Array, V: Array, lam: Array, starts: NDArray[np.int64], a: float, b: float) -> bool:
    """Lower -<R, d> + d'H d / 2 + sum_g lam_g omega(V_g + d_g) by a step d, and say whether that was possible.

    omega is a times the Euclidean norm and b times the sum of the sizes. The other arguments are those of
    ``group_descent``, which overwrites V and R as this does.
    """
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
        return False
    d = np.zeros_like(V)
    d[held] = solve_positive((H + bent)[np.ix_(held, held)], pull[held], _FLAT)
    if not np.all(np.isfinite(d)):
        return False

    def norms(v: Array) -> float:
        lengths = np.sqrt(np.add.reduceat(v * v, starts[:-1]))
        return float(np.sum(lam * (a * lengths + b * np.add.reduceat(np.abs(v), starts[:-1]))))

    before, t = norms(V), 1.0
    for _ in range(_HALVINGS):
        after = V + t * d
        step = after - V
        moved = np.sum(H * step, axis=1)
        if float(np.sum(step * (0.5 * moved - R))) + norms(after) - before < 0.0:
            V[:] = after
            R -= moved
            return True
        t *= 0.5
    return False
