"""The quadratic model that Newton steps of one output share: curvature among rows of W, formed once at some model.

At the final strength models change little from step to step, and their curvature with them. So it is formed at one of
them, the anchor, for the rows that are held there, rows that enter later are added to it, and steps minimise the
quadratic model with the gradient of today and the curvature of the anchor (docs/math.md 8). Steps then cost no
sweep over the data.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.solves import quadratic
from dboost.compiled.solves.positive import solve_positive
from dboost.first_compile import beside
from dboost.problem.driver_columns import DriverColumns
from dboost.problem.iterate import Iterate
from dboost.problem.memory import Anchor
from dboost.problem.problem import Problem
from dboost.problem.slices import equal_slices, parts_of
from dboost.solvers.one_output.columns_by_row import ColumnsByRow

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# Sweeps end when one gains no more than this share of what the best did, or have taken so many operations. Where one
# still gains more than the other share then, the rest is solved directly.
_ENOUGH = 1e-5
_OPERATIONS = 1e7
_LEAST_SWEEPS = 30
_SLOW = 1e-2
_RIDGE = 1e-9
_PIVOT = 1e-10
# Times that entries which would change their sign are left at zero and the others solved again.
_RESOLVES = 4
# Beyond so many rows the model is not formed: it would take more memory than the columns.
MOST_ROWS = 2500
# Its memory grows by this factor.
_ROOM = 1.25


class Quadratic:
    """Curvature among the rows of an anchor.

    It holds neither the problem nor the columns, which hold it: a circle would keep their memory after the fit.

    `columns`: where the columns of the rows lie.
    Attribute `anchor`: with the rows that were added since.
    Attribute `curvature`, (m,): of the examples, at the anchor's model.
    Attribute `H`: curvature among the intercept, if there is one, and the anchor's rows, with room for more of them.
    """

    def __init__(self, problem: Problem, columns: DriverColumns, anchor: Anchor) -> None:
        none = np.zeros((anchor.active.shape[0], 1))
        model = Iterate(anchor.active, anchor.W, anchor.intercept, np.nan, none, np.zeros(1))
        self.curvature = columns.state(model, problem.columns_of, problem.loss)[2]
        self.anchor = replace(anchor, rows=anchor.rows[:0], added=anchor.added[:0])
        self._bias = int(problem.fit_intercept)
        self.H = np.zeros((0, 0))
        self._by_row = ColumnsByRow(self.curvature.shape[0])
        for rows in np.split(anchor.rows, np.cumsum(anchor.added)[:-1]):
            self.add(problem, columns, rows)

    def missing(self, rows: Rows) -> Rows:
        """Those of some rows that are not in it."""
        return rows[self._slots(rows) < 0]

    def _slots(self, rows: Rows) -> Rows:
        """The place of each of some rows among the anchor's, -1 where it is not among them."""
        held = self.anchor.rows
        if not held.shape[0]:
            return np.full(rows.shape[0], -1)
        order = np.argsort(held)
        places = order[np.minimum(np.searchsorted(held, rows, sorter=order), held.shape[0] - 1)]
        return np.where(held[places] == rows, places, -1)

    def add(self, problem: Problem, columns: DriverColumns, rows: Rows) -> None:
        """Add rows."""
        bias = self._bias
        old, new = self.anchor.rows.shape[0], rows.shape[0]
        self.anchor = self.anchor.with_rows(rows)
        # asked for at once: a second question might move what the first one found
        places = columns.places(self.anchor.rows, problem.columns_of)
        block = columns.indptr, columns.rows, columns.values
        parts = equal_slices(self.curvature.shape[0], parts_of(cost(columns, places[old:])))
        each = problem.engine.on_driver
        beside.wait_for(quadratic._gram)
        sums = quadratic.gram(*block, places[old:], self.curvature, bool(bias), parts, each)
        self._reserve(bias + old + new)
        H, begin, end = self.H, bias + old, bias + old + new
        H[begin:end, begin:end] = sums[:new, :new]
        if old:
            self._by_row.hold(*block, places[:old])
            among = self._by_row.products(*block, places[old:], self.curvature, each)
            H[begin:end, bias:begin], H[bias:begin, begin:end] = among, among.T
        if bias:
            H[begin:end, 0] = H[0, begin:end] = sums[:new, -1]
            H[0, 0] = sums[-1, -1]

    def _reserve(self, size: int) -> None:
        held = self.H.shape[0]
        if size > held:
            room = int(_ROOM * size)
            grown = np.zeros((room, room))
            grown[:held, :held] = self.H
            self.H = grown

    def minimiser(
        self, problem: Problem, iterate: Iterate, lam: float, unit: float, scale: float, ridge: float = 0.0
    ) -> tuple[Array, Array]:
        """Minimiser of the quadratic model at `iterate`, whose rows are all in it: W (a, 1) and the intercept.

        `unit` is the price of |w| = 1 at strength 1, `ridge` that of w**2 / 2 = 1, `scale` what the curvature of today
        is of the anchor's.
        """
        bias = self._bias
        G, W, bound = problem.objective.with_intercept(iterate, lam)
        slots = bias + self._slots(iterate.active)
        if bias:
            slots = np.append(slots, 0)
        prices = unit / scale * bound.strength
        g, w = G[:, 0] / scale, W[:, 0].copy()
        pull = np.empty(bias + self.anchor.rows.shape[0])
        most = max(_LEAST_SWEEPS, int(_OPERATIONS / max(pull.shape[0] * slots.shape[0], 1)))
        diagonal = self.H[slots, slots]
        if ridge:
            bend = ridge / scale * bound.strength
            g = g - bend * w
            # for this solve only: the strength differs from solve to solve, and a copy would be all of the memory anew
            self.H[slots, slots] = diagonal + bend
        beside.wait_for(quadratic.minimise)
        try:
            if quadratic.minimise(self.H, slots, g, prices, _RIDGE, most, _ENOUGH, w, pull) > _SLOW:
                self._solve(slots, g - pull[slots], prices, w)
        finally:
            self.H[slots, slots] = diagonal
        target, b = problem.objective.split_intercept(w[:, None])
        return target, b if bias else iterate.intercept

    def _solve(self, slots: Rows, g: Array, prices: Array, w: Array) -> None:
        """Move the entries of `w` that are not zero to where the model has its minimum, `g` its descent at `w`.

        An entry that would change its sign ends at zero, and the others are solved again with it there.
        """
        held = np.flatnonzero((w != 0.0) | (prices == 0.0))
        H, places = self.H, slots[held]
        right, signed = g[held] - prices[held] * np.sign(w[held]), prices[held] > 0.0
        step, free = np.zeros(held.shape[0]), np.ones(held.shape[0], np.bool_)
        for _ in range(_RESOLVES):
            ids, fixed = np.flatnonzero(free), np.flatnonzero(~free)
            rest = right[ids] - np.sum(H[np.ix_(places[ids], places[fixed])] * step[fixed], axis=1)
            step[ids] = solve_positive(H[np.ix_(places[ids], places[ids])], rest, _PIVOT)
            crossing = free & signed & ((w[held] + step) * w[held] <= 0.0)
            step[crossing] = -w[held][crossing]
            free &= ~crossing
            if not np.any(crossing):
                break
        w[held] = np.where(free, w[held] + step, 0.0)


def cost(columns: DriverColumns, places: Rows) -> float:
    """Operations of summing the curvature among columns."""
    stored = float(np.sum(columns.indptr[places + 1] - columns.indptr[places]))
    return stored * (0.5 * stored / columns.weight.shape[0] + 5.0)


def distance(before: Array, after: Array) -> float:
    """How far two curvatures of the examples, (m,) each, are apart, as a share of the first."""
    total = float(before.sum())
    return float(np.abs(after - before).sum()) / total if total > 0.0 else np.inf
