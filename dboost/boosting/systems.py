"""What another system than the totally corrective loop is: frozen settings that make the rounds of a fit.

A system is one file beside this one: a frozen dataclass with the parameters of its paper, which satisfies ``System``,
and the class of its rounds, which satisfies ``Rounds``. Everything around it is shared: data, hypotheses, engines,
checkpoints, warm starts, records and models.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dboost.penalties import Penalty
    from dboost.problem.iterate import Score
    from dboost.problem.problem import Problem
    from dboost.problem.state import FitSettings, FitState

    Callback = Callable[[dict[str, Any], FitState], bool]


class Rounds(Protocol):
    """The rounds of one fit.

    Attributes
    ----------
    certified : bool
        Whether a state's `gap` and `lower_bound` are a certificate; otherwise both are reported as missing.
    norms : float64 array, shape (n,)
        Last known ||G_j||_* of every column.
    trace : list of (passes, seconds, objective)
        After every step, the objective in the mean form.
    """

    certified: bool
    norms: NDArray[np.float64]
    trace: list[tuple[float, float, float]]

    def run(self, state: FitState, callback: Callback) -> tuple[FitState, str]:
        """Rounds until a reason to stop; `callback` sees each record and the state after it, and may stop the fit."""
        ...


class System(Protocol):
    """A way to boost, with its parameters. Frozen and picklable."""

    @property
    def name(self) -> str:
        """Its name, as in ``to_json``."""
        ...

    @property
    def exponential(self) -> bool:
        """Whether its scoring passes sum mu+ and mu- beside G."""
        ...

    def check(self, settings: FitSettings, penalty: Penalty) -> None:
        """Refuse settings it cannot be combined with (UsageError)."""
        ...

    def rounds(self, problem: Problem, settings: FitSettings, null: Score, n_rows: int) -> Rounds:
        """The rounds of a fit; `null` is the scoring pass at the null model, settings.alpha the strength decided."""
        ...

    def to_json(self) -> dict[str, Any]:
        """``{"system": name, parameter: value, ...}``, JSON values only: a checkpoint must agree with it."""
        ...
