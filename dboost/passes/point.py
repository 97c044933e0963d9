"""A model at which passes evaluate, and what loops over examples are given of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.examples import loss_of_rows
from dboost.compiled.solves import one_output
from dboost.hypotheses.held_by_model import Held
from dboost.losses import Loss, get_loss
from dboost.partition import Partition

Array = NDArray[np.float64]

# What the passes over examples take: the cut, W, b, the target and the weights.
Examples = tuple[NDArray[Any], NDArray[Any], NDArray[Any], Array, Array, Any, Array]


@dataclass(frozen=True)
class Point:
    """A model at which a pass evaluates."""

    loss: str | Loss  # The loss, or its name.
    held: Held  # The columns of the rows of W that are held.
    W: Array  # (a, k): Those rows.
    intercept: Array  # (k,): The intercept b.
    token: str  # Names the whole point, for the memo.


def arguments_at(partition: Partition, memo: Any, point: Point) -> Examples:
    """Arguments shared by the fused kernels: the cut, W, b, the target and the weights."""
    cut = point.held.cut(partition, memo)
    return (*cut, point.W, point.intercept, get_loss(point.loss).target(partition.y), partition.weight)


# A block by column and the places of the columns held in it: (column pointer, rows, values, places).
Columns = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[np.int64]]


def columns_held(partition: Partition, memo: Any, held: Held) -> Columns:
    """The block that has the columns held, and their places in it."""
    block, places = held.block(partition, memo)
    return block.indptr, block.rows, block.values, places


def single_margins(partition: Partition, memo: Any, point: Point) -> tuple[Array, Columns] | None:
    """Margins (m,) of a model of one output, formed column by column, and its columns.

    None where the model is wider. Such a model is not cut out of its columns: that would cost more than the
    margins.
    """
    if point.intercept.shape[0] != 1:
        return None
    held = columns_held(partition, memo, point.held)
    f = np.full(partition.n_rows, point.intercept[0])
    one_output.add_columns(*held, np.ascontiguousarray(point.W[:, 0]), f)
    return f, held


def single_state(partition: Partition, loss: str | Loss, f: Array) -> tuple[Array, Array, float]:
    """U (m,), the curvature (m,) and the loss at the margins of one output."""
    u, h = np.empty_like(f), np.empty_like(f)
    target = get_loss(loss).target(partition.y)
    return u, h, float(loss_of_rows.single_state(target, f, partition.weight, u, h))
