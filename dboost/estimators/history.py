"""The rounds of a fit as a small table.

Covers: ``Table``, a read-only sequence of records that prints itself and converts to pandas, and the round in which
the induction of features stopped.
Does not cover: making the records (``dboost.boosting.systems``).

The seconds of a round, ``seconds``, are the sum of four columns:

- ``seconds_kernels``: in each pass, the worker that took longest to read partitions, run the leaf functions on them and
  merge their sums; where workers reduce shards, the longest reduction as well. Measured inside the tasks, which return
  it with their sums. In-process: all time inside passes.
- ``seconds_network``: in each pass, the longest time a worker took to receive arguments from other workers and to
  decode them, and the time from the moment all results were ready to the moment all were here, decoded. What the
  scheduler copies from the driver to workers cannot be told apart from its other work. In-process: 0.
- ``seconds_scheduler``: the rest of the wait for passes: turns through the scheduler, queues of the workers, and tasks
  that had to be repeated. In-process: 0.
- ``seconds_driver``: everything outside of waits: the solver, packing arguments, merging what workers returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np

from dboost import notebook_html as page
from dboost.files.documents import plain

_SHOWN = 12


class Table(Sequence[Mapping[str, Any]]):
    """Records with a common set of columns.

    Parameters
    ----------
    records : iterable of mappings
        The columns are the keys in the order of their first appearance.

    Examples
    --------
    >>> table = Table([{"round": 1, "gap": 0.5}, {"round": 2, "gap": 0.25}])
    >>> table[-1]["gap"], table.column("round").tolist()
    (0.25, [1, 2])
    """

    def __init__(self, records: Iterable[Mapping[str, Any]] = ()) -> None:
        self._records = tuple(dict(record) for record in records)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(dict.fromkeys(name for record in self._records for name in record))

    @property
    def records(self) -> tuple[dict[str, Any], ...]:
        """The records themselves."""
        return tuple(dict(record) for record in self._records)

    def column(self, name: str) -> Any:
        """One column as an array, None where a record has no value.

        Raises
        ------
        KeyError
            When no record has the column.
        """
        if name not in self.columns:
            raise KeyError(f"no column {name!r}; there are {', '.join(self.columns) or 'none'}")
        return np.array([record.get(name) for record in self._records])

    def to_pandas(self) -> Any:
        """The table as a ``pandas.DataFrame``."""
        import pandas as pd

        return pd.DataFrame.from_records(list(self._records), columns=list(self.columns))

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> Table: ...

    def __getitem__(self, index: int | slice) -> Mapping[str, Any] | Table:
        if isinstance(index, slice):
            return Table(self._records[index])
        return dict(self._records[index])

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return (dict(record) for record in self._records)

    def __eq__(self, other: object) -> bool:
        # In plain values, where "no number" equals itself.
        return isinstance(other, Table) and bool(plain(self._records) == plain(other._records))

    __hash__ = None  # type: ignore[assignment]

    def _cells(self) -> list[list[str]]:
        """Header and rows as text, the middle left out when there are many."""
        names = self.columns
        rows = [[_text(record.get(name)) for name in names] for record in self._records]
        if len(rows) > _SHOWN:
            half = _SHOWN // 2
            rows = [*rows[:half], ["..."] * len(names), *rows[-half:]]
        return [list(names), *rows]

    def __repr__(self) -> str:
        if not self._records:
            return "Table(no records)"
        cells = self._cells()
        widths = [max(len(row[c]) for row in cells) for c in range(len(cells[0]))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        if not self._records:
            return page.block(page.lines([repr(self)]))
        header, *rows = self._cells()
        left_out = len(self._records) - (len(rows) - 1)
        more = [f"{left_out} of {len(self._records)} records left out"] if len(self._records) > _SHOWN else []
        return page.block(page.table(header, rows, named=False), page.lines(more))


def induction_stop(history: Sequence[Mapping[str, Any]]) -> int | None:
    """The round after which no feature entered any more.

    `history`: One per round, with "round", "step" and "rows_in". Returns: 0 when none ever entered; None when features
    still entered in the last round that changed the model, or the records do not say.
    """
    if not all({"round", "step", "rows_in"} <= record.keys() for record in history):
        return None
    rounds = [record for record in history if record["step"] != "certificate"]
    entered = [int(record["round"]) for record in rounds if record["rows_in"] > 0]
    if not entered:
        return 0
    return None if entered[-1] == rounds[-1]["round"] else entered[-1]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    return str(value)
