"""What a way to boost is, and what all of them share: rounds until a reason to stop, records, rules of rank.

A system is one file beside this one: a ``System``, a frozen dataclass with the parameters of its paper, and the
class of its rounds, a ``Rounds``. One that takes one step after each scoring pass gives that step alone
(``StepwiseSystem``). Everything around it is shared: data, hypotheses, engines, checkpoints, warm starts and models.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from dboost.compiled.vectors.norms import largest_entries
from dboost.errors import UsageError
from dboost.hypotheses.capabilities import has_tree
from dboost.penalties import Penalty
from dboost.penalties.mixed import L1, NoPenalty
from dboost.problem.accelerators import Accelerators
from dboost.problem.iterate import Iterate, Score
from dboost.problem.limits import Limits
from dboost.problem.problem import Problem
from dboost.problem.state import FitSettings, FitState

Callback = Callable[[dict[str, Any], FitState], bool]
"""Sees the record of each round and the state after it; a true result stops the fit."""


class System(ABC):
    """A way to boost; a subclass is a frozen dataclass, whose fields are the parameters of its paper."""

    name: ClassVar[str]
    exponential: bool = False  # Whether its scoring passes sum mu+ and mu- beside G.
    # Whether a fit is the optimum of its objective to `tol`, by whatever way it gets there. Only then may columns be
    # solved less a number, is a class of hypotheses certified as a whole, and does a fit that ends above `tol` warn.
    # Others are more than their objective: what they do depends on the columns themselves.
    optimises: ClassVar[bool] = False
    picks: ClassVar[bool] = False  # Whether it asks for the best candidate of all alone, and certifies nothing.
    takes_factors: ClassVar[bool] = False  # Whether each hypothesis may have a strength of its own.
    learns: ClassVar[bool] = False  # Whether it asks for one hypothesis in every round, which a family may then learn.

    @abstractmethod
    def check(self, settings: FitSettings, penalty: Penalty) -> None:
        """Refuse settings it cannot be combined with (UsageError)."""

    @abstractmethod
    def rounds(self, problem: Problem, settings: FitSettings, null: Score, n_rows: int) -> Rounds:
        """The rounds of a fit; `null` is the scoring pass at the null model, settings.alpha the strength decided."""

    def to_json(self) -> dict[str, Any]:
        """Its name and parameters, which a checkpoint must agree with."""
        return {"system": self.name} | vars(self)


def refuse_sweeps(settings: FitSettings, what: str) -> None:
    """Refuse `sweeps` for what makes no one-row updates (UsageError)."""
    if settings.sweeps is not None:
        raise UsageError(
            f"sweeps={settings.sweeps!r} bounds the one-row updates of a round, which {what} does not make",
            hint="use update='gradboost' or 'adaboost', or leave sweeps out",
        )


def recorded(
    problem: Problem,
    state: FitState,
    clock: tuple[float, int],
    *,
    certified: bool,
    alpha: float,
    features_in: int,
    features_out: int,
    held: Iterate | FitState,
    candidates: float,
    step: str,
    length: float,
    subtrees: int = 0,
    more: Mapping[str, float] | None = None,
) -> FitState:
    """The state after a round, with the round's record.

    `state` is from before the round is counted, its objective in the sum form; `clock` has ``time.perf_counter()`` and
    ``problem.passes`` when the round began; `certified` says whether the bound is one of the whole problem; `held` is
    the model after the round, `subtrees` the number that a search opened, `more` the columns of one system alone.
    """
    done = problem.passes - clock[1]
    seconds = time.perf_counter() - clock[0]
    scheduler, network, kernels = problem.runner.seconds()
    weight = problem.statistics.weight
    record: dict[str, Any] = {
        "round": state.round + 1,
        "objective": state.objective / weight,
        "gap": state.gap if certified and math.isfinite(state.gap) else math.nan,
        "lower_bound": state.lower_bound / weight if certified and math.isfinite(state.lower_bound) else math.nan,
        # where no column has a strength, the one that rounds take is any
        "alpha": alpha if problem.objective.columns.charged else 0.0,
        "features_in": features_in,
        "features_out": features_out,
        "features": int(held.active.shape[0]),
        "entries": int(np.count_nonzero(held.W)),
        "candidates": candidates,
        "step": step,
        "length": length,
        "passes": state.passes + done,
        "seconds": seconds,
        "seconds_driver": max(0.0, seconds - scheduler - network - kernels),
        "seconds_scheduler": scheduler,
        "seconds_network": network,
        "seconds_kernels": kernels,
        "bytes_moved": problem.engine.bytes_moved,
    }
    if problem.searched:
        record["subtrees"] = subtrees
    record |= dict(more or {})
    return replace(
        state,
        round=state.round + 1,
        passes=state.passes + done,
        history=(*state.history, record),
        keys=tuple(problem.keys),
    )


def last_of_size(history: Sequence[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """The last record of a model of each number of rows."""
    return {record["features"]: record for record in history}


def repeated(
    advance: Callable[[FitState], tuple[FitState, str]],
    state: FitState,
    callback: Callback,
    ended: Callable[[FitState], str],
    reason: str = "",
) -> tuple[FitState, str]:
    """One round after the other until a reason to stop, with the state after the last one; the loop of every system.

    The callback sees the record of a round that left one, and the state after it, and may stop the fit ("callback").
    `ended` says from a state alone why no round follows it, empty to go on; `reason` why there is to be none at all.
    """
    while not reason:
        rounds = state.round
        state, reason = advance(state)
        if state.round > rounds and callback(dict(state.history[-1]), state):
            reason = reason or "callback"
        reason = reason or ended(state)
    return state, reason


class Rounds(ABC):
    """Rounds of one fit; a system gives `advance`, and `begun` and `ended` where it needs to."""

    certified: bool = False  # Whether a state's `gap` and `lower_bound` are a certificate; otherwise both are missing.

    def __init__(
        self, problem: Problem, settings: FitSettings, null: Score, system: Any, n_rows: int, lam: float | None = None
    ) -> None:
        self.problem = problem
        self.settings = settings
        self.system = system
        self.n_rows = n_rows
        self.norms = null.norms  # (n,): Last known ||G_j||_* of every column, or a bound.
        # Strength of the penalty, sum form; 0 without one. By default it is that of the settings.
        self.lam = float(settings.alpha) * problem.statistics.weight if lam is None else lam
        # Passes, seconds and the objective (mean form) after every step.
        self.trace: list[tuple[float, float, float]] = []
        self._started = time.perf_counter()
        self.limits = Limits.of(settings)
        self.accelerators = Accelerators.of(problem, settings)

    def run(self, state: FitState, callback: Callback) -> tuple[FitState, str]:
        """Rounds until the reason to stop that `advance`, `ended`, a limit or the callback gives."""
        state = self.begun(state)
        return self.ended(*repeated(self.advance, state, callback, self._spent, self._spent(state)))

    def _spent(self, state: FitState) -> str:
        """Which limit of rounds, passes or seconds is reached; empty to go on."""
        return "max_rounds" if state.round >= self.settings.max_rounds else self.limits.reason(state.passes)

    @abstractmethod
    def advance(self, state: FitState) -> tuple[FitState, str]:
        """One round, with its record: state in, state out, and the reason to stop if there is one."""

    def begun(self, state: FitState) -> FitState:
        """The state that the first round starts from."""
        return state

    def ended(self, state: FitState, reason: str) -> tuple[FitState, str]:
        """The state with the objective of the model it holds, and the reason to stop."""
        iterate = self.problem.evaluate(state.active, state.W, state.intercept)
        return self.valued(state, self.problem.objective(iterate, self.lam)), reason

    def valued(self, state: FitState, value: float) -> FitState:
        """The state with an objective (sum form), which is noted in the trace."""
        weight = self.problem.statistics.weight
        self.trace.append((float(self.problem.passes), time.perf_counter() - self._started, value / weight))
        return replace(state, objective=value)

    def clock(self) -> tuple[float, int]:
        """What a round notes when it begins, for ``recorded``."""
        return time.perf_counter(), self.problem.passes

    def recorded(
        self,
        before: FitState,
        state: FitState,
        clock: tuple[float, int],
        step: str,
        length: float,
        more: Mapping[str, float] | None = None,
    ) -> FitState:
        """The state with its record, whose certificate is that before the round's step; `before` is from its start."""
        return recorded(
            self.problem,
            state,
            clock,
            certified=self.certified,
            alpha=float(self.settings.alpha),
            features_in=int(np.setdiff1d(state.active, before.active).shape[0]),
            features_out=int(np.setdiff1d(before.active, state.active).shape[0]),
            held=state,
            candidates=self.problem.n_candidates,
            step=step,
            length=length,
            more=more,
        )


class StepwiseSystem(System):
    """A system that gives `name` and `step`, and `check` where not every loss or penalty has a meaning.

    A fit ends by "gradient" once no step is taken, or by a limit; there is no certificate.
    """

    @abstractmethod
    def step(self, iterate: Iterate) -> Iterate | None:
        """One step of a round: the same rows with other weights and intercept; None where no step is worth taking.

        `iterate` is the model: its rows, and among them, with weights 0, the column outside it that the penalty's score
        ranks first, each with its row of G, which is minus the gradient of the loss in its weights; `bias` is that of
        the intercept.
        """

    def check(self, settings: FitSettings, penalty: Penalty) -> None:
        """Refuse a penalty, as the sums say nothing of one."""
        if not penalty.weightless:
            raise UsageError(
                f"system {self.name!r} with penalty {penalty.name!r}",
                hint="its steps know no penalty: use penalty='none'",
            )

    def rounds(self, problem: Problem, settings: FitSettings, null: Score, n_rows: int) -> StepwiseRounds:
        """The rounds of a fit."""
        return StepwiseRounds(problem, settings, null, self, n_rows)


class StepwiseRounds(Rounds):
    """Rounds of one fit: one scoring pass each."""

    def advance(self, state: FitState) -> tuple[FitState, str]:
        """One round: state in, state out, and the reason to stop if there is one."""
        clock, before = self.clock(), state
        model = Iterate.unsummed(state.active, state.W, state.intercept)
        iterate = offered(self.problem.score(model, None, 0.0, 1))
        moved = self.system.step(iterate)
        after = moved or iterate
        held = after.rows(np.any(after.W != 0.0, axis=1))
        state = replace(self.valued(state, iterate.loss), active=held.active, W=held.W, intercept=held.intercept)
        state = self.recorded(before, state, clock, self.system.name, 0.0 if moved is None else 1.0)
        return state, "gradient" if moved is None else ""


def offered(score: Score) -> Iterate:
    """The model of a scoring pass with the best columns outside it as rows of weight 0, in ascending order."""
    iterate = score.iterate
    active = np.concatenate([iterate.active, score.best])
    order = np.argsort(active)
    W = np.concatenate([iterate.W, np.zeros_like(score.best_G)])
    G = np.concatenate([iterate.G, score.best_G])
    return replace(iterate, active=active[order], W=W[order], G=G[order])


Array = NDArray[np.float64]

RULES = ("edge", "nearest", "joint")
# log of the smallest number that ``_positive`` tells from zero
_TINY = 1e-300
_MIDDLE = 1500.0

SUMMED_HINT = (
    "use dboost.Products(max_degree=2), which is summed whole whatever the number of features; "
    "of a higher max_degree at most 10,000,000 products are"
)


def rank(rule: str, G: Array, square: Array, lam: npt.ArrayLike = 0.0) -> Array:
    """How much a hypothesis deserves to be moved (c,); positive, larger is better (docs/math.md 7 (I)).

    G is <d, h>, `square` <h, h> times the largest curvature of the loss, `lam` the strength of an l1 penalty.
    "edge": |<d, h>| - lam, the learner of AdaBoost and logistic regression, and the Gauss-Southwell rule.
    "nearest": |<d, h>| - <h, h> / 2, whose maximiser has the least (1/2) sum_n (d_n - h_n)^2 of all h and -h
    (LS-Boost, first version). "joint": (|<d, h>| - lam)^2 / (2 <h, h>), the decrease of the squared loss at the
    best weight (LS-Boost, second version).
    """
    size = np.abs(G)
    if rule == "nearest":
        return _positive(size - 0.5 * square)
    beyond = np.maximum(size - lam, 0.0)
    if rule == "edge":
        return beyond
    result: Array = np.divide(beyond * beyond, 2.0 * square, out=np.zeros_like(beyond), where=square > 0.0)
    return result


def _positive(x: Array) -> Array:
    """A positive number for each, in the same order: candidates of a pass without a positive score are dropped."""
    result: Array = _MIDDLE + np.sign(x) * (np.log(np.abs(x) + _TINY) - np.log(_TINY))
    return result


@dataclass(frozen=True)
class RankedNone(NoPenalty):
    """No penalty; candidates are ranked by `rank`."""

    rule: str = "edge"

    def dual_norm(self, G: Array) -> Array:
        """Largest absolute entry: the size of a gradient that is to vanish."""
        return largest_entries(G)

    def score_quadratic(self, G: Array, D: npt.ArrayLike, lam: npt.ArrayLike) -> Array:
        """`rank` of rows of one entry."""
        return rank(self.rule, G[:, 0], np.broadcast_to(np.asarray(D, float), len(G)))


@dataclass(frozen=True)
class RankedL1(L1):
    """The l1 penalty; candidates are ranked by `rank`."""

    rule: str = "edge"

    def score_quadratic(self, G: Array, D: npt.ArrayLike, lam: npt.ArrayLike) -> Array:
        """`rank` of rows of one entry."""
        return rank(self.rule, G[:, 0], np.broadcast_to(np.asarray(D, float), len(G)), lam)


@dataclass(frozen=True)
class NormalisedEdges(NoPenalty):
    """No penalty; candidates are ranked by |<d, h>| / max |h|, the edge of a hypothesis scaled into [-1, 1]."""

    rule: ClassVar[str] = "normalised"

    def score_exponential(self, mu_plus: Array, mu_minus: Array, a: npt.ArrayLike, lam: npt.ArrayLike) -> Array:
        """|mu+ - mu-| times a = 1 / max |h|."""
        result: Any = np.abs(mu_plus[:, 0] - mu_minus[:, 0]) * np.asarray(a, float)
        return np.asarray(result, dtype=np.float64)


def refuse_searched(problem: Problem) -> None:
    """Refuse a class that no round sums: these systems take the best hypothesis of all in every round (UsageError).

    The search of a tree finds the largest |h'Theta|. Edges that are divided by max |h|, and gradients by the root of
    sum h^2, are ranked otherwise: products of ever more features become small in both, no bound on what lies below one
    falls with its degree, and a search has no end. A class of which every round finds the best, though it does not sum
    all (``hypotheses.capabilities.Binned``), will do.
    """
    if has_tree(problem.pool):
        raise UsageError(
            f"the best hypothesis of {_number(problem)} cannot be found in every round",
            hint=SUMMED_HINT,
        )


def refuse_part(problem: Problem) -> None:
    """Refuse a class that has an end and of which a round would look at a part (UsageError)."""
    if math.isfinite(problem.n_candidates) and has_tree(problem.pool):
        raise UsageError(
            f"{_number(problem)} are not summed in every round, and some would not be looked at",
            hint=SUMMED_HINT,
        )


def _number(problem: Problem) -> str:
    many = math.isfinite(problem.n_candidates)
    return f"{problem.n_candidates:,.0f} hypotheses" if many else "an infinite class"
