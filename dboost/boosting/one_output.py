"""Newton steps of a single output, taken on the driver from start to end.

With one output the active columns of all examples are small enough to lie on the driver, and a sweep over them costs
less than handing a pass to threads. So they are fetched once for a set of rows; margins, curvature, coordinate descent
and the search along the step are then loops over arrays at hand (``compiled.one_output``), in float64 but for the
descent. Where such a step does not help, or converges slowly, ``newton`` takes over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.newton import Memory, NewtonSteps, Step, growth
from dboost.boosting.problem import Iterate, Problem
from dboost.compiled import one_output

Array = NDArray[np.float64]

# Examples up to which the driver holds them all.
MOST = 1_000_000
_ARMIJO = 1e-4
_GRID = (0.5, 0.25, 0.1, 0.03, 0.01)
_MAX_SWEEPS = 50
_ENOUGH = 0.1
_RIDGE = 1e-9
# Sums of the objective carry about this relative error: a step that promises less is judged by its promise, not by it.
_ROUNDING = 1e-14


def takes(problem: Problem, n_rows: int, sample: str | float) -> bool:
    """Whether the steps here are possible: one output, and a penalty that is a multiple of |w|."""
    whole = n_rows <= MOST if sample == "auto" else sample == 1.0
    return problem.k == 1 and whole and not problem.loss.shifted and problem.penalty.compiled[0] in (0, 1)


@dataclass(frozen=True)
class _Held:
    """Active columns of all examples on the driver.

    Parameters
    ----------
    pointer, rows, values : arrays
        CSC; `values` as stored.
    single : float32 array
        The same values.
    weight : float64 array, shape (m,)
    target : NamedTuple
        The labels, as the loss takes them.
    """

    pointer: NDArray[np.int64]
    rows: NDArray[np.int32]
    values: NDArray[Any]
    single: NDArray[np.float32]
    weight: Array
    target: Any


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
    n_rows : int
        Number of examples.
    sample : "auto" or float
        For the steps of ``NewtonSteps`` that take over.
    seed : int
        Seed of the order of the coordinates.
    memory : Memory
        What earlier steps left.
    """

    def __init__(
        self, problem: Problem, active: NDArray[np.int64], n_rows: int, sample: str | float, seed: int, memory: Memory
    ) -> None:
        self.problem = problem
        self.memory = memory
        self._arguments = (problem, active, n_rows, sample, seed)
        self._seed = seed
        self._general: NewtonSteps | None = None
        self._slow = False
        self._held = _joined(problem, problem.columns(active))
        code, a, b = problem.penalty.compiled
        self._unit = a + b if code == 0 else 1.0
        self._at: Iterate | None = None
        self._state: _State | None = None
        self._diagonal = np.zeros(0)

    def step(self, at: Iterate, lam: float, final: bool) -> tuple[Iterate, Step]:
        """Take one step; the objective of the result is never above that of `at`. See ``NewtonSteps.step``."""
        if self._slow and final:
            return self._by_newton(at, lam, final)
        problem = self.problem
        if at is not self._at:
            at = self._moved(at, self._evaluated(self._margins(at), at.W, lam))
        now = self._state
        assert now is not None
        if now.value != problem.objective(at, lam):
            now = replace(now, value=problem.objective(at, lam))
        G, W, strength = problem.with_intercept(at, lam)
        diagonal = self._diagonal
        damping = growth(problem, at, lam, diagonal[:, None])[:, 0] + _RIDGE * diagonal
        self.memory = replace(self.memory, draws=self.memory.draws + 1)
        held = self._held
        new = W[:, 0].copy()
        sweeps = one_output.descend(
            held.pointer,
            held.rows,
            held.single,
            now.curvature.astype(np.float32),
            np.ascontiguousarray(G[:, 0]),
            W[:, 0].copy(),
            self._unit * strength,
            diagonal,
            damping,
            problem.fit_intercept,
            _MAX_SWEEPS,
            _ENOUGH,
            self._seed * 1_000_003 + self.memory.draws,
            new,
        )
        self._slow = sweeps >= _MAX_SWEEPS
        target, b = problem.split_intercept(new[:, None])
        b = b if problem.fit_intercept else at.intercept
        D, d = target - at.W, b - at.intercept
        if not (D.any() or d.any()):
            return at, Step("descent", 0.0, 0.0)
        # entry by entry, so that near the optimum the promise is not lost in the difference of two large sums
        saved = strength[: at.W.shape[0]] * self._unit * (np.abs(at.W) - np.abs(target))[:, 0]
        promised = max(0.0, float(np.sum(at.G[:, 0] * D[:, 0] + saved)) + float(at.bias[0] * d[0]))
        along = np.full(held.weight.shape[0], d[0])
        one_output.add_columns(*self._columns(), np.arange(D.shape[0]), D[:, 0], along)
        for t in (1.0, *_GRID):
            W_t = target if t == 1.0 else at.W + t * D
            found = self._evaluated(now.margins + t * along, W_t, lam)
            rounding = _ROUNDING * abs(now.value) if t == 1.0 else 0.0
            if found.value <= now.value - _ARMIJO * t * promised + rounding:
                result = replace(at, W=W_t, intercept=at.intercept + t * d)
                return self._moved(result, found), Step("descent", t, promised)
        return self._by_newton(at, lam, final)

    def _by_newton(self, at: Iterate, lam: float, final: bool) -> tuple[Iterate, Step]:
        """A step with all that ``newton`` can do: conjugate gradients, and an upper bound of the loss."""
        if self._general is None:
            self._general = NewtonSteps(*self._arguments, replace(self.memory, settled=self._slow))
        result = self._general.step(at, lam, final)
        self.memory = self._general.memory
        return result

    def _columns(self) -> tuple[Any, Any, Any]:
        held = self._held
        return held.pointer, held.rows, held.values

    def _margins(self, at: Iterate) -> Array:
        f = np.full(self._held.weight.shape[0], at.intercept[0])
        one_output.add_columns(*self._columns(), np.arange(at.W.shape[0]), at.W[:, 0], f)
        return f

    def _evaluated(self, margins: Array, W: Array, lam: float) -> _State:
        u, h = np.empty_like(margins), np.empty_like(margins)
        loss = float(one_output.state(self._held.target, 0, margins, self._held.weight, u, h))
        value = loss + self.problem.penalty_value(self._arguments[1], W, lam)
        return _State(margins, u, h, loss, value)

    def _moved(self, at: Iterate, state: _State) -> Iterate:
        """The model with its sums."""
        a = at.W.shape[0]
        G = np.empty(a)
        diagonal = np.zeros(a + (1 if self.problem.fit_intercept else 0))
        one_output.column_curvature(*self._columns(), state.residual, state.curvature, G, diagonal)
        diagonal[a:] = state.curvature.sum()
        self._diagonal = diagonal
        self._state = state
        self._at = replace(at, loss=state.loss, G=G[:, None], bias=np.array([state.residual.sum()]))
        return self._at


def _joined(problem: Problem, parts: list[Any]) -> _Held:
    """The columns of all partitions, in their order, as one block."""
    pointer, rows, values = parts[0][:3]
    if len(parts) > 1:
        pointer = np.sum([part[0] for part in parts], axis=0)
        rows = np.empty(int(pointer[-1]), np.int32)
        values = np.empty(int(pointer[-1]), parts[0][2].dtype)
        fill, first = pointer[:-1].copy(), 0
        for part in parts:
            one_output.place_columns(*part[:3], first, fill, rows, values)
            first += part[4].shape[0]
    weight = np.concatenate([part[4] for part in parts])
    target = problem.loss.target(np.concatenate([part[3] for part in parts]))
    return _Held(pointer, rows, values, values.astype(np.float32, copy=False), weight, target)
