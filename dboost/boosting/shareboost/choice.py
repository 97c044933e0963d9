"""Which feature, or group of features, enters next: ShareBoost's rules of choice.

Rule names, with the numbers of docs/math.md (7 (J)):

- ``"norm"`` (0): the largest sum over a group of ||G_j||_1, as printed; for features of one scale.
- ``"scaled"`` (0'): the largest sum of ||G_j||_1^2 / S_j, twice what the sup-norm bound promises the loss to fall by.
  S_j = sum_i s_i x_ij^2; with a free intercept the bound holds for the centred column too, which is the same model, and
  S_j = sum_i s_i (x_ij - mean)^2 is the better constant.
- ``"line"`` (1), ``"row"`` (2), ``"full"`` (3) take the best few of ``"scaled"``, or all candidates, and measure what
  each would gain (``trials``). ``"newton"`` asks the second-order model of the loss instead of the loss itself: it
  knows which columns of a group say the same, where a sum over them counts each. A candidate whose G_j is zero gains
  nothing under any rule and is not measured.

Covers: scores of all candidates and the ranked groups. Does not cover: the trials, or the weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.columns.statistics import deviation
from dboost.errors import UsageError
from dboost.hypotheses.base import Key
from dboost.hypotheses.capabilities import group_of, groups_of
from dboost.partition import Sums
from dboost.problem.iterate import Iterate
from dboost.problem.pools import leading
from dboost.problem.problem import Problem

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
    """How many groups a rule asks for, of which one enters: the shortlist, or all that there are where it is None.

    Raises
    ------
    UsageError
        Where all are asked for of a class of hypotheses that no pass sums whole.
    """
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


def ranked(problem: Problem, at: Iterate, rule: str, groups: Rows | None, take: int) -> list[Group]:
    """The best groups outside of the model, best first; one pass over all candidates.

    Parameters
    ----------
    rule : str
        "norm" or "scaled".
    groups : int64 array, shape (n,), or None
        Number of the group of each stored column; None for one group per column, or those of the pool.
    take : int
        How many.
    """
    if problem.pool is not None:
        return _of_pool(problem, at, rule, take)
    norms = np.concatenate(problem.summed(at, row_norms))
    length = row_lengths(problem, None)
    usable = np.isfinite(problem.objective.columns.weight) & (length > 0.0)
    each = np.where(usable, scores(norms, length, rule), 0.0)
    each[at.active] = 0.0
    if groups is None:
        order = np.lexsort((np.arange(each.shape[0]), -each))[:take]
        return [Group(np.array([j], dtype=np.int64), float(each[j])) for j in order.tolist() if each[j] > 0.0]
    # a group of which a column is in the model is in it whole
    sums = np.bincount(groups, weights=each)
    sums[groups[at.active]] = 0.0
    order = np.lexsort((np.arange(sums.shape[0]), -sums))[:take]
    members = (np.flatnonzero((groups == g) & usable) for g in order.tolist() if sums[g] > 0.0)
    best = [float(sums[g]) for g in order.tolist() if sums[g] > 0.0]
    return [Group(rows, score) for rows, score in zip(members, best, strict=True)]


def row_norms(total: Sums, shard: Any) -> Array:
    """||G_j||_1 of the columns of a shard."""
    norms: Array = np.abs(total.add["G"]).sum(axis=1)
    return norms


def _of_pool(problem: Problem, at: Iterate, rule: str, take: int) -> list[Group]:
    held = frozenset(problem.held(at.active).keys)
    parts = problem.summed(
        at, best_of_shard, problem.pool, held, rule, problem.statistics.weight, problem.fit_intercept, take
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
