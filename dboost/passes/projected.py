"""Passes at residuals that are projected: less what a step (V, v) of rows without penalty takes off them.

Theta_i = U_i - H_i (X_A V + 1 v')_i, H_i being the Hessian of the loss of an example at the model. Which step makes the
sums of all rows without penalty vanish is the driver's to say (``dboost.problem.free_rows``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.examples import fused, loss_of_rows, projected
from dboost.compiled.sparse import columns
from dboost.compiled.vectors.scaled_rows import width
from dboost.losses import get_loss
from dboost.partition import Partition, Sums
from dboost.passes.point import Array, Point, columns_held, margins_at

Step = tuple[Array, Array]


def _margins(partition: Partition, memo: Any, point: Point, step: Step) -> tuple[Array, Array]:
    """Scores of the model, and of the step, (m, k) each."""
    return margins_at(partition, memo, point), fused.margins(*point.held.cut(partition, memo), *step)


def _projected(
    partition: Partition, memo: Any, point: Point, step: Step
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Theta, of whole rows; H Z per unit of weight (m, k), and F and Z; the largest of |Z| and of |H Z| (k,)."""
    F, Z = _margins(partition, memo, point, step)
    m, k = F.shape
    given = get_loss(point.loss).target(partition.y), partition.weight
    h, rank_one = fused.hessians(F, 0, k, *given)
    theta = np.zeros((m, width(k)))
    loss_of_rows.residuals(F.copy(), 0, k, *given, theta, np.zeros(k))
    bent = h * (Z - (rank_one * (h * Z).sum(axis=1))[:, None])
    theta[:, :k] -= bent
    pull = np.divide(bent, partition.weight[:, None], out=np.zeros_like(bent), where=partition.weight[:, None] > 0.0)
    far = np.abs(Z).max(axis=0, initial=0.0, where=h > 0.0)
    return theta, pull, F, Z, far, np.abs(pull).max(axis=0, initial=0.0)


def projected_sums(partition: Partition, memo: Any, point: Point, step: Step) -> Sums:
    """X_A'Theta and the column sums of Theta; the largest curved |z| and the largest change of a residual (k,)."""
    theta, *_, far, moved = _projected(partition, memo, point, step)
    k = point.intercept.shape[0]
    G = np.zeros((point.held.n, k))
    block = columns_held(partition, memo, point.held)
    columns.column_gradient(*block[:3], theta, block[3], G)
    return Sums(add={"G": G, "bias": theta[:, :k].sum(axis=0)}, peak={"far": far, "moved": moved})


def projected_gradient(
    partition: Partition, memo: Any, candidates: NDArray[np.int64], point: Point, step: Step, keep: Array
) -> Sums:
    """G = X'Theta of stored columns, Theta scaled by `keep` (k,)."""
    theta = _projected(partition, memo, point, step)[0]
    k = keep.shape[0]
    theta[:, :k] *= keep
    G = np.empty((candidates.shape[0], k))
    columns.column_gradient(partition.indptr, partition.rows, partition.values, theta, candidates, G)
    return Sums(add={"G": G})


def projected_dual(partition: Partition, memo: Any, point: Point, step: Step, scale: Array, prior: Array) -> Sums:
    """DUAL pass: the exact dual objective at Theta, scaled by `scale` (k,); `prior` as for ``loss_rows.dual_row``."""
    theta, pull, F, Z, *_ = _projected(partition, memo, point, step)
    loss = get_loss(point.loss)
    none, target = np.zeros(scale.shape[0]), loss.target(partition.y)
    shift = np.ascontiguousarray(loss.shifts(pull, Z))
    value = loss_of_rows.dual_values(F, 0, target, partition.weight, scale, none, shift, prior)
    if partition.offset is not None:
        value -= np.sum(theta[:, : scale.shape[0]] * scale * partition.offset)
    return Sums(add={"dual": float(value)})


def free_curvature(
    partition: Partition, memo: Any, point: Point, place: NDArray[np.int64], intercept: bool, every: int = 1
) -> Sums:
    """Hessian of the loss in some of the rows held and the intercept, (entries, entries), at the point.

    `place` (a,) is the place of each row among them, -1 for the others; entry (j, r) lies at j k + r, and the
    intercept's are the last. From one of `every` so many examples, scaled up.
    """
    cut, F = point.held.cut(partition, memo), margins_at(partition, memo, point)
    y, weight = partition.y, partition.weight
    if every > 1:
        some = np.arange(0, partition.n_rows, every)
        cut, F, y, weight = columns.take_rows(*cut, some), F[some], y[some], weight[some]
    size = (int(place.max(initial=-1)) + 1 + int(intercept)) * point.intercept.shape[0]
    H = np.zeros((size, size))
    bent = fused.hessians(F, 0, F.shape[1], get_loss(point.loss).target(y), weight)
    projected.add_curvature(*cut, place, int(intercept), *bent, H)
    return Sums(add={"H": H * (partition.n_rows / max(1, F.shape[0])) if every > 1 else H})
