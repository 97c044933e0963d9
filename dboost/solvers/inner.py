"""The inner solve of a round: the weights of the rows held, solved again (docs/math.md 7).

Covers: ``Goal``, how far they are solved; ``InnerResult``, all that a solve leaves; and the ways to solve. The plain
one is the paper's, one-row updates on a diagonal bound of the loss. Newton steps have the curvature of the loss itself.
Rows that are penalised in groups have steps of their own.
Does not cover: which rows are held (``boosting.totally_corrective``), or what a step is (``row_updates``, ``formed``,
``solvers.newton.step``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dboost.certificate.duality_gap import restricted_gap
from dboost.problem.accelerators import Accelerators
from dboost.problem.iterate import Iterate
from dboost.problem.limits import Limits, round_passes
from dboost.problem.memory import Memory
from dboost.problem.problem import Problem
from dboost.problem.state import FitSettings, FitState
from dboost.solvers import formed, proximal
from dboost.solvers.newton.accuracy import Aim
from dboost.solvers.newton.step import NewtonSteps
from dboost.solvers.one_output.steps import OneOutputSteps
from dboost.solvers.row_updates import RowwiseSteps, diagonal_promise
from dboost.solvers.smooth import SmoothSteps
from dboost.solvers.step import Step

_INNER_TOL = 0.7
# Without a certificate a fit ends once its next step promises less than this share of `tol`.
PROMISED = 0.1
# At this share of the gap that is asked for, the certificate is tried instead of another step: it is cheaper, and
# usually passes.
_LIKELY = 0.95
# The rest of the gap in the rows held, as a share of the one asked for, at which the next certificate is likely to be
# the last.
_NEARLY = 1.0
# Steps that cost less than that certificate go on to this share of what would be enough.
_CHEAP = 0.3
_MAX_NEWTON_STEPS = 12
# Where the penalty is flat on its faces conjugate gradients are refused, as signs and ties change on the way: curvature
# is formed after so many steps if more than as many again are to follow at the pace so far (2026-11: l1 and l1/linf of
# ten classes and 16 columns take 0.5 to 0.8 of the time that they take where eight steps come first).
_FEW_NEWTON_STEPS = 3
# To form it costs a step for each so many entries that an example has a value for.
_MET_FOR_A_STEP = 60.0
# Rows of which so many steps leave more than this share of what the first left creep: their curvature is formed, if it
# is affordable.
_CREEPS = 0.2
# Rounds after which a table of four times the numbers is worth its time.
_MANY_ROUNDS = 8
_IDLE_SWEEPS = 50


@dataclass(frozen=True)
class Goal:
    """How far the rows held are solved in a round; all numbers but `lam` in the units of the objective."""

    lam: float  # Strength of the penalty, sum form.
    value: float  # Objective of the model that the round begins with, at least the resolution of the problem.
    gap: float  # Its gap.
    target: float  # Gap of the rows held at which they count as solved.
    enough: float  # The same once a certificate is likely to end the fit; at least `target`.
    nearly: float  # Gap of the rows held at which the next certificate is likely to be the last.

    @classmethod
    def of(cls, lam: float, value: float, gap: float, share: float, tol: float, certified: bool) -> Goal:
        """The goal of a round.

        `gap`: relative gap.
        `share`: the share of the gap that the rows held may keep.
        `tol`: relative gap that is asked for.
        `certified`: whether there is a certificate; without one the promise of a step decides, at a value that falls
        until then.
        """
        least = _INNER_TOL if certified else 0.5 * PROMISED
        target = max(least * tol, share * gap) * value
        enough = max(target, _LIKELY * tol * value) if certified else target
        return cls(lam, value, gap * value, target, enough, _NEARLY * tol * value)

    def below(self, rest: float, share: float) -> Goal:
        """The goal of rows that keep a gap `rest`: where that is enough as it is, a share of it is the goal.

        What is left of the certified gap then lies in what an inexact intercept makes of the certificate, and steps
        would end before they begin. It falls as `rest` does: no closer than to half of what the fit ends at.
        """
        if not 0.0 < rest <= min(self.target, self.gap):
            return self
        less = max(share, 0.5 * self.nearly / self.gap) * rest
        return replace(self, target=less, enough=less)


@dataclass(frozen=True)
class InnerResult:
    """What a solve leaves."""

    iterate: Iterate  # The model with its sums; its objective is not above that of the model given.
    step: Step  # The last step.
    memory: Memory  # What the next solve needs to know.
    finished: bool = False  # Whether the next certificate is likely to be the last.


class Trace:
    """Passes, seconds and objective of each model on the way of a fit.

    `lam`: the strength that is asked for, sum form: objectives are at this one.
    """

    def __init__(self, problem: Problem, lam: float) -> None:
        self.points: list[tuple[float, float, float]] = []
        self._problem = problem
        self._lam = lam
        self._started = time.perf_counter()

    def __call__(self, iterate: Iterate) -> None:
        """Note one more model."""
        problem = self._problem
        value = problem.objective(iterate, self._lam) / problem.statistics.weight
        self.points.append((float(problem.passes), time.perf_counter() - self._started, value))


@dataclass(frozen=True)
class InnerSolver:
    """Solve for the rows held, in the way that the settings name; it keeps nothing from one solve to the next."""

    problem: Problem
    settings: FitSettings
    accelerators: Accelerators  # Those that the fit may take.
    mark: Callable[[Iterate], None]  # Is told each model on the way.

    def restricted_gap(self, iterate: Iterate, lam: float, step: Step) -> float:
        """Gap of the problem restricted to the rows of A, without another pass; without a certificate, the promise."""
        if not self.problem.penalty.certified:
            return step.promised
        return restricted_gap(self.problem, iterate, lam)

    def solve(self, iterate: Iterate, goal: Goal, state: FitState, limits: Limits) -> InnerResult:
        """Solve from a model; `state` is that of the fit before the round, and is not changed.

        Groups of columns, and signs of rows that never vanish, are solved for in one way only.
        """
        objective = self.problem.objective
        if objective.columns.group is not None or (objective.columns.sign is not None and not objective.sparse):
            return _over_groups(self, iterate, goal, state, limits)
        if self.settings.update != "newton":
            return _by_sweeps(self, iterate, goal, state, limits)
        return _by_newton(self, iterate, goal, state, limits)


def _by_sweeps(fit: InnerSolver, iterate: Iterate, goal: Goal, state: FitState, limits: Limits) -> InnerResult:
    """One-row updates on a diagonal bound until the rows are solved: the paper's own (Duchi & Singer, figs. 2 to 4)."""
    problem, settings = fit.problem, fit.settings
    last = problem.passes + round_passes(problem.n_rows, iterate.active.shape[0], problem.k)
    rng = np.random.Generator(np.random.Philox(key=[settings.random_state, state.round]))
    steps = RowwiseSteps(problem, iterate.active, settings.select, rng)
    step, idle, done = Step(settings.select, 0.0, 0.0), 0, 0
    while problem.passes < last and done != settings.sweeps:
        before, done = iterate, done + 1
        iterate = steps.sweep(before, goal.lam, limits)
        moved = not (np.array_equal(before.W, iterate.W) and np.array_equal(before.intercept, iterate.intercept))
        promised = 0.0 if problem.penalty.certified else diagonal_promise(problem, iterate, goal.lam)
        step = Step(settings.select, float(moved), promised)
        fit.mark(iterate)
        # near the optimum a sweep gains less than the objective's rounding, but still moves towards it
        idle = 0 if problem.objective(iterate, goal.lam) < problem.objective(before, goal.lam) else idle + 1
        if not moved or idle >= _IDLE_SWEEPS or fit.restricted_gap(iterate, goal.lam, step) <= goal.target:
            break
        if limits.reason(problem.passes):
            break
    return InnerResult(iterate, step, state.memory)


def _formed_steps(
    fit: InnerSolver, iterate: Iterate, lam: float, state: FitState, step: Step, solved: Callable[[Iterate, Step], bool]
) -> tuple[Iterate, Step]:
    """Newton steps on curvature that is formed, after another, until `solved` says so; none where it is too large."""
    fast = fit.accelerators
    sizes = fast.tuning.groups
    if state.round >= _MANY_ROUNDS:
        sizes = replace(sizes, entries=2 * sizes.entries)
    if fast.on("group_curvature") and formed.affordable(fit.problem, iterate, lam, sizes):
        steps = formed.Steps(fit.problem, lam)
        while steps.formed < _MAX_NEWTON_STEPS:
            fast.take("group_curvature")
            iterate, step = steps.step(iterate)
            if solved(iterate, step) or step.length == 0.0:
                break
    return iterate, step


def _over_groups(fit: InnerSolver, iterate: Iterate, goal: Goal, state: FitState, limits: Limits) -> InnerResult:
    """Steps over groups of columns: Newton's where their curvature can be formed, else proximal gradient steps."""
    problem, lam = fit.problem, goal.lam

    def solved(now: Iterate, step: Step) -> bool:
        fit.mark(now)
        return fit.restricted_gap(now, lam, step) <= goal.enough or bool(limits.reason(problem.passes))

    iterate, step = _formed_steps(fit, iterate, lam, state, Step("proximal", 0.0, 0.0), solved)
    if step.length == 0.0:
        most = round_passes(problem.n_rows, iterate.active.shape[0], problem.k)
        iterate, step = proximal.solve(problem, iterate, lam, most, solved)
    return InnerResult(iterate, step, state.memory)


def _by_newton(fit: InnerSolver, iterate: Iterate, goal: Goal, state: FitState, limits: Limits) -> InnerResult:
    """Newton steps until the rows are solved; on curvature that is formed where others creep, or fail."""
    problem, lam, fast = fit.problem, goal.lam, fit.accelerators
    single: OneOutputSteps | None = None
    step = Step("descent", 0.0, 0.0)
    rest = before = goal.gap
    first, creeps, cut_before = 0.0, False, state.memory.cut
    # where the next certificate is likely to be the last, and might just fail, steps go on that cost less than it does
    cheap = goal.enough <= goal.nearly

    def solved(now: Iterate, step: Step) -> bool:
        nonlocal rest
        fit.mark(now)
        rest = fit.restricted_gap(now, lam, step)
        enough = _CHEAP * goal.enough if cheap and single is not None and single.cheap else goal.enough
        return (rest <= enough and not (cut_before and step.cut)) or bool(limits.reason(problem.passes))

    small = fast.on("group_curvature") and formed.affordable(problem, iterate, lam, fast.tuning.groups)
    if small and state.memory.creeps:
        iterate, step = _formed_steps(fit, iterate, lam, state, step, solved)
        if step.length > 0.0:
            return InnerResult(iterate, step, state.memory, rest <= goal.nearly)
    steps = _steps_on(fit, iterate.active, state)
    single = steps if isinstance(steps, OneOutputSteps) else None
    if single is not None and problem.penalty.certified and problem.objective.sparse:
        single.look_for_others(iterate, lam, goal.gap)
    few = small and single is None and formed.flat(problem)
    price_of_table = max(_FEW_NEWTON_STEPS, formed.met(problem, iterate, lam) / _MET_FOR_A_STEP) if few else math.inf
    for done in range(1, _MAX_NEWTON_STEPS + 1):
        price = problem.objective.bound(iterate.active, lam).total(iterate.W) / goal.value
        aim = Aim.of(goal.target / goal.value, rest / goal.value, before / goal.value, price)
        before = rest
        iterate, step = steps.step(iterate, lam, aim)
        nothing = step.promised <= 0.0 and not step.cut
        if solved(iterate, step) or nothing or (single is not None and single.enough(step)):
            break
        first = first or rest
        slow = done >= _FEW_NEWTON_STEPS and _more_steps(first, rest, done - 1, goal) > price_of_table
        if slow or step.length == 0.0 or step.kind == "template":
            creeps = True
            break
    else:
        creeps = few or rest > _CREEPS * first
    if creeps:
        iterate, step = _formed_steps(fit, iterate, lam, state, step, solved)
    memory = replace(steps.memory, cut=single is not None and step.cut, creeps=creeps and few)
    return InnerResult(iterate, step, memory, rest <= goal.nearly)


def _more_steps(first: float, rest: float, steps: int, goal: Goal) -> float:
    """How many steps the goal is away at the pace of so many, which took the gap from `first` to `rest`."""
    if not (0.0 < rest < first and goal.enough > 0.0):
        return math.inf
    return math.log(rest / goal.enough) / math.log(first / rest) * steps


def _steps_on(
    fit: InnerSolver, active: NDArray[np.int64], state: FitState
) -> NewtonSteps | OneOutputSteps | SmoothSteps:
    """Newton steps on a fixed set of rows A, `active` (a,): on all of a smooth penalty, or where rows may vanish."""
    problem, settings, accelerators = fit.problem, fit.settings, fit.accelerators

    def newton(memory: Memory) -> NewtonSteps | SmoothSteps:
        if not problem.objective.sparse:
            return SmoothSteps(problem, memory, accelerators)
        return NewtonSteps(problem, active, settings.sample, settings.random_state, memory, accelerators, state.gap)

    if accelerators.take("one_output"):
        columns, seed = problem.columns, settings.random_state
        return OneOutputSteps(problem, active, columns, seed, state.memory, accelerators, newton)
    return newton(state.memory)
