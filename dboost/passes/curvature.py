"""Passes for steps: curvature of the examples, products with it, bounds of it, and losses along a direction.

The curvature of the examples at one point of a conjugate gradient solve is kept in the memo. Solves are over when the
gradient is asked for, at another point; their curvature, half as large as the margins of all examples, goes then.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.examples import fused
from dboost.compiled.solves import descent
from dboost.compiled.sparse import columns
from dboost.compiled.vectors.scaled_rows import width
from dboost.hypotheses.held_by_model import Held
from dboost.partition import Partition, Sums
from dboost.passes.point import Array, Point, arguments_at, columns_held, stepped


def losses_along(partition: Partition, memo: Any, point: Point, D: Array, d: Array, steps: Array) -> Sums:
    """GRID pass: L(F + t (X D + d)) for every step t."""
    pointer, slots, values, W, b, target, weight = arguments_at(partition, memo, point)
    if point.held.stepwise is not None:
        D, d = point.wide[:0], stepped(partition, memo, point.held, D[:, : d.shape[0]], d)
    out = np.zeros(steps.shape[0])
    fused.losses_along(pointer, slots, values, W, b, D, d, steps, target, weight, out)
    return Sums(add={"loss": out})


def curvature_of(partition: Partition, memo: Any, point: Point) -> tuple[NDArray[np.float32], Array]:
    """Hessian of every example at `point`, in float32: products and diagonals of it steer steps, nothing more."""
    h = np.empty((partition.n_rows, width(point.intercept.shape[0])), np.float32)
    rank_one = np.empty(partition.n_rows)
    fused.curvature(*arguments_at(partition, memo, point), h, rank_one)
    return h, rank_one


def _remembered(partition: Partition, memo: Any, point: Point) -> tuple[NDArray[np.float32], Array]:
    """`curvature_of`, kept for the other passes at the point."""
    found: tuple[NDArray[np.float32], Array] = memo.get(
        "curvature", point.token, lambda: curvature_of(partition, memo, point)
    )
    return found


def curvature_diagonal(partition: Partition, memo: Any, point: Point, intercept: bool) -> Sums:
    """Diagonal of the curvature of every active row, bounded as in ``descent.curvature_diagonal``; intercept last."""
    h, rank_one = _remembered(partition, memo, point)
    out = np.zeros((point.held.n + (1 if intercept else 0), point.intercept.shape[0]))
    mine = columns_held(partition, memo, point.held)
    room = np.empty_like(h) if rank_one.any() else h
    descent.curvature_diagonal(*mine, h, rank_one, partition.weight, intercept, out, room)
    return Sums(add={"diagonal": out})


def hessian_product(partition: Partition, memo: Any, point: Point, V: Array, v: Array) -> Sums:
    """X_A' H (X_A V + 1 v') with H at `point`; V may be wider than v (``padded``)."""
    h, rank_one = _remembered(partition, memo, point)
    stepwise = point.held.stepwise
    if stepwise is not None:
        h = h[:, : v.shape[0]]
        Z = stepped(partition, memo, point.held, V[:, : v.shape[0]].astype(np.float64), v)
        Z *= h
        Z -= (rank_one * np.einsum("ij->i", Z))[:, None] * h
        sums = stepwise.held_sums(partition, memo, point.held.arranged, Z, None)
        return Sums(add={"out": sums["G"], "bias": Z.sum(axis=0)})
    pointer, slots, values = point.held.cut(partition, memo)
    # of many columns and outputs these sums are larger than the data: they stay in the precision that they have
    out, total = fused.hessian_sums(pointer, slots, values, h, rank_one, V, v)
    return Sums(add={"out": out, "bias": total})


def template_sums(partition: Partition, memo: Any, held: Held, extra: float) -> Sums:
    """MAXT pass: max of rho_i per active column, and sum_i s_i |x_ij| rho_i (docs/math.md 2)."""
    cut = held.cut(partition, memo)
    slots = held.n + (1 if extra else 0)
    peak, diagonal = np.zeros(slots), np.zeros(slots)
    columns.template_sums(*cut, partition.weight, extra, peak, diagonal)
    return Sums(add={"diagonal": diagonal}, peak={"peak": peak})
