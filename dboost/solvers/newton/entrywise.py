"""The model of a Newton step solved over single entries of W, where the penalty ties none and few of them move.

Entries that are zero and within their lam stay out; when those inside are solved, all of them are looked at, and what
is no longer optimal at zero comes in. The sweeps are in ``entry_sweeps``, their kernels in ``compiled.solves.entries``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.solves import entries
from dboost.compiled.vectors.scaled_rows import width
from dboost.hypotheses.held_by_model import Cut
from dboost.problem.slices import equal_loads, equal_slices, parts_of
from dboost.solvers.newton.entry_sweeps import TURN, EntrySweeps, Listed, OnDriver

Array = NDArray[np.float64]
Entries = NDArray[np.bool_]

# What a stored value costs an entry, in units of what it costs a row for each of its classes.
_PRICE = 8.0
# Classes paired up together: the numbers of one example that one line of memory holds.
_CLASSES = 16


class EntryModel:
    """The model of a step, as ``descent.newton_descent`` takes it.

    Parameters
    ----------
    by_column : Cut
        Active columns of the sampled examples.
    h : float32 array, shape (m, width(k))
    rank_one : float64 array, shape (m,)
        Their Hessians, diag(h_i) - rho_i h_i h_i'.
    k, intercept
        Classes, and whether there is a row beyond the columns: a column of ones.
    on_driver : callable
        ``Engine.on_driver``. No result depends on its number of threads.
    turn : int
        As for ``EntrySweeps``.
    """

    def __init__(
        self,
        by_column: Cut,
        h: NDArray[np.float32],
        rank_one: Array,
        k: int,
        intercept: bool,
        on_driver: OnDriver,
        turn: int = TURN,
    ) -> None:
        columns, rows, values = by_column
        m = h.shape[0]
        if intercept:
            columns = np.append(columns, columns[-1] + m)
            rows = np.concatenate([rows, np.arange(m, dtype=rows.dtype)])
            values = np.concatenate([values, np.ones(m, values.dtype)])
        # what rho is where it is not zero: examples without weight have neither curvature nor anything to say
        self.tied = bool(rank_one.any())
        rho = np.where(rank_one > 0.0, rank_one, 1.0)
        self.columns = columns, rows, entries.scale_values(rows, values, 1.0 / np.sqrt(rho))
        self.unit = rho
        self.h = h
        self.k = k
        self.on_driver = on_driver
        self.turn = turn
        self.stored = np.diff(columns)

    def pays(self, moving: Entries) -> bool:
        """Whether sweeps over these entries cost less than sweeps over all rows."""
        by_entry = float(moving.sum(axis=1) @ self.stored)
        return _PRICE * by_entry < float(self.stored.sum()) * width(self.k)

    def descend(
        self,
        G: Array,
        W: Array,
        lam: Array,
        damping: Array,
        moving: Entries,
        max_sweeps: int,
        seed: int,
        settle: float,
    ) -> tuple[Array, int]:
        """Minimise the model over the step D, entry by entry.

        Parameters
        ----------
        G, W : float64 arrays, shape (a, k) or (a + 1, k)
        lam : float64 array
            Weight of |w_jr| in row j; 0 for the intercept's.
        damping : float64 array, shape of W
            Curvature that is added.
        moving : bool array, shape of W
            Entries to begin with. Others come in when they are no longer optimal at zero, if `settle` > 0.
        max_sweeps : int
            Sweeps over all rows whose work is not to be exceeded.
        seed : int
            Seed of the order.
        settle : float
            As for ``descent.newton_descent``.

        Returns
        -------
        D : float64 array, shape of W
        sweeps : int
            Sweeps over the entries.
        """
        pairs, t = self._pairs(), np.zeros(self.h.shape[0], np.float32)
        budget = int(max_sweeps * self.stored.sum() * width(self.k) / _PRICE)
        D, moving, sweeps = np.zeros_like(W), moving.copy(), 0
        model = EntrySweeps(
            self.columns, self.stored, pairs, t, self.tied, G, W, lam, damping, settle, D, self.on_driver, self.turn
        )
        before = np.zeros_like(moving)
        while True:
            listed = Listed.of(moving)
            fresh = ~before[listed.rows, listed.outputs]
            curvature = self._curvatures(pairs, listed)
            budget, more = model.solve(listed, curvature, fresh, budget, seed + sweeps)
            sweeps += more
            before = moving.copy()
            if settle == 0.0 or budget <= 0 or not self._violators(pairs, t, G, lam, settle, moving):
                return D, sweeps

    def product(self, moving: Entries) -> Callable[[Array, Array], tuple[Array, Array]]:
        """Products with the Hessian among these entries: (V, v) -> (rows, intercept), zero at all others.

        Parameters
        ----------
        moving : bool array, shape (a, k) or (a + 1, k)
        """
        pairs, m, k = self._pairs(), self.h.shape[0], self.k
        listed = Listed.of(moving)
        rows, bounds = listed.rows, listed.bounds
        parts = equal_slices(k, min(k, parts_of(float(self.stored[rows].sum()))))

        def times(V: Array, v: Array) -> tuple[Array, Array]:
            a = V.shape[0]
            given = np.vstack([V, v])[: moving.shape[0]]
            out = np.zeros_like(given)

            def forth(part: slice) -> NDArray[np.float32]:
                t = np.zeros(m, np.float32)
                entries.push_entries(*self.columns, pairs, t, self.tied, rows, bounds, part.start, part.stop, given)
                return t

            def back(part: slice) -> None:
                entries.pull_entries(*self.columns, pairs, t, self.tied, rows, bounds, part.start, part.stop, out)

            # added in the order of the classes, whoever formed them
            t: NDArray[np.float32] = np.sum(self.on_driver(forth, parts), axis=0, dtype=np.float32)
            self.on_driver(back, parts)
            return out[:a], out[a] if moving.shape[0] > a else np.zeros(k)

        return times

    def _pairs(self) -> NDArray[np.float32]:
        pairs = np.empty((self.k, self.h.shape[0], 2), np.float32)
        parts = equal_slices(self.k, min(-(-self.k // _CLASSES), parts_of(float(self.h.size))))
        self.on_driver(lambda part: entries.pair_up(self.h, self.unit, part.start, part.stop, pairs), parts)
        return pairs

    def _curvatures(self, pairs: NDArray[np.float32], listed: Listed) -> Array:
        rows = listed.rows
        found = np.empty(rows.shape[0])
        model = (*self.columns, pairs, self.tied, rows, listed.outputs)
        parts = equal_slices(rows.shape[0], parts_of(float(self.stored[rows].sum())))
        self.on_driver(lambda part: entries.curvatures(*model, part.start, part.stop, found), parts)
        return found

    def _violators(
        self, pairs: NDArray[np.float32], t: NDArray[np.float32], G: Array, lam: Array, settle: float, moving: Entries
    ) -> int:
        """Add the entries to `moving` that are no longer optimal at zero, and count them."""
        pointer, V = self.columns[0], np.zeros((self.h.shape[0], width(self.k)), np.float32)
        parts = equal_slices(self.h.shape[0], parts_of(float(V.size)))
        self.on_driver(lambda part: entries.spread(pairs, t, part.start, part.stop, V), parts)
        return sum(
            self.on_driver(
                lambda part: entries.add_violators(*self.columns, V, part.start, part.stop, G, lam, settle, moving),
                equal_loads(pointer, parts_of(float(pointer[-1]) * self.k)),
            )
        )


def unsettled(G: Array, W: Array, lam: Array) -> Entries:
    """Entries that are not optimal at zero: nonzero, or pulled beyond their lam."""
    moving: Entries = (W != 0.0) | (np.abs(G) > lam[:, None])
    moving[lam == 0.0] = True
    return moving
