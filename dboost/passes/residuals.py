"""Residuals of a partition at a model, formed once for all passes that need them.

The memo only spares repeated work: every function here is a pure function of the partition and its arguments.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.examples import fused
from dboost.compiled.examples.loss_rows import TWO_BRANCHED
from dboost.losses import get_loss
from dboost.partition import Partition
from dboost.passes.point import Array, Point, arguments_at, single_margins, single_state


def one_of_each_class(partition: Partition, k: int) -> tuple[NDArray[Any], Array] | None:
    """One example per class, with the weight of all of that class: the same sums to a model without features.

    None where the labels are no class codes, or scores begin at offsets.
    """
    y = partition.y
    if y.ndim > 1 or y.dtype.kind != "i" or partition.offset is not None:
        return None
    return np.arange(k, dtype=y.dtype), np.bincount(y, weights=partition.weight, minlength=k).astype(float)


# U, its column sums, the loss, and the state of one output or None.
Residuals = tuple[Array, Array, float, tuple[Array, Array, Array] | None]


def residuals(partition: Partition, memo: Any, point: Point) -> Residuals:
    """U, its column sums and the loss of a partition, and the state of one output."""

    def build() -> Residuals:
        single = single_margins(partition, memo, point)
        if single is not None:
            u, h, value = single_state(partition, point.loss, single)
            return u[:, None], np.array([u.sum()]), value, (single, u, h)
        total = np.zeros(point.intercept.shape[0])
        U, value = fused.residuals(*arguments_at(partition, memo, point), total)
        return U, total, value, None

    found: Residuals = memo.get("residual", point.token, build, passing=True)
    return found


def one_branch(partition: Partition, memo: Any, point: Point) -> tuple[Array, Array, float] | None:
    """The pulls up and down (m, 1) and the loss, by column; None where the pool or the loss has it otherwise."""
    target = get_loss(point.loss).target(partition.y)
    pool = point.held.pool
    if pool is None or not pool.by_column or type(target) in TWO_BRANCHED:
        return None
    single = single_margins(partition, memo, point)
    if single is None:
        return None
    u, _, loss = single_state(partition, point.loss, single)
    return np.maximum(u, 0.0)[:, None], np.maximum(-u, 0.0)[:, None], loss


def branches(partition: Partition, memo: Any, point: Point) -> tuple[Array, Array, Array, float]:
    """The pulls up and down of the examples, the column sums of U, and the loss."""

    def build() -> tuple[Array, Array, Array, float]:
        one = one_branch(partition, memo, point)
        if one is not None:
            return one[0], one[1], (one[0] - one[1]).sum(axis=0), one[2]
        total = np.zeros(point.intercept.shape[0])
        plus, minus, loss = fused.branches(*arguments_at(partition, memo, point), total)
        return plus, minus, total, loss

    # the passes of a round over a pool ask for them in turn: they are kept where they take little beside the data
    large = 16 * partition.n_rows * point.intercept.shape[0] > len(partition.values)
    passing = point.held.pool is None or large
    found: tuple[Array, Array, Array, float] = memo.get("branches", point.token, build, passing=passing)
    return found
