"""Stumps in bins: what lies inside is never above its bound, and every bin gives up its stumps with their sums."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from dboost.engine.memo import Memo, MemoStore
from dboost.estimators.classifier import BoostedClassifier
from dboost.hypotheses.base import THETA, Pool
from dboost.hypotheses.capabilities import Binned
from dboost.hypotheses.columns import Columns
from dboost.hypotheses.held_by_model import Held
from dboost.hypotheses.stumps.family import Distinct, Stumps, cuts, key_arrays
from dboost.partition import Partition
from dboost.passes.point import Point
from dboost.passes.residuals import branches, one_branch
from dboost.problem.pools import leading
from tests.hypotheses.conftest import Raw, dense, every_stump, rows_in, sums_of
from tests.hypotheses.test_stumps import keys_of

BINNED = [Stumps(bins=5, max_listed=0), Stumps(bins=4, max_listed=0, signed=True)]


@pytest.fixture(params=["dense", "sparse"])
def raw(request):
    """300 rows with weights, some of them 0: all values different, many equal, two values, one."""
    rng = np.random.default_rng(9)
    X = np.column_stack(
        [
            rng.normal(size=300),
            np.round(rng.normal(size=300), 1),
            np.where(rng.random(300) < 0.3, 2.0, -1.0),
            np.ones(300),
            rng.exponential(size=300),
        ]
    )
    if request.param == "sparse":
        X *= rng.random(X.shape) < 0.5
    weight = rng.uniform(0.2, 2.0, 300)
    weight[rng.random(300) < 0.1] = 0.0
    return Raw(X, weight)


def leaf(partition, memo, nodes, pool, U):
    return pool.inside(partition, memo, nodes, U[rows_in(partition)])


def parts_of(raw, branches):
    """Positive and negative parts of theta, with those of other sums before them where the bound is exponential."""
    parts = [np.maximum(raw.theta, 0), np.maximum(-raw.theta, 0)]
    return [np.abs(raw.theta) * 0.7, np.abs(raw.theta[:, ::-1]), *parts] if branches else parts


def rows_of_runs(pool, keys):
    """How many stumps in a row lie in one bin of one column of one member."""
    bins = []
    for key in keys:
        member = pool.pools[key[0]] if hasattr(pool, "pools") else pool
        (j,), th = key_arrays([key[-3:]])
        bins.append((*key[:-2], int(np.searchsorted(member.thresholds[member.start[j] : member.start[j + 1]], th[0]))))
    return [len(list(group)) for _, group in itertools.groupby(bins)]


def shard_sums(raw, pool, shard, branches):
    """What the scoring pass forms for a shard."""
    total = raw.total(pool, shard)
    if branches:
        other = raw.engine.map_reduce(sums_of, pool, shard, *parts_of(raw, True)[:2], name="sums")
        total.add = other.add | {THETA + name: value for name, value in total.add.items()}
    return pool.complete(shard, total)


def by_hand(raw, H, branches):
    s, parts = raw.weight, parts_of(raw, branches)
    up, down = np.maximum(H, 0), np.maximum(-H, 0)
    found = {"square": s @ H**2, "total": s @ H, "G": H.T @ raw.theta}
    if branches:
        found |= {"mu_plus": up.T @ parts[0] + down.T @ parts[1], "mu_minus": up.T @ parts[1] + down.T @ parts[0]}
    return found


@pytest.mark.parametrize("branches", [False, True])
@pytest.mark.parametrize("family", [*BINNED, Columns() | BINNED[0] | BINNED[1]], ids=["plain", "signed", "union"])
def test_bins_bound_and_give_up_every_stump(raw, family, branches):
    pool = raw.prepare(family)
    assert pool.searched and isinstance(pool, Binned)
    every = []
    for shard in pool.shards([], 24, 24 * 8):
        total = shard_sums(raw, pool, shard, branches)
        keys = pool.keys(shard)
        every += keys
        gaps = pool.gaps(shard, total)
        H = dense(pool.columns(raw.block(), keys))
        for name, value in by_hand(raw, H, branches).items():
            np.testing.assert_allclose(total.add[name], value, rtol=1e-9, atol=1e-9, err_msg=name)
        if not len(gaps.places):
            continue
        nodes = pool.nodes(shard, total, gaps.places)
        U = np.hstack(parts_of(raw, branches))
        inside = raw.engine.map_reduce(leaf, nodes, pool, U, name="inside")
        found, sums, runs = pool.settle(nodes, inside, 3)
        assert not set(found) & set(keys)
        assert runs.tolist() == np.cumsum([0, *(rows_of_runs(pool, found))])[:-1].tolist()
        every += found
        H = dense(pool.columns(raw.block(), found))
        for name, value in by_hand(raw, H, branches).items():
            np.testing.assert_allclose(sums.add[name], value, rtol=1e-9, atol=1e-9, err_msg=name)
        assert sums.peak["peak"].tolist() == [1.0] * len(found)
        place = 0
        for g, node in enumerate(nodes):
            mine, _, _ = pool.settle([node], raw.engine.map_reduce(leaf, [node], pool, U, name="one"), 3)
            span = slice(place, place + len(mine))
            place += len(mine)
            assert len(mine) and gaps.rows[g] >= len(mine) + 1
            assert (np.abs(sums.add["G"][span]) <= gaps.reach[g] + 1e-9).all()
            assert (sums.add["square"][span] >= gaps.square[g] - 1e-9).all()
            if branches:
                both = np.stack([sums.add["mu_plus"][span], sums.add["mu_minus"][span]])
                assert (both.max(axis=0) <= gaps.larger[g] + 1e-9).all()
                assert (both.min(axis=0) >= gaps.smaller[g] - 1e-9).all()
    members = getattr(pool, "pools", [pool])
    stumps = every_stump(raw.X, raw.weight)
    count = sum(5 if not hasattr(member, "hidden") else len(stumps) for member in members)
    assert len(every) == len(set(every)) == count
    assert pool.size >= count


def test_the_bound_is_not_above_that_of_the_notes(raw):
    """docs/math.md 7 (J): the smaller of the l1 norms at both ends, plus the l1 mass inside."""
    pool = raw.prepare(BINNED[0])
    for shard in pool.shards([], 24, 500):
        total = shard_sums(raw, pool, shard, False)
        gaps = pool.gaps(shard, total)
        for g, node in enumerate(pool.nodes(shard, total, gaps.places)):
            values = raw.X[:, node.column]
            edges = pool.thresholds[pool.start[node.column] : pool.start[node.column + 1]]
            code = np.searchsorted(edges, values, side="right")
            before, upto = (np.abs(raw.theta[code < c].sum(axis=0)).sum() for c in (node.code, node.code + 1))
            mass = np.abs(raw.theta[code == node.code]).sum()
            assert gaps.reach[g].sum() <= min(before, upto) + mass + 1e-9


def test_thresholds_lie_halfway_between_values_of_the_whole_data(raw):
    pool = raw.prepare(BINNED[0])
    wanted = {j: {th for c, th in every_stump(raw.X, raw.weight) if c == j} for j in range(5)}
    for j in range(5):
        mine = pool.thresholds[pool.start[j] : pool.start[j + 1]]
        assert len(mine) <= 4 and (np.diff(mine) > 0).all()
        assert all(min(abs(th - other) for other in wanted[j]) < 1e-12 for th in mine)
    assert len(keys_of(pool)) == len(pool.thresholds)
    # few values are all listed, and hide nothing
    two = pool.hidden[pool.start[2] + 2 : pool.start[3] + 3]
    assert not two.any()


def sketch(values, most):
    found, counts = np.unique(values, return_counts=True)
    start = np.array([0, len(found)])
    return Distinct(start, found.astype(float), counts, np.array([True]), most).thinned()


def test_a_sketch_of_many_blocks_stays_small_and_near():
    rng = np.random.default_rng(4)
    values = rng.normal(size=20_000)
    level = [sketch(block, 200) for block in np.split(values, 16)]
    while len(level) > 1:
        level = [a + b for a, b in zip(level[::2], level[1::2], strict=True)]
    (total,) = level
    assert not total.exact[0] and len(total.values) <= 201 and total.counts.sum() == 20_000
    assert set(total.values) <= set(values) and total.values[-1] == values.max()
    ends = total.values[cuts(total.values, total.counts, 16)]
    shares = [(values <= end).mean() for end in ends]
    np.testing.assert_allclose(shares, (np.arange(1, 16) / 16) ** 2, atol=0.04)


def test_values_that_many_rows_have_are_bins_of_their_own():
    values, counts = np.arange(100.0), np.full(100, 10)
    counts[40] = 3000
    ends = cuts(values, counts, 10)
    assert {39, 40} <= set(ends.tolist()) and len(ends) <= 9 and ends.max() < 99
    assert cuts(np.arange(2.0), np.array([1, 1000]), 8).tolist() == [0]
    assert cuts(np.arange(1.0), np.array([7]), 8).tolist() == []


def test_a_shard_of_constant_columns_has_no_bins():
    raw = Raw(np.column_stack([np.ones(9), np.arange(9.0)]))
    pool = raw.prepare(Stumps(bins=2, max_listed=0))
    assert pool.searched and {key[0] for key in keys_of(pool)} == {1}
    total = shard_sums(raw, pool, (0, 1), False)
    assert len(pool.gaps((0, 1), total).places) == 0 and total.add["G"].shape == (0, 3)


@pytest.mark.parametrize("count", [0, 1, 3, 9, 10, 40])
def test_the_best_above_zero_are_in_the_order_of_all(count):
    rng = np.random.default_rng(count)
    for scores in (rng.integers(0, 4, 10).astype(float), rng.normal(size=10), np.zeros(10)):
        whole = [place for place in np.lexsort((np.arange(10), -scores)) if scores[place] > 0.0]
        assert leading(scores, count).tolist() == whole[:count]
        runs = np.array([0, 1, 4, 9])
        first = [next((place for place in whole if a <= place < b), -1) for a, b in itertools.pairwise([*runs, 10])]
        assert leading(scores, count, runs).tolist() == [place for place in whole if place in first][:count]


@pytest.mark.parametrize(("loss", "summed"), [("log", True), ("exp", True), ("epsilon_insensitive", False)])
def test_pulls_by_column_are_those_by_row_where_a_loss_pulls_one_way(raw, loss, summed):
    """Losses that pull both ways keep the way by row."""
    pool, m = raw.prepare(BINNED[0]), len(raw.X)
    rng = np.random.default_rng(3)
    y = rng.normal(size=m) if loss == "epsilon_insensitive" else rng.choice([-1, 1], (m, 1)).astype(np.int8)
    partition = Partition(*raw.block()[:3], y, raw.weight, "whole")
    keys = tuple(pool.keys((0, 5), np.array([0, 3, 5])))
    point = Point(loss, Held(np.zeros(0, np.int64), "held", pool, keys), rng.normal(size=(3, 1)), np.ones(1), "at")
    found = one_branch(partition, Memo(MemoStore(0), "run", "whole"), point)
    assert (found is not None) == summed
    if found is not None:
        columns = replace(point, held=Held(np.zeros(0, np.int64), "held", ByRow(pool), keys))
        plus, minus, _, loss_at = branches(partition, Memo(MemoStore(0), "run", "whole"), columns)
        np.testing.assert_allclose(np.hstack(found[:2]), np.hstack([plus, minus]), rtol=1e-12, atol=1e-15)
        assert found[2] == pytest.approx(loss_at, rel=1e-12)


class ByRow(Pool):
    """The same stumps, of a pool that says nothing of columns."""

    def __init__(self, pool):
        self._pool = pool

    def columns(self, given, keys):
        return self._pool.columns(given, keys)


@pytest.mark.parametrize("signed", [False, True])
def test_the_ends_of_bins_alone_are_a_class_that_is_summed(raw, signed):
    pool = raw.prepare(Stumps(bins=4, exact=False, signed=signed))
    keys, every = keys_of(pool), every_stump(raw.X, raw.weight)
    columns, thresholds = key_arrays(keys)
    assert not pool.searched and pool.size == len(keys)
    of_a_column = np.bincount(columns, minlength=5)
    assert (of_a_column <= 3).all() and (of_a_column[[0, 1, 2, 4]] >= 1).all()
    for j, th in zip(columns, thresholds, strict=True):
        assert any(j == i and th == pytest.approx(other, rel=1e-15) for i, other in every)
    (shard,) = pool.shards([], 8, 10**6)
    total = shard_sums(raw, pool, shard, False)
    assert not len(pool.gaps(shard, total).places)
    np.testing.assert_allclose(total.add["G"], dense(pool.columns(raw.block(), keys)).T @ raw.theta, atol=1e-12)


def test_a_certificate_over_the_ends_of_bins_is_that_of_their_columns():
    rng = np.random.default_rng(12)
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] + np.sin(3.0 * X[:, 1]) > 0.2).astype(int)
    family = Stumps(bins=6, exact=False)
    columns = dense(Raw(X).prepare(family).columns(Raw(X).block(), keys_of(Raw(X).prepare(family))))
    settings = {"penalty": "l1", "alpha": 0.02, "tol": 1e-6, "standardize": False}
    found = [BoostedClassifier(**settings, hypotheses=one).fit(rows, y) for one, rows in ((family, X), (None, columns))]
    values = [model.history_[-1]["objective"] for model in found]
    assert max(model.duality_gap_ for model in found) <= 1e-6 and values[0] == pytest.approx(values[1], rel=2e-6)


@pytest.mark.parametrize("family", [Stumps(), Stumps(max_listed=0)], ids=["listed", "in bins"])
def test_thresholds_that_part_the_same_rows_do_not_enter_together(family):
    """Of 3000 values of a feature the best twenty lie side by side, and one of them says what all do."""
    rng = np.random.default_rng(14)
    X = rng.normal(size=(3000, 2))
    y = (np.sin(3.0 * X).sum(axis=1) + rng.logistic(size=3000) > 0.0).astype(int)
    model = BoostedClassifier(penalty="l1", alpha=0.01, tol=1e-5, standardize=False, hypotheses=family).fit(X, y)
    held = [record["features"] for record in model.history_]
    assert model.duality_gap_ <= 1e-5 and max(held) <= 4 * held[-1] and len(held) <= 9, held
