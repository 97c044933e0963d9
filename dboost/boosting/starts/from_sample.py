"""Where a fit begins: at a model of a random sample of the examples, which costs a share of what all of them cost.

One output, and many examples for each column: the model of a sample is off by as much as the sample errs, which a step
or two over all examples put right. So the sample's problem is solved, on the driver. Where columns are as many as
examples that is no better than the way is long.

Several outputs: only the way to the final strength, of one step for each strength (``totally_corrective.loop``), is
gone on a sample. It need not be exact, and every strength on it would cost a scoring pass over all examples.
"""

from __future__ import annotations

import itertools
import uuid
from collections import deque
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.totally_corrective.loop import Loop
from dboost.boosting.totally_corrective.strengths import ONE_OUTPUT, Strengths
from dboost.compiled.sparse.columns import append_columns
from dboost.compiled.vectors.new_arrays import new_arrays
from dboost.partition import Partition
from dboost.problem.driver_columns import DriverColumns
from dboost.problem.iterate import Iterate
from dboost.problem.memory import Memory
from dboost.problem.problem import Problem
from dboost.problem.sample import MOST_NUMBERS, examples_for
from dboost.problem.state import FitSettings, FitState
from dboost.problem.statistics import COUNTED
from dboost.solvers.newton.accuracy import Aim
from dboost.solvers.one_output.steps import OneOutputSteps, takes

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
# Rows of W, their weights, the intercept, and the strength they are for.
Begun = tuple[Rows, Array, Array, float]

# The sample is this share of all examples at most.
_SHARE = 0.25
# One output: examples of the sample for each column, and in any case.
_PER_COLUMN = 30
_LEAST = 4_000
# Columns that steps over all of them at once are cheap for.
_MOST_COLUMNS = 2_000
# Examples of the rarer label that the sample is likely to have.
_OF_A_LABEL = 100
# Steps at the final strength, which end when one promises less than this share of the objective.
_STEPS = 6
_PROMISED = 0.003
# Several outputs: the least examples, in all and for each output; those of a class (all of a rarer one); and the most
# bytes of data.
_FEWEST = 2_000
_PER_OUTPUT = 100
_OF_A_CLASS = 30
_MOST_BYTES = 64_000_000
# Several outputs: values of a partition of the sample for each column.
_PER_STACKED_COLUMN = 8
# The way on the sample ends where it has less than so often the examples that steps on its rows ask for: beyond, it
# takes in rows for what is chance.
_SURE = 2.0
# The way is long enough from this share of the largest strength on.
_FAR = 0.25


def sampled_start(
    problem: Problem, settings: FitSettings, lam: float, lam_max: float, n_rows: int, stored: int
) -> Begun | None:
    """A model to begin with; None where a fit begins with nothing.

    Parameters
    ----------
    problem : Problem
    settings : FitSettings
        Who asks for the share of the examples that steps see, or for the number of rows, is not given a start.
    lam, lam_max : float
        Strength of the penalty, and the one at which all rows are zero; sum form.
    n_rows : int
        Number of examples.
    stored : int
        Bytes of the data.
    """
    newton = settings.update == "newton" and settings.curvature == "newton" and settings.system is None
    free = settings.sample == "auto" and settings.rows_per_round is None and settings.max_active_rows is None
    sparse = problem.penalty.threshold and problem.penalty.separable
    if not (newton and free and sparse and problem.screens and 0.0 < lam < lam_max):
        return None
    if problem.k == 1:
        one = share_of_one(problem, n_rows) if takes(problem, n_rows, settings.sample) else None
        return None if one is None else solved(problem, lam, lam_max, one, settings.random_state)
    several = share_of_several(problem, n_rows, stored) if lam < _FAR * lam_max else None
    return None if several is None else walked(problem, settings, lam, lam_max, several)


def share_of_one(problem: Problem, n_rows: int) -> float | None:
    """Share of the examples for `solved`; None where a fit does better without."""
    share = max(_PER_COLUMN * problem.n, _LEAST) / max(n_rows, 1)
    if share > _SHARE or problem.n > _MOST_COLUMNS:
        return None
    return share if _rarest_label(problem) * share >= _OF_A_LABEL else None


def _rarest_label(problem: Problem) -> float:
    """Weight of the rarer label of an output, the least of all outputs; infinite where labels are not counted."""
    stats = problem.statistics
    if problem.loss.name not in COUNTED:
        return np.inf
    return float(np.minimum(stats.mass, stats.total - stats.mass).min())


def solved(problem: Problem, lam: float, lam_max: float, share: float, seed: int) -> Begun:
    """The model of one output that minimises the objective over a sample, about; one pass.

    `lam` and `lam_max` as in `sampled_start`; `share` of the examples, which the seed chooses. W is (rows, 1).
    """
    columns = DriverColumns(problem.engine, share, seed)
    everything = np.arange(problem.n)
    columns.places(everything, problem.columns_of)
    columns.weight = columns.weight * (problem.statistics.weight / float(columns.weight.sum()))
    steps = OneOutputSteps(problem, everything, columns, seed, Memory())
    none = np.zeros((problem.n, 1))
    at = Iterate(everything, none, problem.null().intercept, np.nan, none, np.zeros(1))
    strengths = Strengths(lam, ONE_OUTPUT)
    strength = strengths.after(lam_max)
    while strength > lam:
        at, _ = steps.step(at, strength, Aim(final=False))
        strength = strengths.after(strength)
    for _ in range(_STEPS):
        at, step = steps.step(at, lam, Aim(final=False))
        if step.length == 0.0 or step.promised <= _PROMISED * problem.objective(at, lam):
            break
    support = np.flatnonzero(at.W[:, 0])
    return support, at.W[support], at.intercept, lam


def share_of_several(problem: Problem, n_rows: int, stored: int) -> Array | None:
    """Share of the examples for `walked`, of each class where labels are classes; None where that is not worth it.

    Of a rare class more are drawn, so that its intercept and its rows are not those of a class that is not there.
    """
    share = min(_SHARE, _MOST_BYTES / max(stored, 1), MOST_NUMBERS / (n_rows * problem.k))
    if share * n_rows < max(_FEWEST, _PER_OUTPUT * problem.k):
        return None
    if not problem.loss.separable and problem.loss.name in COUNTED:
        return np.clip(_OF_A_CLASS / np.maximum(problem.statistics.mass, 1.0), share, 1.0)
    return np.array([share]) if _rarest_label(problem) * share >= _OF_A_CLASS else None


def stacked(parts: list[Partition]) -> list[Partition]:
    """The same examples in so few partitions that each has a few values for every column.

    Each has sums of all columns of its own, which would otherwise be more than what is summed. `parts` are let go of.
    """
    values = np.cumsum([0, *(part.rows.shape[0] for part in parts)])
    most = int(values[-1]) // (_PER_STACKED_COLUMN * max(parts[0].n_features, 1))
    # a power of two: as many for one thread as for another
    count = 1 << max(most.bit_length() - 1, 0)
    if count >= len(parts):
        return parts
    goals = [int(values[-1]) * i // count for i in range(1, count)]
    bounds = np.unique([0, *np.searchsorted(values, goals), len(parts)])
    left = deque(parts)
    parts.clear()
    return [_stack([left.popleft() for _ in range(b - a)]) for a, b in itertools.pairwise(bounds)]


def _stack(parts: list[Partition]) -> Partition:
    indptr = np.sum([part.indptr for part in parts], axis=0)
    cursor = indptr[:-1].copy()
    count = int(indptr[-1])
    rows, values = new_arrays((count, np.int32), (count, parts[0].values.dtype), passing=True)
    first_row = np.int32(0)
    for part in parts:
        append_columns(part.indptr, part.rows, part.values, first_row, cursor, rows, values)
        first_row += np.int32(part.n_rows)
    y, weight = np.concatenate([part.y for part in parts]), np.concatenate([part.weight for part in parts])
    return Partition(indptr, rows, values, y, weight, parts[0].key)


def walked(problem: Problem, settings: FitSettings, lam: float, lam_max: float, share: Array) -> Begun:
    """The model of a sample after the rounds on the way to the final strength; one pass.

    `share` is that of `share_of_several`, (k,) or (1,); the others as in `sampled_start`. W is (rows, k).
    """
    # the rounds begin elsewhere
    problem.null_sums.clear()
    parts = stacked(problem.sampled_partitions(share, settings.random_state))
    run = uuid.uuid4().hex[:12]
    with problem.engine.here() as engine:
        rows = [part.n_rows for part in parts]
        engine.set_plan(parts, rows, run)
        shape = (problem.n, problem.k)
        few = Problem(
            engine, problem.loss, problem.penalty, *shape, problem.fit_intercept, run, standardize=problem.standardize
        )
        null = few.score(few.null(), None, 1.0, 0)
        # the limits are for passes over all examples
        loop = Loop(few, replace(settings, max_passes=None, max_seconds=None), lam, null, sum(rows))
        at = null.iterate
        state = FitState(at.active, at.W, at.intercept, lam_max)
        while loop.strengths.passing(state.lam) and _SURE * examples_for(few, state.active, sum(rows)) <= sum(rows):
            state, _ = loop.advance(state)
    return state.active, state.W, state.intercept, state.lam
