"""ShareBoost (Shalev-Shwartz, Wexler & Shashua 2011; docs/math.md 7 (J)): few features, shared by the classes.

    repeat
      the feature, or group of features, whose row of the gradient is largest enters     (``shareboost_choice``)
      all weights of the features held are solved again, from where they were            (``corrective``)

One run gives the whole path: the model of every round is kept. With |x| <= 1 and rule "norm" or "scaled",
ceil(4 ||W*||_{inf,1}^2 / eps) rounds reach the mean loss L(W*) + eps for any W* (Theorem 2). A feature that entered
stays, unless the fit goes back from what has grown, which the paper does not:

    repeat
      the feature, or group, whose removal costs the objective least leaves              (``removal_costs``)
      the weights of the others are solved again, from where they were                   (``corrective``)

A feature enters because it was the best beside the few that came before it; T features that are left of many more are
chosen beside all of them. Source: backward elimination by the quadratic model at the minimum ("optimal brain surgeon",
Hassibi & Stork 1993).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.shareboost_choice import (
    CORRECTIVE,
    RULES,
    TRIED,
    Group,
    Solver,
    corrected,
    gains,
    pull,
    ranked,
    row_lengths,
    tried,
    widened,
)
from dboost.boosting.systems import Callback, Rounds, System, last_of_size, refuse_part, repeated
from dboost.compiled.solves.positive import inverse_positive, solve_positive
from dboost.errors import UsageError
from dboost.hypotheses.capabilities import group_of
from dboost.passes.class_blocks import mistakes
from dboost.penalties import Penalty
from dboost.problem.iterate import Iterate, Score
from dboost.problem.limits import UNLIMITED, Limits
from dboost.problem.problem import Problem
from dboost.problem.state import FitSettings, FitState
from dboost.solvers.conjugate.class_blocks import grams, regularised, sampled
from dboost.solvers.corrective import CorrectedModel, Free, left_over, solve

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class StagesSoFar:
    """The model after every round."""

    order: Rows  # (a,): Rows of W in the order in which they entered.
    counts: Rows  # (T,): Rows held after each round.
    weights: Array  # (sum of counts, k): Their weights, round after round, in the order of entering.
    intercepts: Array  # (T, k)

    @staticmethod
    def empty(k: int) -> StagesSoFar:
        """Of no rounds, with k outputs."""
        none = np.zeros(0, np.int64)
        return StagesSoFar(none, none, np.zeros((0, k)), np.zeros((0, k)))

    @staticmethod
    def of(carried: Mapping[str, NDArray[Any]]) -> StagesSoFar:
        """Undo `arrays`."""
        return StagesSoFar(carried["order"], carried["counts"], carried["weights"], carried["intercepts"])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """As a state carries them."""
        return dict(vars(self))

    def after(self, iterate: Iterate, fresh: Rows) -> StagesSoFar:
        """With the model of one more round, in which some rows entered."""
        k = iterate.intercept.shape[0]
        order = np.append(self.order, fresh)
        mine = iterate.W[np.searchsorted(iterate.active, order)]
        return StagesSoFar(
            order,
            np.append(self.counts, order.shape[0]),
            np.concatenate([self.weights.reshape(-1, k), mine]),
            np.concatenate([self.intercepts.reshape(-1, k), iterate.intercept[None]]),
        )

    def until(self, rounds: int) -> StagesSoFar:
        """The first rounds only."""
        counts = self.counts[:rounds]
        held = int(counts[-1]) if rounds else 0
        return StagesSoFar(self.order[:held], counts, self.weights[: int(counts.sum())], self.intercepts[:rounds])

    def last(self) -> tuple[Rows, Array, Array]:
        """The model after the last round: rows ascending, their weights, the intercept."""
        held = int(self.counts[-1])
        places = np.argsort(self.order)
        return self.order[places], self.weights[-held:][places], self.intercepts[-1]


# Multiplications spent on the Hessian of a model.
_WORK = 1e9


@dataclass(frozen=True)
class WayBack:
    """The models on the way back, in the order in which they were reached: that of all features first."""

    left: Rows  # Rows of W in the order in which they left.
    rest: Rows  # Rows of the last model, ascending.
    counts: Rows  # (T,): Rows of each model, falling.
    weights: Array  # (sum of counts, k): Rows of W of each model, ascending.
    intercepts: Array  # (T, k)

    @staticmethod
    def begun(active: Rows, W: Array, intercept: Array) -> WayBack:
        """At the model that has grown."""
        counts = np.array([active.shape[0]], dtype=np.int64)
        return WayBack(np.zeros(0, np.int64), active, counts, W, intercept[None])

    @staticmethod
    def of(carried: Mapping[str, NDArray[Any]]) -> WayBack:
        """Undo `arrays`."""
        return WayBack(**dict(carried))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """As a state carries them."""
        return dict(vars(self))

    def after(self, iterate: Iterate, gone: Rows) -> WayBack:
        """With the model that some rows have left."""
        return WayBack(
            np.append(self.left, gone),
            iterate.active,
            np.append(self.counts, iterate.active.shape[0]),
            np.concatenate([self.weights, iterate.W]),
            np.concatenate([self.intercepts, iterate.intercept[None]]),
        )

    def stages(self, most: int) -> StagesSoFar:
        """The models of at most so many rows, or the smallest one, smallest first, as a fit that grows keeps them."""
        order = np.append(self.rest, self.left[::-1])
        fits = np.flatnonzero(self.counts <= most)
        chosen = (fits if fits.shape[0] else np.array([self.counts.shape[0] - 1]))[::-1]
        ends = np.cumsum(self.counts)
        weights = []
        for place in chosen.tolist():
            end, count = int(ends[place]), int(self.counts[place])
            # stored by row, wanted in the order of the path
            weights.append(self.weights[end - count : end][np.argsort(np.argsort(order[:count]))])
        counts = self.counts[chosen]
        return StagesSoFar(order[: int(counts[-1])], counts, np.concatenate(weights), self.intercepts[chosen])


def removal_costs(problem: Problem, iterate: Iterate, lam: float, groups: list[Rows], n_rows: int) -> Array:
    """What the objective rises by when the rows of a group leave and all others are solved again, by its second order.

    1/2 sum_c w_gc' [(H_c^-1)_gg]^-1 w_gc, with H_c the Hessian of loss plus penalty in the weights of class c; what
    classes share is left out. One pass over some of the examples. The model is a corrected one, `groups` are places
    among its rows.
    """
    size = iterate.active.shape[0]
    every = sampled(problem.k, size, size, n_rows, _WORK)
    (found,) = grams(problem, iterate, [np.arange(size)], problem.fit_intercept, every)
    bound = problem.objective.bound(iterate.active, lam)
    face = bound.face(iterate.W)
    bent = regularised(found, np.asarray(face.expand(face.diagonal(bound.strength))))
    inverse = np.stack([inverse_positive(H, 0.0) for H in bent])
    costs = []
    for places in groups:
        own, w = np.ascontiguousarray(inverse[:, places[:, None], places]), np.ascontiguousarray(iterate.W[places].T)
        costs.append(0.5 * float(sum(np.sum(v * solve_positive(H, v, 0.0)) for H, v in zip(own, w, strict=True))))
    return np.array(costs)


def without(
    problem: Problem,
    iterate: Iterate,
    gone: Rows,
    lam: float,
    tol: float,
    n_rows: int,
    limits: Limits = UNLIMITED,
    by: Solver = solve,
) -> CorrectedModel:
    """The model without some of its places, all others solved again: to `tol` of the gradient that this leaves."""
    keep = np.setdiff1d(np.arange(iterate.active.shape[0]), gone)
    active = iterate.active[keep]
    start = problem.evaluate(active, iterate.W[keep], iterate.intercept)
    free = Free(np.ones(keep.shape[0], np.bool_), problem.fit_intercept, row_lengths(problem, active), n_rows)
    return by(problem, start, lam, free, tol * left_over(problem, start, lam, free), limits)


REMOVAL = "removal"
"""What a record says of a round in which features left."""

# The gradient of all candidates, per unit of weight and of column length, at which there is nothing to add.
_FLAT = 1e-10
# Rounds without a lower bound on the generalisation error after which it is said to rise.
_PATIENCE = 10
# The bound holds with this probability.
_CONFIDENCE = 0.05


@dataclass(frozen=True)
class ShareBoost(System):
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

    name = "shareboost"

    def check(self, settings: FitSettings, penalty: Penalty) -> None:
        """Refuse what cannot be combined (UsageError)."""
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
        return ShareBoostRounds(problem, settings, null, self, n_rows)


def _count(name: str, value: Any, otherwise: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise UsageError(f"{name}={value!r}", hint=f"expected an integer >= 1{otherwise}")


class ShareBoostRounds(Rounds):
    """Rounds of one fit; `tol` is the gradient that a corrective step leaves, as a share of that of what entered."""

    def __init__(self, problem: Problem, settings: FitSettings, null: Score, system: ShareBoost, n_rows: int) -> None:
        super().__init__(problem, settings, null, system, n_rows)
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

    def run(self, state: FitState, callback: Callback) -> tuple[FitState, str]:
        """Rounds until a reason to stop; where the bound ended the fit, the state is that of its best one.

        The reason is "max_rounds", "max_passes", "max_seconds", "max_features", "gradient" (no candidate has any pull),
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

    def _grown(self, state: FitState, callback: Callback) -> tuple[FitState, str]:
        """Rounds that add features, until a reason to stop."""
        if not state.carried:
            if state.active.size:
                raise UsageError(
                    "ShareBoost starts from no features, so that earlier weights have no meaning for it",
                    hint="fit anew: one run holds the model of every number of features",
                )
            iterate = self.problem.evaluate(state.active, state.W, state.intercept)
            state = replace(state, carried=StagesSoFar.empty(self.problem.k).arrays())
            state = self.valued(state, self.problem.objective(iterate, self.lam))
        # a fit that is resumed may have done its last round before
        state, reason = repeated(self.advance, state, callback, self._reason, self._reason(state))
        return self._best(state) if reason == "bound" else state, reason

    def advance(self, state: FitState) -> tuple[FitState, str]:
        """One round: state in, state out, and the reason why there was nothing to do, if so."""
        clock, problem = self.clock(), self.problem
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
            found = gains(problem, here, shortlist, self.system.rule, self.lam, self.settings.tol, self.n_rows)
            chosen = shortlist[int(np.argmax(found))]
        iterate = widened(problem, here, chosen.rows)
        if self._flat(iterate, chosen):
            return replace(state, passes=state.passes + problem.passes - passes), "gradient"
        limits = self.limits.counted_from(state.passes - passes)
        by = CORRECTIVE[self.system.corrective]
        solved = corrected(problem, iterate, self.lam, chosen.rows, self.settings.tol, self.n_rows, limits, by)
        so_far = so_far.after(solved.iterate, chosen.rows)
        return self._moved(state, solved, so_far.arrays(), "corrective", clock), ""

    def _flat(self, iterate: Iterate, group: Group) -> bool:
        """Whether the best candidate's gradient is nothing but rounding."""
        length = row_lengths(self.problem, iterate.active)
        return pull(iterate, group.rows, length) <= _FLAT * math.sqrt(self.problem.statistics.weight)

    # ---- the way back ----------------------------------------------------------------------------------------------

    def _back(self, state: FitState, keep: int, callback: Callback) -> tuple[FitState, str]:
        """Rounds that remove features, down to the last one; then the model of at most `keep`, and the path to it."""

        def ended(state: FitState) -> str:
            more = len(self._held_groups(state.active)) > 1
            return self.limits.reason(state.passes) if more else "kept"

        state, reason = repeated(self._retreat, state, callback, ended, ended(state))
        so_far = WayBack.of(state.carried).stages(keep)
        return self._ending_at(state, so_far), reason

    def _retreat(self, state: FitState) -> tuple[FitState, str]:
        """One round back: the cheapest group leaves, and all other weights are solved again."""
        clock, problem, groups = self.clock(), self.problem, self._held_groups(state.active)
        here = Iterate.unsummed(state.active, state.W, state.intercept)
        costs = removal_costs(problem, here, self.lam, groups, self.n_rows)
        gone = groups[int(np.argmin(costs))]
        limits = self.limits.counted_from(state.passes - clock[1])
        by = CORRECTIVE[self.system.corrective]
        solved = without(problem, here, gone, self.lam, self.settings.tol, self.n_rows, limits, by)
        way = WayBack.of(state.carried).after(solved.iterate, state.active[gone])
        return self._moved(state, solved, way.arrays(), REMOVAL, clock), ""

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
        return replace(state, active=active, W=W, intercept=intercept, objective=value, carried=so_far.arrays())

    # ---- records ---------------------------------------------------------------------------------------------------

    def _moved(
        self,
        before: FitState,
        solved: CorrectedModel,
        carried: dict[str, NDArray[Any]],
        step: str,
        clock: tuple[float, int],
    ) -> FitState:
        """The state with the model of a corrective step and its record."""
        problem, iterate = self.problem, solved.iterate
        wrong = float(problem.own_pass(mistakes, iterate, name="mistakes").add["wrong"]) / problem.statistics.weight
        state = replace(
            self.valued(before, problem.objective(iterate, self.lam)),
            active=iterate.active,
            W=iterate.W,
            intercept=iterate.intercept,
            carried=carried,
            cut=solved.cut,
        )
        more = {
            "loss": iterate.loss / problem.statistics.weight,
            "error": wrong,
            "bound": self._bound(state, wrong),
            "steps": solved.steps,
            "gradient": solved.rest / math.sqrt(problem.statistics.weight),
        }
        return self.recorded(before, state, clock, step, solved.length, more)
