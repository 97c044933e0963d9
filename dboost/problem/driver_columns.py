"""Columns of all examples, or of a sample, on the driver, fetched when a row of W first becomes active."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.examples.loss_of_rows import single_dual_value, single_state
from dboost.compiled.solves import one_output
from dboost.compiled.vectors.new_arrays import new_arrays
from dboost.engine.base import Engine
from dboost.hypotheses.held_by_model import Held
from dboost.losses import Loss
from dboost.losses.base import Repair
from dboost.passes import examples
from dboost.passes.point import dual_of_offsets, joined_offsets, single_start
from dboost.problem.iterate import Iterate

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
# Margins, residuals and curvature of the examples, (m,) each.
State = tuple[Array, Array, Array]

SPARE = 1_000_000
"""Values that are held in vain before the columns are fetched anew."""


class DriverColumns:
    """A block of columns that grows, stored by column; which columns it holds changes no result.

    `spare`: values that may be held in vain before the columns are fetched anew. `indptr`, `rows`, `values`: CSC over
    the places that `places` returns; `values` as stored. `weight`: (m,). `offset`: (m, k).
    """

    def __init__(self, engine: Engine, spare: int = SPARE) -> None:
        self._engine = engine
        self._spare = spare
        self._clear()
        self.weight = np.zeros(0)
        self.labels: Any = None
        self.offset: Array | None = None
        self._state: tuple[Iterate, State] | None = None
        self.quadratic: Any = None

    def _clear(self) -> None:
        self._place = np.zeros(0, np.int64)
        self.indptr = np.zeros(1, np.int64)
        self._rows = np.zeros(0, np.int32)
        self._values: Any = None
        self._single = np.zeros(0, np.float32)
        self._rounded = np.zeros(0, np.bool_)

    @property
    def rows(self) -> NDArray[np.int32]:
        return self._rows[: self.indptr[-1]]

    @property
    def values(self) -> NDArray[Any]:
        found: NDArray[Any] = self._values[: self.indptr[-1]]
        return found

    def single(self, places: Rows) -> NDArray[np.float32]:
        """`values` in float32 of the columns at `places`; what is in those of others is not said."""
        new = places[~self._rounded[places]]
        if new.size:
            one_output.round_columns(self.indptr, self._values, new, self._single)
            self._rounded[new] = True
        return self._single[: self.indptr[-1]]

    def places(self, active: Rows, held: Callable[[Rows], Held]) -> Rows:
        """Where the columns of the rows `active` of W lie in the block; fetched where they are not in it.

        `active`: (a,). `held`: names the columns of rows of W for a pass.
        """
        places = self._known(active)
        missing = active[places < 0]
        if missing.size or self.labels is None:
            kept = places[places >= 0]
            needed = int(np.sum(self.indptr[kept + 1] - self.indptr[kept]))
            if int(self.indptr[-1]) > 3 * needed + self._spare:
                self._clear()
                missing = active
            parts = self._fetch(held(missing))
            if self.labels is None:
                self.labels = np.concatenate([part[4] for part in parts])
                self.weight = np.concatenate([part[5] for part in parts])
                self.offset = joined_offsets(part[6] for part in parts)
            if len(parts) == 1 and (parts[0][3] is not None or not self.indptr[-1]):
                columns = missing if parts[0][3] is None else np.arange(parts[0][0].shape[0] - 1)
                self._adopt(columns, *parts[0][:3])
            else:
                self._append(missing, parts)
            places = self._known(active)
        return places

    def note(self, iterate: Iterate, parts: Sequence[State] | None) -> None:
        """Remember the state of the examples at a model, as a pass found it by partition; None forgets."""
        self._state = None
        if parts:
            margins, residual, curvature = parts[0]
            if len(parts) > 1:
                margins, residual, curvature = (np.concatenate(found) for found in zip(*parts, strict=True))
            self._state = iterate, (margins, residual, curvature)

    def forget_state(self) -> None:
        """Forget the state of the examples, as under another loss it is another one."""
        self._state = None

    def state(self, iterate: Iterate, held: Callable[[Rows], Held], loss: Loss) -> State:
        """Margins, residuals and curvature of the examples at a model of one output, the same bits as in a pass."""
        chosen = iterate.W[:, 0] != 0.0
        if self._state is not None:
            known, found = self._state
            same = np.array_equal(known.active, iterate.active[chosen]) and np.array_equal(known.W, iterate.W[chosen])
            if same and np.array_equal(known.intercept, iterate.intercept):
                return found
        f = self.margins(self.places(iterate.active, held), iterate.W, iterate.intercept)
        u, h = np.empty_like(f), np.empty_like(f)
        single_state(loss.target(self.labels), f, self.weight, u, h)
        return f, u, h

    def margins(self, places: Rows, W: Array, intercept: Array) -> Array:
        """Margins (m,) of a model of one output, whose columns lie at some places."""
        f = single_start(self.weight.shape[0], self.offset, intercept)
        one_output.add_columns(self.indptr, self.rows, self.values, places, np.ascontiguousarray(W[:, 0]), f)
        return f

    def dual_value(
        self, iterate: Iterate, held: Callable[[Rows], Held], loss: Loss, repair: Repair, scale: float
    ) -> float:
        """Value of the repaired residuals of a model of one output, scaled (``loss_rows.dual_row``)."""
        self.places(iterate.active, held)
        margins, residuals, _ = self.state(iterate, held, loss)
        given = scale * repair.keep, repair.mix, repair.shift, repair.prior
        target = loss.target(self.labels)
        value = float(single_dual_value(target, margins, self.weight, *(float(one[0]) for one in given)))
        return value - dual_of_offsets(residuals[:, None], self.offset, target, self.weight, given)

    def _fetch(self, held: Held) -> list[Any]:
        """Columns by partition: (pointer, rows, values, places, labels, weights, offsets) each.

        The block has these columns only, in their order, and places is None; or it has all there are, and places are
        theirs.
        """
        there = self._engine.resident_partitions() if held.pool is None else None
        if there is not None:
            return [(p.indptr, p.rows, p.values, held.columns, p.y, p.weight, p.offset) for p in there]
        found = self._engine.map_reduce(examples.held_columns, held, name="columns")
        parts: list[Any] = found.parts["columns"]
        return parts

    def _known(self, active: Rows) -> Rows:
        top = int(active.max(initial=-1)) + 1
        if top > self._place.shape[0]:
            self._place = np.concatenate([self._place, np.full(top - self._place.shape[0], -1, np.int64)])
        return self._place[active]

    def _adopt(self, columns: Rows, indptr: Any, rows: Any, values: Any) -> None:
        """Hold a block that has all columns, or the first ones that are asked for, as it is."""
        self._clear()
        self._known(columns)
        self._place[columns] = np.arange(columns.shape[0])
        self.indptr, self._rows, self._values = indptr, rows, values
        self._single = values
        self._rounded = np.full(columns.shape[0], values.dtype == np.float32)
        if values.dtype != np.float32:
            # of a block with all columns few are ever asked for, and memory that is not touched costs nothing
            (self._single,) = new_arrays((values.shape[0], np.float32))

    def _append(self, missing: Rows, parts: list[Any]) -> None:
        sizes = np.zeros(missing.shape[0], np.int64)
        for indptr, _, _, places, *_ in parts:
            sizes += np.diff(indptr) if places is None else indptr[places + 1] - indptr[places]
        held = self.indptr[-1]
        first = self.indptr.shape[0] - 1
        self.indptr = np.concatenate([self.indptr, held + np.cumsum(sizes)])
        self._grow(int(held), int(self.indptr[-1]), parts[0][2].dtype)
        fill, row = self.indptr[first:-1].copy(), 0
        everything = np.arange(missing.shape[0])
        for indptr, rows, values, places, _, weight, _ in parts:
            chosen = everything if places is None else places
            one_output.place_columns(indptr, rows, values, chosen, row, fill, self._rows, self._values, self._single)
            row += weight.shape[0]
        self._rounded = np.concatenate([self._rounded, np.ones(missing.shape[0], np.bool_)])
        self._known(missing)
        self._place[missing] = np.arange(first, first + missing.shape[0])

    def _grow(self, held: int, wanted: int, dtype: Any) -> None:
        if self._values is None:
            self._values = np.zeros(0, dtype)
        if wanted <= self._rows.shape[0]:
            return
        # untouched memory costs nothing, growing a copy
        room = 4 * wanted
        shared = self._values is self._single
        names = ("_rows", "_values", "_single")
        for name, new in zip(names, new_arrays(*((room, getattr(self, name).dtype) for name in names)), strict=True):
            new[:held] = getattr(self, name)[:held]
            setattr(self, name, new)
        if shared or np.dtype(dtype) == np.float32:
            self._single = self._values
