"""What users say of single columns: a value for each by place, for some by name, or one for all.

Covers: ``penalty_factors``, ``lower``, ``upper`` and ``positive``, ``column_groups`` and ``offset``, checked before any
data is read, and then for the columns that the data has. Does not cover: what a fit makes of them (``table``).
"""

from __future__ import annotations

import difflib
import hashlib
import math
import numbers
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import UsageError

Array = NDArray[np.float64]
Int8 = NDArray[np.int8]
Int64 = NDArray[np.int64]
Member = str | int
Offset = tuple[Member, ...]

_SHOWN = 60


class Features:
    """The columns of the data, found by place and by name; names may be None."""

    def __init__(self, n: int, names: Sequence[str] | None) -> None:
        self.n = n
        self.names = names

    @cached_property
    def _place(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.names or ())}

    def place(self, member: Member, parameter: str, within: str = "") -> int:
        """The place of a column that a parameter names, `within` one of its parts; a UsageError where there is none."""
        if isinstance(member, int):
            if member >= self.n:
                raise UsageError(
                    f"{parameter} has feature {member}{within}, and the data has {self.n} features",
                    hint="features are counted from 0",
                )
            return member
        if self.names is None:
            # what a model calls features of data without names, as scikit-learn does
            called = re.fullmatch(r"x(0|[1-9][0-9]*)", member)
            if called and int(called[1]) < self.n:
                return int(called[1])
            raise UsageError(
                f"{parameter} has the feature {member!r} by name{within}, and the features of the data have no names",
                hint="give it by place, counted from 0, or a table with named columns",
            )
        if member not in self._place:
            near = difflib.get_close_matches(member, list(self._place), n=1, cutoff=0.0)
            raise UsageError(
                f"{parameter} names {member!r}{within}, which is no feature of the data",
                hint=f"did you mean {near[0]!r}?" if near else "name features of the data",
            )
        return self._place[member]

    def called(self, place: int) -> str:
        """What a message calls a column."""
        return f"feature {place}" if self.names is None else repr(self.names[place])


# ---- a number for each column ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PerColumn:
    """A number for each column: by place (n,), or by name, where the others have the usual one."""

    parameter: str
    usual: float
    values: Array | None = None
    named: Mapping[Member, float] | None = None

    def of_columns(self, features: Features) -> Array:
        """The number of every column, shape (n,)."""
        n = features.n
        if self.values is not None:
            if self.values.shape[0] != n:
                raise UsageError(
                    f"{self.parameter} has {self.values.shape[0]} numbers, and the data has {n} features",
                    hint=f"give one for each feature, or a dict by name of those that differ from {self.usual:g}",
                )
            return self.values
        found = np.full(n, self.usual)
        places: set[int] = set()
        for member, number in (self.named or {}).items():
            place = features.place(member, self.parameter)
            if place in places:
                raise UsageError(f"{self.parameter} has {features.called(place)} twice", hint="give it once")
            places.add(place)
            found[place] = number
        return found

    def has(self, number: float) -> bool:
        """Whether it is given for some column."""
        if self.values is not None:
            return bool(np.any(self.values == number))
        return number in ((self.usual,) if self.named is None else self.named.values())

    def spelled(self) -> str:
        """All that it says, as a text."""
        values = None if self.values is None else self.values.tolist()
        every = self.usual if values is None and self.named is None else None
        return repr((self.parameter, values, self._in_order(), every))

    def digest(self) -> str:
        """A name for it, of fixed length however many columns there are."""
        said = self.values.tobytes() if self.values is not None else repr(self._in_order()).encode()
        return hashlib.sha256(said).hexdigest()

    def _in_order(self) -> list[tuple[Member, float]]:
        return sorted((self.named or {}).items(), key=lambda item: str(item[0]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PerColumn) and self.spelled() == other.spelled()

    def __hash__(self) -> int:
        return hash(self.spelled())


@dataclass(frozen=True)
class Parameter:
    """A parameter that is a number for each column, and which numbers it takes."""

    name: str
    usual: float
    expected: str
    takes: Callable[[float], bool]
    # Whether one number may stand for all columns.
    for_all: bool = False
    # What else a message about a number says.
    others: str = ""

    def read(self, value: Any) -> PerColumn:
        """What a user gave: a sequence of numbers, a mapping of names, a number for all, or None; else a UsageError."""
        value = by_name(self.name, value)
        if value is None:
            return PerColumn(self.name, self.usual)
        if isinstance(value, Mapping):
            named = {_member(name, self.name): self._number(one, repr(name)) for name, one in value.items()}
            return PerColumn(self.name, self.usual, named=named)
        if self.for_all and _is_real(value):
            return PerColumn(self.name, self._number(value, "every feature"))
        found = _sequence(value)
        if found is None or (found.dtype.kind not in "iuf" and not (found.dtype.kind == "O" and found.size)):
            every = ", or one for all" if self.for_all else ""
            shape = f"{every}, as an array, or as a dict by the feature's name"
            raise UsageError(f"{self.name}={_short(value)}", hint=self.expected + shape)
        if found.dtype.kind == "O" or not self._all(found):
            found = np.array([self._number(one, f"feature {j}") for j, one in enumerate(found.tolist())])
        # -0.0 is the same number
        values = found.astype(np.float64) + 0.0
        values.flags.writeable = False
        return PerColumn(self.name, self.usual, values=values)

    def _all(self, found: NDArray[Any]) -> bool:
        return all(self.takes(one) for one in np.unique(found).tolist())

    def _number(self, number: Any, whose: str) -> float:
        if not _is_real(number) or not self.takes(float(number)):
            raise UsageError(f"{self.name} is {_short(number)} for {whose}", hint=self.expected + self.others)
        return float(number) + 0.0


PENALTY_FACTORS = Parameter(
    "penalty_factors",
    1.0,
    "expected a number from 0 on for each feature: 0 for one without penalty, inf for one that is left out",
    lambda factor: factor >= 0.0,
)
_OTHER_BOUNDS = "; other bounds than 0 are those of LeveragingRegressor and LeveragingClassifier(bounds=)"
LOWER, UPPER = (
    Parameter(
        name,
        free,
        f"expected 0 or {free} for each feature",
        lambda bound, free=free: bound in (0.0, free),  # type: ignore[misc]
        for_all=True,
        others=_OTHER_BOUNDS,
    )
    for name, free in (("lower", -math.inf), ("upper", math.inf))
)


@dataclass(frozen=True)
class Signs:
    """Which signs weights may have, as bounds of 0.

    Examples
    --------
    >>> Signs.given(lower={"price": 0.0}).of_columns(Features(3, ["area", "price", "rooms"])).tolist()
    [0, 1, 0]
    """

    lower: PerColumn
    upper: PerColumn

    @classmethod
    def given(cls, positive: Any = False, lower: Any = None, upper: Any = None) -> Signs | None:
        """From what a user gave, bounds of 0 or infinity (else a UsageError); None where any sign is allowed."""
        if not isinstance(positive, bool | np.bool_):
            raise UsageError(f"positive={positive!r}", hint="expected True or False")
        if positive:
            if lower is not None or upper is not None:
                raise UsageError(
                    "positive=True is lower=0 for every feature, and other bounds are given too",
                    hint="give positive, or lower and upper",
                )
            lower = 0.0
        return None if lower is None and upper is None else cls(LOWER.read(lower), UPPER.read(upper))

    @classmethod
    def of_signs(cls, signs: Int8) -> Signs:
        """From the signs of all columns, (n,), as `of_columns` tells them."""
        return cls(LOWER.read(np.where(signs > 0, 0.0, -math.inf)), UPPER.read(np.where(signs < 0, 0.0, math.inf)))

    def of_columns(self, features: Features) -> Int8:
        """1 where weights are not negative, -1 where not positive, else 0: (n,); a UsageError where they do not fit."""
        low, high = self.lower.of_columns(features) == 0.0, self.upper.of_columns(features) == 0.0
        both = np.flatnonzero(low & high)
        if both.size:
            raise UsageError(
                f"lower and upper are both 0 for {features.called(int(both[0]))}, which leaves it the weight 0 only",
                hint="leave a feature out by penalty_factors of inf",
            )
        found: Int8 = low.astype(np.int8) - high.astype(np.int8)
        return found

    def digest(self) -> str:
        """A name for them, of fixed length however many there are."""
        return hashlib.sha256((self.lower.spelled() + self.upper.spelled()).encode()).hexdigest()


# ---- groups of columns -----------------------------------------------------------------------------------------------

_GROUPS = (
    "expected a whole number from 0 on for each feature, the same for those of a group, or a dict of lists of "
    'features by the name of each group: {"colour": ["red", "green"]}'
)


@dataclass(frozen=True, eq=False)
class ColumnGroups:
    """Groups of features that enter a model together: a label for each by place, or the members of each by name.

    Examples
    --------
    >>> some = ColumnGroups.given({"size": ["area", "rooms"]})
    >>> some.of_columns(Features(3, ["area", "price", "rooms"])).tolist()
    [0, 1, 0]
    """

    values: Int64 | None = None
    # Each other feature is a group of its own.
    named: Mapping[str, tuple[Member, ...]] | None = None

    @classmethod
    def given(cls, value: Any) -> ColumnGroups:
        """From what a user gave: labels from 0 on, or a mapping of groups to their features; else a UsageError."""
        if isinstance(value, Mapping):
            given = {_text(name, "column_groups", "a group"): members for name, members in value.items()}
            return cls(named={name: _members(name, members) for name, members in given.items()})
        labels = _sequence(value)
        if labels is None or labels.dtype.kind not in "iu":
            raise UsageError(f"column_groups={_short(value)}", hint=_GROUPS)
        wrong = np.flatnonzero(labels < 0)
        if wrong.size:
            raise UsageError(f"column_groups is {labels[wrong[0]].item()!r} for feature {wrong[0]}", hint=_GROUPS)
        found = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        found.flags.writeable = False
        return cls(values=found)

    @property
    def ties(self) -> bool:
        """Whether there is a group of several features at all; otherwise each row of W is penalised by itself."""
        if self.values is not None:
            return bool(self.values.size and np.bincount(self.values).max() > 1)
        return any(len(members) > 1 for members in (self.named or {}).values())

    def of_columns(self, features: Features) -> Int64:
        """The group of every column, (n,), numbered by first columns; a UsageError where they do not fit."""
        labels, n = self.values, features.n
        if labels is not None and labels.shape[0] != n:
            raise UsageError(
                f"column_groups has {labels.shape[0]} labels, and the data has {n} features",
                hint="give one label for each feature, or a dict of the groups of several features",
            )
        if labels is None:
            # the label of a column without a group is beyond those of all groups
            labels = n + np.arange(n)
            given = self.named or {}
            for label, (group, members) in enumerate(given.items()):
                for member in members:
                    at = features.place(member, "column_groups", f" in the group {group!r}")
                    if labels[at] < n:
                        raise UsageError(
                            f"column_groups has feature {member!r} in the groups {list(given)[labels[at]]!r} and "
                            f"{group!r}",
                            hint="a feature is in one group; groups that overlap need a copy of the column for each",
                        )
                    labels[at] = label
        first, inverse = np.unique(labels, return_index=True, return_inverse=True)[1:]
        number = np.empty(first.shape[0], np.int64)
        number[np.argsort(first)] = np.arange(first.shape[0])
        return number[inverse]

    def digest(self) -> str:
        """A name for these groups, of fixed length however many there are."""
        said = self.values.tobytes() if self.values is not None else repr(sorted((self.named or {}).items())).encode()
        return hashlib.sha256(said).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ColumnGroups) and self.digest() == other.digest()

    def __hash__(self) -> int:
        return hash(self.digest())


def _members(group: str, members: Any) -> tuple[Member, ...]:
    """The features of a group."""
    hint = "expected a list of features by name or by place, one at least"
    listed = [] if isinstance(members, str | bytes | Mapping) or not isinstance(members, Iterable) else list(members)
    if not listed:
        raise UsageError(f"column_groups is {_short(members)} for the group {group!r}", hint=hint)
    for member in listed:
        if not (isinstance(member, str) or (_is_whole(member) and int(member) >= 0)):
            raise UsageError(f"column_groups has a feature {member!r} in the group {group!r}", hint=hint)
    return tuple(str(member) if isinstance(member, str) else int(member) for member in listed)


# ---- offsets ---------------------------------------------------------------------------------------------------------

_OFFSET = "expected the name or the place of a column, or one for each output"


def given_offset(value: Any) -> Offset:
    """The names or places of columns that are offsets, each once, from what a user gave; else a UsageError."""
    if isinstance(value, str) or _is_whole(value):
        value = (value,)
    if not isinstance(value, list | tuple | np.ndarray) or not len(value):
        raise UsageError(f"offset={_short(value)}", hint=_OFFSET)
    found: list[Member] = []
    for one in value:
        if not isinstance(one, str) and not _is_whole(one):
            raise UsageError(f"offset names a column {one!r}", hint=_OFFSET)
        found.append(str(one) if isinstance(one, str) else int(one))
    if len(set(found)) < len(found):
        raise UsageError(f"offset={_short(value)} names a column twice", hint="give every output a column of its own")
    return tuple(found)


def offset_columns(offset: Offset, features: Features, k: int) -> Int64:
    """The column of every output, shape (k,); places below 0 count from the end. A UsageError where they do not fit."""
    n = features.n
    if len(offset) != k:
        raise UsageError(
            f"offset has {len(offset)} column(s), and the model has {k} output(s)",
            hint="give a column for each output, in the order of classes_",
        )
    found = []
    for one in offset:
        if isinstance(one, int) and not -n <= one < n:
            raise UsageError(f"offset is column {one}, and the data has {n} columns", hint=_OFFSET)
        found.append(features.place(one % n if isinstance(one, int) else one, "offset"))
    if len(set(found)) < k:
        raise UsageError("offset names a column twice, by name and by place", hint="give every output its own")
    if n == k:
        raise UsageError("every column is an offset, and no feature is left", hint="give columns of features too")
    return np.array(found, dtype=np.int64)


# ---- values of any kind ----------------------------------------------------------------------------------------------


def by_name(parameter: str, value: Any) -> Any:
    """A series indexed by texts, which may be in another order, as a mapping; anything else as it is."""
    names = list(value.index) if hasattr(value, "index") and hasattr(value, "tolist") else []
    if not names or not all(isinstance(name, str) for name in names):
        return value
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"{parameter} has {twice!r} twice in its index", hint="give each feature one number")
    return dict(zip(names, value.tolist(), strict=True))


def _sequence(value: Any) -> NDArray[Any] | None:
    """An array of one axis; of objects where a value is none of its numbers, None for anything else."""
    try:
        found = np.asarray(value)
    except ValueError:
        return None
    if isinstance(value, list | tuple) and found.ndim == 1 and any(isinstance(one, bool | np.bool_) for one in value):
        # NumPy makes numbers of them beside others
        found = np.array(value, dtype=object)
    return found if found.ndim == 1 and not isinstance(value, str) else None


def _text(name: Any, parameter: str, what: str) -> str:
    if not isinstance(name, str):
        raise UsageError(f"{parameter} names {what} {name!r}", hint=f"expected the name of {what}, a text")
    return name


def _member(given: Any, parameter: str) -> Member:
    """A feature by its place, counted from 0, or by its name."""
    return int(given) if _is_whole(given) and given >= 0 else _text(given, parameter, "a feature")


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."
