"""Leveraging: a learner names a hypothesis in every round, and its weight alone is moved.

Raetsch, Mika & Warmuth, "On the Convergence of Leveraging" (2001), Algorithms 1 and 2; docs/math.md 7 (I) and (K).

    Algorithm 1:  d = -dL/df;  h = the learner's choice for d;  f += h argmin_al L(f + al h)
    Algorithm 2:  the same for L + C sum |w|: a hypothesis held whose edge is further below C than the best edge is
                  above C is moved back first, to zero at most

With a family of hypotheses the learner looks at all of them: it is delta-optimal with delta = 1. A learner of its own
(``hypotheses.learned``) is delta-optimal as far as it is; what it returns competes with the hypotheses held. With the
exponential loss Algorithm 1 is AdaBoost, and steepest descent in the l1 norm; with a fixed step it is epsilon-boosting.
Steepest descent in the l2 norm moves all hypotheses at once instead (``steepest``).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.forward.coordinate import Coordinates, Move, best_of, exact_step, moved, offered, worst_held
from dboost.boosting.greedy_rounds import GreedyRounds
from dboost.boosting.leveraging.box import Bound, given_bounds
from dboost.boosting.leveraging.learning import learned, unscored
from dboost.boosting.leveraging.steepest import NORMS, promised
from dboost.boosting.records import recorded
from dboost.boosting.rules import RULES, RankedL1, RankedNone, refuse_searched
from dboost.certificate.duality_gap import SHORT, dual_bound, relative_gap
from dboost.errors import UsageError
from dboost.losses import LOSSES, Loss, get_loss
from dboost.penalties import Penalty
from dboost.problem.iterate import Score
from dboost.problem.problem import Problem
from dboost.problem.state import FitSettings, FitState

Array = NDArray[np.float64]


def _leverages(loss: Loss) -> bool:
    """Whether it has one score, and a bound that the search along a step begins with (``coordinate.exact_step``)."""
    return loss.task in ("binary", "regression") and (math.isfinite(loss.kappa) or loss.exponential)


@dataclass(frozen=True)
class Leveraging:
    """Settings of the system. With a strength (``FitSettings.alpha``) it is Algorithm 2, otherwise Algorithm 1.

    Parameters
    ----------
    rule : {"edge", "nearest", "joint"}
        The learner (``rules.rank``).
    step : "exact" or float
        A number is epsilon-boosting: every step has this length.
    norm : {"l1", "l2"}
        In which a step is one of steepest descent: one hypothesis moves, or all in proportion to their edges.
    bounds : (low, high) or None
        Between which every weight stays, each a number or one for each feature.
    """

    rule: str = "edge"
    step: str | float = "exact"
    norm: str = "l1"
    bounds: tuple[Bound, Bound] | None = None

    @property
    def name(self) -> str:
        """"leveraging"."""
        return "leveraging"

    @property
    def learns(self) -> bool:
        """It asks for a hypothesis in every round, so that a family may learn one."""
        return True

    @property
    def exponential(self) -> bool:
        """It ranks by <d, h>."""
        return False

    @property
    def takes_factors(self) -> bool:
        """Each hypothesis may have a strength of its own, the paper's vector gamma."""
        return True

    def penalty(self, alpha: Any) -> Penalty:
        """What scoring passes are given for a strength: the l1 penalty, or none for a strength of zero."""
        return RankedNone(self.rule) if alpha == 0.0 else RankedL1(self.rule)

    @property
    def optimises(self) -> bool:
        """It ends by its own rules."""
        return False

    def check(self, settings: FitSettings, penalty: Penalty) -> None:
        """Refuse losses, learners and steps that the algorithms do not have, and pairs without meaning."""
        loss = get_loss(settings.loss)
        if not _leverages(loss):
            raise UsageError(
                f"leveraging with loss {loss.name!r}: its step needs one score and a largest curvature, or e^(-y f)",
                hint=f"known losses: {', '.join(name for name, one in LOSSES.items() if _leverages(one))}",
            )
        if getattr(penalty, "rule", "") != self.rule:
            raise UsageError(f"leveraging with penalty {penalty.name!r}", hint="use dboost.LeveragingClassifier")
        if self.rule not in RULES:
            raise UsageError(f"learner={self.rule!r}", hint=f"known learners: {', '.join(RULES)}")
        if self.rule != "edge" and not loss.parabolic:
            raise UsageError(f"learner={self.rule!r} fits residuals", hint="use it with the squared loss")
        fixed = not isinstance(self.step, str)
        number = isinstance(self.step, float | int) and not isinstance(self.step, bool)
        if fixed and not (number and 0.0 < float(self.step) < math.inf):
            raise UsageError(f"step={self.step!r}", hint="expected 'exact' or a finite number > 0")
        if not fixed and self.step != "exact":
            raise UsageError(f"step={self.step!r}", hint="expected 'exact' or a finite number > 0")
        self._check_norm(settings, penalty)
        self._check_bounds(settings, penalty)
        if not penalty.weightless and (fixed or self.rule == "nearest"):
            raise UsageError(
                f"alpha={settings.alpha!r} with step={self.step!r} and learner={self.rule!r}",
                hint="the l1 penalty needs step='exact' and a learner other than 'nearest'; or set alpha=0",
            )

    def _check_norm(self, settings: FitSettings, penalty: Penalty) -> None:
        """Refuse a norm that is none, and one with which no single hypothesis is chosen where one must be."""
        if self.norm not in NORMS:
            known = ", ".join(map(repr, NORMS))
            raise UsageError(f"norm={self.norm!r}", hint=f"expected one of {known}")
        if self.norm == "l1":
            return
        if not penalty.weightless:
            raise UsageError(
                f"norm={self.norm!r} with alpha={settings.alpha!r}: Algorithm 2 moves one hypothesis at a time",
                hint="use norm='l1', or alpha=0",
            )
        if learns(settings):
            raise UsageError(
                f"norm={self.norm!r} moves all hypotheses at once, and hypotheses=Learned(...) gives one at a time",
                hint="use norm='l1', or a family of hypotheses",
            )

    def _check_bounds(self, settings: FitSettings, penalty: Penalty) -> None:
        """Refuse bounds beside what moves no single weight to its best value within them."""
        if self.bounds is None:
            return
        if given_bounds(self.bounds) != self.bounds:
            raise UsageError(f"bounds={self.bounds!r}", hint="expected plain numbers, as given_bounds makes them")
        if self.norm != "l1" or not isinstance(self.step, str) or self.rule == "nearest" or learns(settings):
            raise UsageError(
                f"bounds={self.bounds!r} with norm={self.norm!r}, step={self.step!r} and learner={self.rule!r}",
                hint="bounds need norm='l1', step='exact', a learner other than 'nearest' and hypotheses not learned",
            )
        if settings.standardize:
            raise UsageError("bounds are those of the weights as they are reported", hint="set standardize=False")

    def rounds(self, problem: Problem, settings: FitSettings, null: Score, n_rows: int) -> LeveragingRounds:
        """The rounds of a fit."""
        from dboost.boosting.leveraging.every_weight import BoxRounds, SteepestRounds

        refuse_searched(problem)
        if self.bounds is not None:
            return BoxRounds(problem, settings, null, self)
        kind = LeveragingRounds if self.norm == "l1" else SteepestRounds
        return kind(problem, settings, null, self)

    def to_json(self) -> dict[str, Any]:
        """Its parameters."""
        found: dict[str, Any] = {"system": self.name, "rule": self.rule, "step": self.step}
        # Checkpoints written before there were these choices say nothing of them.
        if self.norm != "l1":
            found["norm"] = self.norm
        if self.bounds is not None:
            found["bounds"] = [side if isinstance(side, float) else list(side) for side in self.bounds]
        return found


class LeveragingRounds(GreedyRounds):
    """Rounds of one fit; they end by "gradient" or "tol", "precision", "max_rounds" or "callback".

    Parameters
    ----------
    problem, settings, null
        As for ``GreedyRounds``.
    system : Leveraging
    """

    def __init__(self, problem: Problem, settings: FitSettings, null: Score, system: Leveraging) -> None:
        super().__init__(problem, settings, null)
        self.system = system
        self.null = null
        self.lam = float(settings.alpha) * problem.statistics.weight
        self.learns = learns(settings)
        # Algorithm 2 minimises a convex function whose dual points are those of every l1 problem; they say nothing
        # of hypotheses that no pass has looked at
        self.certified = self.lam > 0.0 and not self.learns
        self.largest = _largest(null)

    def ended(self, state: FitState, reason: str) -> tuple[FitState, str]:
        """The state with the objective (and certificate) of the model it holds."""
        if not state.history or state.history[-1]["step"] != "certificate":
            state, _ = self._scored(state, learn=False)
            if self.certified and state.gap <= self.settings.tol:
                reason = "tol"
        return state, reason

    def advance(self, state: FitState) -> tuple[FitState, str]:
        """One round: state in, state out, and the reason to stop if there is one."""
        started, passes = time.perf_counter(), self.problem.passes
        state, score = self._scored(state)
        offer = offered(self.problem, score, self.lam)
        move = self._move(offer)
        largest = max(_largest(score), float(np.max(np.abs(offer.G), initial=0.0)))
        if self.learns:
            largest = 0.0 if move is None else max(-move.slope, 0.0)
            state = replace(state, carried={"largest": state.carried.get("largest", np.array([largest]))})
        reason, step = self._stopped(state, score, largest), 0.0
        sure = math.nan
        if move is not None and not reason and self.lam == 0.0 and isinstance(self.system.step, str):
            peak, square = float(offer.peak[move.place]), float(offer.square[move.place])
            sure = promised(self.problem, state.objective, move.slope, peak, square)
        if not reason:
            if move is not None:
                fixed = self.system.step
                step = exact_step(self.problem, offer, move) if isinstance(fixed, str) else float(fixed)
            active, W, intercept = (
                (state.active, state.W, state.intercept) if move is None else moved(offer, move, step)
            )
            stands = np.array_equal(active, state.active) and np.array_equal(W, state.W)
            if stands and np.array_equal(intercept, state.intercept) and self.system.rule != "nearest":
                reason = "precision"
            entering = int(active.shape[0]) - int(state.active.shape[0])
            state = replace(state, active=active, W=W, intercept=intercept)
        else:
            entering = 0
        kind = "certificate"
        if move is not None and not reason:
            kind = "back" if move.limit < math.inf else "step"
        return self._recorded(state, entering, largest, kind, sure, step, started, passes), reason

    def _scored(self, state: FitState, learn: bool = True) -> tuple[FitState, Score]:
        """Every hypothesis at the model, the objective there, and for Algorithm 2 the better of all lower bounds."""
        problem = self.problem
        at = replace(problem.null(), active=state.active, W=state.W, intercept=state.intercept)
        if self.learns:
            score = learned(problem, at) if learn else unscored(problem, at)
        elif self.certified:
            score = problem.ranked(at, self.lam, 1)
        else:
            score = problem.score(at, None, self.lam, 1)
        at = score.iterate
        value = problem.objective(at, self.lam)
        self.mark(value)
        state = replace(state, objective=value)
        if not self.certified or at.shift > 0.0:
            return state, score
        short = SHORT if self.accelerators.on("ray_value") else None
        bound = dual_bound(problem, score, self.null.norms, self.lam, self.settings.tol, short)
        lower = float(np.maximum(state.lower_bound, bound.value))
        gap = relative_gap(problem, value, lower)
        # neither number is trusted where the two contradict each other
        return replace(state, lower_bound=-np.inf if np.isnan(gap) else lower, gap=gap), score

    def _stopped(self, state: FitState, score: Score, largest: float) -> str:
        if score.iterate.shift > 0.0:
            return "precision"
        if self.certified:
            return "tol" if state.gap <= self.settings.tol else ""
        first = float(state.carried["largest"][0]) if self.learns else self.largest
        return "gradient" if largest <= self.settings.tol * first else ""

    def _move(self, offer: Coordinates) -> Move | None:
        """Which hypothesis moves: the learner's, or in Algorithm 2 one that has too much weight (step d)."""
        best = best_of(self.problem, offer, self.system.rule)
        back = worst_held(offer) if self.lam > 0.0 else None
        if back is not None and best is not None and -best.slope <= -back.slope:
            return back
        return best

    # ---- records ---------------------------------------------------------------------------------------------------

    def _recorded(
        self,
        state: FitState,
        entering: int,
        largest: float,
        kind: str,
        sure: float,
        step: float,
        started: float,
        passes: int,
    ) -> FitState:
        """The state with its record: objective, gap and gradient are those before the round's step."""
        weight = self.problem.statistics.weight
        known = self.certified and math.isfinite(state.gap)
        return recorded(
            self.problem,
            state,
            gap=state.gap if known else math.nan,
            lower_bound=state.lower_bound / weight if known else math.nan,
            alpha=self.lam / weight,
            rows_in=max(entering, 0),
            rows_out=max(-entering, 0),
            held=state,
            candidates=self.problem.n_candidates,
            step=kind,
            length=step,
            started=started,
            passes=passes,
            more={"gradient": largest / weight, "promised": sure / weight},
        )


def learns(settings: FitSettings) -> bool:
    """Whether the hypotheses are learned, round by round."""
    return bool(getattr(settings.hypotheses, "learns", False))


def _largest(score: Score) -> float:
    """max |<d, h>| over everything a pass looked at; of induced hypotheses those held are among them."""
    if score.size is not None:
        return float(score.size)
    return float(np.max(score.norms, initial=0.0))
