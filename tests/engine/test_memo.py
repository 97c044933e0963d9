"""The memo: budget, order of eviction, tokens, threads."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse as sp

from dboost.engine.local import LocalEngine
from dboost.engine.memo import Memo, MemoStore, nbytes_of
from dboost.partition import Sums
from tests.engine import leaves
from tests.engine.leaves import make_partition


def test_sizes():
    a = np.zeros(10)
    assert nbytes_of(a) == 80
    assert nbytes_of((a, [a, {"x": a}])) == 240
    partition = make_partition("p", 7)
    assert nbytes_of(partition) == partition.nbytes > 0
    matrix = sp.csr_array(np.eye(4))
    assert nbytes_of(matrix) >= matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes

    @dataclass
    class Pair:
        left: np.ndarray
        right: np.ndarray

    assert nbytes_of(Pair(a, a)) == 160


def test_a_hit_does_not_build():
    store = MemoStore(1000)
    memo = Memo(store, "run", "p0")
    value = memo.get("margins", 1, lambda: np.zeros(5))
    assert memo.get("margins", 1, lambda: pytest.fail("built again")) is value
    assert store.nbytes == 40


def test_runs_and_partitions_do_not_meet():
    store = MemoStore(1000)
    assert Memo(store, "a", "p").get("k", 0, lambda: "a") == "a"
    assert Memo(store, "b", "p").get("k", 0, lambda: "b") == "b"
    assert Memo(store, "a", "q").get("k", 0, lambda: "c") == "c"
    assert store.runs() == {"a", "b"}
    assert store.drop("a") == 2
    assert store.runs() == {"b"} and len(store) == 1
    store.drop("b")
    assert store.nbytes == 0


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


def test_one_state_is_kept():
    store = MemoStore(10**6)
    for token in range(5):
        store.get("run", "p", "margins", token, lambda: np.zeros(10))
    assert store.nbytes == 80 and len(store) == 1
    store.get("run", "p", "margins", 4, lambda: pytest.fail("the last was kept"))


def test_a_value_beyond_the_budget_is_handed_out_and_not_kept():
    store = MemoStore(100)
    store.get("run", "p", "x", 0, lambda: np.zeros(10))
    assert store.get("run", "q", "x", 0, lambda: np.zeros(100)).size == 100
    assert store.nbytes == 80 and len(store) == 1


def test_a_failed_build_leaves_nothing():
    store = MemoStore(100)
    with pytest.raises(OSError, match="gone"):
        store.get("run", "p", "x", 0, lambda: (_ for _ in ()).throw(OSError("gone")))
    assert store.get("run", "p", "x", 0, lambda: 5) == 5


def test_nested_builds():
    store = MemoStore(1000)
    memo = Memo(store, "run", "p")
    assert memo.get("outer", 0, lambda: memo.get("inner", 0, lambda: np.ones(2)).sum()) == 2


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


def test_what_passes_is_kept_for_the_one_visit_whatever_the_budget():
    store = MemoStore(0)
    built = []

    def build():
        built.append(1)
        return np.zeros(5)

    visit = Memo(store, "run", "p", once=True)
    assert visit.get("residual", 1, build, passing=True) is visit.get("residual", 1, build, passing=True)
    assert len(built) == 1
    visit.get("residual", 2, build, passing=True)
    visit.get("theta", 1, build, passing=True)
    Memo(store, "run", "p", once=True).get("residual", 1, build, passing=True)
    assert len(built) == 4 and store.nbytes == 0


def test_a_kind_is_forgotten_for_one_partition():
    store = MemoStore(1000)
    for key in ("p", "q"):
        for kind in ("curvature", "cut"):
            Memo(store, "run", key).get(kind, 1, lambda: np.zeros(5))
    Memo(store, "run", "p").forget("curvature")
    Memo(store, "run", "p").forget("margins")
    Memo(store, "other", "q").forget("curvature")
    assert store.nbytes == 120
    assert Memo(store, "run", "p").get("curvature", 1, lambda: "again") == "again"
    Memo(store, "run", "q").get("curvature", 1, lambda: pytest.fail("q was kept"))


def test_what_shards_share_is_built_once_and_gone_after_the_pass():
    """Partitions that are held are visited once for each shard, those that are read again once for all."""
    for held, shards in itertools.product((True, False), (None, [0], [0, 1, 2])):
        store = MemoStore(10**6)
        plan, rows = leaves.make_specs([7] * 4)
        items = [spec.load() if held else replace(spec, nbytes_estimate=10**7) for spec in plan]
        built, most = [], []

        def leaf(partition, memo, *args, store=store, built=built, most=most):
            memo.get("residual", "point", lambda: built.append(1) or np.zeros(100), passing=True)
            most.append(store.nbytes)
            return Sums(add={"n": float(partition.n_rows)})

        with LocalEngine(1, store) as engine:
            engine.set_plan(items, rows, "run")
            for passes in (1, 2):
                engine.map_reduce(leaf, name="pass", shards=shards)
                assert len(built) == 4 * passes, (held, shards)
                assert len(store) == (0 if held else 4), "labels of what is read again"
            labels = store.nbytes
        assert store.nbytes == 0
        assert labels < 4 * 120 and max(most) == (4 * 800 if held and shards == [0, 1, 2] else labels), (held, shards)
