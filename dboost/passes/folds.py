"""Folds of the rows of a data set, and what a partition contributes to a fit without one of them.

Covers: ``Folds``, how a partition is seen without its held-out rows (``Left``), and the leaf that judges models on
those. Does not cover: the fits (``dboost.boosting.cross_validation``).

Folds are given row by row, or drawn by the places of the rows (``draws``). Two halves of the rows are two folds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.examples import fused
from dboost.compiled.solves.one_output import add_columns
from dboost.compiled.sparse import columns
from dboost.engine.views import LaneMemo
from dboost.losses import get_loss
from dboost.partition import Partition, Sums
from dboost.passes import Point
from dboost.passes.draws import Groups, Places, strata_of
from dboost.passes.point import single_start

Ids = NDArray[np.int32]


@dataclass(frozen=True)
class Folds:
    """Which fold each row belongs to."""

    count: int  # Number of folds.
    seed: int = 0  # Of the draw.
    given: Mapping[str, Ids] | None = None  # Folds 0..count-1 of the rows, in place of a draw.
    # By which folds are drawn; whoever asks for them may leave that to the fits (``dboost.boosting.planned``).
    places: Places | Groups | None = None
    draw: str = "folds"  # Tells these folds from others by the same seed.

    def ids(self, partition: Partition, memo: Any) -> Ids:
        """Fold of each row of a partition, int32 (m,)."""
        if self.given is not None:
            return self.given[partition.key]

        places = self.places
        assert places is not None, "folds that are not given are drawn by places"
        dealt = memo.get("folds", self.token, lambda: places.dealt(partition, self.count, self.draw, self.seed))
        return np.asarray(dealt)

    @property
    def token(self) -> Hashable:
        """What tells these folds from others of the same data."""
        return self.count, self.seed, self.draw


@dataclass(frozen=True)
class Left:
    """What is left of a data set without one fold."""

    folds: Folds
    number: int  # The fold that is held out.
    # Codes of the classes that are left, where some are not (multiclass): they are numbered anew, as if the others had
    # never been there.
    present: tuple[int, ...] | None = None
    # Fits that run at the same time are in different lanes, so that what they remember does not displace each other.
    lane: int = 0

    def seen(self, partition: Partition, memo: Any) -> Partition:
        """The partition with the weights of the held-out rows at zero; its features are shared, not copied."""

        def build() -> tuple[NDArray[Any], NDArray[np.float64]]:
            held_out = self.folds.ids(partition, memo) == self.number
            # the code of a row that is held out does not matter, but it must be one
            y = partition.y if self.present is None else np.maximum(self._codes(partition.y), 0)
            return y, np.where(held_out, 0.0, partition.weight)

        token = (self.folds.token, self.number)
        y, weight = memo.get(f"left-{self.lane}", token, build)
        return replace(partition, y=y, weight=weight)

    def held_out(
        self, partition: Partition, memo: Any
    ) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.float64], float]:
        """Held-out rows whose class is present, their labels and weights, and the weight of the others."""
        chosen = self.folds.ids(partition, memo) == self.number
        codes = self._codes(partition.y)
        judged = chosen & (codes >= 0) if self.present is not None else chosen
        absent = float(partition.weight[chosen & ~judged].sum())
        rows = np.flatnonzero(judged).astype(np.int64, copy=False)
        return rows, np.ascontiguousarray(codes[rows]), partition.weight[rows], absent

    def _codes(self, y: NDArray[Any]) -> NDArray[Any]:
        """Codes among the present classes, -1 for those that are not."""
        if self.present is None:
            return y
        table = np.full(max(int(y.max(initial=0)), *self.present) + 1, -1, y.dtype)
        table[list(self.present)] = np.arange(len(self.present))
        return np.asarray(table[y])


def fold_masses(partition: Partition, memo: Any, folds: Folds, k: int) -> Sums:
    """Rows and weight of each fold, (count,), and the weight of each of k classes in it, (count, k).

    Classes are codes, or signs where k is 2; k is 0 where there are none.
    """
    ids = folds.ids(partition, memo)
    add: dict[str, Any] = {
        "rows": np.bincount(ids, minlength=folds.count).astype(np.float64),
        "weight": np.bincount(ids, partition.weight, minlength=folds.count),
    }
    if k:
        place = ids.astype(np.int64) * k + strata_of(partition, k)
        add["mass"] = np.bincount(place, partition.weight, minlength=folds.count * k).reshape(folds.count, k)
    return Sums(add=add)


def label_masses(partition: Partition, memo: Any, several: Sequence[Folds], k: int) -> Sums:
    """Weight of each label in each of several folds of the same number: "mass", (len(several), count, labels).

    Labels are k classes, or where k is 0 the negative ones of all tasks before the positive ones.
    """
    if k:
        which = strata_of(partition, k)[:, None] == np.arange(k)
    else:
        which = np.concatenate([partition.y == -1, partition.y == 1], axis=1)
    mass = which * partition.weight[:, None]
    found = np.zeros((len(several), several[0].count, mass.shape[1]))
    for place, folds in enumerate(several):
        np.add.at(found[place], folds.ids(partition, memo), mass)
    return Sums(add={"mass": found})


def judge(partition: Partition, memo: Any, left: Left, points: tuple[Point, ...]) -> Sums:
    """Loss and wrong labels of several models on the held-out rows.

    "loss" and "wrong", shape (number of models,), are over the rows whose class is present; "absent" is the weight of
    the others.
    """
    rows, y, weight, absent = left.held_out(partition, memo)
    target = get_loss(points[0].loss).target(y)
    loss, wrong = np.zeros(len(points)), np.zeros(len(points))
    for p, F in enumerate(margins_of_rows(partition, memo, left, points, rows)):
        wrong[p] = np.sum(weight * wrong_share(y, F))
        loss[p] = fused.loss_of_margins(F, target, weight)
    return Sums(add={"loss": loss, "wrong": wrong, "absent": absent})


def margins_of_rows(
    partition: Partition, memo: Any, left: Left, points: tuple[Point, ...], rows: NDArray[np.int64]
) -> Iterator[NDArray[np.float64]]:
    """Scores of some rows of a partition under each of some models, float64 (rows, k), one model after the other."""
    mine = LaneMemo(memo, left.lane)
    for point in points:
        block, places = point.held.block(partition, mine)
        if point.intercept.shape[0] == 1:
            # offsets are rows of the point itself (``Fitting.point_of_model``)
            f = single_start(block.n_rows, None, point.intercept)
            add_columns(block.indptr, block.rows, block.values, places, np.ascontiguousarray(point.W[:, 0]), f)
            yield f[rows, None]
            continue
        cut = columns.cut_rows(block.indptr, block.rows, block.values, places, block.n_rows)
        pointer, slots, values = columns.take_rows(*cut, rows)
        yield fused.margins(pointer, slots, values, point.wide, point.intercept)


def wrong_share(y: NDArray[Any], F: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of the observed labels of each row that margins F get wrong; nan where y holds numbers, not labels."""
    if y.dtype.kind == "f":
        return np.full(y.shape[0], np.nan)
    if y.ndim == 1:
        found: NDArray[np.float64] = (F.argmax(axis=1) != y).astype(np.float64)
        return found
    observed = y != 0
    wrong = observed & ((F > 0.0) != (y > 0))
    return np.asarray(wrong.sum(axis=1) / np.maximum(observed.sum(axis=1), 1))
