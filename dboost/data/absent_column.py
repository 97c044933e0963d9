"""The error for a column that is named and not there: it tells the nearest name there is, and all others.

Covers: one column that no file has. Does not cover: a column that some files of a data set have (``parquet_plan``).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from dboost.errors import DataError

# Names that are listed in a message of one line; a wide table has thousands.
_LISTED = 12
# difflib's measure of likeness from which a name is offered for another; its own default for near matches.
_ALIKE = 0.6
# The role of a column whose words become features.
DOCUMENTS = "text"
# What may stand between the names of a first row of CSV.
_MARKS = (",", ";", "\t", "|", ":", " ", "^", "~")


def absent_column(name: str, known: Iterable[str], file: str, role: str | None = None) -> DataError:
    """The error for a column that is not in a file, with the columns there are; `role` is what it is for."""
    columns = list(known)
    what = "there is no such column" if role in (None, DOCUMENTS) else f"there is no such {role} column"
    hint = f"{nearest(name, columns)}{listed(columns)}"
    # a first row that was not cut: other files than CSV have no such names
    uncut = [mark for mark in _MARKS if len(columns) == 1 and name in columns[0].split(mark)]
    if uncut:
        hint += f"; say what stands between the fields: separator={uncut[0]!r}"
    elif role == DOCUMENTS:
        hint += "; text= (--text) names that of the documents, --column find takes each column by its kind"
    return DataError(what, file=file, column=name, hint=hint)


def nearest(name: str, known: Iterable[str]) -> str:
    """The question for the nearest name, or nothing where none is near; letters of other case are the nearest."""
    columns = list(known)
    alike = [other for other in columns if other.lower() == name.lower()]
    alike = alike or difflib.get_close_matches(name, columns, n=1, cutoff=_ALIKE)
    return f"did you mean {alike[0]!r}? " if alike else ""


def listed(columns: list[str]) -> str:
    """The columns there are, the first of them where they are many."""
    if not columns:
        return "the file has no columns"
    more = f" and {len(columns) - _LISTED} more" if len(columns) > _LISTED else ""
    return f"there are {', '.join(map(repr, columns[:_LISTED]))}{more}"
