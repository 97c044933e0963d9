"""The memo: budget, order of eviction, tokens, threads."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from dboost.engine.local import LocalEngine
from dboost.engine.memo import MemoStore
from dboost.partition import Sums
from tests.engine import leaves


def test_what_was_used_least_recently_goes_first():
    store = MemoStore(240)
    for key in ("p", "q", "r"):
        store.get("run", key, "x", 0, lambda: np.zeros(10))
    store.get("run", "p", "x", 0, lambda: pytest.fail("p was kept"))
    store.get("run", "s", "x", 0, lambda: np.zeros(10))
    assert store.nbytes == 240
    built = []
    for key in ("p", "q"):
        store.get("run", key, "x", 0, lambda key=key: built.append(key) or np.zeros(10))
    assert built == ["q"]


def test_a_value_beyond_the_budget_is_handed_out_and_not_kept():
    store = MemoStore(100)
    store.get("run", "p", "x", 0, lambda: np.zeros(10))
    assert store.get("run", "q", "x", 0, lambda: np.zeros(100)).size == 100
    assert store.nbytes == 80 and len(store) == 1


def test_threads_build_once():
    store = MemoStore(10**6)
    built, go = [], threading.Event()

    def build():
        built.append(1)
        go.wait(5)
        return np.zeros(3)

    results = []
    threads = [threading.Thread(target=lambda: results.append(store.get("run", "p", "x", 0, build))) for _ in range(4)]
    for thread in threads:
        thread.start()
    go.set()
    for thread in threads:
        thread.join(10)
    assert len(built) == 1 and len(results) == 4
    assert all(r is results[0] for r in results)


def test_many_threads_stay_within_the_budget():
    store = MemoStore(800)

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(300):
            key, token = str(rng.integers(8)), int(rng.integers(4))
            value = store.get("run", key, "x", token, lambda t=token: np.full(20, t))
            assert value[0] == token

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert store.nbytes <= 800
    assert store.nbytes == 160 * len(store)


def test_what_stays_is_dropped_last():
    store = MemoStore(100)
    made = []

    def value(name, size, stays=False):
        def build():
            made.append(name)
            return np.zeros(size, np.int8)

        return store.get("run", name, "kind", None, build, stays)

    value("a", 40, stays=True)
    for i in range(5):
        value(f"b{i}", 40)
        value("a", 40, stays=True)
    assert made.count("a") == 1 and store.nbytes == 80
    value("c", 90)
    assert made.count("c") == 1 and store.nbytes == 80, "what does not fit beside it is handed out and not kept"
    for _ in range(2):
        for name in ("d", "e", "f"):
            value(name, 30, stays=True)
    # in turn, the last of them finds no room, and the others are found again
    assert [made.count(name) for name in "adef"] == [1, 1, 1, 2] and store.nbytes == 100
    store.get("another", "g", "kind", None, lambda: np.zeros(70, np.int8))
    assert store.nbytes <= 100 and {"run", "another"} >= store.runs() >= {"another"}, "a run left behind blocks none"


@pytest.mark.parametrize(("budget", "per_pass"), [(10_000, 0), (2_000, 7), (0, 8)])
def test_some_partitions_stay_where_not_all_fit(budget, per_pass, tmp_path):
    log = tmp_path / "reads"
    specs, rows = leaves.make_specs([5] * 8, str(log))
    specs = [replace(spec, nbytes_estimate=500) for spec in specs]
    with LocalEngine(2, memo=MemoStore(budget)) as engine:
        engine.set_plan(specs, rows, "run")
        for _ in range(3):
            engine.map_reduce(leaves.unremembered, name="features")
    assert len(log.read_text().splitlines()) == 8 + 2 * per_pass


@pytest.mark.parametrize("shards", [None, [0], [0, 1, 2]])
@pytest.mark.parametrize("held", [True, False])
def test_what_shards_share_is_built_once_and_gone_after_the_pass(shards, held):
    """Partitions that are held are visited once for each shard, those that are read again once for all."""
    store = MemoStore(10**6)
    plan, rows = leaves.make_specs([7] * 4)
    items = [spec.load() if held else replace(spec, nbytes_estimate=10**7) for spec in plan]
    built, most = [], []

    def leaf(partition, memo, *args):
        memo.get("residual", "point", lambda: built.append(1) or np.zeros(100), passing=True)
        most.append(store.nbytes)
        return Sums(add={"n": float(partition.n_rows)})

    with LocalEngine(1, store) as engine:
        engine.set_plan(items, rows, "run")
        engine.map_reduce(leaf, name="pass", shards=shards)
        assert len(store) == (0 if held else 4), "labels of what is read again"
        labels = store.nbytes
    assert len(built) == 4 and store.nbytes == 0
    assert labels < 4 * 100 and max(most) == (4 * 800 if held and shards == [0, 1, 2] else labels)
