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

from dboost.compiled.text.murmur import murmur3
from dboost.data.features import arrow
from dboost.data.features.kinds import looks_like_dates
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


@dataclass(frozen=True)
class Seen:
    """What the rows of a part of a column say of its kind."""

    # ``null``, ``number``, ``boolean``, ``category``, ``date``, ``text``, ``list``, ``numbers`` (lists of them),
    # ``weights``, or the Arrow type of what is none of these.
    form: str
    # rows, words, dates, written: Texts (or lists) that are there, their words (of lists, whether one has an element),
    # how many of them are dates, and how many a written list or dict.
    rows: int = 0
    words: int = 0
    dates: int = 0
    written: int = 0
    hashes: NDArray[np.uint32] | None = None  # The smallest hashes of the texts, ascending.
    short: int = 0  # short, long: Lengths of lists of numbers.
    long: int = 0

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
        )

    def distinct(self) -> float:
        """Different texts, about; there are no more than rows."""
        if self.hashes is None or len(self.hashes) < _SKETCH:
            return 0.0 if self.hashes is None else float(len(self.hashes))
        return min(float(self.rows), (_SKETCH - 1) * 2.0**32 / (float(self.hashes[-1]) + 1.0))

    def kind(self, name: str) -> tuple[str, str]:
        """The kind, and why, in words.

        Raises DataError: Values of this type are no features.
        """
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
            hint="leave the column out ('drop')",
        )

    def _of_text(self) -> tuple[str, str]:
        if self.dates == self.rows:
            return "date", "texts that are dates"
        words, distinct = self.words / max(self.rows, 1), self.distinct()
        said = f"{words:.3g} words a value, {distinct:,.0f} different values"
        if words >= _WORDS:
            return TEXT, said
        if distinct > max(_IDENTIFIERS, _SHARE * self.rows):
            # a name of a person has two words, an identifier one
            return (TEXT, said) if words >= 1.5 else (DROP, f"{said}: an identifier")
        return "category", said


def look(name: str, values: Any) -> Seen:
    """What some rows of a column say of its kind."""
    form, types = values.type, pa.types
    if types.is_null(form):
        return Seen("null")
    if types.is_dictionary(form):
        return Seen("boolean" if types.is_boolean(form.value_type) else "category")
    if types.is_boolean(form):
        return Seen("boolean")
    if arrow.is_number(form):
        return Seen("number")
    if types.is_date(form) or types.is_timestamp(form):
        return Seen("date")
    if arrow.is_text(form):
        return _look_at_texts(pc.cast(values.drop_null(), pa.large_string()))
    if arrow.is_pairs(form):
        return Seen("weights")
    if types.is_struct(form) and not form.num_fields:
        return Seen("list", len(values))
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


def _look_at_texts(texts: Any) -> Seen:
    begin = pc.utf8_slice_codeunits(texts, 0, _BEGIN)
    words = pc.sum(pc.count_substring_regex(begin, r"\S+")).as_py() or 0
    dates = pc.sum(looks_like_dates(begin)).as_py() or 0
    written = pc.sum(pc.match_substring_regex(texts, _WRITTEN)).as_py() or 0
    distinct = pa.concat_arrays([texts.unique().drop_null()])
    _, offsets, data = distinct.buffers()
    hashes = np.empty(len(distinct), np.int32)
    if len(distinct):
        places = np.frombuffer(offsets, np.int64)[distinct.offset : distinct.offset + len(distinct) + 1]
        stored = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
        stored.flags.writeable = False
        _HASHES(stored, places.copy(), hashes)
    if not len(texts):
        return Seen("null")
    return Seen("text", len(texts), int(words), int(dates), int(written), np.unique(hashes.view(np.uint32))[:_SKETCH])


def look_at_all(columns: Mapping[str, Any]) -> dict[str, Seen]:
    """What some rows of several columns say."""
    return {name: look(name, values) for name, values in columns.items()}


def _several(name: str, one: str, other: str) -> DataError:
    return DataError(
        f"a part of the table holds {other}, another {one}", column=name, hint="write all parts with one schema"
    )
