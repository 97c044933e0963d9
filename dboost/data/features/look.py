"""Which kind a column is, from its type and, of texts and lists, from its values.

Covers: what the parts of a table say, and the rule. Does not cover: what the kinds are (``kinds``).

The parts are merged exactly, so that the answer does not depend on how a table is cut. How many different texts there
are is known exactly up to ``_SKETCH`` of them, and beyond from the smallest of their hashes (Bar-Yossef et al., 2002).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dboost.compiled.read_only import read_only
from dboost.compiled.text.murmur import murmur3
from dboost.data.features import arrow
from dboost.data.features.kinds import MISSING_MARK, looks_like_dates
from dboost.data.prepared.text_words import text_and_offsets
from dboost.errors import DataError

TEXT, DROP = "text", "drop"
# Texts of more words than these on average are documents, of which each word is a feature.
_WORDS = 2.5
# A value of which there is another in less than half of the rows names the row, and says nothing of others.
_SHARE, _IDENTIFIERS = 0.5, 1_000
_SKETCH = 4_096
# Characters of a text whose words are counted; what follows says nothing else of its kind.
_BEGIN = 200
# The compiled loops of text have no types yet.
_HASHES: Any = murmur3
_WRITTEN = r"(?s)^(\[.*\]|\{.*\})$"
# Shapes of texts that a person reads as something else than a category; most of a column have one for it to be told.
_GROUPED = r"[-+]?[0-9]{1,3}([.,'_ \x{a0}\x{2009}\x{202f}]?[0-9]{3})*([.,][0-9]+)?"
_NAME = r"\p{L}{3,9}[.,]?"
_SHAPES = {
    "missing": MISSING_MARK,
    "point": r"^[-+]?(inf|[0-9]*\.[0-9]+([eE][-+]?[0-9]+)?|[0-9]+\.?[eE][-+]?[0-9]+)$",
    "whole": r"^[-+]?(0|[1-9][0-9]*)\.?$",
    "comma": r"^[-+]?([0-9]+([. \x{a0}][0-9]{3})*,([0-9]{1,2}|[0-9]{4,})|0,[0-9]+)$",
    "either": r"^[-+]?[1-9][0-9]{0,2},[0-9]{3}$",
    "grouped": r"^[-+]?[0-9]{1,3}([.,'_ \x{a0}\x{2009}\x{202f}][0-9]{3})+([.,][0-9]+)?$",
    "amount": rf"^(\({_GROUPED}\)|[-+]?(\p{{Sc}}|[A-Z]{{3}}\s)\s*{_GROUPED}|"
    rf"{_GROUPED}\s*(%|‰|\p{{Sc}}|[kKM]|\s[A-Za-zµ]{{1,4}}))$",
    "day": rf"^({_NAME} )?([0-9]{{4}}[./ -]([0-9]{{1,2}}|{_NAME})[./ -][0-9]{{1,2}}|[0-9]{{1,2}}[./ -]+([0-9]{{1,2}}|"
    rf"{_NAME})[./ -]+[0-9]{{4}}|{_NAME} [0-9]{{1,2}},? [0-9]{{4}}|[0-9]{{2}}[./-][0-9]{{2}}[./-][0-9]{{2}}|"
    r"[0-9]{1,2}/[0-9]{1,2}/[0-9]{2})([T ][0-9:.]+.*)?$",
    "clock": r"^[0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?$",
    "digits": r"^[-+\x{2212}]?\p{Nd}+([.,]\p{Nd}+)?$",
    "tags": r"^[^;|]+([;|]\s*[^;|]+)+$",
}
_BLANKS = "blanks"
NUMBERS_IN_TEXTS = "texts that are numbers"
_NUMBER_TOLD = "to use them as numbers, write them like 1234.5"
# What is said of a column, by the shape that most of its texts have, and what to do; the first that fits is said.
_REMARKS = {
    "point": ("numbers", "tell the kind 'number' and mend the others"),
    "whole": ("whole numbers", "tell the kind 'number', or 'category' where they are names"),
    "day": ("dates", "to use their parts, write them like 2021-03-31"),
    "comma": ("numbers with a decimal comma", f"{_NUMBER_TOLD}, or of CSV give decimal=','"),
    "grouped": ("numbers with separators of thousands", _NUMBER_TOLD),
    "amount": ("numbers with a unit or a sign", _NUMBER_TOLD),
    "clock": ("times of the day", "to use them as numbers, write them as hours like 13.5"),
    "digits": ("numbers in other digits or with another sign", _NUMBER_TOLD),
}
# A share of texts that have a shape, and fewer different whole numbers than these may well be names of categories.
_MOST, _CODES = 0.9, 12
# Whole numbers that are days written without signs between.
_FIRST_DAY, _LAST_DAY = 1900_01_01, 2100_12_31
# A share of texts with a semicolon or a bar inside from which on they look like tags.
_SOME = 0.3


@dataclass(frozen=True)
class Seen:
    """What the rows of a part of a column say of its kind."""

    # ``null``, ``number``, ``boolean``, ``category``, ``date``, ``text``, ``list``, ``numbers`` (lists of them),
    # ``weights``, or the Arrow type of what is none of these.
    form: str
    # rows, words, dates, written: Texts (or lists, or whole numbers) that are there, their words (of lists, whether one
    # has an element; of whole numbers their sum), how many of them are dates, and how many a written list or dict.
    rows: int = 0
    words: int = 0
    dates: int = 0
    written: int = 0
    hashes: NDArray[np.uint32] | None = None  # The smallest hashes of the texts, ascending.
    short: int = 0  # short, long: Least and greatest of the lengths of lists of numbers, or of whole numbers.
    long: int = 0
    shapes: tuple[int, ...] = ()  # How many texts have each of ``_SHAPES``, and how many have blanks around them.

    def merge(self, other: Seen, name: str) -> Seen:
        """Both parts together."""
        if other.form == "null":
            return self
        if self.form == "null":
            return other
        # lists and dicts without an element tell no type
        for empty, full in ((self, other), (other, self)):
            if empty.form == "list" and not empty.words and full.form in ("numbers", "weights"):
                return replace(full, rows=self.rows + other.rows, short=0)
        if self.form != other.form:
            raise _several(name, self.form, other.form)
        hashes = None
        if self.hashes is not None and other.hashes is not None:
            hashes = np.unique(np.concatenate([self.hashes, other.hashes]))[:_SKETCH]
        return Seen(
            self.form,
            self.rows + other.rows,
            self.words + other.words,
            self.dates + other.dates,
            self.written + other.written,
            hashes,
            min(self.short, other.short),
            max(self.long, other.long),
            tuple(map(sum, zip(self.shapes, other.shapes, strict=True))),
        )

    def distinct(self) -> float:
        """Different texts, about; there are no more than rows."""
        if self.hashes is None or len(self.hashes) < _SKETCH:
            return 0.0 if self.hashes is None else float(len(self.hashes))
        return min(float(self.rows), (_SKETCH - 1) * 2.0**32 / (float(self.hashes[-1]) + 1.0))

    def kind(self, name: str) -> tuple[str, str]:
        """The kind, and why, in words; values of a type that is no feature are a DataError."""
        if self.form == "null":
            return DROP, "no value is there"
        if self.form == "numbers":
            if self.short != self.long:
                raise DataError(
                    f"lists of {self.short} to {self.long} numbers, so no embedding, whose lists have one length",
                    column=name,
                    hint="leave the column out ('drop'), or say that they are 'tags'",
                )
            return "embedding", f"lists of {self.long} numbers"
        if self.form == "list":
            return "tags", "lists of values"
        if self.form == "text":
            if self.written == self.rows:
                raise DataError(
                    "the values are texts of lists or dicts, such as Dask makes of Python's objects",
                    column=name,
                    hint="give lists of Arrow or Parquet, make the frame under "
                    "dask.config.set({'dataframe.convert-string': False}), or tell the kind of the column",
                )
            return self._of_text()
        if self.form in ("number", "boolean", "category", "date", "weights"):
            return self.form, "the type of the column"
        raise DataError(
            f"the values are {self.form}, which is no kind of feature",
            column=name,
            hint="leave the column out ('drop'), or write the values as numbers or texts",
        )

    def _of_text(self) -> tuple[str, str]:
        count = self._count()
        numbers, rows = count["point"] + count["whole"], self.rows - count["missing"]
        if self.dates == rows > 0:
            return "date", "texts that are dates"
        # whole numbers alone may be names of categories, such as 10115, which somebody keeps as texts
        if numbers == rows > 0 and (count["point"] or count["missing"]):
            return "number", NUMBERS_IN_TEXTS
        words, distinct = self.words / max(self.rows, 1), self.distinct()
        said = f"{words:.3g} words a value, {distinct:,.0f} different values"
        if words >= _WORDS:
            return TEXT, said
        if distinct > max(_IDENTIFIERS, _SHARE * self.rows):
            # a name of a person has two words, an identifier one
            return (TEXT, said) if words >= 1.5 else (DROP, f"{said}: an identifier")
        return "category", said

    def _count(self) -> dict[str, int]:
        return dict(zip((*_SHAPES, _BLANKS), self.shapes, strict=True))

    def remark(self, kind: str) -> str:
        """What a person may see in values that are taken for a kind, and what to do; empty where there is nothing."""
        if self.form == "number":
            return self._on_numbers()
        if self.form != "text" or kind not in (TEXT, DROP, "category"):
            return ""
        count = self._count()
        if count["whole"] == self.rows and self.distinct() <= _CODES:
            return ""
        count["point"] += count["whole"] if count["point"] else 0
        count["comma"] += count["either"] + count["whole"] if count["comma"] else 0
        for shape, (what, remedy) in _REMARKS.items():
            if count[shape] and count[shape] + count["missing"] >= _MOST * self.rows:
                return f"{count[shape]:,} of {self.rows:,} texts look like {what}; {remedy}"
        if kind == "category" and count["tags"] >= _SOME * self.rows:
            return f"{count['tags']:,} of {self.rows:,} texts look like tags; tell the kind 'tags' and their separator"
        if kind == "category" and count[_BLANKS]:
            return f"{count['blanks']:,} of {self.rows:,} texts begin or end with a blank: other values than without it"
        return ""

    def _on_numbers(self) -> str:
        if (
            self.rows > _CODES
            and self.long - self.short + 1 == self.rows
            and self.words == self.rows * (self.short + self.long) // 2
        ):
            return "whole numbers that count the rows look like an identifier; tell 'drop' where they are one"
        if _FIRST_DAY <= self.short <= self.long <= _LAST_DAY:
            return "whole numbers like 20210331 look like dates; to use their parts, write them like 2021-03-31"
        return ""


def look(name: str, values: Any, point: bool = True) -> Seen:
    """What some rows of a column say of its kind; `point` is whether one in a text may stand before a fraction."""
    form, types = values.type, pa.types
    if types.is_null(form):
        return Seen("null")
    if types.is_dictionary(form):
        if isinstance(form.value_type, pa.BaseExtensionType) or types.is_nested(form.value_type):
            return Seen(str(form.value_type))
        return Seen("boolean" if types.is_boolean(form.value_type) else "category")
    if types.is_boolean(form):
        return Seen("boolean")
    if types.is_integer(form):
        held = values.drop_null()
        ends = pc.min_max(held).as_py()
        total = int(held.to_numpy(zero_copy_only=False).sum(dtype=np.float64))
        return Seen("number", len(held), total, short=ends["min"] or 0, long=ends["max"] or 0)
    if arrow.is_number(form):
        return Seen("number")
    if types.is_date(form) or types.is_timestamp(form):
        return Seen("date")
    if arrow.is_text(form):
        return _look_at_texts(pc.cast(values.drop_null(), pa.large_string()), point)
    if arrow.is_pairs(form):
        return Seen("weights")
    if types.is_fixed_size_list(form) or arrow.is_list(form):
        held = values.drop_null()
        lengths = pc.list_value_length(held)
        ends = pc.min_max(lengths).as_py()
        numbers = types.is_floating(form.value_type) or types.is_decimal(form.value_type)
        if numbers or (types.is_fixed_size_list(form) and arrow.is_number(form.value_type)):
            return Seen("numbers", len(held), 1, short=ends["min"] or 0, long=ends["max"] or 0)
        if types.is_null(form.value_type) and not ends["max"]:
            return Seen("list", len(held))
        inner = form.value_type
        if not (arrow.is_text(inner) or types.is_integer(inner) or types.is_dictionary(inner) or types.is_null(inner)):
            return Seen(str(form))
        return Seen("list", len(held), 1)
    return Seen(str(form))


def _look_at_texts(texts: Any, point: bool) -> Seen:
    if not len(texts):
        return Seen("null")
    begin = pc.utf8_slice_codeunits(texts, 0, _BEGIN)
    words = pc.sum(pc.count_substring_regex(begin, r"\S+")).as_py() or 0
    dates = pc.sum(looks_like_dates(begin)).as_py() or 0
    written = pc.sum(pc.match_substring_regex(texts, _WRITTEN)).as_py() or 0
    distinct = texts.unique()
    hashes = np.empty(len(distinct), np.int32)
    stored, places = text_and_offsets(distinct)
    _HASHES(read_only(stored), places, hashes)
    bare = pc.utf8_trim_whitespace(begin)
    flags = [pc.match_substring_regex(bare, pattern) for pattern in _SHAPES.values()]
    shapes = [int(pc.sum(one).as_py()) for one in (*flags, pc.not_equal(bare, begin))]
    if not point:
        shapes[list(_SHAPES).index("point")] = 0
    smallest = np.unique(hashes.view(np.uint32))[:_SKETCH]
    return Seen("text", len(texts), int(words), int(dates), int(written), smallest, shapes=tuple(shapes))


def look_at_all(columns: Mapping[str, Any]) -> dict[str, Seen]:
    """What some rows of several columns say."""
    return {name: look(name, values) for name, values in columns.items()}


def _several(name: str, one: str, other: str) -> DataError:
    return DataError(
        f"a part of the table holds {other}, another {one}", column=name, hint="write all parts with one schema"
    )
