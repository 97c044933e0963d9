"""Shards of columns: how candidates are cut, and what a shard has to say after a pass.

Summaries are small, so that full sums stay where they were formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost import passes
from dboost.partition import Sums
from dboost.passes import Point
from dboost.passes.projected import projected_gradient
from dboost.penalties.bound import BoundPenalty
from dboost.problem.iterate import Iterate, Score

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# A shard of columns holds about this many bytes of sums; more would not fit next to the data on a worker. A few partial
# sums are alive at a time.
_SHARD_BYTES = 64_000_000
# In one process a shard costs no turn through a scheduler: from so many bytes of all sums on they are smaller, which
# saves memory, and time as they stay in the cache. Fewer are one shard: several share the residuals, which are then
# held for all examples.
ONE_SHARD_BYTES = 24_000_000
_SMALL_SHARD_BYTES = 4_000_000


@dataclass(frozen=True)
class ShardSummary:
    """Standing of a shard's columns."""

    norms: Array  # (c,): Dual norms ||G_j||_* of the shard's columns.
    best: Rows  # The columns with the largest positive scores, their scores and rows of G, best first.
    best_scores: Array
    best_G: Array
    active_G: Array  # Rows of G of the active columns in the shard, ascending.
    loss: float  # L and the column sums of U (with the first shard only).
    bias: Array


def summarise_shard(
    total: Sums,
    shard: Any,
    columns: Rows,
    active: Rows,
    scale: Array,
    penalty: BoundPenalty,
    exponential: bool,
    take: int,
) -> ShardSummary:
    """Reduce the sums of one shard to norms, scores and the rows that the driver needs.

    `total`: G, or mu+ and mu-, of the shard's columns.
    `columns`, (c,): the shard's columns, ascending.
    `active`: rows held by the model; their G is returned, and they are not candidates.
    `scale`, (c,): one-row bound constant (a_j or D_j) of each column.
    `penalty`: that of the columns; of infinite strength for a column that is excluded.
    `take`: how many of the best columns to keep.
    """
    with np.errstate(invalid="ignore"):
        # at a model whose loss is beyond all numbers both may be infinite; what is chosen there is not used
        G = total.add["mu_plus"] - total.add["mu_minus"] if exponential else total.add["G"]
    norms = penalty.dual_norm(G)
    lam, plain = penalty.strength, penalty.penalty
    held = among(columns, active)
    moving = (np.isfinite(scale) if exponential else scale > 0.0) & np.isfinite(lam) & ~held
    if take == 0:
        moving[:] = False
    elif plain.threshold and plain.separable:
        # most rows are optimal at zero, and have no score
        moving &= norms > lam
    some = np.flatnonzero(moving)
    scored = penalty[some]
    scores = np.zeros(columns.shape[0])
    if exponential:
        mu_plus, mu_minus = total.add["mu_plus"][some], total.add["mu_minus"][some]
        scores[some] = scored.score_exponential(mu_plus, mu_minus, scale[some])
    else:
        scores[some] = scored.score_quadratic(G[some], scale[some])
    positive = some[scores[some] > 0.0]
    order = positive[np.lexsort((columns[positive], -scores[positive]))[:take]]
    return ShardSummary(
        norms=norms,
        best=columns[order],
        best_scores=scores[order],
        best_G=G[order],
        active_G=G[held],
        loss=total.add.get("loss", np.nan),
        bias=total.add.get("bias", np.zeros(0)),
    )


def joined(summaries: Sequence[ShardSummary], iterate: Iterate, candidates: Rows, take: int) -> Score:
    """What all shards say of a model, in the order of their columns; `take` as in ``Problem.score``."""
    first = summaries[0]
    scores = np.concatenate([s.best_scores for s in summaries])
    columns = np.concatenate([s.best for s in summaries])
    order = np.lexsort((columns, -scores))[:take]
    G = np.concatenate([s.active_G for s in summaries])
    return Score(
        iterate=replace(iterate, loss=first.loss, G=G, bias=first.bias),
        candidates=candidates,
        norms=np.concatenate([s.norms for s in summaries]),
        best=columns[order],
        best_G=np.concatenate([s.best_G for s in summaries])[order],
    )


def among(columns: Rows, active: Rows) -> NDArray[np.bool_]:
    """Which of the `columns` are active; both ascending."""
    found = np.zeros(columns.shape[0], np.bool_)
    if columns.shape[0]:
        places = np.minimum(np.searchsorted(columns, active), columns.shape[0] - 1)
        found[places[columns[places] == active]] = True
    return found


def column_shards(count: int, row_bytes: int, workers: int = 2) -> list[tuple[int, int]]:
    """Ranges of columns whose sums, of `row_bytes` each, fit next to the data on each of some workers.

    Sums of different shards may only be added up where `workers` is not given: the cut is then the same anywhere.
    """
    small = workers == 1 and count * row_bytes > ONE_SHARD_BYTES
    step = max(1, (_SMALL_SHARD_BYTES if small else _SHARD_BYTES) // row_bytes)
    return [(s, min(s + step, count)) for s in range(0, count, step)] or [(0, 0)]


def repaired_shard(
    partition: Any, memo: Any, shard: tuple[int, int], candidates: Rows, point: Point, repair: tuple[Array, ...]
) -> Sums:
    """G at the repaired residuals for one shard of the candidates."""
    return passes.repaired_gradient(partition, memo, candidates[shard[0] : shard[1]], point, repair)


def projected_shard(
    partition: Any, memo: Any, shard: tuple[int, int], candidates: Rows, point: Point, repair: tuple[Any, ...]
) -> Sums:
    """G at projected residuals for one shard of the candidates (``passes.projected``)."""
    return projected_gradient(partition, memo, candidates[shard[0] : shard[1]], point, *repair)


def norms_of_shard(total: Sums, shard: Any, penalty: BoundPenalty) -> Array:
    """Dual norms ||G_j||_* of the columns of one shard."""
    return penalty.dual_norm(total.add["G"])


def score_shard(
    partition: Any,
    memo: Any,
    shard: tuple[int, int],
    candidates: Rows | None,
    point: Point,
    mu: bool,
    keep: bool = False,
) -> Sums:
    """Sums of one shard of the candidates; the loss and the intercept's sums come with the first."""
    columns = np.arange(*shard) if candidates is None else candidates[shard[0] : shard[1]]
    return passes.score(partition, memo, columns, point, mu, shard[0] == 0, keep)
