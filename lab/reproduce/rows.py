"""Numbers of a reproduction: records with named columns, written as CSV and read back to the last bit.

Covers: choosing, columns, means with standard errors over repeats, CSV both ways.
Does not cover: what the numbers mean (``claims``), or how they are drawn (``figures``).
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Value = str | int | float | bool | None


class Rows(Sequence[Mapping[str, Any]]):
    """Records with a common set of columns.

    Parameters
    ----------
    records : iterable of mappings
        Values are texts, numbers, booleans or None. The columns are the keys in the order of their first appearance.

    Examples
    --------
    >>> rows = Rows([{"penalty": "l1", "error": 0.5}, {"penalty": "l1/l2", "error": 0.25}])
    >>> rows.where(penalty="l1/l2").column("error").tolist()
    [0.25]
    """

    def __init__(self, records: Iterable[Mapping[str, Any]] = ()) -> None:
        self._records: tuple[dict[str, Any], ...] = tuple(
            {name: _plain(value) for name, value in record.items()} for record in records
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(dict.fromkeys(name for record in self._records for name in record))

    def where(self, **wanted: Any) -> Rows:
        """The records in which each named column has the wanted value."""
        return Rows(r for r in self._records if all(r.get(name) == value for name, value in wanted.items()))

    def column(self, name: str) -> NDArray[np.float64]:
        """One column of numbers, NaN where a record has none.

        Raises
        ------
        KeyError
            When no record has the column.
        """
        self._known(name)
        return np.array([math.nan if r.get(name) is None else float(r[name]) for r in self._records])

    def values(self, name: str) -> list[Any]:
        """The distinct values of a column, in the order of their first appearance."""
        self._known(name)
        return list(dict.fromkeys(record.get(name) for record in self._records))

    def means(self, by: Sequence[str], of: Sequence[str]) -> Rows:
        """Mean and standard error of the columns `of` over the records that agree in the columns `by`.

        Returns
        -------
        Rows
            With the columns `by`, ``repeats``, and for each name in `of` the mean under its name and the standard
            error under ``<name>_se`` (None for a single record).
        """
        for name in (*by, *of):
            self._known(name)
        groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
        for record in self._records:
            groups.setdefault(tuple(record.get(name) for name in by), []).append(record)
        found = []
        for place, group in groups.items():
            line: dict[str, Any] = dict(zip(by, place, strict=True)) | {"repeats": len(group)}
            for name in of:
                line[name], line[f"{name}_se"] = mean_and_error([float(record[name]) for record in group])
            found.append(line)
        return Rows(found)

    def _known(self, name: str) -> None:
        if name not in self.columns:
            raise KeyError(f"no column {name!r}; there are {', '.join(self.columns) or 'none'}")

    def __getitem__(self, index: Any) -> Any:
        return Rows(self._records[index]) if isinstance(index, slice) else dict(self._records[index])

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(record) for record in self._records)

    def __add__(self, other: Rows) -> Rows:
        return Rows([*self, *other])

    def to_csv(self) -> str:
        """The records as CSV with a header; numbers have as many digits as it takes to read them back exactly."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        writer.writeheader()
        for record in self._records:
            writer.writerow({name: "" if value is None else repr_of(value) for name, value in record.items()})
        return text.getvalue()

    @classmethod
    def from_csv(cls, text: str) -> Rows:
        """Read what `to_csv` wrote."""
        return cls(
            {name: _parse(cell) for name, cell in record.items()} for record in csv.DictReader(io.StringIO(text))
        )


Tables = Mapping[str, Rows]


def mean_and_error(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and its standard error (None for a single value)."""
    array = np.asarray(values, dtype=np.float64)
    error = float(array.std(ddof=1) / math.sqrt(len(array))) if len(array) > 1 else None
    return float(array.mean()), error


def repr_of(value: Value) -> str:
    """The text of a value in a CSV file."""
    return repr(value) if isinstance(value, float) else str(value)


def _plain(value: Any) -> Value:
    found = value.item() if isinstance(value, np.generic) else value
    if found is None or isinstance(found, str | bool | int | float):
        return found
    raise TypeError(f"a table of numbers holds {type(value).__name__}; expected text, number, boolean or None")


def _parse(cell: str) -> Value:
    if cell == "":
        return None
    if cell in ("True", "False"):
        return cell == "True"
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell
