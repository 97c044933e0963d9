"""An engine of one's own: one partition after the other, in this process.

This file is the whole engine. The line that lets a fit find it stands in ``test_toy_engine.py``::

    ENGINES["tests.extending.toy_engine.OneByOne"] = ("tests.extending.toy_engine", "OneByOneEngine")

The key is the class of what a user passes as ``client=``, the value the class of the engine that runs on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dboost.engine.base import Finish, FinishArgs, Leaf, finishing_args
from dboost.engine.defaults import EngineDefaults
from dboost.engine.memo import Memo, MemoStore
from dboost.engine.tree import fold_many
from dboost.partition import Sums


@dataclass(frozen=True)
class OneByOne:
    """What a user passes as ``client=``: how many bytes the engine may remember between passes."""

    memo_bytes: int = 2**20


class OneByOneEngine(EngineDefaults):
    """Sums over partitions in a loop; all else that an engine does is that of ``EngineDefaults``."""

    def __init__(self, client: OneByOne) -> None:
        super().__init__(n_threads=1)
        self._store = MemoStore(client.memo_bytes)

    def map_reduce(
        self,
        leaf: Leaf,
        *args: Any,
        name: str,
        shards: Sequence[Any] | None = None,
        finish: Finish | None = None,
        finish_args: FinishArgs | None = None,
    ) -> Any:
        """See ``Engine.map_reduce``: one total for each shard, along the tree that fixes the bits of a sum."""
        plan, results = self.planned(name), []
        given = [args] if shards is None else [(shard, *args) for shard in shards]

        def sums_of(job: int, number: int) -> Sums:
            partition = plan.items[number].load()
            return leaf(partition, Memo(self._store, plan.run_id, partition.key), *given[job])

        def done(job: int, total: Sums) -> None:
            shard = None if shards is None else shards[job]
            results.append(total if finish is None else finish(total, shard, *finishing_args(finish_args, shard)))

        # One thread: the jobs end in their order.
        fold_many(plan.rows, [(0, len(plan.rows))] * len(given), sums_of, Sums.merge, done)
        return results[0] if shards is None else results
