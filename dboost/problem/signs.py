"""Which signs the weights of each feature may have: any, not negative, or not positive.

Covers: bounds of 0 as they were given, by place, by name or for all; their checks; the sign of every column of the
data. Does not cover: what a penalty makes of them (``penalties.signed``), or bounds that are not 0 (leveraging has
some, ``boosting.leveraging``).
"""

from __future__ import annotations

import hashlib
import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import UsageError
from dboost.problem.by_column import by_column

Array = NDArray[np.float64]
Int8 = NDArray[np.int8]

_OTHER = "other bounds than 0 are those of LeveragingRegressor and LeveragingClassifier(bounds=)"


@dataclass(frozen=True, eq=False)
class Side:
    """The lower or the upper bounds.

    Parameters
    ----------
    name : {"lower", "upper"}
    free : float
        The bound that is none: -inf or inf.
    values : float64 array, shape (n,), or None
        By place.
    named : mapping of str to float, or None
        By name; the other features have no bound.
    every : float or None
        That of all features.
    """

    name: str
    free: float
    values: Array | None = None
    named: Mapping[str, float] | None = None
    every: float | None = None

    @classmethod
    def given(cls, name: str, free: float, value: Any) -> Side:
        """From what a user gave: a number, a sequence of them, a mapping of names to numbers, or None for none."""
        if value is None:
            return cls(name, free, every=free)
        if isinstance(value, Mapping):
            for one in value:
                if not isinstance(one, str):
                    raise UsageError(
                        f"{name} names a feature {one!r}", hint="expected the name of a feature, a text"
                    )
            return cls(name, free, named={one: _bound(name, free, bound, repr(one)) for one, bound in value.items()})
        if _is_real(value):
            return cls(name, free, every=_bound(name, free, value, "every feature"))
        try:
            found = np.asarray(value)
        except ValueError:
            found = np.zeros((0, 0))
        if found.ndim != 1 or found.dtype.kind not in "iuf":
            raise UsageError(f"{name}={_short(value)}", hint=f"{_expected(free)}, or one for all, an array, or a dict")
        values = np.array([_bound(name, free, one, f"feature {j}") for j, one in enumerate(found.tolist())])
        values.flags.writeable = False
        return cls(name, free, values=values)

    def of_columns(self, n: int, names: Sequence[str] | None) -> NDArray[np.bool_]:
        """Which columns are bounded at 0, shape (n,)."""
        if self.every is not None:
            return np.full(n, self.every == 0.0)
        found: NDArray[np.bool_] = by_column(self.name, self.values, self.named, self.free, n, names) == 0.0
        return found

    def spelled(self) -> str:
        """All that it says, as a text."""
        values = None if self.values is None else self.values.tolist()
        return repr((self.name, values, sorted((self.named or {}).items()), self.every))


@dataclass(frozen=True, eq=False)
class Signs:
    """The signs that weights may have.

    Parameters
    ----------
    lower, upper : Side

    Examples
    --------
    >>> Signs.given(lower={"price": 0.0}).of_columns(3, ["area", "price", "rooms"]).tolist()
    [0, 1, 0]
    """

    lower: Side
    upper: Side

    @classmethod
    def given(cls, positive: Any = False, lower: Any = None, upper: Any = None) -> Signs | None:
        """From what a user gave; None where every weight may have any sign.

        Raises
        ------
        UsageError
            For bounds that are neither 0 nor infinite, and for `positive` beside bounds.
        """
        if not isinstance(positive, bool | np.bool_):
            raise UsageError(f"positive={positive!r}", hint="expected True or False")
        if positive:
            if lower is not None or upper is not None:
                raise UsageError(
                    "positive=True is lower=0 for every feature, and other bounds are given too",
                    hint="give positive, or lower and upper",
                )
            lower = 0.0
        if lower is None and upper is None:
            return None
        return cls(Side.given("lower", -math.inf, lower), Side.given("upper", math.inf, upper))

    @classmethod
    def of_signs(cls, signs: Int8) -> Signs:
        """From the signs of all columns, (n,), as `of_columns` tells them."""
        low, high = np.where(signs > 0, 0.0, -math.inf), np.where(signs < 0, 0.0, math.inf)
        return cls(Side.given("lower", -math.inf, low), Side.given("upper", math.inf, high))

    def of_columns(self, n: int, names: Sequence[str] | None) -> Int8:
        """1 for a column whose weights are not negative, -1 for one whose weights are not positive, else 0: (n,).

        Raises
        ------
        UsageError
            Where there are not as many bounds as features, a name is unknown, or both bounds of a feature are 0.
        """
        low, high = self.lower.of_columns(n, names), self.upper.of_columns(n, names)
        both = np.flatnonzero(low & high)
        if both.size:
            whose = f"feature {both[0]}" if names is None else repr(names[both[0]])
            raise UsageError(
                f"lower and upper are both 0 for {whose}, which leaves it the weight 0 only",
                hint="leave a feature out by penalty_factors of inf",
            )
        return low.astype(np.int8) - high.astype(np.int8)

    def digest(self) -> str:
        """A name for them, of fixed length however many there are."""
        return hashlib.sha256((self.lower.spelled() + self.upper.spelled()).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Signs) and self.digest() == other.digest()

    def __hash__(self) -> int:
        return hash(self.digest())


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def _expected(free: float) -> str:
    return f"expected 0 or {free} for each feature"


def _bound(name: str, free: float, bound: Any, whose: str) -> float:
    if not _is_real(bound) or float(bound) not in (0.0, free):
        raise UsageError(f"{name} is {bound!r} for {whose}", hint=f"{_expected(free)}; {_OTHER}")
    # -0.0 is the same bound
    return float(bound) + 0.0


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
