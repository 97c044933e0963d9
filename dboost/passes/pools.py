"""The passes over pools of hypotheses: what one partition contributes to the sums of candidates that are not stored.

Covers: leaf functions as in ``dboost.passes``, for candidates of a pool and those between them.
Does not cover: the sums themselves (``Pool.sums``), or what the driver makes of them (``dboost.problem.induced``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.examples import fused
from dboost.hypotheses.base import THETA, Pool
from dboost.hypotheses.capabilities import Binned
from dboost.losses import get_loss
from dboost.partition import Partition, Sums
from dboost.passes import Point, arguments_at
from dboost.passes.residuals import branches

Array = NDArray[np.float64]


def price(
    partition: Partition, memo: Any, shard: Any, pool: Pool, point: Point, repair: tuple[Array, ...], parts: str
) -> Sums:
    """SCORE pass over one shard of a pool of hypotheses, at the dual point that the loss repairs U to.

    `repair`, (k,): keep, mix, shift and prior (``losses.base.Repair``). `parts`: {"theta", "signs", "pulls",
    "branches"}. What the sums are of: Theta; its positive and negative parts; the branches of the loss, which the
    exponential bound needs (mu+ and mu-); or these with the sums of Theta.
    """

    if parts == "pulls":
        return pool.sums(partition, memo, shard, *_pulls(partition, memo, point)[:2])
    theta = _repaired(partition, memo, point, repair)
    if parts == "theta":
        return pool.sums(partition, memo, shard, theta, None)
    if parts == "signs":
        return pool.sums(partition, memo, shard, np.maximum(theta, 0.0), np.maximum(-theta, 0.0))
    sums = pool.sums(partition, memo, shard, *_pulls(partition, memo, point)[:2])
    other = pool.sums(partition, memo, shard, theta, None)
    sums.add |= {THETA + name: value for name, value in other.add.items() if name not in ("square", "total")}
    return sums


def finished(total: Sums, shard: Any, pool: Pool, finish: Any, *arguments: Any) -> Any:
    """`finish` of the hypotheses that a shard's sums are of, given these; for ``Engine.map_reduce``."""
    return finish(pool.complete(shard, total), pool.narrowed(shard, total), *arguments)


def pulled(partition: Partition, memo: Any, shard: Any, pool: Pool, point: Point) -> Sums:
    """mu+ and mu- of one shard of a pool of hypotheses, the pulls of all examples and the loss."""
    plus, minus, loss = _pulls(partition, memo, point)
    sums = pool.sums(partition, memo, shard, plus, minus)
    sums.add |= {"bias_plus": plus.sum(axis=0), "bias_minus": minus.sum(axis=0), "loss": loss}
    return sums


def price_between(
    partition: Partition, memo: Any, nodes: Any, pool: Binned, point: Point, repair: tuple[Array, ...], parts: str
) -> Sums:
    """SCORE pass over hypotheses that lie between those of a shard; as `price` ("theta", "pulls" or "branches")."""
    columns: list[Array] = []
    if parts != "theta":
        columns += _pulls(partition, memo, point)[:2]
    if parts != "pulls":
        theta = _repaired(partition, memo, point, repair)
        columns += [np.maximum(theta, 0.0), np.maximum(-theta, 0.0)]
    return pool.inside(partition, memo, nodes, np.hstack(columns))


def _repaired(partition: Partition, memo: Any, point: Point, repair: tuple[Array, ...]) -> Array:
    """Theta of a partition: its residuals as the loss repairs them."""

    def residuals() -> Array:
        k = point.intercept.shape[0]
        return np.ascontiguousarray(fused.residuals(*arguments_at(partition, memo, point), np.zeros(k))[0][:, :k])

    def repaired() -> Array:
        theta = memo.get("unrepaired", point.token, residuals, passing=True).copy()
        fused.repair(theta, get_loss(point.loss).target(partition.y), partition.weight, *repair)
        found: Array = theta
        return found

    found: Array = memo.get("theta", point.token, repaired, passing=True)
    return found


def _pulls(partition: Partition, memo: Any, point: Point) -> tuple[Array, Array, float]:
    """The branches of the loss, both >= 0, and the loss."""
    plus, minus, _, loss = branches(partition, memo, point)
    return plus, minus, loss
