"""Bundles: who gets which part of the tree."""

from __future__ import annotations

from dboost.engine.dask.assignment import assign, keep_order
from dboost.engine.tree import combine, cumulate
from tests.engine.test_tree import SHAPES, bracket, join


def test_bundles_cover_the_tree_in_order():
    for threads in [[1], [2, 2], [1, 1, 1], [4, 4, 4, 4], [1, 3], [1] * 7]:
        for rows in SHAPES:
            workers = [(f"w{i}", t) for i, t in enumerate(threads)]
            bundles = assign(rows, workers)
            assert 1 <= len(bundles) <= len(workers)
            assert len({b.address for b in bundles}) == len(bundles)
            assert bundles[0].lo == 0 and bundles[-1].hi == len(rows)
            nodes = [node for b in bundles for node in b.nodes]
            values = [bracket(rows, lo, hi) for lo, hi in nodes]
            assert combine(rows, nodes, values, join) == bracket(rows, 0, len(rows))
            for b in bundles:
                assert (b.nodes[0][0], b.nodes[-1][1]) == (b.lo, b.hi)


def test_a_power_of_two_gives_one_node_each():
    for count in [1, 2, 4, 8]:
        bundles = assign([10] * 32, [(f"w{i}", 2) for i in range(count)])
        assert [b.nodes for b in bundles] == [((32 // count * i, 32 // count * (i + 1)),) for i in range(count)]


def test_work_follows_the_threads():
    bundles = assign([10] * 64, [("small", 1), ("large", 3)])
    cumulated = cumulate([10] * 64)
    shares = [(cumulated[b.hi] - cumulated[b.lo]) / cumulated[-1] for b in bundles]
    assert shares == [0.25, 0.75]
    bundles = assign([10] * 60, [("a", 1), ("b", 1), ("c", 1)])
    assert all(10 <= b.hi - b.lo <= 30 for b in bundles)


def test_workers_that_stay_keep_their_place():
    assert keep_order([], ["b", "a"]) == ["a", "b"]
    assert keep_order(["a", "b", "c"], ["c", "a", "new"]) == ["a", "new", "c"]
    assert keep_order(["a", "b"], ["a", "b", "d", "c"]) == ["a", "b", "c", "d"]
    assert keep_order(["a", "b", "c"], ["c"]) == ["c"]
