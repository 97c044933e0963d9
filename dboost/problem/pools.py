"""What the scoring pass over a pool of hypotheses has to say: the size of the pool, the best, and what lies between.

Covers: judging the sums of a shard (``summarise_pool``), the bounds on hypotheses that a shard leaves out, and which of
these are looked into (``settle_gaps``). Does not cover: the passes (``induced``), or how a pool bounds what it leaves
out (``hypotheses.capabilities.Binned``).

After ``settle_gaps`` no hypothesis that was left out has a larger score than the best one found; where the size of the
whole pool is asked for, none is larger than the size either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.bounds import exponential, quadratic
from dboost.columns.statistics import FAR_HYPOTHESIS, deviation, suspects
from dboost.hypotheses.base import Key
from dboost.hypotheses.capabilities import Binned, Gaps
from dboost.partition import Sums
from dboost.penalties import NoPenalty, Penalty
from dboost.penalties.capabilities import exponential_solves

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# What the rows of the groups of one pass may take on a worker; the first passes take few groups, because what they find
# closes others.
_BYTES = 64_000_000
_FIRST_SHARE = 1 / 64

# A variance below this share of the mean square is off by more than 1e-8 of itself, by the rounding of its sums.
_UNSURE = 1e-6
# The least share of its mean square that a variance counts for in a score: below it is rounding.
_LEAST_VARIANCE = 1e-12


@dataclass(frozen=True)
class Gap:
    """A group of hypotheses that were not summed."""

    size: float  # At least the dual norm and the score of each.
    score: float
    rows: int  # About how many examples must be looked at.
    node: Any  # What the pool needs to look into it.


@dataclass(frozen=True)
class PoolSummary:
    """What one shard of a pool has to say; small."""

    best: list[Key]  # The best candidates that violate optimality, best first.
    scores: Array  # Their scores.
    size: float  # ``penalty.dual_size`` of the shard.
    # Groups of hypotheses between those of the shard that may hold better ones.
    gaps: list[Gap] = field(default_factory=list)
    # Candidates whose deviation is lost to rounding and asked for; they are in none of the above.
    unsure: list[Key] = field(default_factory=list)


@dataclass(frozen=True)
class Rule:
    """How the candidates of a pool are judged."""

    held: frozenset[Key]  # Hypotheses of the model; they are no candidates.
    strength: float
    constant: float  # C of the exponential bound, or kappa of the quadratic one.
    penalty: Penalty
    exponential: bool  # Which of the two bounds scores.
    weight: float  # Sum of the example weights.
    standardize: bool  # Whether hypotheses are penalised by their deviation.
    take: int  # How many of the best are wanted.
    whole: bool  # Whether the size must be that of hypotheses that are not summed too.
    # Whether a model may hold a hypothesis far from zero less its mean: its curvature is then that about its mean.
    centred: bool = False
    # Deviations of hypotheses far from zero, as far as they are known.
    deviations: Mapping[Key, float] = field(default_factory=dict)


def summarise_pool(total: Sums, shard: Any, pool: Any, rule: Rule) -> PoolSummary:
    """Reduce the sums of one shard to its size, its best candidates and what may lie between."""
    runs = pool.runs(shard, len(total.add["G"]))
    found = _summary(total, lambda order: pool.keys(shard, order), rule, runs)
    if not pool.searched or not isinstance(pool, Binned):
        return found
    best = found.scores.max(initial=0.0)
    return replace(found, gaps=open_gaps(pool, shard, total, rule, best, found.size))


def summarise_between(total: Sums, nodes: Any, pool: Any, rule: Rule, k: int) -> PoolSummary:
    """The same for the hypotheses in some groups."""
    keys, sums, runs = pool.settle(nodes, total, k)
    return _summary(sums, lambda order: [keys[i] for i in order.tolist()], rule, runs)


def _summary(total: Sums, keys_at: Callable[[Rows], list[Key]], rule: Rule, runs: Rows | None) -> PoolSummary:
    square, peak, penalty = total.add["square"], total.peak["peak"], rule.penalty
    none = np.zeros(0)
    weights, unsure = _weights(total, keys_at, rule)
    lam = rule.strength * weights
    G = total.add["G"]
    norms = penalty.dual_norm(G)
    usable = (square > 0.0) & np.isfinite(lam)
    size = penalty.dual_size(norms[usable], weights[usable])
    if rule.take == 0:
        return PoolSummary([], none, size, unsure=unsure)
    scores = np.zeros(norms.shape[0])
    if rule.exponential:
        sums = total.add["mu_plus"][usable], total.add["mu_minus"][usable]
        a = exponential.normalisation(peak[usable], rule.constant)
        scores[usable] = exponential_solves(penalty).score_exponential(*sums, a, lam[usable])
    else:
        D = quadratic.one_row(_curvatures(total, rule)[usable], rule.constant)
        scores[usable] = penalty.score_quadratic(G[usable], D, lam[usable])
    order = leading(scores, rule.take + len(rule.held), runs)
    keys = keys_at(order)
    # the model's own rows may be among the best, and the best of their runs
    while (own := [place for place, key in enumerate(keys) if key in rule.held]) and runs is not None:
        scores[order[own]] = 0.0
        order = leading(scores, rule.take, runs)
        keys = keys_at(order)
    places = [place for place, key in enumerate(keys) if key not in rule.held][: rule.take]
    return PoolSummary([keys[place] for place in places], scores[order[places]], size, unsure=unsure)


def leading(scores: Array, count: int, runs: Rows | None = None) -> Rows:
    """Places of the largest scores above zero, at most `count`, largest first, of equal ones the first ones first.

    `runs`: where each run of places begins of which only the largest counts.
    """
    if runs is not None and 0 < len(runs) < len(scores):
        run = np.repeat(np.arange(len(runs)), np.diff(runs, append=len(scores)))
        top = np.flatnonzero(scores == np.maximum.reduceat(scores, runs)[run])
        top = top[np.unique(run[top], return_index=True)[1]]
        return top[leading(scores[top], count)]
    some = np.flatnonzero(scores > 0.0)
    if len(some) > count > 0:
        least = np.partition(scores[some], len(some) - count)[len(some) - count]
        some = some[scores[some] >= least]
    return some[np.lexsort((some, -scores[some]))][:count]


def _weights(total: Sums, keys_at: Callable[[Rows], list[Key]], rule: Rule) -> tuple[Array, list[Key]]:
    """Factors of lam of the hypotheses of a shard, infinite where they are none, and those whose own is not known."""
    square = total.add["square"]
    if not rule.standardize:
        return np.broadcast_to(1.0, square.shape), []
    found = deviation(total.add["total"], square, rule.weight)
    # where all of the weight is at the largest value, like that of a stump that is always one, no sum need be formed
    constant = np.abs(total.add["total"]) == total.peak["peak"] * rule.weight
    low = np.flatnonzero((found * found * rule.weight <= _UNSURE * square) & (square > 0.0) & ~constant)
    keys = keys_at(low)
    for place, key in zip(low.tolist(), keys, strict=True):
        found[place] = rule.deviations.get(key, 0.0)
    unsure = [key for key in keys if key not in rule.deviations]
    return np.where(found > 0.0, found**rule.penalty.degree, np.inf), unsure


def _curvatures(total: Sums, rule: Rule) -> Array:
    """sum s h**2 of the hypotheses of a shard, about their means where they may be held so."""
    square: Array = total.add["square"]
    if not rule.centred:
        return square
    far = suspects(total.add["total"], square, rule.weight, FAR_HYPOTHESIS)
    if far.size:
        square = square.copy()
        about = square[far] - total.add["total"][far] ** 2 / rule.weight
        square[far] = np.maximum(about, _LEAST_VARIANCE * square[far])
    return square


def open_gaps(pool: Binned, shard: Any, total: Sums, rule: Rule, best: float, size: float) -> list[Gap]:
    """The groups of a shard that its own hypotheses do not rule out."""
    gaps = pool.gaps(shard, total)
    sizes, scores = rule.penalty.dual_norm(gaps.reach), score_bounds(gaps, rule)
    wanted = np.flatnonzero(_worth(sizes, scores, rule, best, size))
    if not len(wanted):
        return []
    nodes = pool.nodes(shard, total, gaps.places[wanted])
    columns = sizes[wanted].tolist(), scores[wanted].tolist(), gaps.rows[wanted].tolist()
    return [Gap(*row) for row in zip(*columns, nodes, strict=True)]


def score_bounds(gaps: Gaps, rule: Rule) -> Array:
    """At least the score of every hypothesis in some groups."""
    penalty, count = rule.penalty, len(gaps.places)
    if rule.take == 0 or count == 0:
        return np.zeros(count)
    if not rule.exponential:
        # a score is a distance of G from a ball, squared, over the curvature: it grows with every |G_jr|
        return penalty.score_quadratic(gaps.reach, quadratic.one_row(gaps.square, rule.constant), rule.strength)
    a = exponential.normalisation(np.ones(count), rule.constant)
    if penalty.monotone:
        return exponential_solves(penalty).score_exponential(gaps.larger, gaps.smaller, a, rule.strength)
    return NoPenalty().score_exponential(gaps.larger, gaps.smaller, a, 0.0)


def _worth(sizes: Any, scores: Any, rule: Rule, best: float, size: float) -> Any:
    """Whether groups may hold a hypothesis better than the best, or larger than all seen."""
    floor = max(size, rule.strength if rule.take else 0.0)
    return (scores > best) | (sizes > floor) if rule.whole else scores > best


def settle_gaps(
    parts: list[PoolSummary], rule: Rule, k: int, look_into: Callable[[Sequence[Any]], PoolSummary]
) -> tuple[list[PoolSummary], int]:
    """Look into groups until none that is left may hold a better hypothesis.

    `parts`: of all shards. `k`: number of outputs. `look_into`: the pass over some groups.
    """
    left = [gap for part in parts for gap in part.gaps]
    opened, found = 0, list(parts)
    room = _BYTES // (16 + 8 * k * (4 if rule.exponential else 2))
    budget = int(room * _FIRST_SHARE)
    while left:
        best = max((part.scores.max(initial=0.0) for part in found), default=0.0)
        size = max(part.size for part in found)
        left = [gap for gap in left if _worth(gap.size, gap.score, rule, best, size)]
        if not left:
            break
        left.sort(key=lambda gap: (-gap.score, -gap.size))
        count, rows = 0, 0
        while count < len(left) and (count == 0 or rows + left[count].rows <= budget):
            rows += left[count].rows
            count += 1
        found.append(look_into([gap.node for gap in left[:count]]))
        opened, left, budget = opened + count, left[count:], room
    return found, opened
