"""Which feature, or group of features, enters next: ShareBoost's rules of choice, numbered as in docs/math.md 7 (J).

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
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.columns.statistics import deviation
from dboost.compiled.solves.positive import solve_positive
from dboost.errors import UsageError
from dboost.hypotheses.base import Key
from dboost.hypotheses.capabilities import group_of, groups_of
from dboost.notices import warn_user
from dboost.partition import Sums
from dboost.passes import class_blocks
from dboost.penalties.bound import BoundPenalty
from dboost.problem.iterate import Iterate
from dboost.problem.limits import UNLIMITED, Limits
from dboost.problem.pools import leading
from dboost.problem.problem import Problem
from dboost.solvers.conjugate.class_blocks import grams, regularised, sampled
from dboost.solvers.corrective import CorrectedModel, Free, solve, solve_accelerated

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
    members = [group_of(problem.pool, key) for key, _ in chosen]
    problem.register([key for group in members for key in group])
    groups = []
    for group, (_, score) in zip(members, chosen, strict=True):
        rows = problem.register(group)
        # a member without variation changes nothing, and its penalty may be infinite
        groups.append(Group(rows[usable_rows(problem, rows)], score))
    return groups


def usable_rows(problem: Problem, rows: Rows) -> NDArray[np.bool_]:
    """Which rows of W belong to columns that vary."""
    return (row_lengths(problem, rows) > 0.0) & np.isfinite(problem.objective.columns.weight[rows])


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
    starts = groups_of(pool, shard, norms.shape[0])
    sums = np.add.reduceat(each, starts)
    # the groups of the model may be among the best
    order = leading(sums, take + len(held))
    keys: Sequence[Key] = pool.keys(shard, starts[order])
    fresh = [(key, float(sums[g])) for key, g in zip(keys, order.tolist(), strict=True) if _outside(pool, key, held)]
    return fresh[:take]


def _outside(pool: Any, key: Key, held: frozenset[Key]) -> bool:
    return not any(member in held for member in group_of(pool, key))


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


def only(iterate: Iterate, rows: Rows) -> Iterate:
    """A model with some of its rows, which ascend; the others must be zero."""
    return iterate.rows(np.searchsorted(iterate.active, rows))


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
        others = np.setdiff1d(fresh, group.rows)
        mine = only(iterate, np.setdiff1d(iterate.active, others))
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
