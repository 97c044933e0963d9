"""The summation tree: shape, frontier, and that every way of folding gives the same order."""

from __future__ import annotations

import itertools
import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dboost.engine.tree import (
    Abandoned,
    coalesce,
    combine,
    cumulate,
    fold_many,
    frontier,
    split,
)

SHAPES = [
    [1],
    [3, 5],
    [0, 0, 0, 0, 0],
    [0, 7, 0],
    [1] * 16,
    [100, 1, 1, 1, 1, 1, 1],
    [1, 1, 1, 1, 1, 1, 100],
    [0, 0, 5, 0, 0, 5, 0, 0],
    [2**i for i in range(20)],
    [random.Random(4).randrange(50) for _ in range(37)],
]


def bracket(rows, lo, hi):
    """The shape of the tree as text, from the definition."""
    if hi - lo == 1:
        return str(lo)
    middle = split(cumulate(rows), lo, hi)
    return f"({bracket(rows, lo, middle)} {bracket(rows, middle, hi)})"


def join(left, right):
    return f"({left} {right})"


def test_split_is_the_nearest_to_half():
    for rows in SHAPES:
        cumulated = cumulate(rows)
        for lo in range(len(rows)):
            for hi in range(lo + 2, len(rows) + 1):
                middle = split(cumulated, lo, hi)
                assert lo < middle < hi
                distance = [abs(2 * cumulated[c] - cumulated[lo] - cumulated[hi]) for c in range(lo + 1, hi)]
                assert distance[middle - lo - 1] == min(distance)


def test_a_subtree_knows_its_shape_from_its_own_rows():
    for rows in SHAPES:
        for lo, hi in frontier(rows, 4):
            own = rows[lo:hi]
            if hi - lo > 1:
                assert split(cumulate(own), 0, hi - lo) + lo == split(cumulate(rows), lo, hi)


def test_empty_partitions_make_a_shallow_tree():
    shape = bracket([0] * 1024, 0, 1024)
    assert shape.count("(") == 1023
    depth = deepest = 0
    for c in shape:
        depth += (c == "(") - (c == ")")
        deepest = max(deepest, depth)
    assert deepest == 10


def test_split_refuses_a_leaf():
    with pytest.raises(ValueError, match="two partitions"):
        split([0, 1], 0, 1)


def test_frontier_covers_in_order():
    for count in [1, 2, 3, 8]:
        for rows in SHAPES:
            nodes = frontier(rows, count)
            assert len(nodes) == min(len(rows), max(1, count))
            assert nodes[0][0] == 0 and nodes[-1][1] == len(rows)
            assert all(a[1] == b[0] for a, b in itertools.pairwise(nodes))
            values = [bracket(rows, lo, hi) for lo, hi in nodes]
            assert combine(rows, nodes, values, join) == bracket(rows, 0, len(rows))


def test_frontier_is_balanced():
    nodes = frontier([5] * 64, 4)
    assert nodes == [(0, 16), (16, 32), (32, 48), (48, 64)]
    assert frontier([], 3) == []


def test_coalesced_groups_still_combine():
    for rows in SHAPES:
        nodes = frontier(rows, 6)
        for cut in range(1, len(nodes)):
            groups = [coalesce(rows, nodes[:cut]), coalesce(rows, nodes[cut:])]
            merged = groups[0] + groups[1]
            assert len(merged) <= len(nodes)
            values = [bracket(rows, lo, hi) for lo, hi in merged]
            assert combine(rows, merged, values, join) == bracket(rows, 0, len(rows))
        assert coalesce(rows, nodes) == [(0, len(rows))]


def test_combine_refuses_what_is_no_cut():
    with pytest.raises(ValueError, match="do not cover"):
        combine([1, 1, 1, 1], [(0, 2)], ["a"], join)
    with pytest.raises(ValueError, match="do not belong"):
        combine([1, 1, 1, 1], [(0, 2), (2, 4), (1, 3)], ["a", "b", "c"], join)


def test_every_fold_has_the_same_shape():
    for threads in [1, 2, 5]:
        for rows in SHAPES:
            found = {}
            jobs = [(0, len(rows))] * 2 + frontier(rows, 3)
            with ThreadPoolExecutor(threads) as pool:
                fold_many(tuple(rows), jobs, lambda job, i: str(i), join, found.__setitem__, threads, pool)
            assert found == {job: bracket(rows, lo, hi) for job, (lo, hi) in enumerate(jobs)}


def test_few_values_wait_behind_a_slow_leaf():
    n = 256
    gate, lock = threading.Event(), threading.Lock()
    alive, peak = 0, 0

    def leaf(job, i):
        nonlocal alive, peak
        if i == 0:
            assert gate.wait(20)
        if i == n - 1:
            gate.set()
        with lock:
            alive += 1
            peak = max(peak, alive)
        return 1

    def merge(left, right):
        nonlocal alive
        with lock:
            alive -= 1
        return left + right

    found = {}
    with ThreadPoolExecutor(2) as pool:
        fold_many((1,) * n, [(0, n)], leaf, merge, found.__setitem__, 2, pool)
    assert found == {0: n}
    assert peak <= 2 * int(np.log2(n)) + 2


def test_the_error_of_the_lowest_leaf_surfaces_and_stops_the_rest():
    seen = []

    def leaf(job, i):
        seen.append(i)
        if i >= 3:
            raise KeyError(i)
        return i

    with ThreadPoolExecutor(3) as pool, pytest.raises(KeyError) as caught:
        fold_many((1,) * 100, [(0, 100)], leaf, min, {}.__setitem__, 3, pool)
    assert caught.value.args[0] == min(i for i in seen if i >= 3)
    assert len(seen) < 10


def test_stop_is_obeyed():
    seen = []
    with pytest.raises(Abandoned):
        fold_many((1,) * 10, [(0, 10)], lambda job, i: seen.append(i), max, {}.__setitem__, stop=lambda: len(seen) == 1)
    assert seen == [0]


def test_an_interrupt_while_threads_are_started_stops_those_that_were():
    seen, begun = [], threading.Event()

    class Interrupted(ThreadPoolExecutor):
        def submit(self, fn, /, *args, **kwargs):
            super().submit(fn, *args, **kwargs)
            assert begun.wait(20)
            raise KeyboardInterrupt

    def leaf(job, i):
        seen.append(i)
        begun.set()
        time.sleep(0.005)
        return i

    with Interrupted(2) as pool, pytest.raises(KeyboardInterrupt):
        fold_many((1,) * 200, [(0, 200)], leaf, max, {}.__setitem__, 3, pool)
    # its threads have ended with the pool, maybe after the leaf that was being worked on
    assert len(seen) < 50


def test_an_interrupt_does_not_tear_the_handing_of_work_to_a_thread():
    """A lock of Python code that an exception leaves between two instructions would be held for ever."""
    handed, ended = [], []

    class Torn(ThreadPoolExecutor):
        def submit(self, fn, /, *args, **kwargs):
            signal.raise_signal(signal.SIGINT)
            found = super().submit(fn, *args, **kwargs)
            handed.append(found)
            return found

    with Torn(1) as pool, pytest.raises(KeyboardInterrupt):
        fold_many((1,) * 10, [(0, 10)], lambda job, i: ended.append(i), max, {}.__setitem__, 2, pool)
    assert len(handed) == 1 and handed[0].done()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_is_heeded_while_a_thread_does_not_end():
    let_go, asked = threading.Event(), []

    def leaf(job, i):
        if threading.current_thread() is not threading.main_thread():
            asked.append(time.monotonic())
            let_go.wait(30)
        while not asked:
            time.sleep(0.01)
        return i

    def press():
        while not asked:
            time.sleep(0.01)
        for _ in range(2):
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGINT)

    with ThreadPoolExecutor(1) as pool:
        threading.Thread(target=press).start()
        with pytest.raises(KeyboardInterrupt):
            fold_many((1,) * 4, [(0, 4)], leaf, max, {}.__setitem__, 2, pool)
        assert time.monotonic() - asked[0] < 10.0
        let_go.set()
