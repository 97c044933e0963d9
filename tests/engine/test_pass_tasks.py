"""The graph of a pass for many workers, without any: how many tasks, where they run, what they take from where."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from dboost.engine.base import EnginePlan
from dboost.engine.dask import tasks
from dboost.engine.dask.assignment import assign
from dboost.engine.dask.pass_tasks import FAN_IN, PICKS, TREE_BYTES, TREE_WORKERS, PassTasks, SumSizes
from dboost.engine.dask.wire_format import pack

SHARDS = [(i, i + 1) for i in range(13)]


class NoHoldings:
    """Holdings that hold nothing: what a graph is made of."""

    def pack(self, value: Any) -> Any:
        return pack(value)

    def count(self, nbytes: int) -> None:
        pass

    def of_bundle(self, plan: Any, bundle: Any) -> tuple[Any, Any]:
        return pack(bundle)[0], None

    def constants(self, values: Any, address: str | None) -> list[Any]:
        return []


def graph_of(workers: int, nbytes: int = 0, shards: Any = SHARDS) -> tuple[dict[str, Any], dict[str, str], list[str]]:
    """Tasks, places and wanted keys of a pass whose leaves take an argument of so many bytes."""
    plan = EnginePlan(tuple(range(workers)), (10,) * workers, "run")
    work = PassTasks("score", "mark", NoHoldings())  # type: ignore[arg-type]
    bundles = assign(plan.rows, [(f"w{i}", 1) for i in range(workers)])
    branches = work.bundles(plan, bundles, ("run", None, np.zeros(nbytes // 8), shards, None))
    wanted = work.reductions(plan, branches, shards, None, None)
    return dict(work.graph), work.graph.places, wanted


def takes(task: Any, graph: dict[str, Any]) -> list[str]:
    """Keys of the tasks whose results a task takes."""
    given = [one for part in task[1:] for one in (part if isinstance(part, list) else [part])]
    return [one for one in given if isinstance(one, str) and one in graph]


def test_no_worker_hands_a_large_argument_to_many() -> None:
    for workers in [5, 8, 64, 100, 1000, 1024]:
        graph, places, _ = graph_of(workers, 40_000_000)
        sent: Counter[str] = Counter()
        for key, task in graph.items():
            for need in takes(task, graph):
                if graph[need][0] is tasks.hold and places[need] != places[key]:
                    sent[need] += 1
        levels = 1
        while FAN_IN**levels < workers:
            levels += 1
        assert max(sent.values()) <= levels * (FAN_IN - 1) + 1
        assert sum(sent.values()) == workers - 1, "each worker but the first gets it once"


@pytest.mark.full
def test_a_pass_of_many_shards_has_few_tasks_for_a_worker() -> None:
    for workers in [7, 64, 100, 1000, 1024]:
        graph, _, wanted = graph_of(workers)
        roles = Counter(task[0] for task in graph.values())
        assert roles[tasks.bundle_task] == workers and len(wanted) == roles[tasks.reduce_task] == len(SHARDS)
        assert roles[tasks.pick] <= PICKS
        assert len(graph) <= 2 * workers + 1.2 * PICKS + len(SHARDS)


def test_shards_are_merged_by_different_workers() -> None:
    graph, places, _ = graph_of(64)
    merging = Counter(places[key] for key, task in graph.items() if task[0] is tasks.merge_task)
    assert sum(merging.values()) == 8 * len(SHARDS)
    assert len(merging) == 64 and max(merging.values()) == 2


def test_every_merge_runs_where_some_of_its_sums_are() -> None:
    graph, places, _ = graph_of(1000)
    for key, task in graph.items():
        if task[0] in (tasks.merge_task, tasks.pick):
            assert places[key] in {places[need] for need in takes(task, graph)}


def test_a_tree_stays_where_it_is_wanted() -> None:
    sizes = SumSizes()
    assert sizes.by_tree("grid", TREE_WORKERS + 1) and not sizes.by_tree("grid", TREE_WORKERS)
    each = TREE_BYTES // 50
    sizes.note("grid", 100 * each, 100)
    assert sizes.by_tree("grid", 100)
    # of the merged sums fewer arrive, together less than the limit
    sizes.note("grid", 8 * each, 8)
    assert sizes.by_tree("grid", 100)
    sizes.note("grid", 8 * each // 100, 8)
    assert not sizes.by_tree("grid", 100)
