"""ShareBoost (Shalev-Shwartz, Wexler & Shashua 2011; docs/math.md 7 (J)): few features, shared by the classes.

    repeat
      the feature, or group of features, whose row of the gradient is largest enters        (``greedy``, ``trials``)
      all weights of the features held are solved again, from where they were                (``corrective``)

One run gives the whole path: the model of every round is kept. A feature that entered stays, unless the fit goes back
from what has grown (``backward``). With |x| <= 1 and rule "norm" or "scaled", ceil(4 ||W*||_{inf,1}^2 / eps) rounds
reach the mean loss L(W*) + eps for any W* (Theorem 2).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.greedy_rounds import GreedyRounds, repeated
from dboost.boosting.records import last_of_size, recorded
from dboost.boosting.rules import refuse_part
from dboost.boosting.shareboost.backward import WayBack, removal_costs, without
from dboost.boosting.shareboost.choice import RULES, TRIED, Group, ranked, row_lengths, tried
from dboost.boosting.shareboost.stages_so_far import StagesSoFar
from dboost.boosting.shareboost.trials import CORRECTIVE, corrected, gains, pull, widened
from dboost.errors import UsageError
from dboost.hypotheses.capabilities import group_of
from dboost.passes.class_blocks import mistakes
from dboost.penalties import Penalty
from dboost.problem.iterate import Iterate, Score
from dboost.problem.problem import Problem
from dboost.problem.state import FitSettings, FitState
from dboost.solvers.corrective import Solved

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

REMOVAL = "removal"
"""What a record says of a round in which features left."""

# The gradient of all candidates, per unit of weight and of column length, at which there is nothing to add.
_FLAT = 1e-10
# Rounds without a lower bound on the generalisation error after which it is said to rise.
_PATIENCE = 10
# The bound holds with this probability.
_CONFIDENCE = 0.05


@dataclass(frozen=True)
class ShareBoost:
    """Forward greedy selection with full correction."""

    rule: str = "scaled"  # Which candidate enters; see ``greedy``.
    # Candidates of "scaled" among which "newton", "line", "row" and "full" choose; None for all that there are.
    shortlist: int | None = 10
    # Number of the group of each stored column; the columns of a group enter together.
    groups: tuple[int, ...] | None = None
    # Constant of the generalisation bound (Theorem 1). The fit ends once the bound has not fallen for ten rounds, with
    # the model at which it was lowest.
    bound: float | None = None
    # With a number, the fit goes back from what has grown, and ends with the model of at most so many features.
    keep: int | None = None
    corrective: str = "newton"  # What solves all weights again.

    @property
    def name(self) -> str:
        """Its name."""
        return "shareboost"

    @property
    def exponential(self) -> bool:
        """It needs G alone."""
        return False

    @property
    def optimises(self) -> bool:
        """It ends by its own rules."""
        return False

    def check(self, settings: FitSettings, penalty: Penalty) -> None:
        """Refuse what cannot be combined.

        Raises
        ------
        UsageError
        """
        from dboost.losses import get_loss

        if self.rule not in RULES:
            raise UsageError(f"rule={self.rule!r}", hint=f"known rules: {', '.join(RULES)}")
        if self.shortlist is not None:
            _count("shortlist", self.shortlist, ", or None for every candidate")
        if self.corrective not in CORRECTIVE:
            known = ", ".join(map(repr, CORRECTIVE))
            raise UsageError(f"corrective={self.corrective!r}", hint=f"expected one of {known}")
        if self.keep is not None:
            _count("keep", self.keep)
        if self.groups is not None and settings.hypotheses is not None:
            raise UsageError(
                "groups= are groups of raw columns, and hypotheses= makes other ones",
                hint="leave groups out: a family of hypotheses brings its own",
            )
        bound = self.bound
        if bound is not None:
            number = isinstance(bound, int | float | np.number) and not isinstance(bound, bool)
            if not number or not 0.0 < float(bound) < math.inf:
                raise UsageError(f"bound={bound!r}", hint="expected a number > 0, the constant of the bound, or None")
        if penalty.threshold:
            raise UsageError(
                f"penalty {penalty.name!r} puts rows to zero, and a row that ShareBoost chose stays",
                hint="use 'l2_squared', 'smooth_l1', 'smooth_l1/linf' or 'none'",
            )
        if not math.isfinite(get_loss(settings.loss).kappa):
            raise UsageError(
                f"loss {get_loss(settings.loss).name!r} has no largest curvature, which the choice of features is by",
                hint="use 'margin_softmax', 'multinomial' or 'log'",
            )

    def rounds(self, problem: Problem, settings: FitSettings, null: Score, n_rows: int) -> ShareBoostRounds:
        """The rounds of one fit."""
        refuse_part(problem)
        return ShareBoostRounds(self, problem, settings, null, n_rows)

    def to_json(self) -> dict[str, Any]:
        """Name and parameters."""
        groups = None if self.groups is None else list(self.groups)
        return {
            "system": self.name,
            "rule": self.rule,
            "shortlist": None if self.shortlist is None else int(self.shortlist),
            "groups": groups,
            "bound": self.bound,
            "keep": None if self.keep is None else int(self.keep),
            # Checkpoints written before there was the choice say nothing of it.
            **({} if self.corrective == "newton" else {"corrective": self.corrective}),
        }


def _count(name: str, value: Any, otherwise: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise UsageError(f"{name}={value!r}", hint=f"expected an integer >= 1{otherwise}")


class ShareBoostRounds(GreedyRounds):
    """Rounds of one fit.

    Parameters
    ----------
    settings : FitSettings
        `alpha` is decided; `tol` is the gradient that a corrective step leaves, as a share of that of the features that
        entered.
    null : Score
        Scoring pass at the null model.
    n_rows : int
        Number of examples.
    """

    def __init__(self, system: ShareBoost, problem: Problem, settings: FitSettings, null: Score, n_rows: int) -> None:
        super().__init__(problem, settings, null)
        self.system = system
        self.n_rows = n_rows
        self._lam = float(settings.alpha) * problem.statistics.weight
        self._groups = self._checked_groups()
        if system.bound is not None and not math.isfinite(problem.n_candidates):
            raise UsageError(
                "bound= needs a finite number of candidates, and this class of hypotheses has no end",
                hint="leave bound out, or give the hypotheses a largest degree",
            )

        self._take = tried(problem, system.rule, system.shortlist)

    def _checked_groups(self) -> NDArray[np.int64] | None:
        if self.system.groups is None:
            return None
        groups = np.asarray(self.system.groups, dtype=np.int64)
        if groups.shape != (self.problem.n,):
            raise UsageError(
                f"groups has {groups.shape[0]} entries for {self.problem.n} columns",
                hint="give the number of the group of each column",
            )
        return np.unique(groups, return_inverse=True)[1].astype(np.int64)

    def run(self, state: FitState, callback: Callable[[dict[str, Any], FitState], bool]) -> tuple[FitState, str]:
        """Rounds until a reason to stop; see ``loop.Loop.run``.

        Returns
        -------
        state : FitState
            After the last round, or, when the generalisation bound ended the fit, with the model of its best one.
        reason : str
            "max_rounds", "max_passes", "max_seconds", "max_features", "gradient" (no candidate has any pull),
            "exhausted" (all candidates are in the model), "bound", "kept" (it grew, and went back) or "callback".
        """
        keep = self.system.keep
        if keep is None:
            return self._grown(state, callback)
        if not state.history or state.history[-1]["step"] != REMOVAL:
            state, reason = self._grown(state, callback)
            if reason in ("callback", "max_passes", "max_seconds") or not state.active.size:
                return state, reason
            state = replace(state, carried=WayBack.begun(state.active, state.W, state.intercept).arrays())
        elif "order" in state.carried:
            # a fit that is resumed may have ended before
            return state, "kept"
        return self._back(state, keep, callback)

    def _grown(
        self, state: FitState, callback: Callable[[dict[str, Any], FitState], bool]
    ) -> tuple[FitState, str]:
        """Rounds that add features, until a reason to stop."""
        if not state.carried:
            if state.active.size:
                raise UsageError(
                    "ShareBoost starts from no features, so that earlier weights have no meaning for it",
                    hint="fit anew: one run holds the model of every number of features",
                )
            at = self.problem.evaluate(state.active, state.W, state.intercept)
            value = self.problem.objective(at, self._lam)
            state = replace(state, objective=value, carried=StagesSoFar.empty(self.problem.k).arrays())
            self.mark(state.objective)
        # a fit that is resumed may have done its last round before
        state, reason = repeated(self.advance, state, callback, self._reason, self._reason(state))
        return self._best(state) if reason == "bound" else state, reason

    def advance(self, state: FitState) -> tuple[FitState, str]:
        """One round: state in, state out, and the reason why there was nothing to do, if so."""
        started, problem = time.perf_counter(), self.problem
        passes = problem.passes
        so_far = StagesSoFar.of(state.carried)
        here = Iterate.unsummed(state.active, state.W, state.intercept)
        costly = self.system.rule in TRIED
        rule = "scaled" if costly else self.system.rule
        shortlist = ranked(problem, here, rule, self._groups, self._take)
        if not shortlist:
            whole = self._groups is None and state.active.shape[0] >= problem.n_candidates
            return replace(state, passes=state.passes + problem.passes - passes), "exhausted" if whole else "gradient"
        chosen = shortlist[0]
        if costly and len(shortlist) > 1:
            found = gains(problem, here, shortlist, self.system.rule, self._lam, self.settings.tol, self.n_rows)
            chosen = shortlist[int(np.argmax(found))]
        at = widened(problem, here, chosen.rows)
        if self._flat(at, chosen):
            return replace(state, passes=state.passes + problem.passes - passes), "gradient"
        limits = self.limits.counted_from(state.passes - passes)
        by = CORRECTIVE[self.system.corrective]
        solved = corrected(problem, at, self._lam, chosen.rows, self.settings.tol, self.n_rows, limits, by)
        so_far = so_far.after(solved.at, chosen.rows)
        rows = (chosen.rows.shape[0], 0)
        return self._moved(state, solved, so_far.arrays(), rows, "corrective", started, passes), ""

    def _flat(self, at: Iterate, group: Group) -> bool:
        """Whether the best candidate's gradient is nothing but rounding."""
        length = row_lengths(self.problem, at.active)
        return pull(at, group.rows, length) <= _FLAT * math.sqrt(self.problem.statistics.weight)

    # ---- the way back ----------------------------------------------------------------------------------------------

    def _back(
        self, state: FitState, keep: int, callback: Callable[[dict[str, Any], FitState], bool]
    ) -> tuple[FitState, str]:
        """Rounds that remove features, down to the last one; then the model of at most `keep`, and the path to it."""
        def ended(state: FitState) -> str:
            more = len(self._held_groups(state.active)) > 1
            return self.limits.reason(state.passes) if more else "kept"

        state, reason = repeated(self._retreat, state, callback, ended, ended(state))
        so_far = WayBack.of(state.carried).stages(keep)
        return self._ending_at(state, so_far), reason

    def _retreat(self, state: FitState) -> tuple[FitState, str]:
        """One round back: the cheapest group leaves, and all other weights are solved again."""
        started, problem, groups = time.perf_counter(), self.problem, self._held_groups(state.active)
        passes = problem.passes
        here = Iterate.unsummed(state.active, state.W, state.intercept)
        costs = removal_costs(problem, here, self._lam, groups, self.n_rows)
        gone = groups[int(np.argmin(costs))]
        limits = self.limits.counted_from(state.passes - passes)
        by = CORRECTIVE[self.system.corrective]
        solved = without(problem, here, gone, self._lam, self.settings.tol, self.n_rows, limits, by)
        way = WayBack.of(state.carried).after(solved.at, state.active[gone])
        return self._moved(state, solved, way.arrays(), (0, gone.shape[0]), REMOVAL, started, passes), ""

    def _held_groups(self, active: Rows) -> list[Rows]:
        """Places of the active rows by group, in the order of their first rows."""
        problem = self.problem
        if problem.pool is not None:
            names: list[Any] = [group_of(problem.pool, key)[0] for key in problem.held(active).keys]
        else:
            names = (active if self._groups is None else self._groups[active]).tolist()
        found: dict[Any, list[int]] = {}
        for place, name in enumerate(names):
            found.setdefault(name, []).append(place)
        return [np.array(places, dtype=np.int64) for places in found.values()]

    # ---- when to stop ----------------------------------------------------------------------------------------------

    def _reason(self, state: FitState) -> str:
        if spent := self._spent(state):
            return spent
        budget = self.settings.max_features
        if budget is not None and state.active.shape[0] >= budget:
            return "max_features"
        if self.system.bound is not None:
            bounds = [record["bound"] for record in state.history]
            if bounds and len(bounds) - 1 - int(np.argmin(bounds)) >= _PATIENCE:
                return "bound"
        return ""

    def _bound(self, state: FitState, error: float) -> float:
        """Theorem 1: error + C sqrt((T k log(T k) log k + T log d + log(1/delta)) / m); nan without a constant."""
        if self.system.bound is None:
            return math.nan
        T, k = state.active.shape[0], max(self.problem.k, 2)
        d = max(float(self.problem.n_candidates), 1.0)
        inside = T * k * math.log(T * k) * math.log(k) + T * math.log(d) - math.log(_CONFIDENCE)
        return error + float(self.system.bound) * math.sqrt(inside / self.n_rows)

    def _best(self, state: FitState) -> FitState:
        """The model of the round with the lowest bound, and the path up to it."""
        best = int(np.argmin([record["bound"] for record in state.history]))
        return self._ending_at(state, StagesSoFar.of(state.carried).until(best + 1))

    def _ending_at(self, state: FitState, so_far: StagesSoFar) -> FitState:
        """The state with the last of some models, and the path up to it."""
        active, W, intercept = so_far.last()
        record = last_of_size(state.history)[active.shape[0]]
        value = float(record["objective"]) * self.problem.statistics.weight
        return replace(
            state, active=active, W=W, intercept=intercept, objective=value, carried=so_far.arrays()
        )

    # ---- records ---------------------------------------------------------------------------------------------------

    def _moved(
        self,
        state: FitState,
        solved: Solved,
        carried: dict[str, NDArray[Any]],
        rows: tuple[int, int],
        step: str,
        started: float,
        passes: int,
    ) -> FitState:
        """The state with the model of a corrective step and its record; `rows` entered and left."""
        problem, at = self.problem, solved.at
        wrong = float(problem.own_pass(mistakes, at, name="mistakes").add["wrong"]) / problem.statistics.weight
        state = replace(
            state,
            active=at.active,
            W=at.W,
            intercept=at.intercept,
            objective=problem.objective(at, self._lam),
            carried=carried,
            cut=solved.cut,
        )
        self.mark(state.objective)
        more = {
            "loss": at.loss / problem.statistics.weight,
            "error": wrong,
            "bound": self._bound(state, wrong),
            "steps": solved.steps,
            "gradient": solved.rest / math.sqrt(problem.statistics.weight),
        }
        return recorded(
            problem,
            state,
            gap=math.nan,
            lower_bound=math.nan,
            alpha=self._lam / problem.statistics.weight,
            rows_in=rows[0],
            rows_out=rows[1],
            held=at,
            candidates=problem.n_candidates,
            step=step,
            length=solved.length,
            started=started,
            passes=passes,
            more=more,
        )
