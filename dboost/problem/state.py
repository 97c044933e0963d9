"""The state of a fit between two rounds: plain values, enough to go on from with the same bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.hypotheses.base import Family, Key
from dboost.losses import Loss
from dboost.problem.column_groups import ColumnGroups
from dboost.problem.memory import Memory
from dboost.problem.penalty_factors import PenaltyFactors
from dboost.problem.signs import Signs
from dboost.problem.tuning import Tuning

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FitState:
    """Everything a round starts from.

    Parameters
    ----------
    active : int64 array, shape (a,)
        Nonzero rows of W, ascending; before the first round some may be zero.
    W : float64 array, shape (a, k)
        Those rows.
    intercept : float64 array, shape (k,)
        The intercept b.
    lam : float
        Current strength; above the final one during the continuation.
    candidates : int64 array or None
        Columns that the strong rule has left; None means all.
    provisional : bool
        Whether the candidates were chosen by the strong rule, which may err: the bounds then hold for the problem
        restricted to them, and all columns are scored once more before the fit may stop.
    lower_bound : float
        Largest dual value seen at the final strength, in the sum form.
    objective, gap : float
        Objective (sum form) and certified relative gap at the last certificate; infinite before.
    round : int
        Rounds done.
    passes : int
        Passes over the data done.
    memory : Memory
        What the last Newton step left.
    history : tuple of dict
        One record per round.
    keys : tuple of Key
        The hypotheses that the numbers in `active` stand for; empty where they are columns.
    carried : mapping of str to array
        What a system of its own takes from round to round, by name.
    cut : bool
        Whether `max_passes` or `max_seconds` ended the last round before its own end. The same fit without that limit
        never has such a state, so that no checkpoint holds one.
    """

    active: NDArray[np.int64]
    W: Array
    intercept: Array
    lam: float
    candidates: NDArray[np.int64] | None = None
    provisional: bool = False
    lower_bound: float = -np.inf
    objective: float = np.inf
    gap: float = np.inf
    round: int = 0
    passes: int = 0
    memory: Memory = Memory()
    history: tuple[dict[str, Any], ...] = field(default=())
    keys: tuple[Key, ...] = ()
    carried: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    cut: bool = False


@dataclass(frozen=True)
class FitSettings:
    """What a fit is asked to do; see ``dboost.BoostedClassifier`` for the meaning of each.

    Parameters
    ----------
    loss, penalty, alpha, update, select, sweeps, rows_per_round, tol, max_rounds, max_passes, max_seconds,
    max_active_rows, fit_intercept, standardize
        As in the estimators; `alpha` is on the mean loss, or "auto" for 0.05 alpha_max.
    penalty_factors : PenaltyFactors or None
        What the strength of each feature is multiplied by; None: by one.
    signs : Signs or None
        Which sign the weights of each feature may have; None: any.
    column_groups : ColumnGroups or None
        Which features are penalised together; None: each by itself.
    offset : tuple of str or int, or None
        The columns that are added to the scores, one for each output, by name or place.
    random_state : int
        Seed of everything random.
    sample : "auto" or float
        Share of the examples that give the Newton step its curvature.
    hypotheses : Family or None
        What the rows of W belong to; None is the stored columns.
    system : System or None
        Another way to boost than the one that `update` names.
    accelerators : tuple of str, or None
        What a fit may do to be faster (``accelerators.ACCELERATORS``), None for all; the optimum does not depend on it.
    tuning : Tuning
        From which sizes on they pay.
    """

    loss: str | Loss
    penalty: Any = "l1/linf"
    alpha: float | str = "auto"
    update: str = "newton"
    select: str = "greedy"
    sweeps: int | None = None
    rows_per_round: int | None = None
    tol: float = 1e-4
    max_rounds: int = 1000
    max_passes: int | None = None
    max_seconds: float | None = None
    max_active_rows: int | None = None
    fit_intercept: bool = True
    standardize: bool = False
    penalty_factors: PenaltyFactors | None = None
    signs: Signs | None = None
    column_groups: ColumnGroups | None = None
    offset: tuple[str | int, ...] | None = None
    random_state: int = 0
    sample: str | float = "auto"
    hypotheses: Family | None = None
    system: Any = None
    accelerators: tuple[str, ...] | None = None
    tuning: Tuning = Tuning()


@dataclass(frozen=True)
class FitResult:
    """A fitted model and its certificate.

    Parameters
    ----------
    active, W, intercept
        As in ``FitState``.
    objective, lower_bound : float
        P and the best dual value, per unit of weight (the mean form).
    gap : float
        Certified relative duality gap (P - D) / P; nan where no certificate exists (penalty "none").
    stop_reason : str
        "tol", "max_rounds", "max_passes", "max_seconds", "max_active_rows", "max_opened", "callback", "precision",
        "stalled", "gradient", or "uncertified": the objective is no number, or contradicts its lower bound by more
        than rounding may; the gap is nan then.
    n_iter, passes : int
        Rounds, and passes over the data.
    alpha, alpha_max : float
        Strength used, and the smallest that leaves W = 0.
    history : list of dict
        One record per round.
    trace : float64 array, shape (r, 3)
        Passes, seconds and objective (mean form, at the final strength) after every step.
    state : FitState
        To resume from.
    pool : Pool or None
        Where the hypotheses in `state.keys` come from.
    taken : mapping of str to int
        How often each accelerator was taken (``Accelerators.taken``).
    """

    active: NDArray[np.int64]
    W: Array
    intercept: Array
    objective: float
    lower_bound: float
    gap: float
    stop_reason: str
    n_iter: int
    passes: int
    alpha: float
    alpha_max: float
    history: list[dict[str, Any]]
    trace: Array
    state: FitState
    pool: Any = None
    taken: Mapping[str, int] = field(default_factory=dict)
