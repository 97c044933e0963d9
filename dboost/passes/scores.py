"""SCORE passes: the sums of candidate columns, of the active ones and of the intercept, and the dual value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.examples import fused, loss_of_rows
from dboost.compiled.solves import one_output
from dboost.compiled.sparse import by_class, columns
from dboost.compiled.vectors.scaled_rows import width
from dboost.hypotheses.held_by_model import Held
from dboost.losses import get_loss
from dboost.partition import Partition, Sums
from dboost.passes.point import (
    Array,
    Point,
    arguments_at,
    columns_held,
    dual_of_offsets,
    single_margins,
    single_state,
)
from dboost.passes.residuals import branches, one_of_each_class, residuals


def score(
    partition: Partition,
    memo: Any,
    candidates: NDArray[np.int64],
    point: Point,
    mu: bool,
    first: bool,
    keep: bool = False,
    beside: Held | None = None,
) -> Sums:
    """SCORE pass over one shard of candidate columns: G, or mu+ and mu-; loss and bias sums with the `first` shard.

    The candidates are stored columns; where the model holds hypotheses, places among those, or among hypotheses of a
    stepwise pool `beside` them, which it need not hold. With `keep`, and one output, the margins, residuals and
    curvature of the examples come along, for a driver in the same process.
    """

    shape = (candidates.shape[0], point.intercept.shape[0])
    memo.forget("curvature")
    held, sums = point.held if beside is None else beside, Sums()
    stepwise = held.stepwise
    if stepwise is not None:
        arranged = stepwise.arranged(held.keys_at(candidates))
    else:
        block = partition if point.held.pool is None else point.held.block(partition, memo)[0]
        arrays = (block.indptr, block.rows, block.values)
    classes = None if mu or point.held.n else one_of_each_class(partition, shape[1])
    alike = None if classes is None else get_loss(point.loss).without_features(point.intercept, classes[1])
    if classes is not None and alike is not None:
        mass, sums.add["G"] = classes[1], np.empty(shape)
        total, loss = mass - mass.sum() * alike.p, alike.loss
        by_class.null_gradient(*arrays, partition.weight, partition.y, alike.p, candidates, sums.add["G"])
    elif mu:
        plus, minus, total, loss = branches(partition, memo, point)
        if stepwise is not None:
            sums.add |= stepwise.held_sums(partition, memo, arranged, plus, minus)
        else:
            sums.add["mu_plus"], sums.add["mu_minus"] = np.empty(shape), np.empty(shape)
            columns.column_mu(*arrays, plus, minus, candidates, sums.add["mu_plus"], sums.add["mu_minus"])
        if first:
            sums.add["bias_plus"], sums.add["bias_minus"] = plus.sum(0), minus.sum(0)
    else:
        U, total, loss, state = residuals(partition, memo, point)
        if keep and first and state is not None:
            sums.parts["state"] = [state]
        if stepwise is not None:
            sums.add |= stepwise.held_sums(partition, memo, arranged, U[:, : shape[1]], None)
        else:
            sums.add["G"] = np.empty(shape)
            column_gradient(*arrays, U, candidates, sums.add["G"])
    if first:
        sums.add["bias"] = total.copy()
        sums.add["loss"] = loss
    return sums


def repaired_gradient(
    partition: Partition, memo: Any, candidates: NDArray[np.int64] | None, point: Point, repair: tuple[Array, ...]
) -> Sums:
    """G = X'Theta of stored columns, Theta the dual point that the loss repairs U to (keep, mix, shift, prior).

    Without `candidates` of the columns that the model at `point` holds.
    """
    theta = residuals(partition, memo, point)[0].copy()
    fused.repair(theta, get_loss(point.loss).target(partition.y), partition.weight, *repair)
    block, places = point.held.block(partition, memo) if candidates is None else (partition, candidates)
    G = np.empty((places.shape[0], point.intercept.shape[0]))
    column_gradient(block.indptr, block.rows, block.values, theta, places, G)
    return Sums(add={"G": G})


def column_gradient(indptr: Any, rows: Any, values: Any, U: Array, candidates: NDArray[np.int64], G: Array) -> None:
    """Fill G = X_c'U for some columns c of a block."""
    if U.shape[1] == 1:
        one_output.column_sums(indptr, rows, values, candidates, U.reshape(-1), G.reshape(-1))
    else:
        columns.column_gradient(indptr, rows, values, U, candidates, G)


def active_gradient(partition: Partition, memo: Any, point: Point) -> Sums:
    """L, G_A and the bias sums at `point`, in one sweep of the active columns."""
    memo.forget("curvature")
    k, stepwise = point.intercept.shape[0], point.held.stepwise
    if stepwise is not None:
        U, total, loss, _ = residuals(partition, memo, point)
        found = {"bias": total.copy(), "loss": loss}
        return Sums(add=found | stepwise.held_sums(partition, memo, point.held.arranged, U[:, :k], None))
    single = single_margins(partition, memo, point)
    if single is not None:
        u, _, loss = single_state(partition, point.loss, single)
        sums = np.empty(point.held.n)
        one_output.column_sums(*columns_held(partition, memo, point.held), u, sums)
        return Sums(add={"bias": np.array([u.sum()]), "loss": loss, "G": sums[:, None]})
    G, total = np.zeros((point.W.shape[0], width(k))), np.zeros(k)
    loss = fused.active_gradient(*arguments_at(partition, memo, point), G, total)
    return Sums(add={"G": G[:, :k], "bias": total, "loss": loss})


def intercept_sums(partition: Partition, memo: Any, point: Point) -> Sums:
    """L, the bias sums and the Hessian of the intercept at `point`, (k, k)."""
    single = single_margins(partition, memo, point)
    if single is not None:
        u, h, loss = single_state(partition, point.loss, single)
        return Sums(add={"loss": loss, "bias": np.array([u.sum()]), "H": np.array([[h.sum()]])})
    k = point.intercept.shape[0]
    total, H = np.zeros(k), np.zeros((k, k))
    loss = fused.intercept_sums(*arguments_at(partition, memo, point), total, H)
    return Sums(add={"loss": loss, "bias": total, "H": H})


def dual_value(
    partition: Partition, memo: Any, point: Point, scale: Array, mix: Array, shift: Array, prior: Array
) -> Sums:
    """DUAL pass: the exact dual objective at a feasible point near U (docs/math.md 6)."""
    single, repair = single_margins(partition, memo, point), (scale, mix, shift, prior)
    target, weight, offset = get_loss(point.loss).target(partition.y), partition.weight, partition.offset
    if single is not None:
        value = float(loss_of_rows.single_dual_value(target, single, weight, *(float(one[0]) for one in repair)))
    else:
        value = fused.dual_value(*arguments_at(partition, memo, point), *repair)
    if offset is not None:
        value -= dual_of_offsets(residuals(partition, memo, point)[0], offset, target, weight, repair)
    return Sums(add={"dual": value})
