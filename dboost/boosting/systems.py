"""What a way to boost is: frozen settings that make the rounds of a fit.

A system is one file beside this one: a frozen dataclass with the parameters of its paper, which satisfies ``System``,
and the class of its rounds, which satisfies ``Rounds``. Everything around it is shared: data, hypotheses, engines,
checkpoints, warm starts, records and models.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dboost.errors import UsageError

if TYPE_CHECKING:
    from dboost.penalties import Penalty
    from dboost.problem.accelerators import Accelerators
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
    accelerators : Accelerators
        Those that the fit may take, and how often it took each.
    """

    certified: bool
    norms: NDArray[np.float64]
    trace: list[tuple[float, float, float]]
    accelerators: Accelerators

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

    @property
    def optimises(self) -> bool:
        """Whether a fit is the optimum of its objective to `tol`, by whatever way it gets there.

        Only then may columns be solved less a number, is a class of hypotheses certified as a whole, and does a fit
        that ends above `tol` warn. Others are more than their objective: what they do depends on the columns
        themselves.
        """
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


def refuse_sweeps(settings: FitSettings, what: str) -> None:
    """Refuse `sweeps` for what makes no one-row updates (UsageError)."""
    if settings.sweeps is not None:
        raise UsageError(
            f"sweeps={settings.sweeps!r} bounds the one-row updates of a round, which {what} does not make",
            hint="use update='gradboost' or 'adaboost', or leave sweeps out",
        )
