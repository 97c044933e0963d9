"""Halves of the rows: each class split evenly, the same for every cut of the rows, and nothing in common by pair."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.boosting.cross_validation import drawn
from dboost.engine.local import LocalEngine
from dboost.errors import DataError
from dboost.passes.folds import Folds, Left
from tests.test_folding import memo, partition, places_of


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
