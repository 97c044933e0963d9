"""Arguments as bytes: constants are left out of them, and reach each worker once."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from dask.base import tokenize

from dboost.engine.dask.engine import DaskEngine
from dboost.engine.dask.submission import Graph
from dboost.engine.dask.wire_format import Blob, pack, pack_whole, unpack
from dboost.partition import Sums
from tests.engine import leaves
from tests.engine.conftest import ROWS, scheduler_keys, wait_until


@dataclass(frozen=True, eq=False)
class Big:
    """A constant."""

    sent_once = True

    values: np.ndarray


def with_constant(partition: Any, memo: Any, big: Big, factor: float) -> Sums:
    """A sum that shows which object the leaf was given."""
    return Sums(add={"sum": factor * big.values.sum()}, parts={"id": [id(big)]})


def test_constants_are_left_out():
    big, other = Big(np.ones(100_000)), Big(np.zeros(10))
    blob, constants = pack({"a": (big, 1), "b": [other, big]})
    assert blob.nbytes < 2000
    assert constants[0] is big and constants[1] is other and len(constants) == 2
    back = unpack(blob, constants)
    assert back["a"] == (big, 1) and back["b"][0] is other and back["b"][1] is big
    assert np.array_equal(unpack(pack_whole(big)).values, big.values)


@pytest.mark.parametrize("protocol", [4, 5])
def test_bytes_survive_a_message(protocol):
    blob = pack_whole(lambda x: x + 1)
    buffers: list[Any] = []
    callback = {"buffer_callback": buffers.append} if protocol == 5 else {}
    message = pickle.dumps((blob, blob), protocol=protocol, **callback)
    assert len(buffers) == (1 if protocol == 5 else 0), "bytes that are shared travel once"
    again, twin = pickle.loads(message, buffers=buffers)
    assert again is twin and again.nbytes == blob.nbytes
    assert unpack(again)(1) == 2


def test_a_graph_is_not_read_through_for_its_name():
    # Dask hashes all arguments of a graph otherwise: a second for some megabytes.
    graph = Graph()
    graph.add("a", "tcp://there", leaves.describe, Blob(b"x"))
    assert tokenize(graph) != tokenize(graph)


def test_a_constant_is_sent_once_to_each_worker(two_processes):
    big = Big(np.ones(1_000_000))
    with DaskEngine(two_processes) as engine:
        engine.set_plan(*leaves.make_specs(ROWS), "run")
        seen = set()
        for factor in (1.0, 2.0, 3.0):
            total = engine.map_reduce(with_constant, big, factor, name="constant")
            assert total.add["sum"] == pytest.approx(factor * 1e6 * len(ROWS))
            seen.add(tuple(sorted(total.parts["id"])))
        assert len(seen) == 1, "the same objects in every pass"
        assert 2 * big.values.nbytes < engine.bytes_moved < 2.1 * big.values.nbytes
        shards = engine.map_reduce(leaves.sharded, 1.0, name="finish", shards=[(0, 3), (3, 6)], finish=taken,
                                   finish_args=lambda shard: (big,))  # fmt: skip
        assert shards == [1e6, 1e6]
        assert engine.bytes_moved < 2.1 * big.values.nbytes
    wait_until(lambda: scheduler_keys(two_processes) == [])


def taken(total: Sums, shard: Any, big: Big) -> float:
    return float(big.values.sum())


@pytest.mark.parametrize("count, picks", [(1, 1000), (3, 1000), (3, 8)])
def test_sums_of_many_workers_are_merged_by_a_tree(two_processes, monkeypatch, count, picks):
    # As if there were many workers: the tree must give the bits of the driver's own merging.
    monkeypatch.setattr("dboost.engine.dask.pass_tasks.FAN_IN", 2)
    monkeypatch.setattr("dboost.engine.dask.pass_tasks.PICKS", picks)
    monkeypatch.setattr("dboost.engine.dask.submission.HOLD_BYTES", 0)
    monkeypatch.setattr("dboost.engine.dask.pass_tasks.TREE_BYTES", -1)
    monkeypatch.setattr("dboost.engine.dask.engine.assign", many(count))
    specs, rows = leaves.make_specs([20, 1, 1, 40, 3, 0, 9, 30, 7, 7, 2, 11])
    with DaskEngine(two_processes) as engine:
        engine.set_plan(specs, rows, "run")
        total = engine.map_reduce(leaves.plain, 0.1, name="plain")
        parts = engine.map_reduce(leaves.sharded, 0.1, name="sharded", shards=[(0, 2), (2, 6)])
    monkeypatch.undo()
    with DaskEngine(two_processes) as engine:
        engine.set_plan(specs, rows, "run")
        expected = engine.map_reduce(leaves.plain, 0.1, name="plain")
    assert total.parts == expected.parts
    assert total.add["column"].tobytes() == expected.add["column"].tobytes()
    assert np.concatenate([p.add["column"] for p in parts]).tobytes() == expected.add["column"].tobytes()


def many(count):
    """An assignment for `count` times as many workers as there are, plus one."""
    from dboost.engine.dask.assignment import Bundle, assign

    def assigned(rows, workers):
        names = [(f"w{i}", 1) for i in range(count * len(workers) + 1)]
        known = [address for address, _ in workers]
        found = assign(rows, names)
        return [Bundle(b.lo, b.hi, b.nodes, known[i % len(known)]) for i, b in enumerate(found)]

    return assigned
