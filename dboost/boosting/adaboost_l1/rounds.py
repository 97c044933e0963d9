"""AdaBoost+L1: AdaBoost whose weights are solved anew within an l1 budget that grows by AdaBoost's steps.

Xi, Xiang, Ramadge & Schapire, "Speed and Sparsity of Regularized Boosting"; docs/math.md 7 (H) and eq. 17. Hypotheses
h are divided by their largest absolute value, so that |h| <= 1, and -h is a hypothesis like h. With weights d of the
examples, proportional to s_i e^(-y_i f(x_i)), the edge of h is e(h) = sum_i d_i y_i h(x_i). A round

    takes the hypothesis k of the largest edge into U;
    r += (nu / 2) log((1 + e_k) / (1 - e_k));
    solves  min sum_i s_i e^(-y_i sum_U al_j h_j(x_i))  over al >= 0, sum al <= r;
    drops the zeros of al from U, unless they are to be kept, as the paper prints it (``AdaBoostL1.keep_zeros``).

Two certificates: with al feasible for the budget r, r max_j e_j - sum_j al_j e_j bounds log(L / L*) over all
hypotheses, U or not; and the best margin theta* of any normalised al is at most max_j e_j in every round.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.adaboost_l1.budget import Progress, budget_suffices
from dboost.boosting.adaboost_l1.ensemble import CONSTANT, Ensemble, held_by, kept_of, moments
from dboost.boosting.adaboost_l1.simplex import minimise_quadratic
from dboost.boosting.greedy_rounds import GreedyRounds
from dboost.boosting.records import recorded
from dboost.boosting.rules import refuse_searched
from dboost.errors import UsageError
from dboost.losses import get_loss
from dboost.penalties import Penalty
from dboost.problem.iterate import Iterate, Score
from dboost.problem.limits import Limits
from dboost.problem.problem import Problem
from dboost.problem.state import FitSettings, FitState

Array = NDArray[np.float64]

# A hypothesis without errors would ask for an infinite budget: its step is that of an edge of 1 - 2e-13.
CAP = 15.0
# The re-solve ends at this Frank-Wolfe gap over U, absolute in log L and relative to the budget.
_SOLVED = 1e-10
_ROUNDING = 1e-14
_MAX_STEPS = 100
_ENOUGH = 1e-4
_VANISHED = 1e-280


@dataclass(frozen=True)
class AdaBoostL1:
    """Settings of the system.

    Parameters
    ----------
    nu : float
        Share of AdaBoost's step by which the budget grows, in (0, 1].
    constant : bool
        Whether h = 1 is one of the hypotheses.
    keep_zeros : bool
        Whether a hypothesis whose weight is zero stays in U.
    """

    nu: float = 1.0
    constant: bool = True
    keep_zeros: bool = False

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
        """Refuse a step outside (0, 1], and whatever is not the exponential loss of edges."""
        if not 0.0 < self.nu <= 1.0:
            raise UsageError(f"nu={self.nu!r}", hint="expected a number in (0, 1]")
        loss = get_loss(settings.loss)
        if not (loss.exponential and loss.task == "binary" and getattr(penalty, "rule", "") == "normalised"):
            raise UsageError(
                f"AdaBoost+L1 with loss {loss.name!r} and penalty {penalty.name!r}",
                hint="it has the exponential loss and a budget: use dboost.AdaBoostL1Classifier",
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
    "precision", "max_rounds" or "callback".

    Parameters
    ----------
    problem, settings, null
        As for ``GreedyRounds``.
    system : AdaBoostL1
    """

    certified = True

    def __init__(self, problem: Problem, settings: FitSettings, null: Score, system: AdaBoostL1) -> None:
        super().__init__(problem, settings, null)
        self.system = system

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
        budget = so_far.budget + self.system.nu * min(math.atanh(min(scored.edge, 1.0 - 1e-16)), CAP)
        before = state.active
        chosen = self._widened(state, scored)
        limits = self.limits.counted_from(state.passes - passes)
        weights, margin, least = self._solve(chosen, state, budget, limits)
        model = chosen.model(weights)
        nonzero = model[:-1] != 0.0
        carried = Progress(budget, margin, so_far.bound, least).carried()
        if self.system.keep_zeros:
            carried |= chosen.carried()
        state = replace(
            state,
            active=chosen.active[nonzero],
            W=model[:-1][nonzero, None],
            intercept=model[-1:],
            carried=carried,
            cut=bool(limits.reason(self.problem.passes)),
        )
        entering = int(np.setdiff1d(state.active, before).shape[0])
        return self._recorded(state, scored, entering, "resolve", started, passes), ""

    def _reason(self, state: FitState, scored: _Edges) -> str:
        """Why to stop before this round; empty to go on."""
        now, tol = Progress.of(state), self.settings.tol
        if not scored.edge > 0.0:
            return "edge" if scored.loss > _VANISHED else "precision"
        if state.round == 0:
            return ""
        if now.bound - now.margin <= tol:
            return "tol"
        if now.bound <= tol:
            return "edge"
        share = now.least / self.problem.statistics.weight
        reached = now.margin * self._norm(state) / now.budget
        if now.margin > 0.0 and budget_suffices(now.budget, tol, reached, now.bound, share, scored.share):
            return "budget"
        return ""

    # ---- certificates ----------------------------------------------------------------------------------------------

    def _certify(self, state: FitState) -> tuple[FitState, _Edges]:
        """Edges of all hypotheses at the model, and the relative gap that they certify for its budget."""
        problem, budget = self.problem, Progress.of(state).budget
        at = replace(problem.null(), active=state.active, W=state.W, intercept=state.intercept)
        score = problem.score(at, None, 0.0, 1)
        at = score.iterate
        loss = at.loss
        if not loss > _VANISHED:
            # every example is fitted so well that no weights are left to tell hypotheses by
            return replace(state, objective=loss), _Edges(score, 0.0, np.zeros(0), 0.0, loss, 0.0)
        peaks = problem.statistics.peak
        held = at.G[:, 0] / peaks[at.active] / loss
        best = score.best_G[:, 0] / peaks[score.best] / loss
        constant = float(at.bias[0]) / loss
        offered = np.concatenate([held, best, np.full(int(self.system.constant), constant)])
        edge = min(float(np.max(np.abs(offered), initial=0.0)), 1.0)
        # <e, al> in the signs of W, and r max e - <e, al> >= log(L / L*)
        inner = (float((at.G * at.W).sum()) + float(at.bias @ at.intercept)) / loss
        share = max(budget * edge - inner, 0.0)
        gap = -math.expm1(-share)
        shift = math.exp(min(at.shift, 700.0))
        self.mark(loss * shift)
        state = replace(state, objective=loss * shift, gap=gap, lower_bound=loss * shift * math.exp(-share))
        return state, _Edges(score, edge, held, constant, loss, share)

    # ---- the re-solve ----------------------------------------------------------------------------------------------

    def _widened(self, state: FitState, scored: _Edges) -> Ensemble:
        """U with the hypothesis of the largest edge."""
        score, peaks = scored.score, self.problem.statistics.peak
        at = score.iterate
        fresh = np.abs(score.best_G[:, 0]) / peaks[score.best] / scored.loss
        constant = abs(scored.constant) if self.system.constant else -1.0
        largest = max(float(np.max(np.abs(scored.held), initial=0.0)), constant)
        takes = bool(fresh.shape[0]) and float(fresh[0]) > largest
        rows, signs = kept_of(state.carried) if self.system.keep_zeros else held_by(state)
        if takes:
            rows, signs = np.append(rows, score.best[0]), np.append(signs, np.sign(score.best_G[0, 0]))
        elif self.system.constant and constant >= largest:
            rows, signs = np.append(rows, CONSTANT), np.append(signs, np.sign(scored.constant))
        return Ensemble.of(rows, signs, at.active, peaks)

    def _solve(
        self, chosen: Ensemble, state: FitState, budget: float, limits: Limits
    ) -> tuple[Array, float, float]:
        """al of min log L over al >= 0, sum al <= r on U; with the least normalised margin, and the least weight s_i.

        Newton's method: each step minimises the exact second-order model within the budget.
        """
        z = chosen.weights(state)
        value, e, H, ends = self._moments(chosen, z)
        for _ in range(_MAX_STEPS):
            gap = budget * max(float(e.max()), 0.0) - float((e * z).sum())
            if gap <= max(_SOLVED, _ROUNDING * budget) or limits.reason(self.problem.passes):
                break
            trial = minimise_quadratic(-e, H, z, budget)
            promised = float((e * (trial - z)).sum())
            if not promised > 0.0:
                break
            found, halved = self._moments(chosen, trial), 0
            while not found[0] <= value - _ENOUGH * promised * 0.5**halved and halved < 40:
                halved += 1
                found = self._moments(chosen, z + 0.5**halved * (trial - z))
            if not found[0] < value:
                break
            z = trial if halved == 0 else z + 0.5**halved * (trial - z)
            value, e, H, ends = found
        z = chosen.netted(z)
        total = float(z.sum())
        return z, -float(ends[0]) / total if total > 0.0 else 0.0, -float(ends[1])

    def _moments(self, chosen: Ensemble, z: Array) -> tuple[float, Array, Array, Array]:
        """log L, the edges of U, the Hessian of log L, and the ends of the margins and weights; one pass."""
        model = chosen.model(z)
        zero = np.zeros((chosen.active.shape[0], 1))
        at = Iterate(chosen.active, model[:-1, None], model[-1:], math.nan, zero, np.zeros(1))
        sums = self.problem.own_pass(moments, at, name="resolve", plain=False)
        loss, scale, place = sums.add["loss"], chosen.scale, chosen.place
        e = scale * sums.add["G"][place] / loss
        H = scale[:, None] * sums.add["H"][np.ix_(place, place)] * scale / loss - e[:, None] * e
        return sums.shift + math.log(loss), e, H, sums.peak["ends"]

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
        rows, _ = kept_of(state.carried) if self.system.keep_zeros else held_by(state)
        return int(rows.shape[0])

    def _norm(self, state: FitState) -> float:
        """sum al of a model."""
        peaks = self.problem.statistics.peak[state.active]
        return float((np.abs(state.W[:, 0]) * peaks).sum() + abs(state.intercept[0]))


@dataclass(frozen=True)
class _Edges:
    """A scoring pass: the largest edge, those of the hypotheses held and of the constant, L, and r max e - <e, al>."""

    score: Score
    edge: float
    held: Array
    constant: float
    loss: float
    share: float
