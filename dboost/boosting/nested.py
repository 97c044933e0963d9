"""Where a fit of one output begins that has many examples for each column: at the solution of a sample.

A model of few columns is known from a few examples of each: solved for a sample of them, it is off by as much as the
sample errs, which a step or two over all examples put right. The way there through the strengths costs a share of what
it would cost over all of them, and no pass: the sample's columns lie on the driver. Where columns are as many as
examples the sample's solution is no better than the way is long, and a fit begins without.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.aim import Aim
from dboost.boosting.driver_columns import DriverColumns
from dboost.boosting.iterate import Iterate
from dboost.boosting.newton import Memory
from dboost.boosting.one_output import CONTINUATION, OneOutputSteps
from dboost.boosting.problem import Problem
from dboost.boosting.statistics import COUNTED

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# Examples of the sample for each column, and in any case.
_PER_COLUMN = 30
_LEAST = 4_000
# The sample is this share of all examples at most.
_SHARE = 0.25
# Columns that steps over all of them at once are cheap for.
_MOST_COLUMNS = 2_000
# Examples of the rarer label that the sample is likely to have.
_OF_A_LABEL = 100
# Steps at the final strength, which end when one promises less than this share of the objective.
_STEPS = 6
_PROMISED = 0.003


def sample_share(problem: Problem, n_rows: int) -> float | None:
    """Share of the examples to begin with; None where a fit does better without."""
    share = max(_PER_COLUMN * problem.n, _LEAST) / max(n_rows, 1)
    stats = problem.statistics
    if share > _SHARE or problem.n > _MOST_COLUMNS or not problem.screens:
        return None
    if problem.loss.name in COUNTED:
        rarer = float(np.minimum(stats.mass, stats.total - stats.mass).min()) / max(stats.weight, 1e-300)
        if rarer * share * n_rows < _OF_A_LABEL:
            return None
    return share


def begun(problem: Problem, lam: float, lam_max: float, share: float, seed: int) -> tuple[Rows, Array, Array]:
    """Nonzero rows, their W and the intercept that minimise the objective over a sample, about; one pass.

    Parameters
    ----------
    problem : Problem
        Of one output.
    lam, lam_max : float
        Strength of the penalty, and the one at which all rows are zero; sum form.
    share : float
        Of the examples.
    seed : int
        Decides which, and the order of coordinates.
    """
    columns = DriverColumns(problem.engine, share, seed)
    everything = np.arange(problem.n)
    columns.places(everything, problem.columns_of)
    columns.weight = columns.weight * (problem.statistics.weight / float(columns.weight.sum()))
    steps = OneOutputSteps(problem, everything, columns, seed, Memory())
    none = np.zeros((problem.n, 1))
    at = Iterate(everything, none, problem.null().intercept, np.nan, none, np.zeros(1))
    strength = max(CONTINUATION * lam_max, lam)
    while strength > lam:
        at, _ = steps.step(at, strength, Aim(final=False))
        strength = max(CONTINUATION * strength, lam)
    for _ in range(_STEPS):
        at, step = steps.step(at, lam, Aim(final=False))
        if step.length == 0.0 or step.promised <= _PROMISED * problem.objective(at, lam):
            break
    support = np.flatnonzero(at.W[:, 0])
    return support, at.W[support], at.intercept
