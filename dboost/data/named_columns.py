"""Columns of a table that are given by name: labels, weights, groups and folds, which then are no features.

Covers: pandas, Arrow and polars tables, and dask DataFrames. Does not cover: the values (``labels``, ``memory``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dboost.data.absent_column import listed, nearest
from dboost.errors import DataError, UsageError, type_name

WEIGHT, GROUPS = "sample_weight", "groups"
# The attribute of rows that a transform made in which they keep what they were made from.
BEHIND = "behind_rows"
Named = Mapping[str, Any]
"""What a column is given for ("y", "sample_weight", ...), and its name, or a tuple of names."""


def refuse_unread(X: Any) -> None:
    """Refuse (UsageError) polars' LazyFrame, a query that has not been run: it looks like a table and holds no rows."""
    if type(X).__module__.split(".")[0] == "polars" and hasattr(X, "collect"):
        raise UsageError(
            f"X is a polars {type(X).__name__}, which holds no rows yet",
            hint="use X.collect(), or X.sink_parquet(path) and dboost.ParquetData(path)",
        )


def names_of_rows(X: Any) -> list[Any] | None:
    """Names of the columns of rows that are dicts; None of anything else."""
    if not isinstance(X, list) or not isinstance(next((row for row in X if row is not None), None), Mapping):
        return None
    for number, row in enumerate(X):
        if not isinstance(row, Mapping):
            raise DataError(f"row {number} is {type_name(row)}, expected a dict", hint="drop it, or give {} for it")
    return list(dict.fromkeys(name for row in X for name in row))


def as_named(X: Any) -> Any:
    """A batch, a reader or another export of Arrow as a Table, whose names can be read; anything else as it is."""
    home = type(X).__module__.split(".")[0]
    exports = hasattr(X, "__arrow_c_stream__") and not hasattr(X, "__array_interface__")
    if home in ("pandas", "polars") or not (exports or hasattr(X, "__arrow_c_array__")):
        return X
    import pyarrow as pa

    return X if isinstance(X, pa.Table | pa.Array | pa.ChunkedArray) else pa.table(X)


def names_of(X: Any) -> list[Any]:
    """Names of the columns of a table; none of an array."""
    for attribute in ("column_names", "columns"):
        if hasattr(X, attribute):
            return list(getattr(X, attribute))
    return []


def behind(X: Any) -> Any:
    """What rows were made from, and by which transform; None where nobody knows."""
    return getattr(X, "__dict__", {}).get(BEHIND)


def table_behind(X: Any) -> Any:
    """The table that rows were made from by a transform; None where nobody knows of one."""
    found = behind(X)
    return None if found is None else found.table


def take_column(X: Any, name: str, what: str) -> tuple[Any, Any]:
    """A table without a column, and that column; `what` is the parameter that names it, for the UsageError."""
    if isinstance(X, list) and X and isinstance(X[0], Mapping) and any(name in row for row in X):
        return X, [row.get(name) for row in X]
    names = names_of(X)
    if name not in names:
        raise UsageError(f"{what}={name!r} names no column of X", hint=_advice(name, names, what))
    if names.count(name) > 1:
        raise DataError("two columns have the same name", column=name, hint="rename one of them")
    column = X.column(name) if hasattr(X, "column_names") else X[name]
    return without(X, [name]), column


def unknown_column(name: Any, names: list[Any]) -> UsageError:
    """The error of a column that is named and is not there."""
    known = list(map(str, names))
    hint = nearest(str(name), known).strip() or listed(known)
    return UsageError("columns names a column that is not there", column=str(name), hint=hint)


def _advice(name: str, names: list[Any], what: str) -> str:
    values = {"y": "labels", WEIGHT: "weights"}.get(what, "values")
    near = nearest(name, [other for other in names if isinstance(other, str)]).strip()
    return near or f"give {values}, or the name of a column of a table"


def without(X: Any, names: Iterable[Any]) -> Any:
    """A table without some columns; names that it does not have are no matter."""
    here = set(names_of(X)).intersection(names)
    if not here:
        return X
    gone = [name for name in names_of(X) if name in here]
    if hasattr(X, "column_names"):
        return X.drop_columns(gone)
    # polars takes the names as they are, pandas and dask would take them for rows
    return X.drop(gone) if type(X).__module__.split(".")[0] == "polars" else X.drop(columns=gone)


def split_named(X: Any, y: Any, sample_weight: Any, groups: Any = None) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
    """X, y, weights and groups, those given by name taken out of the table (or the one behind X), and these names."""
    named: dict[str, Any] = {}
    X = as_named(X)
    table = table_behind(X)
    found = {"y": y, WEIGHT: sample_weight, GROUPS: groups}
    for what, value in found.items():
        if isinstance(value, str):
            named[what] = value
            rest, found[what] = take_column(X if table is None else table, value, what)
            if table is not None and what != "y":
                _refuse_feature(behind(X).transform, value, what)
            X = rest if table is None else X
    return X, found["y"], found[WEIGHT], found[GROUPS], named


def _refuse_feature(transform: Any, name: str, what: str) -> None:
    """A transform has made features of all columns that it was not told to drop; the label alone it knows of."""
    if getattr(transform, "kinds_", {}).get(name, "drop") != "drop":
        raise UsageError(
            f"{what}={name!r} is a column that the transform before has made features of",
            hint=f'tell the transform to leave it out: columns={{"{name}": "drop"}}',
        )


def as_trained(given: Sequence[Any], trained: Sequence[Any]) -> list[Any]:
    """Names of several label columns in the order of the training; other names stay in their order.

    Raises DataError: A column of the training stands in the place of another one.
    """
    if set(given) == set(trained):
        return list(trained)
    for name, other in zip(given, trained, strict=False):
        if name != other and name in trained:
            raise DataError(
                f"this label is given in the place of {other!r}",
                column=str(name),
                hint=f"give the labels as in the training: {', '.join(map(repr, trained))}",
            )
    return list(given)


def labels_as_trained(labels: Any, trained: Sequence[Any] | None) -> Any:
    """Several columns of labels in the order of the training, if any; labels without names stay as they are."""
    given = [] if trained is None else names_of(labels)
    if trained is None or not given:
        return labels
    order = as_trained(given, trained)
    if order == given:
        return labels
    return labels.select(order) if hasattr(labels, "column_names") else labels[order]


def flat(named: Named) -> list[Any]:
    """All names of columns that are given by name; what is no name, in a manifest that was edited, is none."""
    found: list[Any] = []
    for name in named.values():
        found.extend(name if isinstance(name, list | tuple) else [name])
    return [name for name in found if isinstance(name, str)]
