"""What decides which rows are drawn: their place and class alone; random, even, and the same for every cut."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, StratifiedKFold

import dboost
from dboost.boosting.cross_validation import drawn
from dboost.compiled.vectors.shuffled import shuffled_places
from dboost.engine.local import LocalEngine
from dboost.errors import DataError
from dboost.partition import Partition
from dboost.passes.draws import Groups, count_rows, sampled
from dboost.passes.folds import Folds, Left
from tests.test_folding import memo, partition, places_of


def labelled(y, key="p"):
    """Rows of which nothing but the labels is there: nothing else may be asked for."""
    return Partition(None, None, None, y, np.ones(len(y)), key)


def folds_of(y, count, seed=0, k=3, cuts=()):
    edges = [0, *cuts, len(y)]
    parts = [labelled(y[a:b], f"{a}") for a, b in itertools.pairwise(edges)]
    folds = Folds(count, seed, places=places_of(parts, k))
    return np.concatenate([folds.ids(part, memo(part.key)) for part in parts])


def order(n, key):
    out = np.empty(n, np.int64)
    one = np.zeros(1, np.int64)
    shuffled_places(np.zeros(n, np.int64), one, one + n, np.array([key], np.uint64), out)
    return out


def test_an_order_has_every_place_once_whatever_the_number_of_rows():
    for n in (1, 2, 3, 15, 16, 17, 255, 256, 257, 1000, 65_537):
        assert np.array_equal(np.sort(order(n, 7)), np.arange(n))
    part = np.empty(10, np.int64)
    shuffled_places(np.zeros(10, np.int64), np.array([500]), np.array([1000]), np.array([7], np.uint64), part)
    assert part.tolist() == order(1000, 7)[500:510].tolist()


def test_all_orders_of_a_few_rows_are_as_likely():
    keys = np.random.default_rng(0).integers(0, 2**63, 6000)
    for n in (2, 3, 4):
        count = Counter(tuple(order(n, key)) for key in keys)
        expected = len(keys) / math.factorial(n)
        chi = sum((found - expected) ** 2 for found in count.values()) / expected
        # the mean and five standard deviations of chi square
        free = math.factorial(n) - 1
        assert len(count) == free + 1 and chi < free + 5 * math.sqrt(2 * free)


def test_folds_of_classes_are_as_even_as_those_of_scikit_learn():
    rng = np.random.default_rng(1)
    for m, count in ((400, 7), (11, 3), (5, 5), (100, 10)):
        y = rng.choice(3, m, p=[0.7, 0.25, 0.05]).astype(np.int32)
        mine = np.array([np.bincount(f, minlength=3) for f in _by_fold(folds_of(y, count), y, count)])
        assert np.all(np.ptp(mine, axis=0) <= 1) and np.ptp(mine.sum(axis=1)) <= 1
        if min(np.bincount(y)) >= count:
            split = StratifiedKFold(count, shuffle=True, random_state=0).split(y, y)
            theirs = np.array([np.bincount(y[test], minlength=3) for _, test in split])
            assert np.array_equal(np.sort(mine, axis=0), np.sort(theirs, axis=0))
    # two classes are signs, and numbers are one class
    signs = np.where(y == 0, -1, 1).astype(np.int8)[:, None]
    counted = [np.sum(f > 0) for f in _by_fold(folds_of(signs, 10, k=2), signs[:, 0], 10)]
    assert np.ptp(counted) <= 1
    assert np.ptp(np.bincount(folds_of(rng.normal(size=103), 10, k=1))) == 1


def _by_fold(folds, y, count):
    return [y[folds == number] for number in range(count)]


def test_folds_depend_on_the_order_of_the_rows_and_the_seed_alone():
    y = np.random.default_rng(2).integers(0, 3, 400).astype(np.int32)
    whole = folds_of(y, 7, seed=3)
    for cuts in ((1, 130), (399,), (0, 0, 57, 57), range(1, 400)):
        assert folds_of(y, 7, seed=3, cuts=cuts).tolist() == whole.tolist()
    # rows of other classes, wherever they come, change only which folds are dealt to first
    mine = folds_of(y[y == 0], 7, seed=3)
    assert mine.tolist() == whole[y == 0].tolist()
    other = folds_of(y, 7, seed=4)
    assert abs(np.mean(other == whole) - 1 / 7) < 0.1


def test_two_rows_share_a_fold_as_often_as_chance_has_it():
    """Neighbours, and rows a period apart: a draw by blocks or by remainders would never put them together."""
    y = np.zeros(60, np.int32)
    found = np.array([folds_of(y, 5, seed=seed) for seed in range(2000)])
    for a, b in ((0, 1), (0, 5), (10, 26), (3, 59)):
        # 11 of 59 others, give or take 0.0087: five standard deviations
        assert abs(np.mean(found[:, a] == found[:, b]) - 11 / 59) < 0.044
    assert np.all(np.abs(found.mean(axis=0) - 2) < 0.16)


def test_a_sample_depends_on_the_seed_and_the_rows_and_not_on_the_name_of_the_partition():
    part = partition(np.ones((4000, 1)), np.zeros(4000, np.int32))
    rows = sampled(part, 0.3, 1)
    assert abs(len(rows) - 1200) < 150 and np.array_equal(rows, sampled(part, 0.3, 1))
    assert not np.array_equal(rows, sampled(part, 0.3, 2))
    assert np.array_equal(rows, sampled(replace(part, key="q"), 0.3, 1))
    assert not np.array_equal(rows, sampled(replace(part, y=part.y + 1), 0.3, 1))
    assert np.array_equal(sampled(part, np.where(np.arange(4000) < 10, 1.0, 0.0), 1), np.arange(10))


@pytest.mark.parametrize("k", [1, 4])
def test_no_rows_and_classes_without_rows_have_places_too(k):
    y = np.array([0, 0, 0], np.int32)
    assert folds_of(y, 2, k=k, cuts=(0, 3)).shape == (3,)


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore:alpha_best_=")
def test_folds_of_rows_of_few_values_are_as_hard_as_those_of_scikit_learn():
    """Five yes/no columns have 32 different rows: folds that depend on the label hold out all of a kind at once."""
    apart = []
    for draw in range(60):
        rng = np.random.default_rng([draw, 300])
        X = rng.integers(0, 2, (300, 5)).astype(float)
        y = rng.random(300) < 1 / (1 + np.exp(-(X - 0.5) @ np.array([1.5, 0.8, 0.0, -0.8, -1.5])))
        given = {"penalty": "l1", "n_alphas": 6, "eps": 0.01, "tol": 1e-3, "random_state": draw}
        losses = []
        for cv in (5, StratifiedKFold(5, shuffle=True, random_state=draw)):
            model = dboost.BoostedClassifierCV(cv=cv, **given).fit(X, y)
            losses.append(np.average(model.fold_losses_[:, 3], weights=model.fold_weights_))
        apart.append(losses[0] - losses[1])
    error = np.std(apart, ddof=1) / np.sqrt(len(apart))
    assert abs(np.mean(apart)) < 4.0 * error, "the folds are biased"


def test_groups_are_dealt_whole_and_as_even_as_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    group = (rng.integers(0, 40, 500) ** 2).astype(np.uint64)

    def pieces(cuts=()):
        edges = [0, *cuts, 500]
        return [replace(labelled(np.zeros(b - a), f"{a}"), group=group[a:b]) for a, b in itertools.pairwise(edges)]

    def draws(parts, seed=0):
        groups = Groups.of([counted for part in parts for counted in count_rows(part, None, 1).parts["groups"]])
        folds = np.concatenate([groups.dealt(part, 4, "folds", seed) for part in parts])
        return folds, [np.concatenate([groups.share(part, s, "share", seed) for part in parts]) for s in (0.2, 0.5, 1)]

    folds, shares = draws(pieces())
    theirs = [len(test) for _, test in GroupKFold(4).split(group, group, group)]
    assert sorted(np.bincount(folds)) == sorted(theirs)
    assert all(len(set(folds[group == one].tolist())) == 1 for one in set(group.tolist()))
    assert np.all(shares[0] <= shares[1]) and np.all(shares[2]) and 0.2 <= shares[0].mean() < 0.3
    assert all(len(set(shares[1][group == one].tolist())) == 1 for one in set(group.tolist()))
    # neither the cut nor the order of the rows matters, and the seed does
    assert draws(pieces((7, 300)))[0].tolist() == folds.tolist()
    assert draws(pieces(), 1)[0].tolist() != folds.tolist()


# ---- halves: each class split evenly, the same for every cut of the rows, and nothing in common by pair -----------


class Plan:
    """What is asked of a plan to draw halves of it."""

    def __init__(self, partitions, task, n_outputs=1, classes=None):
        self.items = tuple(partitions)
        self.rows = tuple(one.n_rows for one in partitions)
        self.n_rows = sum(self.rows)
        self.task, self.n_outputs, self.classes = task, n_outputs, classes


def draw(X, y, task="multiclass", cuts=(), weight=None, n_pairs=5, seed=0, **kwargs):
    """The half of each row in each pair, (n_pairs, m)."""
    edges = [0, *cuts, len(y)]
    weight = np.ones(len(y)) if weight is None else weight
    parts = [
        partition(X[a:b], y[a:b], weight[a:b], key=str(a)) for a, b in zip(edges[:-1], edges[1:], strict=True) if b > a
    ]
    plan = Plan(parts, task, **kwargs)
    with LocalEngine(n_threads=2) as engine:
        engine.set_plan(plan.items, plan.rows, "halves")
        pairs = drawn(plan, engine, seed, n_pairs)
    assert len(pairs) == n_pairs
    return np.array([np.concatenate([h.ids(part, memo()) for part in parts]) for h in pairs])


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(301, 6)), np.sort(rng.integers(0, 3, 301)).astype(np.int32)


def test_each_class_is_split_evenly(rows):
    X, y = rows
    found = draw(X, y, n_outputs=3)
    for label in range(3):
        first = np.sum(found[:, y == label] == 0, axis=1)
        assert np.all(np.abs(2 * first - np.sum(y == label)) <= 1)
    assert np.all(np.abs(np.sum(found == 0, axis=1) - 150.5) < 1)
    signs = np.where(y == 0, -1, 1).astype(np.int8)[:, None]
    assert np.all(np.abs(2 * np.sum(draw(X, signs, "binary")[:, y == 0] == 0, axis=1) - np.sum(y == 0)) <= 1)
    # numbers are no classes: all rows are split at once
    assert np.all(np.sum(draw(X, X[:, 0].copy(), "regression") == 0, axis=1) == 151)


def test_halves_do_not_depend_on_partitions_or_on_what_rows_hold(rows):
    X, y = rows
    whole = draw(X, y, n_outputs=3)
    assert draw(X, y, n_outputs=3, cuts=(1, 40, 200)).tolist() == whole.tolist()
    assert draw(np.zeros_like(X), y, n_outputs=3, weight=np.arange(1.0, 302.0)).tolist() == whole.tolist()
    assert draw(X, y, n_outputs=3, n_pairs=2).tolist() == whole[:2].tolist()


def test_pairs_and_seeds_have_nothing_in_common(rows):
    X, y = rows
    found = draw(X, y, n_outputs=3, n_pairs=40) == 0
    agree = np.array([np.mean(found[a] == found[b]) for a in range(40) for b in range(a)])
    # half of the rows agree by chance, give or take 0.029
    assert abs(agree.mean() - 0.5) < 0.01 and np.all(np.abs(agree - 0.5) < 0.15)
    other = draw(X, y, n_outputs=3, n_pairs=40, seed=1) == 0
    assert abs(np.mean(other == found) - 0.5) < 0.05
    # and every row is in the first half about as often as in the second: twenty of forty, five deviations of 3.2
    assert np.all(np.abs(found.sum(axis=0) - 20) < 16)


def test_two_rows_of_a_class_are_enough_and_one_is_refused():
    X, y = np.zeros((4, 2)), np.array([0, 0, 1, 1], np.int32)
    found = draw(X, y, n_outputs=2, n_pairs=20)
    assert np.all(found[:, :2].sum(axis=1) == 1) and np.all(found[:, 2:].sum(axis=1) == 1)
    # classes that the data lacks, or that were named and have no row, are not missed
    draw(X, y, n_outputs=3, classes=np.array(["ant", "bee", "cow"]))
    with pytest.raises(DataError, match=r"1 of the rows of class 'bee' .n_samples = 3.; give two or more"):
        draw(X[:3], y[:3], n_outputs=2, classes=np.array(["ant", "bee"]))
    with pytest.raises(DataError, match=r"1 of the rows .n_samples = 1."):
        draw(X[:1], np.array([0.5]), "regression")


def test_both_labels_of_every_task_are_in_each_half(rows):
    X, _ = rows
    labels = np.where(X[:, :2] > 0, 1, -1).astype(np.int8)
    labels[::3, 1] = 0
    assert set(draw(X, labels, "multitask", n_outputs=2).ravel().tolist()) == {0, 1}
    labels[:, 1] = -1
    labels[5, 1] = 1
    with pytest.raises(DataError, match="has no positive label of task 1"):
        draw(X, labels, "multitask", n_outputs=2)
    # what the whole lacks is not missed in a half
    labels[5, 1] = -1
    draw(X, labels, "multitask", n_outputs=2)


def test_what_is_left_of_one_pair_is_not_remembered_for_the_next(rows):
    part = partition(*rows)
    mine, places = memo(), places_of([part], 3)
    for pair in range(3):
        halves = Folds(2, places=places, draw=f"halves-{pair}")
        left = Left(halves, 1).seen(part, mine)
        assert left.weight.tolist() == (halves.ids(part, memo()) == 0).astype(float).tolist()
