"""The held-out rows of a fold, one by one: their labels and weights, and the scores of models on them.

Covers: the leaves that bring these to the driver, for what no sum over the rows can tell.
Does not cover: which fold a row is in, or sums over held-out rows (``folds``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.examples import fused
from dboost.losses import get_loss
from dboost.partition import Partition, Sums
from dboost.passes.folds import Left, margins_of_rows, wrong_share
from dboost.passes.point import Point


def weight_facts(partition: Partition, memo: Any, factors: NDArray[np.float64] | None, exponent: int) -> Sums:
    """How far the weights of the examples are from one, and whether a task lacks labels.

    The weights were multiplied by the factors of their classes, where there are any, and by 2**exponent. The peaks are
    "weights", the largest distance from one, and "missing", 1 where a label is missing; shape (1,).
    """
    weight = own_weights(partition.y, partition.weight, factors, exponent)
    absent = np.isnan(partition.y) if partition.y.dtype.kind == "f" else partition.y == 0
    missing = partition.y.ndim == 2 and bool(np.any(absent))
    return Sums(
        peak={"weights": np.abs(weight - 1.0).max(initial=0.0, keepdims=True), "missing": np.array([float(missing)])}
    )


def held_out_rows(
    partition: Partition, memo: Any, left: Left, factors: NDArray[np.float64] | None, exponent: int
) -> Sums:
    """The parts "rows", "y" and "weight" of held-out rows: places, encoded labels, given weights (`weight_facts`)."""
    rows = _rows(partition, memo, left)
    y = np.ascontiguousarray(partition.y[rows])
    weight = own_weights(y, partition.weight[rows], factors, exponent)
    return Sums(parts={"rows": [rows], "y": [y], "weight": [weight]})


def held_out_margins(partition: Partition, memo: Any, left: Left, points: tuple[Point, ...]) -> Sums:
    """The part "margins": scores of the rows that are held out under each of some models, (models, rows, k)."""
    rows = _rows(partition, memo, left)
    found = np.empty((len(points), len(rows), points[0].W.shape[1]))
    for p, F in enumerate(margins_of_rows(partition, memo, left, points, rows)):
        found[p] = F
    return Sums(parts={"margins": [found]})


def held_out_blocks(partition: Partition, memo: Any, left: Left, count: int, points: tuple[Point, ...]) -> Sums:
    """Loss and wrong labels of several models on the held-out rows whose class is present, in blocks of these rows.

    Rows are dealt to blocks as they are to folds, so that neither partitions nor workers decide which is in which.
    "weight" has shape (count,), "loss" and "wrong" (number of models, count).
    """
    rows, y, weight, _ = left.held_out(partition, memo)
    places = left.folds.places
    assert places is not None, "rows are dealt to blocks by their places"
    dealt = memo.get("blocks", (left.folds.token, count), lambda: places.dealt(partition, count, "blocks", 0))
    block = np.asarray(dealt)[rows]
    order = np.argsort(block, kind="stable")
    rows, y, weight, block = rows[order], np.ascontiguousarray(y[order]), weight[order], block[order]
    ends = np.searchsorted(block, np.arange(count + 1))
    found = {"loss": np.zeros((len(points), count)), "wrong": np.zeros((len(points), count))}
    for p, F in enumerate(margins_of_rows(partition, memo, left, points, rows)):
        found["wrong"][p] = np.bincount(block, weight * wrong_share(y, F), minlength=count)
        target = get_loss(points[p].loss).target(y)
        for b in np.flatnonzero(np.diff(ends)).tolist():
            found["loss"][p, b] = fused.loss_of_margins(F[ends[b] : ends[b + 1]], target, weight, int(ends[b]))
    return Sums(add={"weight": np.bincount(block, weight, minlength=count), **found})


def own_weights(
    y: NDArray[Any], weight: NDArray[np.float64], factors: NDArray[np.float64] | None, exponent: int
) -> NDArray[np.float64]:
    """The weights as they were given: without the factors of the classes, and in their own unit."""
    if factors is not None:
        codes = y if y.ndim == 1 else (y[:, 0] > 0).astype(np.int64)
        weight = weight / factors[codes]
    return np.ldexp(weight, -exponent)


def _rows(partition: Partition, memo: Any, left: Left) -> NDArray[np.int64]:
    return np.flatnonzero(left.folds.ids(partition, memo) == left.number).astype(np.int64, copy=False)
