"""The kinds of columns: what is counted of one, what becomes of the counts, and the entries of its rows.

Covers: ``number``, ``category``, ``boolean``, ``date``, ``tags``, ``embedding`` and ``weights``; what a user may say of
each. Does not cover: text, whose terms are counted by loops of their own (``dboost.data.prepared``), or which kind a
column is (``look``).

What is counted are whole numbers and largest values, so that the parts of a table add up to the same, however it is
cut; and the entries of a row depend on nothing but the row. So all bits are the same in memory, on Dask and in files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dboost.data.features import arrow
from dboost.errors import DataError, UsageError

MISSING = ("refuse", "zero", "indicator")
SCALES = ("none", "max")
PARTS = ("year", "month", "weekday", "hour", "age")
KINDS = ("number", "boolean", "category", "date", "tags", "embedding", "weights")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# Texts among numbers and dates that stand for a value that is missing.
MISSING_MARK = r"(?i)^\s*(|na|n/a|n\.a\.|#n/a|<na>|nan|nat|null|none|nil|-+|\?|\.)\s*$"
_YEAR = 365.25 * 24 * 3600 * 1e6
# A clock in a text, and the zone that may stand behind it.
_ZONED = r"([T ][0-9:.]+)(Z|[-+][0-9]{2}(:?[0-9]{2})?)$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]+(Z|[-+][0-9:]+)?)?$"


@dataclass(frozen=True)
class Told:
    """What is said of a column."""

    kind: str
    missing: str = "refuse"  # What a missing value is: an error, zeros, or zeros and a 1 in one more feature.
    min_count: int = 1  # Values of categories, tags and names of weights in fewer rows share one feature.
    max_values: int = 100_000  # More values than these are refused.
    # Whether numbers, and years and ages of dates, are divided by the largest absolute value of the fit, which keeps
    # zeros, and is the same for any cut of the table.
    scale: str = "none"
    parts: tuple[str, ...] = PARTS  # What becomes of a date.
    separator: str | None = None  # What stands between the tags of a text, where they are no lists.
    # Whether a user told the kind, or numbers were found in texts. Then numbers are read from texts too, and categories
    # made of numbers; else the type of the column told it, and another one is refused.
    given: bool = False

    def check(self, name: str = "") -> Told:
        """Itself, or an error that says which of its values has no meaning, of which column if it is said of one."""
        column = name or None
        for what, value, known in (
            ("kind", self.kind, KINDS),
            ("missing", self.missing, MISSING),
            ("scale", self.scale, SCALES),
        ):
            if value not in known:
                raise UsageError(f"{what}={value!r}", column=column, hint=f"use one of {', '.join(known)}")
        for what, number in (("min_count", self.min_count), ("max_values", self.max_values)):
            if not _is_whole(number) or number < 1:
                raise UsageError(f"{what}={number!r}", column=column, hint="give a whole number of at least 1")
        if not self.parts or set(self.parts) - set(PARTS):
            raise UsageError(f"parts={self.parts!r}", column=column, hint=f"give some of {', '.join(PARTS)}")
        if len(set(self.parts)) < len(self.parts):
            raise UsageError(f"parts={self.parts!r} names one twice", column=column, hint="name each once")
        if self.separator is not None and (not isinstance(self.separator, str) or not self.separator):
            raise UsageError(f"separator={self.separator!r}", column=column, hint="give a text, such as ';'")
        if not isinstance(self.given, bool):
            raise UsageError("field given: expected true or false", column=column)
        return replace(self, min_count=int(self.min_count), max_values=int(self.max_values))


OPTIONS = tuple(one.name for one in fields(Told) if one.name not in ("kind", "given"))
# Options that say nothing of a column of another kind than these.
_ONLY_OF = {
    "min_count": ("category", "boolean", "tags", "weights"),
    "max_values": ("category", "boolean", "tags", "weights"),
    "scale": ("number", "date"),
    "parts": ("date",),
    "separator": ("tags",),
}


def options_of(kind: str) -> list[str]:
    """What may be said of a column of a kind."""
    return [name for name in OPTIONS if kind in _ONLY_OF.get(name, KINDS)]


@dataclass
class Counted:
    """What the rows of a part of a column say."""

    rows: int = 0
    values: dict[str, int] = field(default_factory=dict)  # In how many rows each value, tag or name is.
    largest: float = 0.0  # The largest absolute number.
    earliest: int | None = None  # earliest, latest: The first and the last time, in microseconds since 1970.
    latest: int | None = None
    timed: bool = False  # Whether a date has a time of the day.
    width: int | None = None  # Length of an embedding.

    def merge(self, other: Counted, name: str) -> Counted:
        """Both parts together."""
        if None not in (self.width, other.width) and self.width != other.width:
            raise _another_length(name, "a part of the table", other.width, self.width)
        values = dict(self.values)
        for value, count in other.values.items():
            values[value] = values.get(value, 0) + count
        times = [time for one in (self, other) for time in (one.earliest, one.latest) if time is not None]
        return Counted(
            self.rows + other.rows,
            values,
            max(self.largest, other.largest),
            min(times, default=None),
            max(times, default=None),
            self.timed or other.timed,
            other.width if self.width is None else self.width,
        )


@dataclass(frozen=True)
class Entries:
    """What some rows of a column are."""

    rows: NDArray[np.int64]  # rows, places: Row and feature of each entry, in any order; no two are the same.
    places: NDArray[np.int64]
    numbers: NDArray[np.float64]
    unseen: int = 0  # Values that are no feature.


@dataclass(frozen=True)
class Column:
    """A column as features."""

    name: str
    told: Told
    values: tuple[str, ...] = ()  # The values with a feature of their own, sorted.
    rare: bool = False  # Whether the others share one.
    scale: float = 1.0  # What a number is divided by; of a date its age.
    latest: int | None = None  # The time that an age is counted back from.
    timed: bool = False
    width: int | None = None
    # The time in whose year the feature of the year is 0. What was saved before there was one has years as they are.
    earliest: int | None = None

    @property
    def kind(self) -> str:
        """Its kind."""
        return self.told.kind

    @property
    def origins(self) -> dict[str, str]:
        """From where the numbers of a date are counted, by the features that are such numbers."""
        said = {}
        if self.kind == "date" and "year" in self.told.parts and self.earliest is not None:
            said[f"{self.name}.year"] = f"is 0 in {_year(self.earliest)}"
        if self.kind == "date" and "age" in self.told.parts and self.latest is not None:
            said[f"{self.name}.age"] = f"is 0 on {pc.strftime(_time(self.latest), '%Y-%m-%d').as_py()}"
        return said

    def names(self) -> list[str]:
        """Names of its features."""
        made: list[str] = _OF_KIND[self.kind].names(self)
        if self.rare:
            made.append(f"{self.name} is rare")
        if self.told.missing == "indicator":
            made.append(f"{self.name} is missing")
        return made

    @property
    def why_empty(self) -> str:
        """Why it has no features, where it has none."""
        return "its lists are empty" if self.width == 0 else "no row has a value"

    def parts(self) -> list[tuple[int, bool]]:
        """How many of its features follow each other, and whether they are one group."""
        own = len(_OF_KIND[self.kind].names(self)) + self.rare
        found = _Date.groups(self) if self.kind == "date" else [(own, self.kind not in ("number", "weights"))]
        return [*found, (1, False)] if self.told.missing == "indicator" else found

    def entries(self, values: Any) -> Entries:
        """The entries of some rows; what is not of the kind, or missing and refused, is a DataError."""
        values, gone = refuse_missing(self.name, values, self.told)
        found = _nothing() if pa.types.is_null(values.type) else _OF_KIND[self.kind].entries(self, values)
        if self.told.missing != "indicator":
            return found
        at = np.flatnonzero(gone)
        last = np.full(at.size, len(_OF_KIND[self.kind].names(self)) + self.rare)
        return _joined([found, Entries(at, last, np.ones(at.size))])

    def about(self) -> dict[str, Any]:
        """All of it as JSON values."""
        mine = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "told"}
        return {**mine, "values": list(self.values), "told": {**vars(self.told), "parts": list(self.told.parts)}}


def count(name: str, values: Any, told: Told) -> Counted:
    """What some rows of a column say; a DataError as of ``Column.entries``."""
    values, _ = refuse_missing(name, values, told)
    found = Counted() if pa.types.is_null(values.type) else _OF_KIND[told.kind].count(name, values, told)
    return replace(found, rows=len(values))


def settle(name: str, counted: Counted, told: Told) -> Column:
    """The features of a column from what all its rows say; too many values are a DataError."""
    kept = sorted(value for value, rows in counted.values.items() if rows >= told.min_count)
    if len(kept) > told.max_values:
        raise DataError(
            f"{len(kept):,} different values in {counted.rows:,} rows, of at most {told.max_values:,}",
            column=name,
            hint="it may be an identifier: leave the column out ('drop'), or raise min_count or max_values",
        )
    largest = counted.largest
    if counted.earliest is not None and counted.latest is not None:
        largest = float(counted.latest - counted.earliest) / _YEAR
    return Column(
        name,
        told,
        tuple(kept),
        rare=len(kept) < len(counted.values),
        scale=largest if told.scale == "max" and largest > 0.0 else 1.0,
        latest=counted.latest,
        timed=counted.timed,
        width=counted.width,
        earliest=counted.earliest,
    )


def refuse_missing(name: str, values: Any, told: Told) -> tuple[Any, NDArray[np.bool_]]:
    """The values, and where they are missing, if they may be; among numbers and dates in texts, marks of that are."""
    marked = told.kind in ("number", "date") and arrow.is_text(values.type)
    if marked:
        values = pc.if_else(pc.match_substring_regex(values, MISSING_MARK), pa.scalar(None, values.type), values)
    gone = arrow.missing(values)
    if told.missing == "refuse" and gone.any():
        what = "null, or a mark such as NA" if marked else "null or NaN"
        raise DataError(
            f"{int(gone.sum())} of {len(gone)} values are missing ({what}), the first in row {arrow.row_of(gone)}",
            column=name,
            hint='fill them, or learn the features with missing="zero" or missing="indicator"',
        )
    return values, gone


def _nothing() -> Entries:
    none = np.zeros(0, np.int64)
    return Entries(none, none, np.zeros(0))


def _joined(parts: list[Entries]) -> Entries:
    """The entries of several features, those of one after those of another."""
    return Entries(
        np.concatenate([one.rows for one in parts]),
        np.concatenate([one.places for one in parts]),
        np.concatenate([one.numbers for one in parts]),
        sum(one.unseen for one in parts),
    )


def _another_length(name: str, where: str, found: Any, expected: Any) -> DataError:
    return DataError(
        f"{where} holds an embedding of length {found}, expected {expected}",
        column=name,
        hint="make all of them by the same model, or drop the column",
    )


def _is_no(name: str, row: int, value: Any, kind: str) -> DataError:
    shown = repr(value) if len(repr(value)) <= 40 else repr(value)[:37] + "..."
    return DataError(
        f"row {row} holds {shown}, which is no {kind}", column=name, hint="mend it, or give the column another kind"
    )


def _other_type(name: str, values: Any, expected: str) -> DataError:
    return DataError(f"the values are {values.type}; expected {expected}", column=name, hint="give it another kind")


class _Number:
    """A number as it is."""

    @staticmethod
    def names(column: Column) -> list[str]:
        return [column.name]

    @staticmethod
    def floats(name: str, values: Any, given: bool) -> NDArray[np.float64]:
        """Numbers as float64; integers that it cannot hold are refused rather than rounded."""
        if pa.types.is_dictionary(values.type):
            values = pc.cast(values, values.type.value_type)
        if arrow.is_text(values.type) and given:
            found = _each(name, values, pa.float64(), "number")
        elif pa.types.is_boolean(values.type) or arrow.is_number(values.type):
            try:
                found = pc.cast(values, pa.float64(), safe=pa.types.is_integer(values.type))
            except pa.ArrowInvalid as error:
                raise DataError(
                    "an integer is beyond 2**53, which float64 does not hold exactly",
                    column=name,
                    hint="it may be an identifier: drop the column, or give it as text to make it a category",
                ) from error
        else:
            raise _other_type(name, values, "numbers")
        floats = np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.float64)
        if np.isinf(floats).any():
            row = arrow.row_of(np.isinf(floats))
            raise DataError(f"the value of row {row} is infinity; expected finite numbers", column=name)
        return floats

    @classmethod
    def count(cls, name: str, values: Any, told: Told) -> Counted:
        return Counted(largest=float(np.nanmax(np.abs(cls.floats(name, values, told.given)), initial=0.0)))

    @classmethod
    def entries(cls, column: Column, values: Any) -> Entries:
        dense = np.nan_to_num(cls.floats(column.name, values, column.told.given), nan=0.0) / column.scale
        at = np.flatnonzero(dense)
        return Entries(at, np.zeros(at.size, np.int64), dense[at])


class _Category:
    """One feature for each value."""

    @staticmethod
    def names(column: Column) -> list[str]:
        return [f"{column.name}={value}" for value in column.values]

    @staticmethod
    def texts(name: str, values: Any, given: bool) -> Any:
        if not (given or arrow.is_text(values.type) or pa.types.is_dictionary(values.type)):
            raise _other_type(name, values, "texts or categories")
        return _as_texts(name, values)

    @classmethod
    def count(cls, name: str, values: Any, told: Told) -> Counted:
        return Counted(values=_tally(cls.texts(name, values, told.given).drop_null()))

    @classmethod
    def entries(cls, column: Column, values: Any) -> Entries:
        texts = cls.texts(column.name, values, column.told.given)
        if arrow.are_flags(values):
            # the texts that a category was learned from may have been True and False, as Python writes them
            for known in ("true", "false"):
                if known not in column.values and known.title() in column.values:
                    texts = pc.if_else(pc.equal(texts, known), known.title(), texts)
        there = np.flatnonzero(texts.is_valid().to_numpy(zero_copy_only=False))
        return _of_values(column, there, texts.drop_null(), np.ones(there.size))


class _Boolean(_Category):
    """Two features at most, ``false`` and ``true``."""

    @staticmethod
    def texts(name: str, values: Any, given: bool) -> Any:
        texts = _as_texts(name, values)
        if not arrow.are_flags(values):
            texts = pc.utf8_lower(pc.utf8_trim_whitespace(texts))
            others = pc.invert(pc.is_in(texts.drop_null(), pa.array(["true", "false"], texts.type)))
            if not arrow.is_text(values.type) or pc.any(others).as_py():
                raise _other_type(name, values, "true and false")
        return texts


class _Tags:
    """One feature for each value of a list."""

    names = _Category.names

    @staticmethod
    def flat(name: str, values: Any, told: Told) -> tuple[NDArray[np.int64], Any]:
        if arrow.is_text(values.type) and told.separator is not None:
            values = arrow.split_tags(values, told.separator)
        if not arrow.is_list(values.type) and not pa.types.is_fixed_size_list(values.type):
            advice = "a list of tags in each row" + (
                "" if told.separator else ', or separator=";" for tags in one text'
            )
            raise _other_type(name, values, advice)
        rows, inner = arrow.tags_of(values, name)
        return _once(rows, _as_texts(name, inner))

    @classmethod
    def count(cls, name: str, values: Any, told: Told) -> Counted:
        return Counted(values=_tally(cls.flat(name, values, told)[1]))

    @classmethod
    def entries(cls, column: Column, values: Any) -> Entries:
        rows, texts = cls.flat(column.name, values, column.told)
        return _of_values(column, rows, texts, np.ones(rows.size))


class _Weights:
    """The numbers of a map, one feature for each name."""

    @staticmethod
    def names(column: Column) -> list[str]:
        return [f"{column.name}:{value}" for value in column.values]

    @staticmethod
    def flat(name: str, values: Any) -> tuple[NDArray[np.int64], Any, NDArray[np.float64]]:
        if arrow.is_empty(values.type):
            return np.zeros(0, np.int64), pa.array([], pa.large_string()), np.zeros(0)
        if not arrow.is_pairs(values.type):
            raise _other_type(name, values, "a map or a list of pairs (name, number)")
        try:
            rows, keys, numbers = arrow.flat_pairs(values)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise _other_type(name, values, "pairs of a name and a number") from None
        floats = np.asarray(numbers.to_numpy(zero_copy_only=False), np.float64)
        if not np.isfinite(floats).all():
            row = int(rows[arrow.row_of(~np.isfinite(floats))])
            raise DataError(f"a weight of row {row} is missing or infinite", column=name, hint="take the pair out")
        return rows, keys, floats

    @classmethod
    def count(cls, name: str, values: Any, told: Told) -> Counted:
        rows, keys, _ = cls.flat(name, values)
        return Counted(values=_tally(_once(rows, keys)[1]))

    @classmethod
    def entries(cls, column: Column, values: Any) -> Entries:
        return _of_values(column, *cls.flat(column.name, values))


class _Embedding:
    """The numbers of lists of one length, a feature for each place."""

    @staticmethod
    def names(column: Column) -> list[str]:
        return [f"{column.name}[{j}]" for j in range(column.width or 0)]

    @staticmethod
    def dense(name: str, values: Any, width: int | None) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        fixed = pa.types.is_fixed_size_list(values.type)
        if not (fixed or arrow.is_list(values.type)) or not (
            arrow.is_number(values.type.value_type) or pa.types.is_null(values.type.value_type)
        ):
            raise _other_type(name, values, "a list of numbers in each row, of one length")
        there = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        held = values.drop_null()
        lengths = pc.list_value_length(held).to_numpy(zero_copy_only=False)
        width = int(lengths[0]) if width is None and lengths.size else width
        if lengths.size and np.any(lengths != width):
            at = arrow.row_of(lengths != width)
            raise _another_length(name, f"row {there[at]}", int(lengths[at]), width)
        flat = pc.cast(held.flatten(), pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        numbers = np.asarray(flat, np.float64).reshape(there.size, width or 0)
        if not np.isfinite(numbers).all():
            row = int(there[arrow.row_of(~np.isfinite(numbers).all(axis=1))])
            raise DataError(f"the embedding of row {row} holds a number that is missing or infinite", column=name)
        return there, numbers

    @classmethod
    def count(cls, name: str, values: Any, told: Told) -> Counted:
        there, numbers = cls.dense(name, values, None)
        return Counted(width=numbers.shape[1] if there.size else None)

    @classmethod
    def entries(cls, column: Column, values: Any) -> Entries:
        there, numbers = cls.dense(column.name, values, column.width)
        at, places = np.nonzero(numbers)
        return Entries(there[at], places, numbers[at, places])


class _Date:
    """What a date says: its month, weekday and hour, its year after the first and its years before the last of the fit.

    A year as it is, 2024, would be balanced by an intercept of its own size, and neither would tell a reader anything.
    """

    _FIXED = {"month": tuple(map(str, range(1, 13))), "weekday": WEEKDAYS, "hour": tuple(map(str, range(24)))}

    @classmethod
    def parts(cls, column: Column) -> list[str]:
        return [part for part in column.told.parts if part != "hour" or column.timed]

    @classmethod
    def names(cls, column: Column) -> list[str]:
        made = []
        for part in cls.parts(column):
            values = cls._FIXED.get(part)
            made += [f"{column.name}.{part}"] if values is None else [f"{column.name}.{part}={one}" for one in values]
        return made

    @classmethod
    def groups(cls, column: Column) -> list[tuple[int, bool]]:
        """Each part of a date is a group."""
        return [(len(cls._FIXED.get(part, (part,))), True) for part in cls.parts(column)]

    @staticmethod
    def times(name: str, values: Any) -> Any:
        """As timestamps of microseconds: day and hour as their place has them, in a typed column as in a text."""
        if pa.types.is_dictionary(values.type):
            values = pc.cast(values, values.type.value_type)
        if arrow.is_text(values.type):
            written = pc.replace_substring_regex(values, _ZONED, r"\1")
            try:
                return pc.cast(written, pa.timestamp("us"))
            except pa.ArrowInvalid:
                return _each(name, written, pa.timestamp("us"), "date")
        if pa.types.is_timestamp(values.type):
            local = values if values.type.tz is None else pc.local_timestamp(values)
            return pc.cast(local, pa.timestamp("us"), safe=False)
        if pa.types.is_date(values.type):
            return pc.cast(values, pa.timestamp("us"))
        raise _other_type(name, values, "dates")

    @classmethod
    def count(cls, name: str, values: Any, told: Told) -> Counted:
        times = cls.times(name, values)
        ends = pc.min_max(times.cast(pa.int64())).as_py()
        timed = not pa.types.is_date(values.type) and bool(
            pc.any(pc.not_equal(times, pc.floor_temporal(times, unit="day"))).as_py()
        )
        return Counted(earliest=ends["min"], latest=ends["max"], timed=timed)

    @classmethod
    def entries(cls, column: Column, values: Any) -> Entries:
        times = cls.times(column.name, values)
        there = np.flatnonzero(times.is_valid().to_numpy(zero_copy_only=False))
        times = times.drop_null()
        found, first = [_nothing()], 0
        read = {"month": (pc.month, 1), "weekday": (pc.day_of_week, 0), "hour": (pc.hour, 0)}
        for part in cls.parts(column):
            if part in read:
                take, begin = read[part]
                codes = take(times).to_numpy(zero_copy_only=False).astype(np.int64) - begin
                dense = np.ones(there.size)
            else:
                codes = np.zeros(there.size, np.int64)
                if part == "year":
                    first_year = _year(column.earliest)
                    dense = pc.year(times).to_numpy(zero_copy_only=False).astype(np.float64) - first_year
                    if column.told.scale == "max" and column.latest is not None:
                        dense /= max(_year(column.latest) - first_year, 1)
                else:
                    ages = (column.latest or 0) - times.cast(pa.int64()).to_numpy(zero_copy_only=False)
                    dense = ages.astype(np.float64) / _YEAR / column.scale
            at = np.flatnonzero(dense)
            found.append(Entries(there[at], first + codes[at], dense[at]))
            first += len(cls._FIXED.get(part, (part,)))
        return _joined(found)


_OF_KIND: Mapping[str, Any] = {
    "number": _Number,
    "boolean": _Boolean,
    "category": _Category,
    "date": _Date,
    "tags": _Tags,
    "embedding": _Embedding,
    "weights": _Weights,
}


def _is_whole(value: Any) -> bool:
    """Whether a parameter is an integer, of Python or of NumPy."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _time(microseconds: int) -> Any:
    return pa.scalar(microseconds, pa.timestamp("us"))


def _year(microseconds: int | None) -> int:
    """The year of a time; 0 of none."""
    return 0 if microseconds is None else int(pc.year(_time(microseconds)).as_py())


def _as_texts(name: str, values: Any) -> Any:
    try:
        return arrow.texts_of(values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise _other_type(name, values, "one value in each row") from None


def _tally(texts: Any) -> dict[str, int]:
    """In how many rows each text is."""
    found = pc.value_counts(texts)
    return dict(zip(found.field(0).to_pylist(), found.field(1).to_pylist(), strict=True))


def _once(rows: NDArray[np.int64], texts: Any) -> tuple[NDArray[np.int64], Any]:
    """The same, of which no row has a text twice."""
    codes = texts.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    _, first = np.unique(rows * (int(codes.max(initial=0)) + 1) + codes, return_index=True)
    if first.size == rows.size:
        return rows, texts
    return rows[first], texts.take(pa.array(first))


def _of_values(column: Column, rows: NDArray[np.int64], texts: Any, numbers: NDArray[np.float64]) -> Entries:
    """The entries of values by name; those that have no feature share one where there is one for rare ones."""
    found = pc.index_in(texts, value_set=pa.array(column.values, pa.large_string()))
    places = pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    unseen = int(np.count_nonzero(places < 0))
    if column.rare:
        places = np.where(places < 0, len(column.values), places)
    kept = places >= 0
    return _summed(Entries(rows[kept], places[kept], numbers[kept], unseen))


def _summed(found: Entries) -> Entries:
    """The entries with those of one place added up, in the order in which the row has them."""
    width = int(found.places.max(initial=0)) + 1
    keys, inverse = np.unique(found.rows * width + found.places, return_inverse=True)
    if keys.size == found.rows.size:
        return found
    numbers = np.bincount(inverse, weights=found.numbers, minlength=keys.size).astype(np.float64)
    return Entries(keys // width, keys % width, numbers, found.unseen)


def _each(name: str, texts: Any, form: Any, kind: str) -> Any:
    """Texts as another type; the first that is none is named."""
    trimmed = pc.utf8_trim_whitespace(texts)
    try:
        return pc.cast(trimmed, form)
    except pa.ArrowInvalid:
        for row, text in enumerate(trimmed):
            try:
                pc.cast(text, form)
            except pa.ArrowInvalid:
                raise _is_no(name, row, texts[row].as_py(), kind) from None
        raise


def looks_like_dates(texts: Any) -> Any:
    """Which texts begin as a date of ISO 8601 and hold nothing else."""
    return pc.match_substring_regex(texts, _DATE)


def restored(about: Any) -> Column:
    """A column from its JSON form (a ``Document``), trusting nothing."""
    told = about.child("told")
    given = {key: told.fields.get(key) for key in (*OPTIONS, "kind", "given")}
    given["parts"] = tuple(told.strings("parts") or ())
    values = tuple(about.strings("values") or ())
    name = about.text("name")
    latest, width, earliest = (about.fields.get(key) for key in ("latest", "width", "earliest"))
    for what, number in (("latest", latest), ("width", width), ("earliest", earliest)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
            raise UsageError(f"field {what}: expected a whole number")
    if list(values) != sorted(set(values)) or (width is not None and width < 0):
        raise UsageError("field values: expected distinct texts in order")
    if given["kind"] in ("number", "date", "embedding") and values:
        raise UsageError("field values: expected none of such a kind")
    flags = [about.fields.get(key) for key in ("rare", "timed")]
    scale = about.number("scale")
    if any(not isinstance(flag, bool) for flag in flags) or not scale > 0.0:
        raise UsageError("fields rare, timed, scale: expected true or false, and a number above 0")
    return Column(name, Told(**given).check(name), values, flags[0], scale, latest, flags[1], width, earliest)
