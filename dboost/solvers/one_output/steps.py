"""Newton steps of a single output, taken on the driver from start to end.

With one output the active columns of all examples are small enough to lie on the driver, and a sweep over them costs
less than handing a pass to threads. So they are fetched once for a set of rows; margins, curvature, coordinate descent
and the search along the step are then loops over arrays at hand (``compiled.solves.one_output``), in float64 but for
the descent. At the final strength, once a step changes the curvature of the examples little, that among the rows is
formed (``quadratic``), and the steps that follow, in later rounds and at the next strengths of a path too, need no
sweep over the data. Where such steps do not help, or converge slowly, ``solvers.newton.step`` takes over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.examples import loss_of_rows as rows
from dboost.compiled.solves import one_output
from dboost.first_compile import beside
from dboost.problem.accelerators import Accelerators
from dboost.problem.driver_columns import DriverColumns
from dboost.problem.iterate import Iterate
from dboost.problem.memory import Anchor, Memory
from dboost.problem.problem import Problem
from dboost.problem.slices import equal_loads, parts_of
from dboost.solvers.line_search import SHORT
from dboost.solvers.newton.accuracy import Aim
from dboost.solvers.newton.damping import growth
from dboost.solvers.newton.step import NewtonSteps
from dboost.solvers.one_output.quadratic_model import MOST_ROWS, Quadratic, cost, distance
from dboost.solvers.smooth import SmoothSteps
from dboost.solvers.step import Step

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# Shares of the gap, and of what the first step with a set of rows has promised; see ``enough``. The second counts once
# the steps have taken as many operations as a round, with its passes, does: so many for each stored value, and at least
# so many.
_LITTLE = 1e-4
_LITTLE_OF_FIRST = 0.1
_ROUND = 10.0
_LEAST_ROUND = 2e7
_ARMIJO = 1e-4
# Sweeps of a descent, and of one that follows on conjugate gradients, which take over where that many do not do; those
# that it is taken to have before one is seen; and products that conjugate gradients may take.
_MAX_SWEEPS = 20
_FEW_SWEEPS = 10
_USUAL_SWEEPS = 6
_PRODUCTS = 60
_ENOUGH = 0.1
_RIDGE = 1e-9
# What steps cost, in operations of summing the curvature among rows: a value that a sweep visits, and a pair of rows
# that the quadratic model is solved for. It is taken to serve for so many steps, and may cost so much in any case.
_SWEPT = 2.0
_SOLVED = 17.0
_STEPS = 4.0
_FORM_FREE = 2e6
# The curvature of the examples may differ by this share from that of the quadratic model, and a step of it promise this
# share of what the last one did; beyond, it is formed anew.
_STALE = 0.2
_SLOW = 0.25
# It has so many rows for each that is held, and some: beyond, it is formed anew for those that are.
_UNUSED = 2.0
_FEW = 50
# The curvature along a step is taken to differ by no more than this factor.
_FARTHEST = 4.0
# Sums of the objective carry about this relative error: a step that promises less is judged by its promise, not by it.
_ROUNDING = 3e-14


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

    `active`: the rows A.
    `columns`: where their columns lie.
    `seed`: seed of the order of the coordinates.
    `memory`: what earlier steps left.
    `accelerators`: those that the fit may take.
    `newton`: the steps on the same rows that take over where one does not help, from a memory.
    """

    def __init__(
        self,
        problem: Problem,
        active: Rows,
        columns: DriverColumns,
        seed: int,
        memory: Memory,
        accelerators: Accelerators,
        newton: Callable[[Memory], NewtonSteps | SmoothSteps],
    ) -> None:
        self.problem = problem
        self.memory = memory
        self._accelerators = accelerators
        self._newton = newton
        self._seed = seed
        self._active = active
        self._general: NewtonSteps | SmoothSteps | None = None
        self._slow = False
        self._most = _FEW_SWEEPS if memory.promised > 0.0 else _MAX_SWEEPS
        # operations of all steps
        self._spent = 0.0
        # what the first step promised, which promise is little in any case, what a round costs, and whether rows enter
        self._first, self._little, self._round, self._entering = 0.0, 0.0, np.inf, False
        # of the last step that was tried
        self._promised = 0.0
        # whether the last step left the curvature of the examples about as it was, and no step of it was refused; the
        # rows of a smooth penalty are all held, and a descent over them is no start
        self._smooth = not problem.objective.sparse
        self._steady = self._smooth
        # one pass, of which only what the driver lacks is carried out
        problem.runner.count_on_driver()
        self._places = columns.places(active, problem.held)
        self._columns = columns
        # these arrays whatever else is fetched
        self._block = columns.indptr, columns.rows, columns.values
        self._single = columns.single(self._places)
        self._sizes = columns.indptr[self._places + 1] - columns.indptr[self._places]
        # values of a sweep, and those that the last descent visited
        self._stored = float(np.sum(self._sizes)) + problem.fit_intercept * problem.n_rows
        self._visited = _USUAL_SWEEPS * self._stored
        stored = np.concatenate([[0], np.cumsum(self._sizes)])
        self._parts = equal_loads(stored, parts_of(float(stored[-1])))
        self._target = problem.loss.target(columns.labels)
        single = problem.penalty.single
        assert single is not None
        self._unit, self._ridge = single
        self._row_weight = problem.objective.columns.weight[active]
        self._at: Iterate | None = None
        self._state: _State | None = None
        # of the curvature at `_at`, where that was formed
        self._diagonal: Array | None = None
        # by the last step of the quadratic model, and the margins that the last step of any kind moved by
        self._promised_before = np.inf
        self._along: Array | None = None

    def step(self, iterate: Iterate, lam: float, aim: Aim) -> tuple[Iterate, Step]:
        """Take one step; the objective of the result is never above that of `iterate`. See ``NewtonSteps.step``."""
        problem = self.problem
        if iterate is not self._at:
            iterate = self._entered(iterate, lam)
        now = self._state
        assert now is not None
        value = problem.objective(iterate, lam)
        if self._accelerators.on("quadratic_model"):
            found = self._on_quadratic(iterate, lam, now, value)
            if found is not None:
                return found
        if self._smooth:
            return self._by_newton(iterate, lam, aim)
        if self._slow:
            # sweeps get nowhere, and conjugate gradients keep the support: the two take turns
            self._slow = False
            return self._by_newton(iterate, lam, replace(aim, descents=np.inf))
        target, b = self._descent(iterate, lam, now)
        if np.array_equal(target, iterate.W) and np.array_equal(b, iterate.intercept):
            return iterate, Step("descent", 0.0, 0.0)
        self._slow = self._visited >= self._most * self._stored
        found = self._searched(iterate, lam, target, b, now, value, "descent", tuple(SHORT.tolist()))
        if found is None:
            small = self._promised <= _ROUNDING * abs(value)
            return (iterate, Step("descent", 0.0, self._promised)) if small else self._by_newton(iterate, lam, aim)
        assert self._state is not None
        self._steady = found[1].length == 1.0 and distance(now.curvature, self._state.curvature) <= _STALE
        return found[0], replace(found[1], cut=self._slow)

    def look_for_others(self, iterate: Iterate, lam: float, gap: float) -> None:
        """Say with which model the steps begin, and its gap: they may then end early to let other rows enter.

        They do where some of the rows that are zero violate optimality, as others are then likely to be missing.
        """
        bound, problem = self.problem.objective.bound(iterate.active, lam), self.problem
        if problem.screens:
            stored = problem.statistics.values(np.arange(problem.n), problem.n_rows)
            self._round = max(_LEAST_ROUND, _ROUND * stored)
        self._entering = bool(np.any((bound.dual_norm(iterate.G) > bound.strength) & (iterate.W[:, 0] == 0.0)))
        self._little = _LITTLE * gap if self._entering else 0.0

    @property
    def cheap(self) -> bool:
        """Whether the steps so far have cost less than a round does."""
        return self._spent <= self._round

    def enough(self, step: Step) -> bool:
        """Whether it is time to look for other rows instead of another step.

        What a step promises says so sooner than the gap, which is far above what is left to gain. Once the steps have
        cost more than a round does, a step that promises much less than the first is the last, as those of the next
        round move all weights anew.
        """
        self._first = self._first or step.promised
        little = max(self._little, _LITTLE_OF_FIRST * self._first if self._entering and not self.cheap else 0.0)
        return step.promised <= little and not step.cut

    def _on_quadratic(self, iterate: Iterate, lam: float, now: _State, value: float) -> tuple[Iterate, Step] | None:
        """A step to the minimiser of the quadratic model; None where there is none that pays, or it does not help."""
        # rows that are zero and would stay so are left out
        chosen = np.flatnonzero(
            (iterate.W[:, 0] != 0.0) | (np.abs(iterate.G[:, 0]) > lam * self._unit * self._row_weight)
        )
        part = iterate.rows(chosen)
        model, problem = self._model(part, now), self.problem
        if model is None:
            return None
        self._accelerators.take("quadratic_model")
        self._spent += _SOLVED * float(chosen.shape[0]) ** 2
        target = np.zeros_like(iterate.W)
        target[chosen], b = model.minimiser(problem, part, lam, self._unit, self._scale(model, now), self._ridge)
        if np.array_equal(target, iterate.W) and np.array_equal(b, iterate.intercept):
            return None
        # of a penalty that is not smooth, a descent from here finds which rows vanish
        shorter = tuple(SHORT.tolist()) if self._smooth else ()
        found = self._searched(iterate, lam, target, b, now, value, "newton", shorter)
        if found is None:
            self._forget()
            return None
        slow = found[1].promised > _SLOW * self._promised_before
        self._promised_before = found[1].promised
        if slow:
            self._forget()
            self._steady = True
        return found

    def _scale(self, model: Quadratic, now: _State) -> float:
        """The curvature of today along the last step, or of all examples, as a share of the anchor's."""
        weight = np.ones(1) if self._along is None else self._along**2
        before, after = float(np.sum(weight * model.curvature)), float(np.sum(weight * now.curvature))
        return min(max(after / before, 1.0 / _FARTHEST), _FARTHEST) if before > 0.0 else 1.0

    def _forget(self) -> None:
        """Let go of a quadratic model that does not help."""
        self._steady = False
        self.memory = replace(self.memory, anchor=None)
        self._promised_before = np.inf

    def _model(self, iterate: Iterate, now: _State) -> Quadratic | None:
        """The quadratic model for these rows: what earlier steps left, widened, or a new one at the model `iterate`."""
        columns, anchor, active = self._columns, self.memory.anchor, iterate.active
        if anchor is not None:
            if columns.quadratic is None or columns.quadratic.anchor is not anchor:
                columns.quadratic = Quadratic(self.problem, columns, anchor)
                self.memory = replace(self.memory, anchor=columns.quadratic.anchor)
            model: Quadratic = columns.quadratic
            new = model.missing(active)
            size = anchor.rows.shape[0] + new.shape[0]
            lean = size <= min(_UNUSED * active.shape[0] + _FEW, MOST_ROWS)
            if lean and distance(model.curvature, now.curvature) <= _STALE and self._pays(anchor.rows, new):
                if new.size:
                    model.add(self.problem, columns, new)
                    self.memory = replace(self.memory, anchor=model.anchor)
                return model
            self.memory = replace(self.memory, anchor=None)
            self._steady = True
        if not self._steady or active.shape[0] > MOST_ROWS or not self._pays(active[:0], active):
            return None
        formed = Quadratic(self.problem, columns, Anchor.of(iterate).with_rows(active))
        columns.quadratic = formed
        self.memory = replace(self.memory, anchor=formed.anchor)
        return formed

    def _pays(self, held: Rows, new: Rows) -> bool:
        """Whether steps with the curvature among rows, of which that among `held` is known, cost less than descents.

        It is then going to be formed among all of them, and counts as work that is done.
        """
        places = self._columns.places(np.concatenate([held, new]), self.problem.columns_of)
        formed = cost(self._columns, places) - cost(self._columns, places[: held.shape[0]])
        solved = _SOLVED * float(places.shape[0]) ** 2
        swept = _SWEPT * self._visited
        # of a smooth penalty ``problem.accelerators`` has found so before it chose these steps
        pays = self._smooth or formed + _STEPS * solved <= _FORM_FREE + _STEPS * swept
        self._spent += formed if pays else 0.0
        return pays

    def _descent(self, iterate: Iterate, lam: float, now: _State) -> tuple[Array, Array]:
        """Minimiser of the Newton model by coordinate descent: W, intercept."""
        problem = self.problem
        G, W, bound = problem.objective.with_intercept(iterate, lam)
        diagonal = self._diagonal
        if diagonal is None:
            diagonal = self._curved(now, np.empty(self._active.shape[0]))
        damping = growth(problem, iterate, lam, diagonal[:, None])[:, 0] + _RIDGE * diagonal
        self.memory = replace(self.memory, draws=self.memory.draws + 1)
        new, g = W[:, 0].copy(), np.ascontiguousarray(G[:, 0])
        if self._ridge:
            # the ridge is a part of the loss: it pulls at the weights as they are, and is curved
            bend = self._ridge * bound.strength
            g, damping = g - bend * new, damping + bend
        indptr, row, _ = self._block
        beside.wait_for(one_output.descend)
        self._visited = one_output.descend(
            indptr,
            row,
            self._single,
            self._places,
            now.curvature.astype(np.float32),
            g,
            W[:, 0].copy(),
            self._unit * bound.strength,
            diagonal,
            damping,
            problem.fit_intercept,
            self._most,
            _ENOUGH,
            self._seed * 1_000_003 + self.memory.draws,
            new,
            bound.signs,
        )
        self._spent += _SWEPT * self._visited
        target, b = problem.objective.split_intercept(new[:, None])
        return target, b if problem.fit_intercept else iterate.intercept

    def _searched(
        self,
        iterate: Iterate,
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
        D, d = target - iterate.W, b - iterate.intercept
        # entry by entry, so that near the optimum the promise is not lost in the difference of two large sums
        saved = strength * (np.abs(iterate.W) - np.abs(target))[:, 0]
        if self._ridge:
            saved = saved - self._row_weight * lam * self._ridge * (D * (iterate.W + 0.5 * D))[:, 0]
        promised = max(0.0, float(np.sum(iterate.G[:, 0] * D[:, 0] + saved)) + float(iterate.bias[0] * d[0]))
        along = np.full(now.margins.shape[0], d[0])
        self._promised, self._along = promised, along
        one_output.add_columns(*self._block, self._places, np.ascontiguousarray(D[:, 0]), along)
        for t in (1.0, *shorter):
            W = target if t == 1.0 else iterate.W + t * D
            found = self._evaluated(now.margins + t * along, W, lam)
            rounding = _ROUNDING * abs(value) if t == 1.0 else 0.0
            if found.value <= value - _ARMIJO * t * promised + rounding:
                return self._moved(W, b if t == 1.0 else iterate.intercept + t * d, found), Step(kind, t, promised)
        return None

    def _by_newton(self, iterate: Iterate, lam: float, aim: Aim) -> tuple[Iterate, Step]:
        """A step with all that ``solvers.newton.step`` can do: conjugate gradients, and an upper bound of the loss."""
        memory = replace(self.memory, settled=True, falling=False, products=_PRODUCTS)
        if self._general is None:
            self._general = self._newton(memory)
        else:
            self._general.memory = memory
        result = self._general.step(iterate, lam, aim)
        # it takes passes of its own
        self._spent, self._most = np.inf, _FEW_SWEEPS
        self.memory = self._general.memory
        return result

    def _known(self, iterate: Iterate, lam: float) -> _State:
        """The state at a model that a pass has summed, or none has yet (its loss is nan)."""
        if np.isnan(iterate.loss):
            return self._evaluated(self._columns.margins(self._places, iterate.W, iterate.intercept), iterate.W, lam)
        state = self._columns.state(iterate, self.problem.held, self.problem.loss)
        return _State(*state, iterate.loss, iterate.loss + self._price(iterate.W, lam))

    def _evaluated(self, margins: Array, W: Array, lam: float) -> _State:
        u, h = np.empty_like(margins), np.empty_like(margins)
        loss = float(rows.single_state(self._target, margins, self._columns.weight, u, h))
        return _State(margins, u, h, loss, loss + self._price(W, lam))

    def _price(self, W: Array, lam: float) -> float:
        price = lam * self._unit * float(np.sum(self._row_weight * np.abs(W[:, 0])))
        if self._ridge:
            price += lam * 0.5 * self._ridge * float(np.sum(self._row_weight * W[:, 0] ** 2))
        return price

    def _entered(self, iterate: Iterate, lam: float) -> Iterate:
        """A model that these steps have not made, with its sums."""
        state = self._known(iterate, lam)
        if np.isnan(iterate.loss):
            return self._moved(iterate.W, iterate.intercept, state)
        self._at, self._state, self._diagonal = iterate, state, None
        return iterate

    def _moved(self, W: Array, intercept: Array, state: _State) -> Iterate:
        """The model with its sums; with those of a descent, too, where the next step is likely to be one."""
        G, self._diagonal = np.empty(W.shape[0]), None
        if self.memory.anchor is None:
            self._curved(state, G)
        else:
            block, u = self._block, state.residual
            self._on_parts(lambda part: one_output.column_sums(*block, self._places[part], u, G[part]))
        bias = np.array([state.residual.sum()])
        self._state = state
        self._at = Iterate(self._active, W, intercept, state.loss, G[:, None], bias)
        return self._at

    def _curved(self, state: _State, G: Array) -> Array:
        """Diagonal of the curvature at a model, the intercept's last; the sums of its columns go into G."""
        a = self._active.shape[0]
        diagonal = np.zeros(a + (1 if self.problem.fit_intercept else 0))

        def sums(part: slice) -> None:
            u, h = state.residual, state.curvature
            one_output.column_curvature(*self._block, self._places[part], u, h, G[part], diagonal[:a][part])

        self._on_parts(sums)
        diagonal[a:] = state.curvature.sum()
        self._diagonal = diagonal
        return diagonal

    def _on_parts(self, sums: Callable[[slice], None]) -> None:
        """Sums of the columns, in parts for threads."""
        self.problem.engine.on_driver(sums, self._parts)
