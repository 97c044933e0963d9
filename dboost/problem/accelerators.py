"""All that makes a fit faster than the papers' own algorithm, by name; each can be switched off.

An accelerator changes how a fit gets to its optimum, never which optimum that is. ``FitSettings.accelerators`` names
those that a fit may take, all of them by default. Without any, a fit scores every column in float64, starts from zero
at the strength asked for, and solves the rows held by the updates of the papers or by plain proximal Newton steps: a
descent over all rows with the curvature of all examples, and a line search. It ends with the same certificate.

Covers: the list, where each applies, and what a fit took of it. Does not cover: what they do, which is in the modules
that ask for them by name.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dboost.errors import UsageError
from dboost.problem.tuning import Tuning

if TYPE_CHECKING:
    from dboost.losses import Loss
    from dboost.penalties import Penalty
    from dboost.problem.problem import Problem
    from dboost.problem.state import FitSettings


# Examples up to which the driver holds them all, for steps of one output.
MOST_EXAMPLES = 1_000_000
# Columns of a ridge up to which that is so, and what the curvature among all of them may cost: so many operations in
# any case, and so many for each value that is stored, as so many products with it do. The values fit on the driver.
MOST_COLUMNS = 1_000
_FORM_FREE, _FORM_SHARE = 2e7, 100.0
_MOST_VALUES = 2e7


@dataclass(frozen=True)
class Accelerator:
    """One way to be faster."""

    does: str  # What it does, in a line.
    # ``applies(problem, settings)``: whether a fit could ever take it. Whether it pays is decided where it is taken.
    applies: Callable[[Problem, FitSettings], bool]


def _always(problem: Problem, settings: FitSettings) -> bool:
    return True


def _null_sums(problem: Problem, settings: FitSettings) -> bool:
    """Whether the rows of W are stored columns, and the null model has none of them."""
    return problem.screens and not problem.objective.columns.free.size


def _two_sided(problem: Problem) -> bool:
    """Whether the penalty is alike on both sides of zero, as some solvers take it."""
    return problem.objective.columns.sign is None


def _newton(problem: Problem, settings: FitSettings) -> bool:
    """Whether the totally corrective loop moves blocks of rows by Newton steps."""
    return settings.update == "newton" and settings.system is None


def _descends(problem: Problem, settings: FitSettings) -> bool:
    """Whether those are steps on the support (``solvers.newton.step``), rather than on all rows of a smooth penalty
    (``smooth``)."""
    return _newton(problem, settings) and problem.objective.sparse


def _solves(problem: Problem, settings: FitSettings) -> bool:
    """Whether conjugate gradients solve for all rows at once, on a support or of a smooth penalty.

    A face of rows that are no sums of their entries holds no signs.
    """
    return _newton(problem, settings) and (_two_sided(problem) or problem.penalty.entries is not None)


def _settles(problem: Problem, settings: FitSettings) -> bool:
    return _solves(problem, settings) and problem.objective.sparse


def _strong(problem: Problem, settings: FitSettings) -> bool:
    return problem.screens and problem.objective.sparse and settings.system is None


def _near(problem: Problem, settings: FitSettings) -> bool:
    return _newton(problem, settings) and settings.features_per_round is None and problem.screens


def one_output(loss: Loss, penalty: Penalty, k: int, n: int, n_rows: int, settings: FitSettings) -> bool:
    """One output, a penalty of multiples of |w| and of w^2, and as many examples as the driver holds.

    `k`, `n`, `n_rows`: numbers of outputs, of columns and of examples.
    """
    ties = settings.column_groups is not None and settings.column_groups.ties
    if not (k == 1 and settings.update == "newton" and settings.system is None and not ties and not loss.exponential):
        return False
    whole = n_rows <= MOST_EXAMPLES if settings.sample == "auto" else settings.sample == 1.0
    if not whole or not penalty.separable or penalty.single is None:
        return False
    return penalty.threshold or (n <= MOST_COLUMNS and penalty.single[1] > 0.0)


def _one_output(problem: Problem, settings: FitSettings) -> bool:
    m, n = problem.n_rows, problem.n
    if not one_output(problem.loss, problem.penalty, problem.k, n, m, settings):
        return False
    if problem.objective.sparse:
        return True
    if not (problem.screens and _two_sided(problem)):
        return False
    stored = problem.statistics.values(np.arange(n), m)
    cost = 0.5 * stored**2 / m + n**3 / 6.0
    return stored <= _MOST_VALUES and cost <= _FORM_FREE + _FORM_SHARE * stored


def _quadratic_model(problem: Problem, settings: FitSettings) -> bool:
    return _one_output(problem, settings) and _two_sided(problem)


def _sampled(problem: Problem, settings: FitSettings) -> bool:
    return _descends(problem, settings) and settings.sample == "auto"


def _forms(problem: Problem, settings: FitSettings) -> bool:
    """Whether the penalty is a norm of rows, or of groups of them, whose weights may have any sign."""
    grouped = problem.objective.columns.group is not None
    return _newton(problem, settings) and (grouped or problem.objective.sparse) and _two_sided(problem)


ACCELERATORS: dict[str, Accelerator] = {
    # where a fit begins
    "path_start": Accelerator("begins each strength of a path at the optimum of the one before", _always),
    "path_predictor": Accelerator("begins it on the line through the last two optima instead", _always),
    # which columns are scored, and which enter
    "strong_rule": Accelerator("leaves out columns that the strength before makes unlikely", _strong),
    "null_sums": Accelerator("keeps the sums of the null model, which is scored twice", _null_sums),
    "near_rows": Accelerator("lets rows enter that are a little below the threshold", _near),
    # the certificate
    "chord": Accelerator("takes a bound of the dual value without a pass in rounds that cannot be the last", _newton),
    # the rows held
    "one_output": Accelerator("takes the steps of one output on the driver", _one_output),
    "quadratic_model": Accelerator("keeps the curvature among the rows of one output between steps", _quadratic_model),
    "sampled_curvature": Accelerator("takes the curvature of a step from a sample of the examples", _sampled),
    "conjugate_gradients": Accelerator("solves for all rows at once where the support has settled", _settles),
    "heavy_blocks": Accelerator("preconditions that with the curvature among the heaviest rows or entries", _solves),
    "group_curvature": Accelerator("forms the curvature among the groups held, or rows that creep", _forms),
}


EVERY = tuple(ACCELERATORS)
"""Their names."""


def allowed(settings: FitSettings) -> tuple[str, ...]:
    """The names of those that a fit may take, where they apply."""
    return EVERY if settings.accelerators is None else settings.accelerators


def check_accelerators(names: Sequence[str]) -> None:
    """Refuse names that are none (UsageError)."""
    for name in names:
        if name not in ACCELERATORS:
            nearest = difflib.get_close_matches(str(name), EVERY, n=1, cutoff=0.0)
            raise UsageError(
                f"unknown accelerator {name!r}",
                hint=f"did you mean {nearest[0]!r}? There are: {', '.join(EVERY)}",
            )


class Accelerators:
    """Those that a fit may take, and how often it took each.

    `names`: those that are on and apply. `tuning`: from which sizes on they pay. `taken`: how often each was taken in
    this process; of ``conjugate_gradients`` the products with the curvature.
    """

    def __init__(self, names: Sequence[str] = EVERY, tuning: Tuning | None = None) -> None:
        check_accelerators(names)
        self.names = frozenset(names)
        self.tuning = Tuning() if tuning is None else tuning
        self.taken: Counter[str] = Counter()

    @classmethod
    def of(cls, problem: Problem, settings: FitSettings) -> Accelerators:
        """Those of a fit."""
        names = [name for name in allowed(settings) if ACCELERATORS[name].applies(problem, settings)]
        return cls(names, settings.tuning)

    def on(self, name: str) -> bool:
        """Whether one may be taken."""
        return name in self.names

    def take(self, name: str) -> bool:
        """Whether one may be taken, for the moment where it is, which is counted."""
        if name not in self.names:
            return False
        self.taken[name] += 1
        return True
