"""What a user wants each feature to be charged beside the strength of the penalty.

Covers: the values as they were given, by place or by name; their checks; the factor of every column of the data.
Does not cover: what else multiplies the strength of a row (``statistics.row_weights``), or the objective.
"""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import UsageError
from dboost.problem.by_column import by_column

Array = NDArray[np.float64]

_EXPECTED = "expected a number from 0 on for each feature: 0 for one without penalty, inf for one that is left out"


@dataclass(frozen=True, eq=False)
class PenaltyFactors:
    """Factors of the strength, one for each feature, or for some of them by name.

    Parameters
    ----------
    values : float64 array, shape (n,), or None
        By place.
    named : mapping of str to float, or None
        By name; the other features have a factor of one.
    penalises : bool
        Whether some feature is to have a penalty, which is what a user means; a refit without a penalty has none.

    Examples
    --------
    >>> some = PenaltyFactors.given({"price": 0.5})
    >>> some.of_columns(3, ["area", "price", "rooms"]).tolist()
    [1.0, 0.5, 1.0]
    """

    values: Array | None = None
    named: Mapping[str, float] | None = None
    penalises: bool = True

    @classmethod
    def all_zero(cls, n: int) -> PenaltyFactors:
        """Those of so many features none of which has a penalty."""
        return cls(values=np.zeros(n), penalises=False)

    @classmethod
    def given(cls, value: Any) -> PenaltyFactors:
        """From what a user gave: a sequence of numbers, or a mapping of names to numbers.

        Raises
        ------
        UsageError
            For anything else, and for numbers below 0.
        """
        if isinstance(value, PenaltyFactors):
            return value
        if isinstance(value, Mapping):
            return cls(named={_name(name): _factor(number, repr(name)) for name, number in value.items()})
        try:
            values = np.asarray(value)
        except ValueError:
            values = np.zeros((0, 0))
        if values.ndim != 1 or values.dtype.kind not in "iuf":
            raise UsageError(
                f"penalty_factors={_short(value)}", hint=f"{_EXPECTED}, as an array or as a dict by the feature's name"
            )
        found = values.astype(np.float64)
        wrong = np.flatnonzero(~(found >= 0.0))
        if wrong.size:
            _factor(found[wrong[0]].item(), f"feature {wrong[0]}")
        found.flags.writeable = False
        return cls(values=found)

    def of_columns(self, n: int, names: Sequence[str] | None) -> Array:
        """The factor of every column, shape (n,).

        Parameters
        ----------
        n : int
            Number of features.
        names : sequence of str or None
            Their names, where the data has some.

        Raises
        ------
        UsageError
            Where there are not as many factors as features, a name is unknown, or no feature is left to be penalised.
        """
        found = by_column("penalty_factors", self.values, self.named, 1.0, n, names)
        if n and np.isinf(found).all():
            raise UsageError("penalty_factors leaves every feature out", hint="give at least one a finite factor")
        if n and self.penalises and not np.any(found[np.isfinite(found)]):
            raise UsageError(
                "penalty_factors leaves no feature with a penalty: all are 0 or inf",
                hint="use penalty='none', or give at least one a factor above 0",
            )
        return found

    @property
    def frees(self) -> bool:
        """Whether some feature is left without penalty."""
        return 0.0 in (self.values if self.values is not None else (self.named or {}).values())

    def digest(self) -> str:
        """A name for these factors, of fixed length however many there are."""
        if self.values is not None:
            return hashlib.sha256(self.values.tobytes()).hexdigest()
        return hashlib.sha256(repr(sorted((self.named or {}).items())).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PenaltyFactors) and self.digest() == other.digest()

    def __hash__(self) -> int:
        return hash(self.digest())


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise UsageError(f"penalty_factors names a feature {name!r}", hint="expected the name of a feature, a text")
    return name


def _factor(number: Any, whose: str) -> float:
    real = isinstance(number, numbers.Real) and not isinstance(number, bool | np.bool_)
    if not real or not float(number) >= 0.0:
        raise UsageError(f"penalty_factors is {number!r} for {whose}", hint=_EXPECTED)
    return float(number)


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
