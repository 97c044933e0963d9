"""A hypothesis from a learner: the residuals of a sample of the examples, and what is learned from them.

Covers: the pass that brings raw rows and residuals to the driver, and the score of the new hypothesis alone.
Does not cover: the learner (``hypotheses.learned``), or what becomes of the hypothesis (``leveraging``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dboost.compiled.examples import loss_of_rows
from dboost.errors import UsageError
from dboost.losses import get_loss
from dboost.partition import Partition, Sums
from dboost.passes import Point
from dboost.passes.draws import sampled
from dboost.problem.iterate import Iterate, Score
from dboost.problem.problem import Problem
from dboost.solvers.one_output.exact_line import margins


def residual_rows(partition: Partition, memo: Any, point: Point, share: float, seed: int) -> Sums:
    """Raw rows (CSR), residuals times weights, and weights of a random share of the examples, in partition order.

    The rows depend on the seed and the partition alone, not on the engine.
    """
    from scipy.sparse import csc_array

    f = margins(partition, memo, point.held, point.W, point.intercept)
    d, h = np.empty_like(f), np.empty_like(f)
    loss_of_rows.single_state(get_loss(point.loss).target(partition.y), f, partition.weight, d, h)
    shape = (partition.n_rows, partition.n_features)
    X = csc_array((partition.values, partition.rows, partition.indptr), shape=shape).tocsr()
    chosen = sampled(partition, share, seed)
    part = (X[chosen], d[chosen], partition.weight[chosen])
    return Sums(parts={"rows": [part]})


def unscored(problem: Problem, at: Iterate) -> Score:
    """The model with its sums, and no candidate."""
    at = problem.evaluate(at.active, at.W, at.intercept)
    none = np.zeros(0, np.int64)
    return Score(at, at.active, np.abs(at.G[:, 0]), none, np.zeros((0, 1)))


def learned(problem: Problem, at: Iterate) -> Score:
    """The model with its sums, and one candidate: what the learner makes of the residuals."""
    from scipy.sparse import vstack

    pool, number = problem.pool, len(problem.pool.fitted)
    found = problem.own_pass(residual_rows, at, pool.share, pool.seed + number, name="residuals").parts["rows"]
    X = vstack([part[0] for part in found], format="csr")
    if not X.shape[0]:
        raise UsageError("no example was drawn for the learner", hint="raise max_samples of Learned")
    d, weight = (np.concatenate([part[place] for part in found]) for place in (1, 2))
    row = problem.register([(number,)], pool.learn(X, d, weight))
    active = np.concatenate([at.active, row])
    W = np.concatenate([at.W, np.zeros((1, 1))])
    both = problem.evaluate(active, W, at.intercept)
    held = replace(both, active=at.active, W=at.W, G=both.G[:-1])
    if not problem.statistics.square[row[0]] > 0.0:
        # a hypothesis that is zero everywhere has no direction
        row = row[:0]
    return Score(held, at.active, np.abs(held.G[:, 0]), row, both.G[-1:][: row.shape[0]])
