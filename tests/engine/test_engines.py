"""What every engine does, run over all of them."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dboost.engine.bundle import combine_sums
from dboost.engine.dask.engine import DaskEngine
from dboost.engine.local import LocalEngine
from dboost.engine.machine import available_cores
from dboost.engine.memo import Memo, MemoStore
from dboost.engine.tree import cumulate, split
from dboost.errors import DataError, UsageError
from tests.conftest import workers_here
from tests.engine import leaves
from tests.engine.conftest import same_bits, struck, wait_until

pytestmark = pytest.mark.timeout(60)

SIZES = {
    "one": [7],
    "equal": [20] * 8,
    "unequal": [1, 400, 3, 0, 0, 9, 1, 1, 60, 2, 5],
    "empty": [0, 0, 0],
    "label-sorted tail": [0, 1, 1, 1, 300],
}
SHARDS = [(0, 2), (2, 3), (3, 6)]


def by_hand(specs, rows, leaf, *args):
    """The sum from the definition of the tree, without any code of the engines."""
    cumulated = cumulate(rows)

    def value(lo, hi):
        if hi - lo == 1:
            partition = specs[lo].load()
            return leaf(partition, Memo(MemoStore(10**9), "hand", partition.key), *args)
        middle = split(cumulated, lo, hi)
        return value(lo, middle).merge(value(middle, hi))

    return value(0, len(rows))


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_a_scan_visits_the_partitions_in_order(engine, sizes):
    specs, rows = leaves.make_specs(sizes)
    expected = (1.0, ())
    for spec in specs:
        expected = leaves.chained(spec.load(), expected, 0.7)
    engine.set_plan(specs, rows, "run")
    assert engine.scan(leaves.chained, (1.0, ()), 0.7, name="chain") == expected
    with pytest.raises(DataError, match="not finite"):
        engine.scan(leaves.chained, (np.inf, ()), 0.7, name="chain")
    assert engine.scan(leaves.chained, (1.0, ()), 0.7, name="chain") == expected


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_the_sum_has_the_bits_of_the_tree(engine, sizes):
    specs, rows = leaves.make_specs(sizes)
    expected = by_hand(specs, rows, leaves.plain, 0.1)
    engine.set_plan(specs, rows, "run")
    for _ in range(2):
        total = engine.map_reduce(leaves.plain, 0.1, name="plain")
        assert same_bits(total, expected)
    assert total.parts["keys"] == [s.key for s in specs]
    assert total.add["rows"] == sum(sizes)


def test_the_order_of_addition_is_visible():
    # Otherwise the test above could not fail: another tree must give other bits.
    specs, rows = leaves.make_specs(SIZES["unequal"])
    a = by_hand(specs, rows, leaves.plain, 0.1)
    b = by_hand(specs, [1] * len(rows), leaves.plain, 0.1)
    assert a.add["column"].tobytes() != b.add["column"].tobytes()
    np.testing.assert_allclose(a.add["column"], b.add["column"], rtol=1e-9)


def test_any_number_of_workers_gives_the_same_bits():
    specs, rows = leaves.make_specs(SIZES["unequal"])
    expected = by_hand(specs, rows, leaves.plain, 0.1)
    for threads in (1, 2):
        with LocalEngine(threads) as engine:
            engine.set_plan(specs, rows, "run")
            assert same_bits(engine.map_reduce(leaves.plain, 0.1, name="plain"), expected)
    with workers_here(0, threads=2) as client:
        for workers in (1, 2, 3, 4):
            client.cluster.scale(workers)
            wait_until(lambda workers=workers: len(client.nthreads()) == workers)
            with DaskEngine(client) as engine:
                assert engine.n_workers == workers
                engine.set_plan(specs, rows, "run")
                assert same_bits(engine.map_reduce(leaves.plain, 0.1, name="plain"), expected)


@pytest.mark.parametrize("estimate", [10, 10**15], ids=["decoded blocks stay", "blocks are read again"])
def test_shards_are_pieces_of_the_same_sum(engine, estimate):
    sizes = SIZES["unequal"]
    specs = [leaves.Spec(f"block-{i}", n, nbytes_estimate=estimate) for i, n in enumerate(sizes)]
    whole = by_hand(specs, sizes, leaves.plain, 0.1)
    engine.set_plan(specs, sizes, "run")
    pieces = engine.map_reduce(leaves.sharded, 0.1, name="sharded", shards=SHARDS)
    assert len(pieces) == len(SHARDS)
    assert np.concatenate([p.add["column"] for p in pieces]).tobytes() == whole.add["column"].tobytes()
    assert np.concatenate([p.peak["top"] for p in pieces]).tobytes() == whole.peak["top"].tobytes()
    assert all(p.parts == whole.parts for p in pieces)
    finished = engine.map_reduce(
        leaves.sharded,
        0.1,
        name="sharded",
        shards=SHARDS,
        finish=leaves.finish,
        finish_args=lambda shard: (float(shard[0]),),
    )
    for shard, piece, (named, column, _) in zip(SHARDS, pieces, finished, strict=True):
        assert named == shard
        assert column == (piece.add["column"] + float(shard[0])).tolist()
    named, column, _ = engine.map_reduce(
        leaves.plain, 0.1, name="plain", finish=leaves.finish, finish_args=lambda shard: (1.0,)
    )
    assert named is None and column == (whole.add["column"] + 1.0).tolist()


def test_partitions_are_read_once(engine, tmp_path):
    log = tmp_path / "reads"
    specs, rows = leaves.make_specs(SIZES["unequal"], str(log))
    engine.set_plan(specs, rows, "run")
    for scale in (1.0, 2.0, 3.0):
        engine.map_reduce(leaves.plain, scale, name="plain")
    engine.map_reduce(leaves.sharded, 1.0, name="sharded", shards=SHARDS)
    reads = [line.split()[0] for line in log.read_text().splitlines()]
    assert sorted(reads) == sorted(s.key for s in specs)


def test_map_keeps_the_order(engine):
    specs, _ = leaves.make_specs([1] * 23)
    assert engine.map(leaves.describe, specs, "!", name="describe") == [f"{s.key}!" for s in specs]
    assert engine.map(leaves.describe, [], "!", name="describe") == []


def test_work_of_the_driver_stays_in_this_process(engine):
    here, before = os.getpid(), engine.bytes_moved
    # a closure: nothing is sent anywhere
    assert engine.on_driver(lambda i: (i * i, os.getpid()), range(40)) == [(i * i, here) for i in range(40)]
    assert engine.on_driver(lambda i: i, []) == [] and engine.bytes_moved == before
    with pytest.raises(ZeroDivisionError):
        engine.on_driver(lambda i: 1 // i, [2, 1, 0])


def test_work_of_the_driver_is_shared_by_its_threads(engine):
    """On Dask too: the workers wait for it."""
    threads = engine.n_threads if isinstance(engine, LocalEngine) else available_cores()
    # where two threads are there, neither goes on without the other
    meeting = threading.Barrier(min(2, threads))
    places = engine.on_driver(lambda i: meeting.wait(30.0), range(2))
    assert sorted(places) == ([0, 1] if threads > 1 else [0, 0])


def test_work_beside_the_caller_hands_over_what_it_gave_or_raised(engine):
    threads = engine.n_threads if isinstance(engine, LocalEngine) else available_cores()
    go = threading.Event()
    if threads == 1:
        # nobody else would do it
        go.set()
    found = engine.run_in_background(lambda: go.wait(30.0) and threading.current_thread().name)
    assert engine.on_driver(lambda i: i, range(3)) == [0, 1, 2]
    go.set()
    name = found()
    assert name and name == found() and (name != threading.current_thread().name) == (threads > 1)
    if threads > 1:
        failed = engine.run_in_background(lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            failed()


def test_errors_of_a_leaf_surface_unchanged(engine):
    specs, rows = leaves.make_specs(SIZES["equal"])
    engine.set_plan(specs, rows, "run")
    with pytest.raises(DataError) as caught:
        engine.map_reduce(leaves.bad_block, "block-5", name="bad")
    assert type(caught.value) is DataError
    assert (caught.value.file, caught.value.column, caught.value.exit_code) == ("block-5", "price", 3)
    with pytest.raises(ZeroDivisionError, match="a mistake in the leaf"):
        engine.map_reduce(leaves.broken, name="broken")
    with pytest.raises(DataError, match="unreadable"):
        engine.map(leaves.refuse, specs, "block-3", name="refuse")
    # The engine is as good as new afterwards.
    assert engine.map_reduce(leaves.plain, 1.0, name="plain").add["rows"] == sum(rows)


def test_errors_of_shards_and_of_finish_surface_unchanged(engine):
    specs, rows = leaves.make_specs([3, 4, 5])
    engine.set_plan(specs, rows, "run")
    with pytest.raises(DataError, match="block-1"):
        engine.map_reduce(leaves.bad_shard, "block-1", name="bad", shards=[0, 1])
    with pytest.raises(DataError, match="finish refused shard 1"):
        engine.map_reduce(leaves.bad_shard, "none", name="bad", shards=[0, 1], finish=leaves.bad_finish)


def test_big_arguments_arrive(engine, monkeypatch):
    monkeypatch.setattr("dboost.engine.dask.submission.HOLD_BYTES", 1000)
    monkeypatch.setattr("dboost.engine.dask.submission.PLAN_HOLD_BYTES", 0)
    specs, rows = leaves.make_specs([5, 6, 7])
    engine.set_plan(specs, rows, "run")
    W = np.random.default_rng(0).random(10_000)
    assert same_bits(engine.map_reduce(leaves.with_state, W, name="state"), by_hand(specs, rows, leaves.with_state, W))


def test_a_plan_must_make_sense(engine):
    with pytest.raises(UsageError, match="before set_plan"):
        engine.map_reduce(leaves.plain, 1.0, name="early")
    specs, rows = leaves.make_specs([5, 6, 7])
    with pytest.raises(UsageError, match="3 partitions and the rows of 2"):
        engine.set_plan(specs, rows[:2], "run")
    with pytest.raises(UsageError, match="no partition"):
        engine.set_plan([], [], "run")
    with pytest.raises(UsageError, match="partition 1 a negative"):
        engine.set_plan(specs, [1, -2, 3], "run")


def test_a_closed_engine_says_so(engine):
    specs, rows = leaves.make_specs([5, 6])
    engine.set_plan(specs, rows, "run")
    engine.map_reduce(leaves.plain, 1.0, name="plain")
    assert engine.seconds.kernels > 0
    engine.close()
    engine.close()
    with pytest.raises(UsageError, match="closed"):
        engine.map(leaves.describe, specs, "!", name="late")


def test_combining_leaves_its_inputs_alone():
    # They are results of other tasks; a reduction that is run again must find them as they were.
    specs, rows = leaves.make_specs([5, 6, 7, 8])
    nodes = [(0, 2), (2, 3), (3, 4)]
    values = [by_hand(specs[lo:hi], rows[lo:hi], leaves.plain, 0.1) for lo, hi in nodes]
    expected = by_hand(specs, rows, leaves.plain, 0.1)
    for _ in range(2):
        assert same_bits(combine_sums(rows, nodes, values), expected)
    only = combine_sums(rows[:1], [(0, 1)], values[:1])
    only.add["column"] += 1.0
    assert same_bits(combine_sums(rows, nodes, values), expected)


def test_threads_ask_for_passes_at_once(engine):
    """As fits without each fold do; together they give workers more to keep than an engine holds there."""
    engine.set_plan(*leaves.make_specs([5] * 6), "run")

    def asked(thread):
        several = [[leaves.Number(100.0 * thread + turn + n) for n in range(6)] for turn in range(0, 30, 6)]
        sums = [engine.map_reduce(leaves.with_numbers, numbers, name="work").add["all"] for numbers in several]
        return sums == [30.0 * sum(number.value for number in numbers) for numbers in several]

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(asked, range(6)))


def test_local_refuses_no_threads():
    with pytest.raises(UsageError, match="n_threads is 0"):
        LocalEngine(0)


def test_local_forgets_at_the_end():
    store = MemoStore(10**6)
    specs, rows = leaves.make_specs([5, 6])
    with LocalEngine(2, memo=store) as engine:
        engine.set_plan(specs, rows, "run")
        engine.map_reduce(leaves.plain, 1.0, name="plain")
        assert len(store) == 4
    assert len(store) == 0


@pytest.mark.parametrize("threads", [1, 3])
def test_local_obeys_an_interrupt(threads, tmp_path):
    marks = tmp_path / "marks"
    with LocalEngine(threads) as engine:
        engine.set_plan(*leaves.make_specs([5] * 200), "run")
        with struck(marks.exists, lambda: [os.getpid()], signal.SIGINT), pytest.raises(KeyboardInterrupt):
            engine.map_reduce(leaves.slow, 0.1, str(marks), name="slow")
        count = len(marks.read_text().splitlines())
        assert count < 50
        assert engine.map_reduce(leaves.plain, 1.0, name="plain").add["rows"] == 1000
        assert len(marks.read_text().splitlines()) == count


def test_local_callers_share_the_threads():
    """Of three callers of six threads each pass takes two; of one that is left all six."""
    together, most = set(), []

    def at_work(partition, memo, meet):
        together.add(threading.get_ident())
        most.append(len(together))
        meet.wait(5.0)
        together.discard(threading.get_ident())
        return leaves.plain(partition, memo, 1.0)

    def widest(engine, meet):
        most.clear()
        engine.map_reduce(at_work, meet, name="work")
        return max(most)

    with LocalEngine(6) as engine:
        engine.set_plan(*leaves.make_specs([5] * 12), "run")
        with engine.one_of_several(), engine.one_of_several(), engine.one_of_several():
            assert widest(engine, threading.Barrier(2)) == 2
        assert widest(engine, threading.Barrier(6)) == 6
