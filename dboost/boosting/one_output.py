"""Newton steps of a single output, taken on the driver from start to end.

With one output the active columns of all examples are small enough to lie on the driver, and a sweep over them costs
less than handing a pass to threads. So they are fetched once for a set of rows; margins, curvature, coordinate descent
and the search along the step are then loops over arrays at hand (``compiled.one_output``), in float64 but for the
descent. Where such a step does not help, or converges slowly, ``newton`` takes over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.aim import Aim
from dboost.boosting.driver_columns import DriverColumns
from dboost.boosting.growth import growth
from dboost.boosting.iterate import Iterate
from dboost.boosting.newton import Memory, NewtonSteps, Step
from dboost.boosting.problem import Problem
from dboost.boosting.slices import equal_loads, equal_slices
from dboost.compiled import one_output, rows
from dboost.compiled.positive import solve_positive

Array = NDArray[np.float64]

# Factor between the strengths of the continuation: a step on the way costs less than the pass that follows it.
CONTINUATION = 0.3
# Examples up to which the driver holds them all.
_MOST = 1_000_000
# Share of the gap; see ``little_left``.
_LITTLE = 1e-4
_ARMIJO = 1e-4
_GRID = (0.5, 0.25, 0.1, 0.03, 0.01)
_MAX_SWEEPS = 50
# Where a step on the support is cheap, it does what more sweeps would.
_FEW_SWEEPS = 6
_ENOUGH = 0.1
_RIDGE = 1e-9
_SETTLED_SHARE = 0.1
# A support that is held for that of the minimiser is solved to this share of its strength.
_NEARLY = 0.05
# Curvature among the entries of the support may cost so many operations for each value that the last descent swept
# over, and so many in any case: beyond that sweeps are faster.
_FACE_SHARE = 4.0
_FACE_FREE = 2e6
# It is formed anew when a step promises more than this share of what the last one did.
_STALE = 0.1
# Work is cut into parts for threads: operations of one, and the most of them.
_PART = 200_000
_MOST_PARTS = 8
_RESOLVES = 4
_PIVOT = 1e-10
# Sums of the objective carry about this relative error: a step that promises less is judged by its promise, not by it.
_ROUNDING = 3e-14


def takes(problem: Problem, n_rows: int, sample: str | float) -> bool:
    """Whether the steps here are possible: one output, and a penalty that is a multiple of |w|."""
    whole = n_rows <= _MOST if sample == "auto" else sample == 1.0
    return problem.k == 1 and whole and not problem.loss.shifted and problem.penalty.compiled[0] in (0, 1)


def little_left(problem: Problem, at: Iterate, lam: float, gap: float) -> float:
    """What a step must promise to be followed by another one on the same rows.

    Zero once none of the rows that are zero violates optimality. Until then other rows are likely to be missing: what
    a step promises says sooner than the gap, which is far above what is left to gain, that it is time to look for them.
    """
    norms = problem.penalty.dual_norm(at.G)
    entering = (norms > lam * problem.lam_weight[at.active]) & (at.W[:, 0] == 0.0)
    return _LITTLE * gap if np.any(entering) else 0.0


@dataclass(frozen=True)
class _State:
    """Margins of a model, what the loss says there, and the objective."""

    margins: Array
    residual: Array
    curvature: Array
    loss: float
    value: float


class OneOutputSteps:
    """Newton steps on a fixed set of rows, for one output.

    Parameters
    ----------
    problem : Problem
    active : int64 array
        The rows A.
    columns : DriverColumns
        Where their columns lie: of all examples, or of those of a sample.
    seed : int
        Seed of the order of the coordinates.
    memory : Memory
        What earlier steps left.
    newton : callable, optional
        The steps on the same rows that take over, from a memory; without it a step that does not help is none.
    """

    def __init__(
        self,
        problem: Problem,
        active: NDArray[np.int64],
        columns: DriverColumns,
        seed: int,
        memory: Memory,
        newton: Callable[[Memory], NewtonSteps] | None = None,
    ) -> None:
        self.problem = problem
        self.memory = memory
        self._newton = newton
        self._seed = seed
        self._active = active
        self._general: NewtonSteps | None = None
        self._slow = False
        self._settled = False
        # of the last descent; the first may take all
        self._sweeps = _MAX_SWEEPS
        # of the last step that was tried
        self._promised = 0.0
        # one pass, of which only what the driver lacks is carried out
        problem.passes += 1
        self._places = columns.places(active, problem.held)
        self._columns = columns
        self._block = columns.indptr, columns.rows, columns.values
        self._sizes = columns.indptr[self._places + 1] - columns.indptr[self._places]
        stored = np.concatenate([[0], np.cumsum(self._sizes)])
        self._parts = equal_loads(stored, _parts(float(stored[-1])))
        self._target = problem.loss.target(columns.labels)
        code, a, b = problem.penalty.compiled
        self._unit = a + b if code == 0 else 1.0
        self._row_weight = problem.lam_weight[active]
        self._at: Iterate | None = None
        self._state: _State | None = None
        self._diagonal = np.zeros(0)
        self._face: Face | None = None

    def step(self, at: Iterate, lam: float, aim: Aim) -> tuple[Iterate, Step]:
        """Take one step; the objective of the result is never above that of `at`. See ``NewtonSteps.step``."""
        problem, final = self.problem, aim.final
        if at is not self._at:
            at = self._moved(at.W, at.intercept, self._known(at, lam))
            # a few sweeps may be enough; all of them cost more than the support's curvature
            self._settled = self._holds(at, lam) and not self._pays(np.flatnonzero(at.W[:, 0]), _FEW_SWEEPS)
        now = self._state
        assert now is not None
        value = problem.objective(at, lam)
        if final and self._settled:
            self._settled = False
            found = self._on_face(at, lam, now, value)
            if found is not None:
                return found
        if final and self._slow:
            return self._by_newton(at, lam, aim)
        support = np.flatnonzero(at.W[:, 0])
        most = _FEW_SWEEPS if final and self._pays(support, _FEW_SWEEPS) else _MAX_SWEEPS
        sweeps, target, b = self._descent(at, lam, now, most)
        if np.array_equal(target, at.W) and np.array_equal(b, at.intercept):
            return at, Step("descent", 0.0, 0.0)
        self._sweeps = sweeps
        self._slow = sweeps >= _MAX_SWEEPS
        found = self._searched(at, lam, target, b, now, value, "descent", _GRID)
        if found is None:
            small = self._promised <= _ROUNDING * abs(value)
            return (at, Step("descent", 0.0, self._promised)) if small else self._by_newton(at, lam, aim)
        after = found[0].W != 0.0
        changed = int(np.count_nonzero((at.W != 0.0) != after))
        held = max(1, int(np.count_nonzero(after)))
        self._settled = found[1].length == 1.0 and changed <= _SETTLED_SHARE * held
        return found

    def _holds(self, at: Iterate, lam: float) -> bool:
        """Whether the support is likely to be that of the minimiser: nearly solved, and no other row would enter."""
        w, G, strength = at.W[:, 0], at.G[:, 0], self._row_weight * lam * self._unit
        held = w != 0.0
        enters = np.any(np.abs(G[~held]) > strength[~held])
        off = np.abs(G - np.sign(w) * strength)[held]
        return bool(off.size and not enters and np.all(off <= _NEARLY * strength[held]))

    def _descent(self, at: Iterate, lam: float, now: _State, most: int) -> tuple[int, Array, Array]:
        """Minimiser of the Newton model by coordinate descent: sweeps, W, intercept."""
        problem = self.problem
        G, W, strength = problem.with_intercept(at, lam)
        diagonal = self._diagonal
        damping = growth(problem, at, lam, diagonal[:, None])[:, 0] + _RIDGE * diagonal
        self.memory = replace(self.memory, draws=self.memory.draws + 1)
        new = W[:, 0].copy()
        indptr, row, _ = self._block
        sweeps = one_output.descend(
            indptr,
            row,
            self._columns.single,
            self._places,
            now.curvature.astype(np.float32),
            np.ascontiguousarray(G[:, 0]),
            W[:, 0].copy(),
            self._unit * strength,
            diagonal,
            damping,
            problem.fit_intercept,
            most,
            _ENOUGH,
            self._seed * 1_000_003 + self.memory.draws,
            new,
        )
        target, b = problem.split_intercept(new[:, None])
        return int(sweeps), target, b if problem.fit_intercept else at.intercept

    def _on_face(self, at: Iterate, lam: float, now: _State, value: float) -> tuple[Iterate, Step] | None:
        """Newton's step on the support, its signs held; None where it costs too much or does not help."""
        support = np.flatnonzero(at.W[:, 0])
        if self._face is None or not self._face.holds(support):
            if not self._pays(support, self._sweeps):
                return None
            self._face = self._summed_face(support, now.curvature)
        strength = self._row_weight * lam * self._unit
        w, b = self._face.minimiser(at, strength, support)
        found = self._searched(at, lam, w[:, None], b, now, value, "newton", ())
        if found is None or found[1].promised > _STALE * self._face.promised > 0.0:
            self._face = None
        if found is not None and self._face is not None:
            self._face.promised = found[1].promised
        return found

    def _summed_face(self, support: NDArray[np.int64], h: Array) -> Face:
        """The curvature among the entries of a support, its examples in parts for threads."""
        problem, places = self.problem, self._places[support]
        parts = equal_slices(h.shape[0], _parts(self._face_cost(support)))
        sums = one_output.gram(*self._block, places, h, problem.fit_intercept, parts, problem.engine.on_driver)
        return Face(support, sums)

    def _pays(self, support: NDArray[np.int64], sweeps: int) -> bool:
        """Whether forming the curvature takes no longer than a few times what so many sweeps take."""
        return self._face_cost(support) <= _FACE_FREE + _FACE_SHARE * sweeps * float(np.sum(self._sizes))

    def _face_cost(self, support: NDArray[np.int64]) -> float:
        """Operations of a step on a support."""
        return Face.cost(float(np.sum(self._sizes[support])), support.shape[0], self._columns.weight.shape[0])

    def _searched(
        self,
        at: Iterate,
        lam: float,
        target: Array,
        b: Array,
        now: _State,
        value: float,
        kind: str,
        shorter: tuple[float, ...],
    ) -> tuple[Iterate, Step] | None:
        """The full step to (target, b) if the objective falls by a share of the promise, else a shorter one."""
        strength = self._row_weight * lam * self._unit
        D, d = target - at.W, b - at.intercept
        # entry by entry, so that near the optimum the promise is not lost in the difference of two large sums
        saved = strength * (np.abs(at.W) - np.abs(target))[:, 0]
        promised = max(0.0, float(np.sum(at.G[:, 0] * D[:, 0] + saved)) + float(at.bias[0] * d[0]))
        along = np.full(now.margins.shape[0], d[0])
        self._promised = promised
        one_output.add_columns(*self._block, self._places, np.ascontiguousarray(D[:, 0]), along)
        for t in (1.0, *shorter):
            W = target if t == 1.0 else at.W + t * D
            found = self._evaluated(now.margins + t * along, W, lam)
            rounding = _ROUNDING * abs(value) if t == 1.0 else 0.0
            if found.value <= value - _ARMIJO * t * promised + rounding:
                return self._moved(W, b if t == 1.0 else at.intercept + t * d, found), Step(kind, t, promised)
        return None

    def _by_newton(self, at: Iterate, lam: float, aim: Aim) -> tuple[Iterate, Step]:
        """A step with all that ``newton`` can do: conjugate gradients, and an upper bound of the loss."""
        if self._newton is None:
            return at, Step("descent", 0.0, self._promised)
        if self._general is None:
            self._general = self._newton(replace(self.memory, settled=self._slow))
        else:
            self._general.memory = self.memory
        result = self._general.step(at, lam, aim)
        self.memory = self._general.memory
        return result

    def _known(self, at: Iterate, lam: float) -> _State:
        """The state at a model that a pass has summed, or none has yet (its loss is nan)."""
        if np.isnan(at.loss):
            margins = np.full(self._columns.weight.shape[0], at.intercept[0])
            one_output.add_columns(*self._block, self._places, np.ascontiguousarray(at.W[:, 0]), margins)
            return self._evaluated(margins, at.W, lam)
        state = self._columns.state(at, self.problem.held, self.problem.loss)
        return _State(*state, at.loss, at.loss + self._price(at.W, lam))

    def _evaluated(self, margins: Array, W: Array, lam: float) -> _State:
        u, h = np.empty_like(margins), np.empty_like(margins)
        loss = float(rows.single_state(self._target, margins, self._columns.weight, u, h))
        return _State(margins, u, h, loss, loss + self._price(W, lam))

    def _price(self, W: Array, lam: float) -> float:
        return lam * self._unit * float(np.sum(self._row_weight * np.abs(W[:, 0])))

    def _moved(self, W: Array, intercept: Array, state: _State) -> Iterate:
        """The model with its sums."""
        a = W.shape[0]
        G = np.empty(a)
        diagonal = np.zeros(a + (1 if self.problem.fit_intercept else 0))

        def sums(part: slice) -> None:
            mine = (self._places[part], state.residual, state.curvature, G[part], diagonal[part])
            one_output.column_curvature(*self._block, *mine)

        self.problem.engine.on_driver(sums, self._parts)
        diagonal[a:] = state.curvature.sum()
        self._diagonal = diagonal
        self._state = state
        bias = np.array([state.residual.sum()])
        self._at = Iterate(self._active, W, intercept, state.loss, G[:, None], bias)
        return self._at


def _parts(cost: float) -> int:
    """Into how many parts work of so many operations is cut."""
    return min(max(int(cost // _PART), 1), _MOST_PARTS)


class Face:
    """The curvature among the entries of a support, and steps with their signs held.

    Parameters
    ----------
    support : int64 array, shape (s,)
        Places among the active rows.
    gram : float64 array, shape (s, s) or (s + 1, s + 1)
        sum_i h_i x_ij x_il; the intercept last where there is one.
    """

    def __init__(self, support: NDArray[np.int64], gram: Array) -> None:
        self.support = support
        self.gram = gram
        # by the last step
        self.promised = 0.0

    @staticmethod
    def cost(nnz: float, s: int, m: int) -> float:
        """Operations of summing it and of `minimiser` for so many values of s columns and m examples."""
        return 0.5 * nnz * nnz / m + 5.0 * nnz + s**3 / 6

    def holds(self, support: NDArray[np.int64]) -> bool:
        """Whether the curvature among the entries of another support is known."""
        return bool(np.isin(support, self.support, assume_unique=True).all())

    def minimiser(self, at: Iterate, strength: Array, support: NDArray[np.int64]) -> tuple[Array, Array]:
        """Minimiser of the quadratic model on the support: W (a,) and the intercept.

        An entry that would change its sign ends at zero, and the others are solved again with it there.
        """
        w = at.W[:, 0].copy()
        s = support.shape[0]
        bias = self.gram.shape[0] - self.support.shape[0]
        kept = np.concatenate([np.searchsorted(self.support, support), np.full(bias, self.support.shape[0], np.int64)])
        H = self.gram[np.ix_(kept, kept)]
        g = np.append(at.G[support, 0] - strength[support] * np.sign(w[support]), at.bias[:bias])
        free = np.ones(s + bias, np.bool_)
        step = np.zeros(s + bias)
        for _ in range(_RESOLVES):
            ids, fixed = np.flatnonzero(free), np.flatnonzero(~free)
            right = g[ids] - np.sum(H[np.ix_(ids, fixed)] * step[fixed], axis=1)
            step[ids] = solve_positive(H[np.ix_(ids, ids)], right, _PIVOT)
            crossing = free[:s] & ((w[support] + step[:s]) * w[support] <= 0.0)
            step[:s][crossing] = -w[support][crossing]
            free[:s] &= ~crossing
            if not np.any(crossing):
                break
        w[support] = np.where(free[:s], w[support] + step[:s], 0.0)
        return w, at.intercept + step[s:] if bias else at.intercept
