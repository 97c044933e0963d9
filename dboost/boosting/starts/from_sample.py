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
from dboost.passes import examples
from dboost.problem.accelerators import Accelerators
from dboost.problem.driver_columns import DriverColumns
from dboost.problem.iterate import Iterate
from dboost.problem.memory import Memory
from dboost.problem.problem import Problem
from dboost.problem.sample import MOST_NUMBERS, examples_for
from dboost.problem.state import FitSettings, FitState
from dboost.problem.stored import StoredProblem
from dboost.problem.tuning import SampledStart
from dboost.solvers.newton.accuracy import Aim
from dboost.solvers.one_output.steps import OneOutputSteps

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
# Rows of W, their weights, the intercept, and the strength they are for.
Begun = tuple[Rows, Array, Array, float]

DEFAULT = SampledStart()
"""The sizes that were measured."""


def sampled_start(
    problem: Problem,
    settings: FitSettings,
    lam: float,
    lam_max: float,
    n_rows: int,
    stored: int,
    accelerators: Accelerators,
) -> Begun | None:
    """A model to begin with; None where a fit begins with nothing.

    Parameters
    ----------
    problem : Problem
    settings : FitSettings
    lam, lam_max : float
        Strength of the penalty, and the one at which all rows are zero; sum form.
    n_rows : int
        Number of examples.
    stored : int
        Bytes of the data.
    accelerators : Accelerators
        Those that the fit may take, and from which sizes on they pay.
    """
    if not 0.0 < lam < lam_max:
        return None
    sizes = accelerators.tuning.start
    if problem.k == 1:
        one = share_of_one(problem, n_rows, sizes) if accelerators.on("one_output") else None
        return None if one is None else solved(problem, lam, lam_max, one, settings.random_state, accelerators)
    walks = lam < sizes.far * lam_max and accelerators.on("continuation")
    several = share_of_several(problem, n_rows, stored, sizes) if walks else None
    return None if several is None else walked(problem, settings, lam, lam_max, several)


def share_of_one(problem: Problem, n_rows: int, sizes: SampledStart = DEFAULT) -> float | None:
    """Share of the examples for `solved`; None where a fit does better without."""
    share = max(sizes.per_column * problem.n, sizes.least) / max(n_rows, 1)
    if share > sizes.share or problem.n > sizes.most_columns:
        return None
    return share if _rarest_label(problem) * share >= sizes.of_a_label else None


def _rarest_label(problem: Problem) -> float:
    """Weight of the rarer label of an output, the least of all outputs; infinite where labels are not counted."""
    stats = problem.statistics
    if not problem.loss.counted:
        return np.inf
    return float(np.minimum(stats.mass, stats.total - stats.mass).min())


def solved(
    problem: Problem, lam: float, lam_max: float, share: float, seed: int, accelerators: Accelerators
) -> Begun:
    """The model of one output that minimises the objective over a sample, about; one pass.

    `lam`, `lam_max` and `accelerators` as in `sampled_start`; `share` of the examples, which the seed chooses. W is
    (rows, 1).
    """
    sizes = accelerators.tuning.start
    columns = DriverColumns(problem.engine, share, seed)
    # a column that never enters has an infinite strength, of which no weight has a price
    everything = np.flatnonzero(np.isfinite(problem.lam_weight))
    columns.places(everything, problem.columns_of)
    columns.weight = columns.weight * (problem.statistics.weight / float(columns.weight.sum()))
    steps = OneOutputSteps(problem, everything, columns, seed, Memory(), accelerators)
    none = np.zeros((everything.shape[0], 1))
    at = Iterate(everything, none, problem.null().intercept, np.nan, none, np.zeros(1))
    strengths = Strengths(lam, ONE_OUTPUT)
    strength = strengths.after(lam_max)
    while strength > lam:
        at, _ = steps.step(at, strength, Aim(final=False))
        strength = strengths.after(strength)
    for _ in range(sizes.steps):
        at, step = steps.step(at, lam, Aim(final=False))
        if step.length == 0.0 or step.promised <= sizes.promised * problem.objective(at, lam):
            break
    support = np.flatnonzero(at.W[:, 0])
    return everything[support], at.W[support], at.intercept, lam


def share_of_several(
    problem: Problem, n_rows: int, stored: int, sizes: SampledStart = DEFAULT
) -> Array | None:
    """Share of the examples for `walked`, of each class where labels are classes; None where that is not worth it.

    Of a rare class more are drawn, so that its intercept and its rows are not those of a class that is not there.
    """
    share = min(sizes.share, sizes.most_bytes / max(stored, 1), MOST_NUMBERS / (n_rows * problem.k))
    if share * n_rows < max(sizes.fewest, sizes.per_output * problem.k):
        return None
    if not problem.loss.separable and problem.loss.counted:
        return np.clip(sizes.of_a_class / np.maximum(problem.statistics.mass, 1.0), share, 1.0)
    return np.array([share]) if _rarest_label(problem) * share >= sizes.of_a_class else None


def stacked(parts: list[Partition], per_column: int) -> list[Partition]:
    """The same examples in so few partitions that each has a few values for every column, `per_column`.

    Each has sums of all columns of its own, which would otherwise be more than what is summed. `parts` are let go of.
    """
    values = np.cumsum([0, *(part.rows.shape[0] for part in parts)])
    most = int(values[-1]) // (per_column * max(parts[0].n_features, 1))
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


def sampled_partitions(problem: Problem, share: Array, seed: int) -> list[Partition]:
    """Random examples of every partition, a share of each class or of all, weighted to stand for the others."""
    found: list[Partition] = problem.runner.run(examples.sampled_partition, share, seed, name="begin").parts["found"]
    return [part for part in found if part.n_rows]


def walked(problem: Problem, settings: FitSettings, lam: float, lam_max: float, share: Array) -> Begun:
    """The model of a sample after the rounds on the way to the final strength; one pass.

    `share` is that of `share_of_several`, (k,) or (1,); the others as in `sampled_start`. W is (rows, k).
    """
    # the rounds begin elsewhere
    problem.forget_null()
    sizes = settings.tuning.start
    parts = stacked(sampled_partitions(problem, share, settings.random_state), sizes.per_stacked_column)
    run = uuid.uuid4().hex[:12]
    with problem.engine.in_this_process() as engine:
        rows = [part.n_rows for part in parts]
        engine.set_plan(parts, rows, run)
        shape = (problem.n, problem.k)
        arguments = (problem.loss, problem.penalty, *shape, problem.fit_intercept, run)
        asked = problem.objective
        few = StoredProblem(engine, *arguments, standardize=asked.standardize, factors=asked.factors, fixed=asked.fixed)
        null = few.score(few.null(), None, 1.0, 0)
        # the limits are for passes over all examples
        loop = Loop(few, replace(settings, max_passes=None, max_seconds=None), lam, null, sum(rows))
        at = null.iterate
        state = FitState(at.active, at.W, at.intercept, lam_max)
        while loop.strengths.passing(state.lam):
            needed = examples_for(few, state.active, sum(rows), settings.tuning.samples)
            if sizes.sure * needed > sum(rows):
                break
            state, _ = loop.advance(state)
    return state.active, state.W, state.intercept, state.lam
