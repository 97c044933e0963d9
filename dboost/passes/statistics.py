"""STAT passes: sums that never change during a fit, of labels and of columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from dboost.compiled.examples import fused, loss_of_rows
from dboost.compiled.sparse import centring, columns
from dboost.hypotheses.held_by_model import Held
from dboost.losses import Loss, get_loss, refuse_invalid
from dboost.partition import Partition, Sums
from dboost.passes.point import Array, Point, no_columns, single_start, start_of
from dboost.passes.residuals import one_of_each_class, residuals


def label_counts(partition: Partition, memo: Any, loss: str | Loss, k: int) -> Sums:
    """STAT pass, labels: mass and observed mass per output, sum of the weights, number of rows, L at zero margins.

    Of real labels that may be less a number (``Loss.by_difference``) also the sum s y**2 per output.
    """
    given = get_loss(loss)
    refuse_invalid(given, partition.y, f" of partition {partition.key}")
    mass, total = given.label_mass(partition.y, partition.weight, k)
    weight = float(partition.weight.sum())
    add = {"mass": mass, "total": total, "weight": weight, "rows": partition.n_rows}
    y, s = partition.y, partition.weight
    if given.by_difference(k).any():
        real = y.reshape(y.shape[0], k)
        with np.errstate(over="ignore"):
            # a label that is missing is no number
            add["square"] = np.nansum(s[:, None] * (real * real), axis=0)
    alike = y.dtype == np.int8 and partition.offset is None
    if alike:
        # labels of two kinds: an example of each, with the weight of all of them in all outputs
        y, s = np.array([[1], [-1]], np.int8), np.array([mass.sum(), (total - mass).sum()])
    if alike or k == 1:
        f, unused = single_start(s.shape[0], partition.offset, np.zeros(1)), np.empty((2, s.shape[0]))
        add["at_zero"] = float(loss_of_rows.single_state(given.target(y), f, s, *unused))
        return Sums(add=add)
    y, s = one_of_each_class(partition, k) or (partition.y, partition.weight)
    W, b, at_zero = np.zeros((0, k)), np.zeros(k), np.zeros(1)
    fused.losses_along(*no_columns(s), W, start_of(partition.offset, b), W, b, np.zeros(1), given.target(y), s, at_zero)
    add["at_zero"] = float(at_zero[0])
    return Sums(add=add)


NULL_SUMS = ("G", "bias", "loss")
"""What ``feature_statistics`` may say of the model without features: the sums of ``score``."""


def feature_statistics(partition: Partition, memo: Any, held: Held | None = None, null: Point | None = None) -> Sums:
    """STAT pass, features: max |x|, sum s x, sum s |x|, sum s x**2 per stored column, or per hypothesis held.

    With `null`, a model of one output without features, also the sums of a scoring pass at it.
    """
    block = partition if held is None else held.block(partition, memo)[0]
    peak, total, absolute, square = (np.zeros(block.indptr.shape[0] - 1) for _ in range(4))
    # most data have no weights, and need not be asked for them value by value
    weight = None if np.all(partition.weight == 1.0) else partition.weight
    data, statistics = (block.indptr, block.rows, block.values, weight), (peak, total, absolute, square)
    sums = Sums(add={"total": total, "absolute": absolute, "square": square}, peak={"peak": peak})
    if null is None:
        columns.column_statistics(*data, *statistics)
        return sums
    U, bias, loss, _ = residuals(partition, memo, null)
    G = np.empty((block.indptr.shape[0] - 1, 1))
    columns.column_statistics(*data, *statistics, U.reshape(-1), G.reshape(-1))
    sums.add |= dict(zip(NULL_SUMS, (G, bias, loss), strict=True))
    return sums


def moments_about(partition: Partition, memo: Any, held: Held, centres: Array) -> Sums:
    """Sums of the columns held about a number for each: sum s (x - c), sum s (x - c)**2, values stored; is any float64.

    Of columns far from zero these keep what ``feature_statistics`` loses to rounding.
    """
    block, places = held.block(partition, memo)
    total, square, stored = (np.zeros(places.shape[0]) for _ in range(3))
    data = (block.indptr, block.rows, block.values, partition.weight)
    centring.moments_about(*data, places, centres, total, square, stored)
    double = np.array([float(block.values.dtype != np.float32 and block.values.size > 0)])
    return Sums(add={"total": total, "square": square, "stored": stored}, peak={"double": double})
