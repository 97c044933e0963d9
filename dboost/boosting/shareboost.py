"""ShareBoost (Shalev-Shwartz, Wexler & Shashua 2011; docs/math.md 7 (J)): few features, shared by the classes.

    repeat
      the feature, or group of features, whose row of the gradient is largest enters     (``ranked``, ``gains``)
      all weights of the features held are solved again, from where they were            (``corrected``)

One run gives the whole path: the model of every round is kept. With |x| <= 1 and rule "norm" or "scaled",
ceil(4 ||W*||_{inf,1}^2 / eps) rounds reach the mean loss L(W*) + eps for any W* (Theorem 2). A feature that entered
stays, unless the fit goes back from what has grown, which the paper does not:

    repeat
      the feature, or group, whose removal costs the objective least leaves              (``removal_costs``)
      the weights of the others are solved again, from where they were                   (``without``)

A feature enters because it was the best beside the few that came before it; T features that are left of many more are
chosen beside all of them. Source: backward elimination by the quadratic model at the minimum ("optimal brain surgeon",
Hassibi & Stork 1993).

The rules of choice, numbered as in docs/math.md 7 (J):

- ``"norm"`` (0): the largest sum over a group of ||G_j||_1, as printed; for features of one scale.
- ``"scaled"`` (0'): the largest sum of ||G_j||_1^2 / S_j, twice what the sup-norm bound promises the loss to fall by.
  S_j = sum_i s_i x_ij^2; with a free intercept the bound holds for the centred column too, which is the same model, and
  S_j = sum_i s_i (x_ij - mean)^2 is the better constant.

The others take the best few of ``"scaled"``, or all candidates, and measure what each would gain. L includes the
penalty; a candidate whose G_j is zero gains nothing under any rule and is not measured.

- ``"newton"``: (1/2) sum_r g_r' H_r^-1 g_r, the fall of the second-order model of L over the rows of the group and the
  intercept, each output r on its own: g_r the gradient of the group's columns, H_r their Hessian. These Gram matrices
  are of whole groups, so that columns of a group that say the same gain once, where a sum over them counts each; it
  takes two passes for the whole shortlist.
- ``"line"`` (rule 1): min over alpha of L(W + alpha D), D = G_j / S_j on the rows of the group and zero elsewhere.
- ``"row"`` (rule 2): min over u of L(W + e_j u'), the rest of the model held. A row that is tried alone is k numbers:
  Newton's method finds them for the whole shortlist at once. A pass forms the margins of the model once and tells every
  column's loss, gradient and Hessian beside them.
- ``"full"`` (rule 3): all weights solved again with the group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.systems import Callback, Rounds, System, last_of_size, refuse_part, repeated
from dboost.columns.statistics import deviation
from dboost.compiled.solves.positive import inverse_positive, solve_positive
from dboost.errors import UsageError
from dboost.hypotheses.base import Key
from dboost.model.stages import Stages
from dboost.notices import warn_user
from dboost.partition import Sums
from dboost.passes import class_blocks
from dboost.passes.class_blocks import mistakes
from dboost.penalties import Penalty
from dboost.penalties.bound import BoundPenalty
from dboost.problem.iterate import Iterate, Score
from dboost.problem.limits import UNLIMITED, Limits
from dboost.problem.pools import leading
from dboost.problem.problem import Problem
from dboost.problem.state import FitSettings, FitState
from dboost.solvers.conjugate.class_blocks import grams, regularised, sampled
from dboost.solvers.corrective import CorrectedModel, Free, left_over, solve, solve_accelerated

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

RULES = ("scaled", "norm", "newton", "line", "row", "full")
TRIED = ("newton", "line", "row", "full")

MOST_TRIED = 10_000_000
"""Candidates that one round tries at most: their names alone take a gigabyte, and each trial makes a column."""


@dataclass(frozen=True)
class Group:
    """Candidates that enter together."""

    rows: Rows  # Their rows of W, in the order in which they enter.
    score: float  # What the rule says of them.


def lengths(square: Array, total: Array, weight: float, centred: bool) -> Array:
    """Length of each column, sqrt(S_j): of the centred one where the intercept is free; 0 for one without variation."""
    if centred:
        found: Array = deviation(total, square, weight) * np.sqrt(weight)
        return found
    return np.sqrt(square)


def scores(norms: Array, length: Array, rule: str) -> Array:
    """What a rule says of single candidates from ||G_j||_1; 0 for a column that can change nothing."""
    usable = length > 0.0
    if rule == "norm":
        return np.where(usable, norms, 0.0)
    return np.where(usable, norms / np.where(usable, length, 1.0), 0.0) ** 2


def tried(problem: Problem, rule: str, shortlist: int | None) -> int:
    """How many groups a rule asks for; shortlist=None is for a class that a pass sums whole (UsageError)."""
    if rule not in TRIED:
        return 1
    if shortlist is not None:
        return shortlist
    if problem.searched or problem.n_candidates > MOST_TRIED:
        many = f"{problem.n_candidates:,.0f} hypotheses" if math.isfinite(problem.n_candidates) else "an infinite class"
        raise UsageError(
            f"shortlist=None tries every candidate, and {many} cannot be listed: a trial makes a column of each",
            hint=f"give shortlist a number, or use a class that is summed whole and has at most {MOST_TRIED:,}",
        )
    return max(1, int(problem.n_candidates))


def ranked(problem: Problem, iterate: Iterate, rule: str, groups: Rows | None, take: int) -> list[Group]:
    """The best `take` groups outside of the model, best first; one pass. `groups` (n,) number stored columns."""
    if problem.pool is not None:
        return _of_pool(problem, iterate, rule, take)
    norms = np.concatenate(problem.summed(iterate, row_norms))
    length = row_lengths(problem, None)
    usable = np.isfinite(problem.objective.columns.weight) & (length > 0.0)
    each = np.where(usable, scores(norms, length, rule), 0.0)
    each[iterate.active] = 0.0
    if groups is None:
        order = np.lexsort((np.arange(each.shape[0]), -each))[:take]
        return [Group(np.array([j], dtype=np.int64), float(each[j])) for j in order.tolist() if each[j] > 0.0]
    # a group of which a column is in the model is in it whole
    sums = np.bincount(groups, weights=each)
    sums[groups[iterate.active]] = 0.0
    order = np.lexsort((np.arange(sums.shape[0]), -sums))[:take]
    members = (np.flatnonzero((groups == g) & usable) for g in order.tolist() if sums[g] > 0.0)
    best = [float(sums[g]) for g in order.tolist() if sums[g] > 0.0]
    return [Group(rows, score) for rows, score in zip(members, best, strict=True)]


def row_norms(total: Sums, shard: Any) -> Array:
    """||G_j||_1 of the columns of a shard."""
    norms: Array = np.abs(total.add["G"]).sum(axis=1)
    return norms


def _of_pool(problem: Problem, iterate: Iterate, rule: str, take: int) -> list[Group]:
    held = frozenset(problem.held(iterate.active).keys)
    parts = problem.summed(
        iterate, best_of_shard, problem.pool, held, rule, problem.statistics.weight, problem.fit_intercept, take
    )
    found = sorted(((-score, key) for part in parts for key, score in part))
    best: dict[Key, float] = {}
    for negative, key in found:
        best.setdefault(key, -negative)
    chosen = list(best.items())[:take]
    members = [problem.pool.group(key) for key, _ in chosen]
    problem.register([key for group in members for key in group])
    groups = []
    for group, (_, score) in zip(members, chosen, strict=True):
        rows = problem.register(group)
        # a member without variation changes nothing, and its penalty may be infinite
        usable = (row_lengths(problem, rows) > 0.0) & np.isfinite(problem.objective.columns.weight[rows])
        groups.append(Group(rows[usable], score))
    return groups


def row_lengths(problem: Problem, rows: Rows | None) -> Array:
    """`lengths` of the columns of some rows of W, or of all."""
    stats = problem.statistics
    found = stats.deviation() * np.sqrt(stats.weight) if problem.fit_intercept else np.sqrt(stats.square)
    return found if rows is None else found[rows]


def best_of_shard(
    total: Sums,
    shard: Any,
    pool: Any,
    held: frozenset[Key],
    rule: str,
    weight: float,
    centred: bool,
    take: int,
) -> list[tuple[Key, float]]:
    """The best groups of one shard of a pool that the model does not hold: their first hypothesis and their score."""
    norms = np.abs(total.add["G"]).sum(axis=1)
    if not norms.shape[0]:
        return []
    each = scores(norms, lengths(total.add["square"], total.add["total"], weight, centred), rule)
    starts = pool.groups(shard, norms.shape[0])
    sums = np.add.reduceat(each, starts)
    # the groups of the model may be among the best
    order = leading(sums, take + len(held))
    keys: Sequence[Key] = pool.keys(shard, starts[order])
    fresh = [(key, float(sums[g])) for key, g in zip(keys, order.tolist(), strict=True) if _outside(pool, key, held)]
    return fresh[:take]


def _outside(pool: Any, key: Key, held: frozenset[Key]) -> bool:
    return not any(member in held for member in pool.group(key))


Solver = Callable[[Problem, Iterate, float, Free, float, Limits], CorrectedModel]

CORRECTIVE: dict[str, Solver] = {"newton": solve, "nesterov": solve_accelerated}
"""Ways to solve all weights again, by name; both end at the same gradient."""

# Groups whose trials share their passes: a pass returns k + k^2 numbers for each of their columns, which without a
# limit of the shortlist are all that there are.
AT_ONCE = 256
# Steps along a line, as multiples of the one that the bound promises; then a finer grid around the best, thrice.
_DOUBLINGS = 2.0 ** np.arange(-2, 13)
_FINER = np.linspace(0.0, 1.0, 17)
_ZOOMS = 3
# A trial is worth no more than this share of the gradient of its group.
_ACCURACY = 1e-2
# Multiplications that the Gram matrices of a shortlist may cost: of more examples some are looked at.
_WORK = 1e9
# Newton steps of a row, halved ones among them.
_MAX_STEPS = 60
_ARMIJO = 1e-4
# Ridge, relative to the largest curvature, on outputs that no example is undecided about.
_RIDGE = 1e-9


def widened(problem: Problem, iterate: Iterate, rows: Rows) -> Iterate:
    """The model with more rows at zero, its sums taken again; one pass."""
    active = np.concatenate([iterate.active, rows])
    order = np.argsort(active, kind="stable")
    W = np.concatenate([iterate.W, np.zeros((rows.shape[0], problem.k))])[order]
    return problem.evaluate(active[order], W, iterate.intercept)


def gains(
    problem: Problem,
    here: Iterate,
    shortlist: list[Group],
    rule: str,
    lam: float,
    tol: float,
    n_rows: int,
) -> list[float]:
    """What the objective falls by for each group of a shortlist, which may hold every candidate there is.

    `here` is the corrected model, whose sums have no meaning; `tol` is that of the corrective steps of "full", as a
    share of the gradient of the group.
    """
    found: list[float] = []
    for first in range(0, len(shortlist), AT_ONCE):
        found += _gains(problem, here, shortlist[first : first + AT_ONCE], rule, lam, tol, n_rows)
    return found


def _gains(
    problem: Problem, here: Iterate, shortlist: list[Group], rule: str, lam: float, tol: float, n_rows: int
) -> list[float]:
    """`gains` of groups that are tried together."""
    fresh = np.concatenate([group.rows for group in shortlist])
    if rule == "row" and fresh.shape[0] == len(shortlist):
        given: list[float] = _on_single_rows(problem, here, fresh, lam).tolist()
        return given
    iterate = widened(problem, here, fresh)
    if rule == "newton":
        return _by_newton(problem, iterate, shortlist, lam, n_rows)
    value = problem.objective(iterate, lam)
    if rule == "line":
        return [value - _on_line(problem, iterate, group.rows, lam) for group in shortlist]
    if rule == "row":
        alone = (_on_rows(problem, iterate, group.rows, lam, n_rows).iterate for group in shortlist)
        return [value - problem.objective(one, lam) for one in alone]
    found = []
    for group in shortlist:
        # without the rows of the other groups, which are zero
        mine = iterate.rows(~np.isin(iterate.active, np.setdiff1d(fresh, group.rows)))
        found.append(value - problem.objective(corrected(problem, mine, lam, group.rows, tol, n_rows).iterate, lam))
    return found


def pull(iterate: Iterate, rows: Rows, length: Array) -> float:
    """The mean ||G_j||_1 / length_j of some rows: the gradient that a corrective step has to bring down.

    Groups are ranked by sums over their rows. Measured by its largest row, a group that enters could leave more of
    itself, all rows together, than it began with, and copies of it would look better than what is new.
    """
    places = np.searchsorted(iterate.active, rows)
    found: float = float(np.sum(np.abs(iterate.G[places]).sum(axis=1) / length[places])) / max(1, places.shape[0])
    return found


def corrected(
    problem: Problem,
    iterate: Iterate,
    lam: float,
    fresh: Rows,
    tol: float,
    n_rows: int,
    limits: Limits = UNLIMITED,
    by: Solver = solve,
) -> CorrectedModel:
    """The fully corrective step: its gradient ends at `tol` of the one that the fresh rows began with.

    A ConvergenceWarning when more is left than they began with: the next features would be chosen by what was left.
    """
    length = row_lengths(problem, iterate.active)
    free = Free(np.ones(iterate.active.shape[0], np.bool_), problem.fit_intercept, length, n_rows)
    begun = pull(iterate, fresh, length)
    solved = by(problem, iterate, lam, free, tol * begun, limits)
    if solved.rest > max(1.0, tol) * begun and not solved.cut:
        from dboost.errors import ConvergenceWarning

        # The sentence has no number, so that Python says it once for a fit and not in every round.
        warn_user(
            "the weights of all features could not be solved again: more gradient is left than the new features "
            "brought, and those that enter now are chosen by it. history_.column('gradient') says what was left after "
            "each round; a larger alpha makes the weights easier to solve",
            ConvergenceWarning,
        )
    return solved


def _on_rows(problem: Problem, iterate: Iterate, rows: Rows, lam: float, n_rows: int) -> CorrectedModel:
    """The rows of one group alone, from zero."""
    length = row_lengths(problem, iterate.active)
    free = Free(np.isin(iterate.active, rows), False, length, n_rows)
    return solve(problem, iterate, lam, free, _ACCURACY * pull(iterate, rows, length))


def _on_single_rows(problem: Problem, here: Iterate, rows: Rows, lam: float) -> Array:
    """What each of some rows gains alone, from zero, (c,): rule 2 by damped Newton steps, rows ending one by one."""
    bound = problem.objective.bound(rows, lam)
    fresh, k = problem.columns_of(rows), problem.k

    def penalty(u: Array) -> Array:
        return np.array([bound[[c]].total(u[[c]]) for c in range(u.shape[0])])

    u, D = np.zeros((rows.shape[0], k)), np.zeros((rows.shape[0], k))
    length, slope, fallen = (np.full(rows.shape[0], start) for start in (1.0, 0.0, 0.0))
    first: Array | None = None
    live, free = np.ones(rows.shape[0], np.bool_), penalty(u)
    for _ in range(_MAX_STEPS):
        trial = u + length[:, None] * D
        told = problem.own_pass(class_blocks.row_trials, here, fresh, trial, live, name="trials").add
        after = free - penalty(trial) - told["change"]
        better = live & (after >= fallen + _ARMIJO * length * slope)
        length[live & ~better] *= 0.5
        face = bound.face(trial)
        R = told["G"] - face.expand(face.gradient(bound.strength))
        rest = np.abs(R).sum(axis=1)
        first = rest if first is None else first
        u[better], fallen[better], length[better] = trial[better], after[better], 1.0
        live &= ~(better & (rest <= _ACCURACY * first))
        if not live.any():
            break
        for c in np.flatnonzero(better & live).tolist():
            D[c] = _newton(told["H"][c], R[c], _bend(bound[[c]], trial[c]), not problem.loss.separable)
            slope[c] = R[c] @ D[c]
    return fallen


def _bend(bound: BoundPenalty, row: Array) -> Array:
    """Hessian of the penalty of one row, (k, k)."""
    face, strength = bound.face(row[None]), bound.strength
    columns = [face.expand(face.hessian(face.restrict(unit[None]), strength))[0] for unit in np.eye(row.shape[0])]
    return np.stack(columns, axis=1)


def _newton(H: Array, R: Array, bend: Array, shifts: bool) -> Array:
    """The step of Newton's method for one row; `shifts`: a shift of all outputs changes no loss."""
    k = R.shape[0]
    largest = float(np.max(np.diagonal(H), initial=0.0))
    # curvature along the shift, where the loss has none, and the sums have rounding only
    along = largest / k if shifts else 0.0
    ridge = _RIDGE * largest + np.finfo(float).tiny
    return np.asarray(solve_positive(H + bend + along + ridge * np.eye(k), R, 0.0))


def _by_newton(problem: Problem, iterate: Iterate, shortlist: list[Group], lam: float, n_rows: int) -> list[float]:
    """What the second-order model promises for the rows of each group, which are zero in the model `iterate`."""
    places = [np.searchsorted(iterate.active, group.rows) for group in shortlist]
    every = sampled(problem.k, max(map(len, places)), sum(map(len, places)), n_rows, _WORK)
    found = []
    for here, gram in zip(places, grams(problem, iterate, places, problem.fit_intercept, every), strict=True):
        bound = problem.objective.bound(iterate.active, lam)
        bend = np.stack([np.diagonal(_bend(bound[[j]], iterate.W[j])) for j in here.tolist()])
        G = iterate.G[here]
        if problem.fit_intercept:
            # it was solved for before the group enters: it has curvature, and no gradient
            G = np.vstack([G, np.zeros(problem.k)])
        H = regularised(gram, bend)
        gained = (np.sum(G[:, r] * solve_positive(H[r], G[:, r], _RIDGE)) for r in range(problem.k))
        found.append(0.5 * float(sum(gained)))
    return found


def _on_line(problem: Problem, iterate: Iterate, rows: Rows, lam: float) -> float:
    """The lowest objective along the gradient of one group."""
    places, length = np.searchsorted(iterate.active, rows), row_lengths(problem, rows)
    D = np.zeros_like(iterate.W)
    D[places] = iterate.G[places] / (length**2)[:, None]
    still, bound = np.zeros(problem.k), problem.objective.bound(iterate.active, lam)

    def values(steps: Array) -> Array:
        found = problem.losses_along(iterate, D, still, steps)
        penalties = [bound.total(iterate.W + t * D) for t in steps.tolist()]
        given: Array = found + np.array(penalties)
        return given

    steps = np.append(0.0, _DOUBLINGS)
    for _ in range(_ZOOMS + 1):
        seen = values(steps)
        best = int(np.argmin(seen))
        low, high = steps[max(best - 1, 0)], steps[min(best + 1, steps.shape[0] - 1)]
        lowest = float(seen[best])
        # convex along the line: the minimum is between the neighbours of the best
        steps = low + (high - low) * _FINER
    return lowest


@dataclass(frozen=True)
class WayBack:
    """The models on the way back, in the order in which they were reached: that of all features first."""

    left: Rows  # Rows of W in the order in which they left.
    rest: Rows  # Rows of the last model, ascending.
    counts: Rows  # (T,): Rows of each model, falling.
    weights: Array  # (sum of counts, k): Rows of W of each model, ascending.
    intercepts: Array  # (T, k)

    def after(self, iterate: Iterate, gone: Rows) -> WayBack:
        """With the model that some rows have left."""
        return WayBack(
            np.append(self.left, gone),
            iterate.active,
            np.append(self.counts, iterate.active.shape[0]),
            np.concatenate([self.weights, iterate.W]),
            np.concatenate([self.intercepts, iterate.intercept[None]]),
        )

    def stages(self, most: int) -> Stages:
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
        return Stages(order[: int(counts[-1])], counts, np.concatenate(weights), self.intercepts[chosen])


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

    rule: str = "scaled"  # Which candidate enters; one of `RULES`.
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
            counts = np.array([state.active.shape[0]], dtype=np.int64)
            way = WayBack(np.zeros(0, np.int64), state.active, counts, state.W, state.intercept[None])
            state = replace(state, carried=dict(vars(way)))
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
            state = replace(state, carried=dict(vars(Stages.empty(self.problem.k))))
            state = self.valued(state, self.problem.objective(iterate, self.lam))
        # a fit that is resumed may have done its last round before
        state, reason = repeated(self.advance, state, callback, self._reason, self._reason(state))
        return self._best(state) if reason == "bound" else state, reason

    def advance(self, state: FitState) -> tuple[FitState, str]:
        """One round: state in, state out, and the reason why there was nothing to do, if so."""
        clock, problem = self.clock(), self.problem
        passes = problem.passes
        so_far = Stages(**state.carried)
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
        model = solved.iterate
        so_far = so_far.after(model.active, model.W, model.intercept, chosen.rows)
        return self._moved(state, solved, dict(vars(so_far)), "corrective", clock), ""

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
        so_far = WayBack(**state.carried).stages(keep)
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
        way = WayBack(**state.carried).after(solved.iterate, state.active[gone])
        return self._moved(state, solved, dict(vars(way)), REMOVAL, clock), ""

    def _held_groups(self, active: Rows) -> list[Rows]:
        """Places of the active rows by group, in the order of their first rows."""
        problem = self.problem
        if problem.pool is not None:
            names: list[Any] = [problem.pool.group(key)[0] for key in problem.held(active).keys]
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
        return self._ending_at(state, Stages(**state.carried).until(best + 1))

    def _ending_at(self, state: FitState, so_far: Stages) -> FitState:
        """The state with the last of some models, and the path up to it."""
        active, W, intercept = so_far.last()
        record = last_of_size(state.history)[active.shape[0]]
        value = float(record["objective"]) * self.problem.statistics.weight
        return replace(state, active=active, W=W, intercept=intercept, objective=value, carried=dict(vars(so_far)))

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
