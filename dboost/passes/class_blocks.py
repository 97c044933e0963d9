"""The passes of ShareBoost and of its corrective step: blocks of the Hessian of each class, trials of rows, mistakes.

Covers: three leaves, as ``dboost.passes``. Does not cover: what is made of the sums
(``dboost.solvers.conjugate.class_blocks``, ``dboost.boosting.shareboost``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.examples import fused, loss_of_rows
from dboost.compiled.solves import descent
from dboost.compiled.sparse import columns
from dboost.hypotheses.held_by_model import Held
from dboost.losses import get_loss
from dboost.partition import Partition, Sums
from dboost.passes import Point, curvature_of
from dboost.passes.folds import wrong_share
from dboost.passes.point import margins_at


def class_grams(
    partition: Partition,
    memo: Any,
    point: Point,
    blocks: tuple[NDArray[np.int64], ...],
    intercept: bool,
    every: int,
) -> Sums:
    """X_B' diag(h_r) X_B for some sets B of the rows held and every output r: blocks of the Hessian at `point`.

    Summed over every so many examples of the partition, and scaled up.

    Returns "gram0", "gram1", ...: the upper triangles, (k, b, b), or (k, b + 1, b + 1) with the intercept as a last
    column of ones.
    """
    h, rank_one = memo.get("curvature", point.token, lambda: curvature_of(partition, memo, point))
    m, k = partition.n_rows, point.intercept.shape[0]
    # products of columns of 1e21 are no float32
    h = h.astype(np.float64)
    share = m / max(1, len(range(0, m, every)))
    block, places = point.held.block(partition, memo)
    sums = Sums()
    for number, chosen in enumerate(blocks):
        if chosen.shape[0] == point.held.n:
            cut = point.held.cut(partition, memo)
        else:
            cut = columns.cut_rows(block.indptr, block.rows, block.values, places[chosen], block.n_rows)
        size = chosen.shape[0] + (1 if intercept else 0)
        out = np.zeros((size, size, h.shape[1]))
        descent.curvature_blocks(*cut, h, rank_one, np.arange(chosen.shape[0]), 0, every, intercept, out)
        sums.add[f"gram{number}"] = share * np.ascontiguousarray(np.moveaxis(out[:, :, :k], 2, 0))
    return sums


def row_trials(
    partition: Partition, memo: Any, point: Point, fresh: Held, u: NDArray[np.float64], live: NDArray[np.bool_]
) -> Sums:
    """What each fresh column c, alone beside the model at `point` with the row u_c, makes of the loss.

    The trials of ShareBoost's rule 2 (paper, section 3.1; docs/math.md 7 (J)).

    `point`: the model; its k outputs. `fresh`: the c columns. `u`, (c, k): their rows of W. `live`, (c,): columns that
    are asked for. Returns "change" (c,), the loss less that at `point`; "G" (c, k) and "H" (c, k, k), minus the
    gradient and the Hessian in u_c. Zero for columns that are not `live`.
    """
    k = point.intercept.shape[0]
    change, G, H = np.zeros(fresh.n), np.zeros((fresh.n, k)), np.zeros((fresh.n, k, k))
    F, loss = margins_at(partition, memo, point), get_loss(point.loss)
    block, places = fresh.block(partition, memo)
    for c in np.flatnonzero(live).tolist():
        mine = slice(int(block.indptr[places[c]]), int(block.indptr[places[c] + 1]))
        rows, x = block.rows[mine], block.values[mine].astype(np.float64)
        given = loss.target(partition.y[rows]), partition.weight[rows]
        trial, U = F[rows] + x[:, None] * u[c], np.zeros((rows.shape[0], k))
        h, rank_one = fused.hessians(trial, 0, k, *given)
        # by one loop, so that a row of zeros changes nothing
        before = loss_of_rows.residuals(F[rows], 0, k, *given, U, np.zeros(k))
        change[c] = loss_of_rows.residuals(trial, 0, k, *given, U, np.zeros(k)) - before
        # not by BLAS, whose threads may change the bits
        G[c] = np.einsum("i,ir->r", x, U)
        H[c] = -np.einsum("ir,is->rs", (x * x * rank_one)[:, None] * h, h)
        H[c][np.diag_indices(k)] += np.einsum("i,ir->r", x * x, h)
    return Sums(add={"change": change, "G": G, "H": H})


def mistakes(partition: Partition, memo: Any, point: Point) -> Sums:
    """Weight of the examples that the margins of a model classify wrongly."""
    wrong = wrong_share(partition.y, margins_at(partition, memo, point))
    return Sums(add={"wrong": float(np.sum(partition.weight * wrong))})
