"""Which features belong together: those of a group enter a model together, or not at all.

Covers: the groups as they were given, by place or by name; their checks; the group of every column of the data. Does
not cover: what a penalty makes of them (``penalties.grouped``).
"""

from __future__ import annotations

import difflib
import hashlib
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import UsageError

Int64 = NDArray[np.int64]
Member = str | int

_EXPECTED = (
    "expected a whole number from 0 on for each feature, the same for those of a group, or a dict of lists of "
    'features by the name of each group: {"colour": ["red", "green"]}'
)


@dataclass(frozen=True, eq=False)
class ColumnGroups:
    """Groups of features.

    Parameters
    ----------
    values : int64 array, shape (n,), or None
        The label of the group of each feature.
    named : mapping of str to tuple of (str or int), or None
        The features of each group, by name or by place; each other feature is a group of its own.

    Examples
    --------
    >>> some = ColumnGroups.given({"size": ["area", "rooms"]})
    >>> some.of_columns(3, ["area", "price", "rooms"]).tolist()
    [0, 1, 0]
    """

    values: Int64 | None = None
    named: Mapping[str, tuple[Member, ...]] | None = None

    @classmethod
    def given(cls, value: Any) -> ColumnGroups:
        """From what a user gave: a sequence of labels, or a mapping of the names of groups to their features.

        Raises
        ------
        UsageError
            For anything else, and for labels below 0.
        """
        if isinstance(value, ColumnGroups):
            return value
        if isinstance(value, Mapping):
            return cls(named={_group(name): _members(name, members) for name, members in value.items()})
        try:
            labels = np.asarray(value)
        except ValueError:
            labels = np.zeros((0, 0))
        if labels.ndim != 1 or labels.dtype.kind not in "iu":
            raise UsageError(f"column_groups={_short(value)}", hint=_EXPECTED)
        wrong = np.flatnonzero(labels < 0)
        if wrong.size:
            raise UsageError(
                f"column_groups is {labels[wrong[0]].item()!r} for feature {wrong[0]}", hint=_EXPECTED
            )
        found = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        found.flags.writeable = False
        return cls(values=found)

    @property
    def ties(self) -> bool:
        """Whether there is a group of several features at all; otherwise each row of W is penalised by itself."""
        if self.values is not None:
            return bool(self.values.size and np.bincount(self.values).max() > 1)
        return any(len(members) > 1 for members in (self.named or {}).values())

    def of_columns(self, n: int, names: Sequence[str] | None) -> Int64:
        """The number of the group of every column, shape (n,): from 0 on, by the first of its columns.

        Parameters
        ----------
        n : int
            Number of features.
        names : sequence of str or None
            Their names, where the data has some.

        Raises
        ------
        UsageError
            Where there are not as many labels as features, a feature is unknown, or is in two groups.
        """
        if self.values is None:
            return _by_first(self._labels(n, names))
        if self.values.shape[0] != n:
            raise UsageError(
                f"column_groups has {self.values.shape[0]} labels, and the data has {n} features",
                hint="give one label for each feature, or a dict of the groups of several features",
            )
        return _by_first(self.values)

    def _labels(self, n: int, names: Sequence[str] | None) -> Int64:
        """A label for every column, that of one without a group beyond those of all groups."""
        given = self.named or {}
        found, place = n + np.arange(n), {name: at for at, name in enumerate(names or ())}
        for label, (group, members) in enumerate(given.items()):
            for member in members:
                at = _place(group, member, n, None if names is None else place)
                if found[at] < n:
                    raise UsageError(
                        f"column_groups has feature {member!r} in the groups {list(given)[found[at]]!r} and {group!r}",
                        hint="a feature is in one group; groups that overlap need a copy of the column for each",
                    )
                found[at] = label
        return found

    def digest(self) -> str:
        """A name for these groups, of fixed length however many there are."""
        said = self.values.tobytes() if self.values is not None else repr(sorted((self.named or {}).items())).encode()
        return hashlib.sha256(said).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ColumnGroups) and self.digest() == other.digest()

    def __hash__(self) -> int:
        return hash(self.digest())


def _by_first(labels: Int64) -> Int64:
    """Labels as numbers from 0 on, in the order in which they come."""
    first, inverse = np.unique(labels, return_index=True, return_inverse=True)[1:]
    number = np.empty(first.shape[0], np.int64)
    number[np.argsort(first)] = np.arange(first.shape[0])
    return number[inverse]


def _group(name: Any) -> str:
    if not isinstance(name, str):
        raise UsageError(f"column_groups names a group {name!r}", hint="expected a text")
    return name


def _members(name: str, members: Any) -> tuple[Member, ...]:
    """The features of a group."""
    hint = "expected a list of features by name or by place, one at least"
    listed = [] if isinstance(members, str | bytes | Mapping) or not isinstance(members, Iterable) else list(members)
    if not listed:
        raise UsageError(f"column_groups is {_short(members)} for the group {name!r}", hint=hint)
    found: list[Member] = []
    for member in listed:
        whole = isinstance(member, numbers.Integral) and not isinstance(member, bool | np.bool_)
        if not (isinstance(member, str) or (whole and int(member) >= 0)):
            raise UsageError(f"column_groups has a feature {member!r} in the group {name!r}", hint=hint)
        found.append(str(member) if isinstance(member, str) else int(member))
    return tuple(found)


def _place(group: str, member: Member, n: int, place: Mapping[str, int] | None) -> int:
    """The number of the column that a member of a group is."""
    if isinstance(member, int):
        if member >= n:
            raise UsageError(
                f"column_groups has feature {member} in the group {group!r}, and the data has {n} features",
                hint="features are counted from 0",
            )
        return member
    if place is None:
        raise UsageError(
            f"column_groups has features by name in the group {group!r}, and those of the data have no names",
            hint="give them by place, or a table with named columns",
        )
    if member not in place:
        near = difflib.get_close_matches(member, list(place), n=1, cutoff=0.0)
        raise UsageError(
            f"column_groups names {member!r} in the group {group!r}, which is no feature of the data",
            hint=f"did you mean {near[0]!r}?" if near else "name features of the data",
        )
    return place[member]


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
