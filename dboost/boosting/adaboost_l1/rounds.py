"""AdaBoost+L1: boosting whose weights are solved anew within an l1 budget that grows by the steps of boosting.

Xi, Xiang, Ramadge & Schapire, "Speed and Sparsity of Regularized Boosting"; docs/math.md 7 (H) and eq. 17. Hypotheses
h are divided by their largest absolute value, so that |h| <= 1, and -h is a hypothesis like h. With U_i = -s_i l'(f_i)
the edge of h is e(h) = sum_i U_i h(x_i) / sum_i |U_i|; of two classes it is sum_i d_i y_i h(x_i) with weights d of the
examples. A round

    takes the hypothesis k of the largest edge into U;
    r += nu times the step of boosting along h_k: (1/2) log((1 + e_k) / (1 - e_k)) of two classes, and of labels that
    are numbers argmin_t sum_i s_i l(y_i, f(x_i) + t h_k(x_i)), LS-Boost's for the squared loss;
    solves  min sum_i s_i l(y_i, sum_U al_j h_j(x_i))  over al >= 0, sum al <= r  (``resolve``);
    drops the zeros of al from U, unless they are to be kept, as the paper prints it (``AdaBoostL1.keep_zeros``).

Two certificates: with al feasible for the budget r, sum_i |U_i| (r max_j e_j - sum_j al_j e_j) bounds L - L* over all
hypotheses, U or not, and for the exponential loss, where sum_i |U_i| = L, the bracket bounds log(L / L*); and the best
margin theta* of any normalised al is at most max_j e_j in every round.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.adaboost_l1.budget import Progress, budget_suffices
from dboost.boosting.adaboost_l1.ensemble import CONSTANT, Ensemble, held_by, kept_of
from dboost.boosting.adaboost_l1.resolve import pulls_at, solved
from dboost.boosting.greedy_rounds import GreedyRounds
from dboost.boosting.records import recorded
from dboost.boosting.rules import refuse_searched
from dboost.errors import UsageError
from dboost.losses import get_loss
from dboost.penalties import Penalty
from dboost.problem.iterate import Iterate, Score
from dboost.problem.problem import Problem
from dboost.problem.state import FitSettings, FitState
from dboost.solvers.one_output.exact_line import Direction, minimise

Array = NDArray[np.float64]

# A hypothesis without errors would ask for an infinite budget: its step is that of an edge of 1 - 2e-13.
CAP = 15.0
_VANISHED = 1e-280
# Labels that are numbers are explained but for rounding where so small a share of what the intercept leaves is left.
_EXPLAINED = 1e-26
# Edges that differ by less are the same but for the rounding of a re-solve: those of all hypotheses held are where the
# budget binds.
_TIED = 1e-6
# A step is looked for up to this many times the one that the quadratic bound of the loss allows.
_FARTHEST = 2.0**100


@dataclass(frozen=True)
class AdaBoostL1:
    """Settings of the system."""

    nu: float = 1.0  # Share of boosting's step by which the budget grows, in (0, 1].
    # Whether h = 1 is one of the hypotheses. Otherwise a problem may have an intercept that counts in no budget.
    constant: bool = True
    keep_zeros: bool = False  # Whether a hypothesis whose weight is zero stays in U.

    @property
    def name(self) -> str:
        """"adaboost_l1"."""
        return "adaboost_l1"

    @property
    def exponential(self) -> bool:
        """Its edges are divided by max |h|, which the scoring of the exponential bound knows."""
        return True

    @property
    def optimises(self) -> bool:
        """It ends by its own rules."""
        return False

    def check(self, settings: FitSettings, penalty: Penalty) -> None:
        """Refuse a step outside (0, 1], losses without a step or a margin, and whatever is not ranked by edges."""
        if not 0.0 < self.nu <= 1.0:
            raise UsageError(f"nu={self.nu!r}", hint="expected a number in (0, 1]")
        loss = get_loss(settings.loss)
        if getattr(penalty, "rule", "") != "normalised" or loss.task not in ("binary", "regression"):
            raise UsageError(
                f"AdaBoost+L1 with loss {loss.name!r} and penalty {penalty.name!r}",
                hint="it has a budget and one output: use dboost.AdaBoostL1Classifier or dboost.AdaBoostL1Regressor",
            )
        if not (loss.exponential or math.isfinite(loss.kappa)):
            raise UsageError(
                f"AdaBoost+L1 with loss {loss.name!r}, whose curvature has no limit: no step says how the budget grows",
                hint="use a loss whose curvature is bounded, such as 'squared' or 'huber'",
            )

    def rounds(self, problem: Problem, settings: FitSettings, null: Score, n_rows: int) -> AdaBoostL1Rounds:
        """The rounds of a fit."""
        refuse_searched(problem)
        return AdaBoostL1Rounds(problem, settings, null, self)

    def to_json(self) -> dict[str, Any]:
        """Its parameters."""
        # Checkpoints written before there was the choice say nothing of it.
        kept: dict[str, Any] = {"keep_zeros": True} if self.keep_zeros else {}
        return {"system": self.name, "nu": self.nu, "constant": self.constant} | kept


class AdaBoostL1Rounds(GreedyRounds):
    """Rounds of one fit.

    They end by "tol" (the margin is certified), "budget" (by eq. 17), "edge" (no hypothesis has an edge above `tol`),
    "precision", "max_rounds" or "callback". Where labels are numbers there are no margins: the first two are not met.

    Parameters
    ----------
    problem, settings, null
        As for ``GreedyRounds``.
    """

    certified = True

    def __init__(self, problem: Problem, settings: FitSettings, null: Score, system: AdaBoostL1) -> None:
        super().__init__(problem, settings, null)
        self.system = system
        self.free = problem.fit_intercept
        self.margins = problem.loss.task == "binary"
        self.least = problem.loss.floor * problem.statistics.weight
        self.vanished = _VANISHED if self.margins else _EXPLAINED * max(null.iterate.loss - self.least, 0.0)

    def ended(self, state: FitState, reason: str) -> tuple[FitState, str]:
        """The state with the Frank-Wolfe certificate of its model."""
        if not state.history or state.history[-1]["step"] != "certificate":
            state, _ = self._certify(state)
        return state, reason

    def advance(self, state: FitState) -> tuple[FitState, str]:
        """One round: state in, state out, and the reason to stop if there is one."""
        started, passes = time.perf_counter(), self.problem.passes
        so_far = Progress.of(state)
        state, scored = self._certify(state)
        so_far = replace(so_far, bound=min(so_far.bound, scored.edge))
        state = replace(state, carried={**state.carried, **so_far.carried()})
        reason = self._reason(state, scored)
        if reason:
            return self._recorded(state, scored, 0, "certificate", started, passes), reason
        budget = so_far.budget + self.system.nu * self._step(scored)
        before = state.active
        chosen = self._widened(state, scored)
        limits = self.limits.counted_from(state.passes - passes)
        free = float(state.intercept[0]) if self.free else None
        found = solved(self.problem, chosen, chosen.weights(state), free, budget, limits)
        model = chosen.model(found.weights)
        nonzero = model[:-1] != 0.0
        carried = Progress(budget, found.margin, so_far.bound, found.least, found.pulls).carried()
        if self.system.keep_zeros:
            carried |= chosen.carried()
        state = replace(
            state,
            active=chosen.active[nonzero],
            W=model[:-1][nonzero, None],
            intercept=model[-1:] + found.intercept,
            carried=carried,
            cut=bool(limits.reason(self.problem.passes)),
        )
        entering = int(np.setdiff1d(state.active, before).shape[0])
        return self._recorded(state, scored, entering, "resolve", started, passes), ""

    def _reason(self, state: FitState, scored: _Edges) -> str:
        """Why to stop before this round; empty to go on."""
        now, tol = Progress.of(state), self.settings.tol
        if not scored.edge > 0.0:
            return "precision" if scored.fitted else "edge"
        if state.round == 0:
            return ""
        if now.bound - now.margin <= tol:
            return "tol"
        if (now.bound if self.margins else scored.edge) <= tol:
            return "edge"
        share = now.least / self.problem.statistics.weight
        reached = now.margin * self._norm(state) / now.budget
        loss = self.problem.loss
        if now.margin > 0.0 and budget_suffices(loss, now.budget, tol, reached, now.bound, share, scored.share):
            return "budget"
        return ""

    def _step(self, scored: _Edges) -> float:
        """How far boosting would go along the hypothesis of the largest edge."""
        if self.margins:
            return min(math.atanh(min(scored.edge, 1.0 - 1e-16)), CAP)
        problem, score, row = self.problem, scored.score, scored.row
        at = score.iterate.widened(score.best, score.best_G)
        peak, slope = float(problem.statistics.peak[row]), -scored.edge * scored.pulls
        bound = -slope * peak**2 / (problem.loss.kappa * float(problem.statistics.square[row]))
        if problem.loss.parabolic:
            return bound
        D = np.zeros_like(at.W)
        place = int(np.searchsorted(at.active, row))
        D[place] = math.copysign(1.0 / peak, float(at.G[place, 0]))
        return minimise(problem, at, Direction(D, np.zeros(1), slope, 0.0, bound * _FARTHEST), bound)

    # ---- certificates ----------------------------------------------------------------------------------------------

    def _certify(self, state: FitState) -> tuple[FitState, _Edges]:
        """Edges of all hypotheses at the model, and the relative gap that they certify for its budget."""
        problem, so_far = self.problem, Progress.of(state)
        budget, exponential = so_far.budget, problem.loss.exponential
        at = Iterate.unsummed(state.active, state.W, state.intercept)
        score = problem.score(at, None, 0.0, 1)
        at = score.iterate
        loss = at.loss
        pulls = loss if exponential else so_far.pulls
        left = loss - self.least > self.vanished
        if not pulls and left:
            pulls = pulls_at(problem, state.active, state.W, state.intercept)
        if not (left and pulls > 0.0):
            # every example is fitted so well that no residuals are left to tell hypotheses by
            # The least loss there may be is all that is known then, which certifies a loss that is as small.
            gap = (loss - self.least) / loss if loss > 0.0 else 0.0
            state = replace(state, objective=loss, gap=gap, lower_bound=self.least)
            return state, _Edges(score, 0.0, CONSTANT, np.zeros(0), 0.0, 0.0, 0.0, fitted=True)
        stats = problem.statistics
        held = at.G[:, 0] / stats.peak[at.active] / pulls
        best = score.best_G[:, 0] / stats.peak[score.best] / pulls
        constant = float(at.bias[0]) / pulls
        offered = np.concatenate([held, best, np.full(int(self.system.constant), constant)])
        rows = np.concatenate([at.active, score.best, [CONSTANT]])
        edge = min(float(np.max(np.abs(offered), initial=0.0)), 1.0)
        first = int(np.flatnonzero(np.abs(np.append(offered, edge)) >= edge * (1.0 - _TIED))[0])
        # <e, al> in the signs of W; r max e - <e, al> >= log(L / L*) of the exponential loss, else (L - L*) / pulls
        inner = (float((at.G * at.W).sum()) + (0.0 if self.free else float(at.bias @ at.intercept))) / pulls
        share = max(budget * edge - inner, 0.0)
        if exponential:
            gap, lower = -math.expm1(-share), loss * math.exp(-share)
        else:
            lower = self._lower(at, budget, edge * pulls) if self.free else loss - share * pulls
            lower = max(lower, self.least)
            share = gap = max(loss - lower, 0.0) / loss
        self.mark(loss)
        state = replace(state, objective=loss, gap=gap, lower_bound=lower)
        return state, _Edges(score, edge, int(rows[first]), held, constant, pulls, share)

    def _lower(self, at: Iterate, budget: float, largest: float) -> float:
        """A bound on the loss within the budget where the intercept is free: D(Theta) - r max_j |h_j'Theta|.

        Theta is what the loss makes of the residuals U, so that they sum to zero (``losses.base.Repair``); with
        |h| <= 1 no sum of a hypothesis changes by more than the drift of all examples and the spill.

        Parameters
        ----------
        largest : float
            max_j |h_j'U|.
        """
        problem = self.problem
        repair = problem.objective.repair(at)
        if repair.null_share > 0.0:
            # how far sums then move goes by those of the null model, which are not kept here
            return -math.inf
        moved = problem.statistics.weight * float(repair.drift[0]) + float(repair.spill[0])
        return problem.dual_value(at, repair, 1.0) - budget * (largest + moved)

    # ---- the re-solve ----------------------------------------------------------------------------------------------

    def _widened(self, state: FitState, scored: _Edges) -> Ensemble:
        """U with the hypothesis of the largest edge."""
        score, peaks = scored.score, self.problem.statistics.peak
        at = score.iterate
        fresh = np.abs(score.best_G[:, 0]) / peaks[score.best] / scored.pulls
        constant = abs(scored.constant) if self.system.constant else -1.0
        largest = max(float(np.max(np.abs(scored.held), initial=0.0)), constant)
        takes = bool(fresh.shape[0]) and float(fresh[0]) > largest
        rows, signs = kept_of(state.carried) if self.system.keep_zeros else held_by(state, self.system.constant)
        if takes:
            rows, signs = np.append(rows, score.best[0]), np.append(signs, np.sign(score.best_G[0, 0]))
        elif self.system.constant and constant >= largest:
            rows, signs = np.append(rows, CONSTANT), np.append(signs, np.sign(scored.constant))
        return Ensemble.of(rows, signs, at.active, peaks)

    # ---- records ---------------------------------------------------------------------------------------------------

    def _recorded(
        self, state: FitState, scored: _Edges, entering: int, step: str, started: float, passes: int
    ) -> FitState:
        """The state with its record: objective and gap at the round's start, margin and budget after it."""
        weight = self.problem.statistics.weight
        now = Progress.of(state)
        size = int(scored.score.iterate.active.shape[0])
        return recorded(
            self.problem,
            state,
            gap=state.gap,
            lower_bound=state.lower_bound / weight,
            alpha=0.0,
            rows_in=entering,
            rows_out=size + entering - int(state.active.shape[0]),
            held=state,
            candidates=self.problem.n_candidates,
            step=step,
            length=1.0 if step == "resolve" else 0.0,
            started=started,
            passes=passes,
            more={
                "edge": scored.edge,
                "budget": now.budget,
                "l1_norm": self._norm(state),
                "margin": now.margin,
                "margin_gap": now.bound - now.margin,
                "ensemble": self._size_of_ensemble(state),
            },
        )

    def _size_of_ensemble(self, state: FitState) -> int:
        """How many signed hypotheses are in U."""
        rows, _ = kept_of(state.carried) if self.system.keep_zeros else held_by(state, self.system.constant)
        return int(rows.shape[0])

    def _norm(self, state: FitState) -> float:
        """sum al of a model."""
        peaks = self.problem.statistics.peak[state.active]
        return float((np.abs(state.W[:, 0]) * peaks).sum() + (0.0 if self.free else abs(state.intercept[0])))


@dataclass(frozen=True)
class _Edges:
    """A scoring pass: the largest edge and its row, those of the hypotheses held and of the constant, what certifies.

    `pulls` is sum_i |U_i|, and `share` the Frank-Wolfe gap as a share of L. `fitted` says that no residuals are left.
    """

    score: Score
    edge: float
    row: int
    held: Array
    constant: float
    pulls: float
    share: float
    fitted: bool = False
