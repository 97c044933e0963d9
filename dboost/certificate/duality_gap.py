"""How far a model is from the optimum: the dual point, its value, and the duality gap.

A feasible dual point is built from the residuals U at the model: repaired so that the free intercept's constraint
holds, then scaled into the penalty's dual ball (docs/math.md 6). Its value is a lower bound on the optimum that
needs no assumption, so the gap is a certificate.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.losses.base import Repair
from dboost.penalties import ChargesRows, Penalty
from dboost.problem import summation
from dboost.problem.free_rows import ProjectedRepair, dual_value, repaired, without_sums
from dboost.problem.iterate import Iterate, Score
from dboost.problem.problem import Problem
from dboost.problem.shards import among, column_shards, norms_of_shard, projected_shard, repaired_shard

Array = NDArray[np.float64]

# Scales of a charged dual point are tried down from the largest, at first this power of two below it.
_FINEST = 24
# The errors of the rows that are held may take up to this share of their strengths.
_SURE = 0.5
# A pass for a dual value is spared where it is likely to leave more than so many times the gap that is asked for.
_FAR = 2.0
LOOSE = 8.0
"""The chord then leaves at most so many times as much as the pass is likely to."""


def expected_gap(problem: Problem, iterate: Iterate, size: float, lam: float) -> float:
    """What the exact value of the scaled residuals is likely to leave of the gap; no bound, and no pass.

    It is (1 - t)^2 (L - D0) + lam Omega(W) - t <G, W> + charge, at the scale t of the residuals. The chord between
    t = 0 and 1 (docs/math.md, eq. 16) would bound the gap, with 1 - t in place of its square. The tangent at t = 1 and
    a quadratic term, exact for the squared loss, are closer: where the penalty is a quarter of the objective the chord
    says four times as much. For a loss whose residuals reach the ends of their range, where the dual value has a kink
    (``Loss.kinked``), the tangent says too little by all of its first order: there it is the chord.

    `size`: ``penalty.dual_size`` of the rows that count; for ``ChargesRows`` those of them that are not held. `lam`:
    strength of the penalty.
    """
    scale, charge = dual_point(problem, iterate, size, lam)
    inner = float(np.sum(iterate.G * iterate.W)) + float(iterate.bias @ iterate.intercept)
    floor = problem.loss.floor * problem.statistics.weight
    value = problem.objective.bound(iterate.active, lam).total(iterate.W)
    return _lost(problem, scale) * (iterate.loss - floor) + value - scale * inner + charge


def _lost(problem: Problem, scale: float) -> float:
    """The share of the fall of the loss that scaled residuals are likely to lose in their dual value."""
    return (1.0 - scale) if problem.loss.kinked else (1.0 - scale) ** 2


def restricted_gap(problem: Problem, iterate: Iterate, lam: float) -> float:
    """`expected_gap` of the problem with the rows of A only."""
    # the intercept's own residual has no dual scaling; its size is its share of the gap, beside what counts as gained
    # through a large intercept
    slack = float(np.sum(np.abs(iterate.bias) * (1.0 + np.abs(iterate.intercept)))) if problem.fit_intercept else 0.0
    if slack and problem.loss.kinked:
        # what brings repaired residuals back between their ends scales them all
        keep = float(problem.objective.repair(iterate).keep.min())
        slack += (1.0 - keep) * (iterate.loss - problem.loss.floor * problem.statistics.weight)
    if problem.objective.columns.free.size:
        # rows without penalty are solved with the intercept before a certificate
        iterate, slack = without_sums(problem, iterate), 0.0
    size = 0.0
    if not isinstance(problem.penalty, ChargesRows):
        held = problem.objective.bound(iterate.active)
        size = held.dual_size(held.dual_norm(iterate.G))
    return expected_gap(problem, iterate, size, lam) + slack


def price_of_residuals(problem: Problem, lam: float) -> float:
    """By how many strengths residuals that change by one, of examples of weight one, may raise the norm of a column."""
    if not lam > 0.0:
        return math.inf
    stats, weight = problem.statistics, problem.objective.columns.weight
    longest = np.max(stats.absolute[weight > 0.0] / weight[weight > 0.0], initial=0.0)
    return float(problem.penalty.dual_norm(np.ones((1, problem.k)))[0]) * float(longest) / lam


def dual_bound(
    problem: Problem, score: Score, null_norms: Array, lam: float, tol: float = 0.0, last: bool = True
) -> float:
    """A lower bound on the optimum, sum form: the value of the dual point near the residuals of a scoring pass.

    It is less what rounding may have added to it or taken from the objective. One DUAL pass; none where the chord of
    docs/math.md, eq. 16, is a bound too, and the exact value would not end the fit, unless it is the `last`.

    With the intercept free, Theta must sum to zero per output. The loss repairs the residuals and says by how much
    the sums of a column can change (``losses.base.Repair``); the penalty says how far to scale. Rows without penalty
    ask the same of their columns, and have a repair of their own (``problem.free_rows``).

    `null_norms`, (n,): dual norms of G at the null model with its optimal intercept. `lam`: strength of the penalty.
    `tol`: relative gap at which the fit ends.
    """
    stats, penalty, iterate = problem.statistics, problem.penalty, score.iterate
    chosen = score.candidates
    repair = _repair(problem, score)
    if isinstance(repair, ProjectedRepair):
        iterate = without_sums(problem, iterate)
        if repair.step is None:
            # of these residuals nothing but zero is known to be a dual point
            return dual_value(problem, iterate, repair, 0.0) - summation.of_objective(problem, iterate, lam)
    if isinstance(penalty, ChargesRows):
        return _charged_bound(problem, replace(score, iterate=iterate), repair, null_norms, lam)
    bound = problem.objective.bound(chosen)
    off = summation.of_norms(problem, iterate, chosen)
    norms, size = score.norms + off, score.size
    # the sums of a point that is repaired are those of no other one
    share = 0.0 if _repairs(problem) else 1.0
    if _repairs(problem) and size is None:
        if not problem.objective.sparse:
            # these sizes add up over the rows: bounds on the norms would leave a gap linear in the intercept's residual
            size = _with_errors(penalty, _repaired_size(problem, iterate, chosen, repair), bound.dual_size(off))
        else:
            plain = bound.dual_size(norms)
            drift, spill = penalty.dual_norm(np.vstack([repair.drift, repair.spill]))
            norms = norms + repair.null_share * null_norms[chosen] + drift * stats.absolute[chosen]
            if spill > 0.0:
                norms = norms + spill * stats.peak[chosen]
            size = bound.dual_size(norms)
            if _decides(problem, iterate, plain, size, lam, tol):
                exact = _repaired_size(problem, iterate, chosen, repair)
                size = min(size, _with_errors(penalty, exact, bound.dual_size(off)))
            else:
                share = _share_of_residuals(problem, repair)
    if size is None:
        size = bound.dual_size(norms)
    scale, charge = penalty.dual_point(size, lam)
    value = None if last else _chord(problem, iterate, scale * share, size, lam, tol)
    if value is None:
        value = dual_value(problem, iterate, repair, scale)
    return value - charge - summation.of_objective(problem, iterate, lam)


def _share_of_residuals(problem: Problem, repair: Repair) -> float:
    """The share 1 - t of the residuals U in a dual point (1 - t) U + t V that the bounds of a repair hold for too.

    A repair that mixes predictions q with the shares n/M of the labels takes e/M off them before. The same t makes
    (1 - t) q + t p feasible, with p = n/M - (1 - t) e / (t M) for all examples; p are probabilities, so that the dual
    value of V = Y - p is not below D0, and what X_j'V is off that of the null model is as much as e/M makes
    (docs/math.md 6). Zero for other repairs.
    """
    mixes = problem.loss.mixes and not problem.objective.columns.offset.size and not isinstance(repair, ProjectedRepair)
    return 1.0 - repair.null_share if mixes and repair.keep.all() else 0.0


def _chord(problem: Problem, iterate: Iterate, part: float, size: float, lam: float, tol: float) -> float | None:
    """A bound on the value of a scaled dual point from those at both ends of the ray (docs/math.md, eq. 16).

    None where the value itself is worth a pass. `part`: of the residuals in the point. `size`: as for `expected_gap`.
    """
    value, likely = problem.objective(iterate, lam), expected_gap(problem, iterate, size, lam)
    if not (part > 0.0 and likely > _FAR * tol * max(abs(value), problem.objective.resolution)):
        return None
    inner = float(np.sum(iterate.G * iterate.W)) + float(iterate.bias @ iterate.intercept)
    found = part * (iterate.loss + inner) + (1.0 - part) * problem.loss.floor * problem.statistics.weight
    return found if value - found <= LOOSE * likely else None


def _repairs(problem: Problem) -> bool:
    """Whether residuals have to be repaired."""
    return problem.fit_intercept or bool(problem.objective.columns.free.size)


def _repair(problem: Problem, score: Score) -> Repair:
    """What makes the residuals of a scoring pass a dual point; it may take passes where rows have no penalty."""
    if problem.objective.columns.free.size:
        return repaired(problem, score.iterate, score.projection)
    return problem.objective.repair(score.iterate)


def size_of_score(problem: Problem, score: Score) -> float:
    """``penalty.dual_size`` of the columns of a scoring pass that count for `expected_gap`."""
    norms, bound = score.norms, problem.objective.bound(score.candidates)
    if isinstance(problem.penalty, ChargesRows):
        free = ~among(score.candidates, score.iterate.active)
        norms, bound = norms[free], bound[free]
    return bound.dual_size(norms)


def dual_point(problem: Problem, iterate: Iterate, size: float, lam: float, most: float = 1.0) -> tuple[float, float]:
    """(t, charge): D(t U) - charge bounds the optimum from below, U the residuals of a model.

    A norm tells both from the `size` of the residuals. Otherwise the rows that are held are charged with the conjugate
    of the penalty (docs/math.md 6.1), the others stay within their strengths, and t is where the two balance best.

    `size`, `lam`: as for `expected_gap`. `most`: the largest t.
    """
    penalty = problem.penalty
    if not isinstance(penalty, ChargesRows):
        return penalty.dual_point(size, lam)
    bound = problem.objective.bound(iterate.active, lam)
    held = bound.dual_size(bound.dual_norm(iterate.G))
    most = min(most, lam / size if size > lam else 1.0)
    inner = float(np.sum(iterate.G * iterate.W)) + float(iterate.bias @ iterate.intercept)
    fall = iterate.loss - problem.loss.floor * problem.statistics.weight

    def charge(t: float) -> float:
        return float(np.sum(bound.conjugate(t * iterate.G)))

    def left(t: float) -> float:
        return _lost(problem, t) * fall - t * inner + charge(t)

    # where nothing is charged, as for the norm alone
    best = min(most, lam / held if held > lam else 1.0)
    value = _lost(problem, best) * fall - best * inner
    found = most, left(most)
    for halving in range(_FINEST, 0, -1):
        # convex in t: once it rises it goes on rising
        t = most * (1.0 - 0.5**halving)
        now = left(t)
        if not now <= found[1]:
            break
        found = t, now
    if found[1] < value:
        return found[0], charge(found[0])
    return best, 0.0


def _charged_bound(problem: Problem, score: Score, repair: Repair, null_norms: Array, lam: float) -> float:
    """`dual_bound` of a penalty whose held rows are charged.

    Their sums are known but for an error e_j of the dual norm, by rounding and by the repair. With
    t = max_j ||e_j||_* / lam_j convexity bounds the conjugate of G_j + e_j by (1 - t) that of G_j / (1 - t).
    """
    stats, iterate, chosen = problem.statistics, score.iterate, score.candidates
    bound, held = problem.objective.bound(chosen), among(chosen, iterate.active)
    error = summation.of_norms(problem, iterate, chosen)
    if _repairs(problem):
        drift, spill = problem.penalty.dual_norm(np.vstack([repair.drift, repair.spill]))
        error = error + repair.null_share * null_norms[chosen] + drift * stats.absolute[chosen]
        if spill > 0.0:
            error = error + spill * stats.peak[chosen]
    norms = score.norms + error
    size = bound[~held].dual_size(norms[~held])
    missed = bound[held].dual_size(error[held]) / lam
    scale, _ = dual_point(problem, iterate, size, lam, min(1.0, _SURE / missed) if missed > 0.0 else 1.0)
    share = 1.0 - scale * missed
    active = problem.objective.bound(iterate.active, lam)
    charge = share * float(np.sum(active.conjugate(scale / share * iterate.G)))
    if not math.isfinite(charge) or scale * bound.dual_size(norms) <= lam:
        # all rows are within their strengths, or shall be
        scale, charge = min(scale, lam / max(bound.dual_size(norms), lam)), 0.0
    value = dual_value(problem, iterate, repair, scale)
    return value - charge - summation.of_objective(problem, iterate, lam)


def _repaired_size(problem: Problem, iterate: Iterate, candidates: NDArray[np.int64], repair: Repair) -> float:
    """``penalty.dual_size`` of the candidate columns at the repaired residuals of a model, by a pass of its own."""
    leaf: Any = repaired_shard
    given: tuple[Any, ...] = (repair.keep, repair.mix, repair.shift, repair.prior)
    if isinstance(repair, ProjectedRepair):
        assert repair.step is not None
        leaf, given = projected_shard, (repair.step, repair.keep)
    norms = problem.runner.run(
        leaf,
        candidates,
        problem.point(iterate.active, iterate.W, iterate.intercept),
        given,
        name="repaired",
        shards=column_shards(candidates.shape[0], 8 * problem.k),
        finish=norms_of_shard,
        finish_args=lambda shard: (problem.objective.bound(candidates[shard[0] : shard[1]]),),
    )
    # not the sizes of shards: one of them may cut a group of columns
    return problem.objective.bound(candidates).dual_size(np.concatenate(norms))


def relative_gap(problem: Problem, value: float, lower: float) -> float:
    """(P - D) / P of an objective and a lower bound on the optimum; nan where the two are no certificate.

    They are none where one of them is no number, or the bound lies above an objective that it bounds: what rounding may
    do is taken from the bound beforehand.
    """
    if not (math.isfinite(value) and lower <= value):
        return math.nan
    return (value - lower) / max(abs(value), problem.objective.resolution)


def _with_errors(penalty: Penalty, size: float, errors: float) -> float:
    """``penalty.dual_size`` of sums that are off by others, from both sizes: norms, or squares if no row vanishes."""
    return size + errors if penalty.threshold else (math.sqrt(size) + math.sqrt(errors)) ** 2


def _decides(problem: Problem, iterate: Iterate, plain: float, size: float, lam: float, tol: float) -> bool:
    """Whether a pass for the size of the repaired residuals is likely to end the fit.

    It is where the bound on that size leaves a gap above `tol`, and the size without the repair does not. Columns far
    from zero, or with a large mean, have a bound that is far above what the repair does to them.
    """
    goal = tol * max(abs(problem.objective(iterate, lam)), problem.objective.resolution)
    return size > plain and expected_gap(problem, iterate, plain, lam) <= goal < expected_gap(
        problem, iterate, size, lam
    )
