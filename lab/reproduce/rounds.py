"""The paper's loop, followed update by update: score all columns, let some join, update once, prune.

Covers: ``follow``, which runs the core fit with one update between two scorings and measures the model on the way.
Does not cover: fits through an estimator (``measure.Staged``), which solves the chosen rows before it scores again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.fit import FitSettings, fit
from dboost.data.plan import build_plan
from dboost.engine.local import LocalEngine
from dboost.errors import ConvergenceWarning
from lab.reproduce.rows import Rows

# Every round is measured up to this one, and after it whenever the number of rounds has grown by this share.
_ALL_ROUNDS = 20
_GROWTH = 0.02
_KEPT = ("round", "passes", "objective", "gap", "active_rows", "entries")

Look = Callable[[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]], dict[str, Any]]


@dataclass(frozen=True)
class Rounds:
    """What is followed.

    Parameters
    ----------
    update : {"adaboost", "gradboost"}
    select : {"template", "greedy"}
    penalty : str
    alpha : float
    rounds : int
        At most so many.
    seconds : float
        The fit ends after the round in which they are over.
    rows_per_round : int
        At most so many new rows join in a round.
    tol : float
        The certified relative gap that ends it earlier.
    """

    update: str
    select: str
    penalty: str
    alpha: float
    rounds: int
    seconds: float
    rows_per_round: int = 1
    tol: float = 1e-3


def follow(X: Any, y: Any, asked: Rounds, look: Look) -> Rows:
    """Run the loop on a multiclass problem.

    Parameters
    ----------
    X, y : training data
    asked : Rounds
    look : function of (active columns, their weights, intercept)
        Measures the model; its time is not counted.

    Returns
    -------
    Rows
        ``seconds``, ``round``, ``passes``, ``objective``, ``gap``, ``active_rows``, ``entries``, and what `look` gave;
        the last round is always there.
    """
    found: list[dict[str, Any]] = []
    clock = 0.0
    due = 0

    def watch(record: dict[str, Any], state: Any) -> bool:
        nonlocal clock, due
        clock += record["seconds"]
        number = record["round"]
        over = clock >= asked.seconds or number >= asked.rounds
        if number >= due or over or record["step"] == "certificate":
            line = {"seconds": clock, **{name: record[name] for name in _KEPT}}
            found.append(line | look(state.active, state.W, state.intercept))
            due = number + 1 if number < _ALL_ROUNDS else number + max(1, int(_GROWTH * number))
        return over

    settings = FitSettings(
        loss="multinomial",
        penalty=asked.penalty,
        alpha=asked.alpha,
        update=asked.update,
        select=asked.select,
        rows_per_round=asked.rows_per_round,
        tol=asked.tol,
        max_rounds=asked.rounds,
        sweeps=1,
    )
    with LocalEngine() as engine, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit(build_plan(X, y, task="multiclass", engine=engine), engine, settings, callback=watch)
    return Rows(found)
