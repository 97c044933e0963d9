"""Classical forward-greedy boosting: one hypothesis per round, moved once and never looked at again.

Each round scores every hypothesis by the exponential bound without a penalty, a sum_r (sqrt(mu+) - sqrt(mu-))^2, and
moves the best one alone, by (a / 2) log(mu+ / mu-) per output (Collins, Schapire & Singer 2002; docs/math.md 2,
4.1 and 5). For hypotheses in {-1, +1} and the exponential loss this is AdaBoost (Freund & Schapire 1997). It is the
baseline of Duchi & Singer 2009, section 6: nothing is re-optimised, nothing pruned, and it ends by its budget of rounds
or once no step gains anything; there is no certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.systems import Rounds, System, refuse_part, refuse_sweeps
from dboost.bounds import exponential
from dboost.errors import UsageError
from dboost.partition import Sums
from dboost.penalties import Penalty
from dboost.penalties.capabilities import exponential_solves
from dboost.problem.iterate import Iterate, Score
from dboost.problem.problem import Problem
from dboost.problem.state import FitSettings, FitState

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class ForwardGreedy(System):
    """Settings of the system; it has no parameters."""

    @classmethod
    def of(cls, settings: FitSettings) -> ForwardGreedy:
        """The system, whatever the settings."""
        return cls()

    name = "forward"
    exponential = True
    picks = True

    def check(self, settings: FitSettings, penalty: Penalty) -> None:
        """Refuse a penalty, and whatever asks for more than one hypothesis in a round (UsageError)."""
        if not penalty.weightless:
            raise UsageError(
                f"update 'forward' moves one hypothesis per round and has no penalty, but penalty is {penalty.name!r}",
                hint="set penalty='none', or use update='adaboost' with this penalty",
            )
        if settings.select != "greedy":
            raise UsageError(
                f"update 'forward' moves the best hypothesis of all, but select is {settings.select!r}",
                hint="leave select at 'greedy', or use update='adaboost'",
            )
        if settings.features_per_round not in (None, 1):
            raise UsageError(
                f"features_per_round={settings.features_per_round!r}, and update 'forward' adds one hypothesis a round",
                hint="leave features_per_round out, or use update='adaboost', which re-optimises all it holds",
            )
        refuse_sweeps(settings, "update 'forward'")

    def rounds(self, problem: Problem, settings: FitSettings, null: Score, n_rows: int) -> Forward:
        """The rounds of a fit."""
        refuse_part(problem)
        return Forward(problem, settings, null, self, n_rows)


class Forward(Rounds):
    """Rounds of one fit; they end by "gradient", "max_rounds", "max_features" or "callback"."""

    def advance(self, state: FitState) -> tuple[FitState, str]:
        """One round: state in, state out, and the reason to stop if there is one."""
        clock, problem, before = self.clock(), self.problem, state
        iterate = Iterate.unsummed(state.active, state.W, state.intercept)
        budget = self.settings.max_features
        full = budget is not None and state.active.shape[0] >= budget
        # what is held may be moved again
        rows = iterate.active if full else problem.best_rows(iterate, 1)
        active = np.union1d(iterate.active, rows).astype(np.int64)
        W = np.zeros((active.shape[0], problem.k))
        W[np.searchsorted(active, iterate.active)] = iterate.W
        sums = problem.rows_sums(iterate, rows)
        places = np.searchsorted(active, rows)
        best, moved, gain = self._best(sums, rows, W[places], iterate.intercept)
        loss = float(sums.add["loss"])
        state = self.valued(state, problem.objective(replace(iterate, loss=loss), 0.0))
        stop = gain <= 0.1 * self.settings.tol * abs(loss)
        if not stop:
            if best < rows.shape[0]:
                W[places[best]] = moved
            else:
                state = replace(state, intercept=moved)
        keep = np.any(W != 0.0, axis=1)
        state = replace(state, active=active[keep], W=W[keep])
        reason = ("max_features" if full else "gradient") if stop else ""
        return self.recorded(before, state, clock, "forward", 0.0 if stop or not gain > 0.0 else 1.0), reason

    def _best(self, sums: Sums, rows: Rows, W: Array, intercept: Array) -> tuple[int, Array, float]:
        """The place in `rows` (its length: the intercept), the new weights and the gain of the best single step."""
        problem, penalty = self.problem, self.problem.penalty
        plus, minus, peak = sums.add["mu_plus"], sums.add["mu_minus"], problem.statistics.peak[rows]
        if problem.fit_intercept:
            plus, minus = np.vstack([plus, sums.add["bias_plus"]]), np.vstack([minus, sums.add["bias_minus"]])
            W, peak = np.vstack([W, intercept]), np.append(peak, 1.0)
        if not W.shape[0]:
            return 0, np.zeros(problem.k), 0.0
        a = exponential.normalisation(peak, problem.loss.template_constant)
        gains = exponential_solves(penalty).score_exponential(plus, minus, a, 0.0)
        best = int(np.argmax(gains))
        one = slice(best, best + 1)
        # without opposing examples the bound has no minimiser: the step is capped
        new, _ = exponential_solves(penalty).solve_exponential(W[one], plus[one], minus[one], a[one], 0.0)
        return best, new[0], float(gains[best])
