"""A model at which passes evaluate, and what loops over examples are given of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.examples import fused, loss_of_rows
from dboost.compiled.solves import one_output
from dboost.compiled.vectors.scaled_rows import padded
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

    @cached_property
    def wide(self) -> Array:
        """W in the shape that loops read, made once for all partitions."""
        return padded(self.W)


def arguments_at(partition: Partition, memo: Any, point: Point) -> Examples:
    """Arguments shared by the fused kernels: the cut, W, b, the target and the weights.

    Of hypotheses that are steps the cut is that of no columns, and b where the margins end.
    """
    target, start = get_loss(point.loss).target(partition.y), start_of(partition.offset, point.intercept)
    if point.held.stepwise is not None:
        F = stepped(partition, memo, point.held, point.W, start)
        cut = no_columns(partition.weight, partition.values.dtype)
        return (*cut, point.wide[:0], F, target, partition.weight)
    return (*point.held.cut(partition, memo), point.wide, start, target, partition.weight)


def stepped(partition: Partition, memo: Any, held: Held, W: Array, start: Array) -> Array:
    """Margins (m, k) of hypotheses that are steps of raw columns, from `start`, (k,) or (m, k): none is a column."""
    assert held.stepwise is not None
    F = np.empty((W.shape[1], partition.n_rows))
    F[:] = start.T if start.ndim > 1 else start[:, None]
    for w, f in zip(W.T, F, strict=True):
        held.stepwise.add_margins(partition, memo, held.arranged, np.ascontiguousarray(w), f)
    return np.ascontiguousarray(F.T)


def no_columns(weight: Array, kind: Any = np.float64) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The cut of no columns out of so many examples; `kind` is the type that its values would have."""
    return np.zeros(weight.shape[0] + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, kind)


def start_of(offset: Array | None, intercept: Array) -> Array:
    """Where margins begin: at the intercept (k,), with an offset for each example in its own place, (m, k)."""
    return intercept if offset is None else intercept + offset


def joined_offsets(parts: Iterable[Array | None]) -> Array | None:
    """The offsets of several blocks, all of which have them, or none."""
    found = [part for part in parts if part is not None]
    return np.concatenate(found) if found else None


def margins_at(partition: Partition, memo: Any, point: Point) -> Array:
    """Margins (m, k) of a model."""
    start = start_of(partition.offset, point.intercept)
    if point.held.stepwise is not None:
        return stepped(partition, memo, point.held, point.W, start)
    return fused.margins(*point.held.cut(partition, memo), point.wide, start)


def dual_of_offsets(U: Array, offset: Array | None, target: Any, weight: Array, repair: Sequence[Array]) -> float:
    """What offsets take off the dual value of residuals U that are repaired (keep, mix, shift, prior): <Theta, O>."""
    if offset is None:
        return 0.0
    theta = U.copy()
    fused.repair(theta, target, weight, *repair)
    return float(np.sum(theta[:, : offset.shape[1]] * offset))


# A block by column and the places of the columns held in it: (column pointer, rows, values, places).
Columns = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[np.int64]]


def columns_held(partition: Partition, memo: Any, held: Held) -> Columns:
    """The block that has the columns held, and their places in it."""
    block, places = held.block(partition, memo)
    return block.indptr, block.rows, block.values, places


def single_start(m: int, offset: Array | None, intercept: Array) -> Array:
    """Where the margins (m,) of one output begin."""
    return np.full(m, intercept[0]) if offset is None else intercept[0] + offset[:, 0]


def single_margins(partition: Partition, memo: Any, point: Point) -> Array | None:
    """Margins (m,) of a model of one output, formed column by column; None where the model is wider.

    Such a model is not cut out of its columns: that would cost more than the margins.
    """
    if point.intercept.shape[0] != 1:
        return None
    held, w = point.held, np.ascontiguousarray(point.W[:, 0])
    f = single_start(partition.n_rows, partition.offset, point.intercept)
    if held.stepwise is not None:
        held.stepwise.add_margins(partition, memo, held.arranged, w, f)
    else:
        one_output.add_columns(*columns_held(partition, memo, held), w, f)
    return f


def single_state(partition: Partition, loss: str | Loss, f: Array) -> tuple[Array, Array, float]:
    """U (m,), the curvature (m,) and the loss at the margins of one output."""
    u, h = np.empty_like(f), np.empty_like(f)
    target = get_loss(loss).target(partition.y)
    return u, h, float(loss_of_rows.single_state(target, f, partition.weight, u, h))
