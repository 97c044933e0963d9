"""The state of a fit between two rounds: plain values, enough to go on from with the same bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.columns.given import ColumnGroups, PerColumn, Signs
from dboost.hypotheses.base import Family, Key
from dboost.losses import Loss
from dboost.problem.memory import Memory
from dboost.problem.tuning import Tuning

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FitState:
    """Everything a round starts from."""

    active: NDArray[np.int64]  # (a,): Nonzero rows of W, ascending; before the first round some may be zero.
    W: Array  # (a, k): Those rows.
    intercept: Array  # (k,): The intercept b.
    lam: float  # Current strength; above the final one during the continuation.
    candidates: NDArray[np.int64] | None = None  # Columns that the strong rule has left; None means all.
    # Whether the candidates were chosen by the strong rule, which may err: the bounds then hold for the problem
    # restricted to them, and all columns are scored once more before the fit may stop.
    provisional: bool = False
    lower_bound: float = -np.inf  # Largest dual value seen at the final strength, in the sum form.
    # Objective (sum form) and certified relative gap at the last certificate; infinite before.
    objective: float = np.inf
    gap: float = np.inf
    round: int = 0  # Rounds done.
    passes: int = 0  # Passes over the data done.
    memory: Memory = Memory()  # What the last Newton step left.
    history: tuple[dict[str, Any], ...] = field(default=())  # One record per round.
    keys: tuple[Key, ...] = ()  # The hypotheses that the numbers in `active` stand for; empty where they are columns.
    # What a system of its own takes from round to round, by name.
    carried: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    # Whether `max_passes` or `max_seconds` ended the last round before its own end. The same fit without that limit
    # never has such a state, so that no checkpoint holds one.
    cut: bool = False


@dataclass(frozen=True)
class FitSettings:
    """What a fit is asked to do; see ``dboost.BoostedClassifier`` for the meaning of each."""

    loss: str | Loss
    penalty: Any = "l1/linf"
    alpha: float | str = "auto"
    update: str = "newton"
    select: str = "greedy"
    sweeps: int | None = None
    features_per_round: int | None = None
    tol: float = 1e-4
    max_rounds: int = 1000
    max_passes: int | None = None
    max_seconds: float | None = None
    # As in the estimators; `alpha` is on the mean loss, or "auto" for 0.05 alpha_max.
    max_features: int | None = None
    fit_intercept: bool = True
    standardize: bool = False
    penalty_factors: PerColumn | None = None  # What the strength of each feature is multiplied by; None: by one.
    signs: Signs | None = None  # Which sign the weights of each feature may have; None: any.
    column_groups: ColumnGroups | None = None  # Which features are penalised together; None: each by itself.
    # The columns that are added to the scores, one for each output, by name or place.
    offset: tuple[str | int, ...] | None = None
    random_state: int = 0  # Seed of everything random.
    sample: str | float = "auto"  # Share of the examples that give the Newton step its curvature.
    hypotheses: Family | None = None  # What the rows of W belong to; None is the stored columns.
    system: Any = None  # Another way to boost than the one that `update` names.
    # What a fit may do to be faster (``accelerators.ACCELERATORS``), None for all; the optimum does not depend on it.
    accelerators: tuple[str, ...] | None = None
    tuning: Tuning = Tuning()  # From which sizes on they pay.


@dataclass(frozen=True)
class FitResult:
    """A fitted model and its certificate."""

    active: NDArray[np.int64]  # As in ``FitState``.
    W: Array
    intercept: Array
    objective: float  # P and the best dual value, per unit of weight (the mean form).
    lower_bound: float
    gap: float  # Certified relative duality gap (P - D) / P; nan where no certificate exists (penalty "none").
    # "tol", "max_rounds", "max_passes", "max_seconds", "max_features", "max_opened", "callback", "precision",
    # "stalled", "gradient", or "uncertified": the objective is no number, or contradicts its lower bound by more than
    # rounding may; the gap is nan then.
    stop_reason: str
    n_iter: int  # Rounds, and passes over the data.
    passes: int
    alpha: float  # Strength used, and the smallest that leaves W = 0.
    alpha_max: float
    history: list[dict[str, Any]]  # One record per round.
    trace: Array  # (r, 3): Passes, seconds and objective (mean form, at the final strength) after every step.
    state: FitState  # To resume from.
    pool: Any = None  # Where the hypotheses in `state.keys` come from.
    # How often each accelerator was taken (``Accelerators.taken``).
    taken: Mapping[str, int] = field(default_factory=dict)
