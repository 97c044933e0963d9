"""The tasks of a pass for any number of workers, as the engine plans them, without any worker.

Covers: the engine's own graph of each kind of pass at the full size: tasks, where they are to run, what they take, how
large their results are.
Does not cover: whether they really run so, which ``measure`` notes and ``command`` compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dboost.engine.base import EnginePlan
from dboost.engine.dask import tasks
from dboost.engine.dask.assignment import assign
from dboost.engine.dask.pass_tasks import PassTasks
from dboost.engine.dask.wire_format import pack
from dboost.problem.shards import column_shards
from lab.many_workers.ledger import Entry
from lab.many_workers.sizes import Question

TREE_BYTES = 8 * 2**20
"""As in the engine, whose limit may be another one while the simulation runs."""


@dataclass(frozen=True)
class Pass:
    """What a kind of pass sends and sums, at the full size.

    Parameters
    ----------
    name : str
    arguments : int
        Bytes of what all bundles take: W, and a direction where there is one.
    sums : int
        Bytes of the sums of a bundle.
    shards : int
        Pieces that the sums are cut into; 0: they go to the driver whole.
    finishing : int
        Bytes of what the reductions of all shards take.
    finished : int
        Bytes of what all reductions give.
    """

    name: str
    arguments: int
    sums: int
    shards: int = 0
    finishing: int = 0
    finished: int = 0


def kinds_of(question: Question) -> list[Pass]:
    """The kinds of pass of a fit."""
    W = 8 * question.active * question.classes
    shards = len(column_shards(question.features, 8 * question.classes))
    # a reduction takes the number, strength and curvature of each column, and gives the norm of its gradient
    sums = 8 * question.features * question.classes
    score = Pass("score", W, sums, shards, 24 * question.features, 8 * question.features)
    return [score, Pass("gradient", W, W), Pass("hessian", 2 * W, W), Pass("grid", 2 * W, 24)]


class _NoHoldings:
    """Holdings that hold nothing: what a graph is made of."""

    def pack(self, value: Any) -> Any:
        return pack(value)

    def count(self, nbytes: int) -> None:
        """Nothing is sent."""

    def of_bundle(self, plan: Any, bundle: Any) -> tuple[Any, Any]:
        return None, None

    def constants(self, values: Any, address: str | None) -> list[Any]:
        return []


def planned(kind: Pass, workers: int, per_worker: int = 1) -> list[Entry]:
    """The tasks of a pass, in an order in which they may run; sizes are those of the full size."""
    count = workers * per_worker
    plan = EnginePlan(tuple(range(count)), (1000,) * count, "planned")
    held: Any = _NoHoldings()
    work = PassTasks(kind.name, "planned", held)
    bundles = assign(plan.rows, [(f"worker-{i:04d}", 1) for i in range(workers)])
    shards = [(i, i + 1) for i in range(kind.shards)]
    branches = work.bundles(plan, bundles, (None, None, np.zeros(kind.arguments // 8), shards, None))
    if shards:
        work.reductions(plan, branches, shards, None, None)
    elif kind.sums * workers > TREE_BYTES:
        work.merged(plan, branches)
    return _entries(kind, work.graph, work.graph.places)


def _entries(kind: Pass, graph: dict[str, Any], places: dict[str, str]) -> list[Entry]:
    found: dict[str, Entry] = {}
    for key, task in graph.items():
        needs = tuple(needed(task, graph))
        fixed = {
            tasks.hold: kind.arguments,
            tasks.bundle_task: kind.sums,
            tasks.pick: kind.sums // max(1, kind.shards),
            tasks.reduce_task: kind.finished // max(1, kind.shards),
        }
        # merged sums are as large as each of those that they are merged of
        size = fixed[task[0]] if task[0] in fixed else found[needs[0]].nbytes
        found[key] = Entry(key, places[key], size, needs)
    return list(found.values())


def needed(task: Sequence[Any], graph: dict[str, Any]) -> list[str]:
    """Keys of the tasks whose results a task takes."""
    given = [one for part in task[1:] for one in (part if isinstance(part, list) else [part])]
    return [one for one in given if isinstance(one, str) and one in graph]
