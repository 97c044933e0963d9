"""What a cross-validation knows of each fold: how good the fits without it are on its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.fit import Fitting
from dboost.engine.base import Engine
from dboost.passes.folds import Folds, Left
from dboost.problem.state import FitResult

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FoldScores:
    """What the F fits without each fold are worth on it, at each of T strengths, or of strengths and shares."""

    # `loss`, `error`: (F, T), mean loss and mean share of wrong labels of the held-out rows, by weight.
    loss: Array
    error: Array
    weight: Array  # (F,): Weight of the held-out rows
    active_rows: NDArray[np.int64]  # (F, T)
    gap: Array  # (F, T): Certified relative gaps
    passes: NDArray[np.int64]  # (F,): Passes over the data
    score: Array  # (F, T): What a scorer says of the held-out rows, greater is better; nan where none was asked

    def placed(self, there: Sequence[bool]) -> FoldScores:
        """The same where `there` is true, among others of which nothing is known: nan, and no features."""
        found: dict[str, NDArray[Any]] = {}
        for name, value in self._tables():
            found[name] = np.full((len(value), len(there)), _unknown(value), value.dtype)
            found[name][:, np.flatnonzero(there)] = value
        return replace(self, **found)

    def without(self, places: Sequence[int]) -> FoldScores:
        """The same, where nothing is known at some places."""
        found = {name: value.copy() for name, value in self._tables()}
        for value in found.values():
            value[:, list(places)] = _unknown(value)
        return replace(self, **found)

    def _tables(self) -> list[tuple[str, NDArray[Any]]]:
        pairs = [(item.name, getattr(self, item.name)) for item in fields(self)]
        return [(name, value) for name, value in pairs if value.ndim == 2]


def _unknown(values: NDArray[Any]) -> float:
    return np.nan if values.dtype.kind == "f" else 0


class HeldOutScorer(Protocol):
    """Judges the fits without a fold on its rows by something that is no sum over them."""

    def begin(self, engine: Engine, folds: Folds, masses: dict[str, Any]) -> None:
        """Look at all rows, and at what each fold has (``fold_masses``), before the first fit; may refuse them."""
        ...

    def __call__(self, engine: Engine, fitting: Fitting, left: Left, results: Sequence[FitResult]) -> Array:
        """The score of each result, float64 (T,), greater is better. Folds may be asked for at the same time.

        Parameters
        ----------
        engine : Engine
            That of all rows.
        fitting : Fitting
            Of the rows without the fold.
        left : Left
        results : sequence of FitResult
        """
        ...
