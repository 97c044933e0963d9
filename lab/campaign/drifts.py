"""One file of three that differs from the others in its schema, as the first, the middle or the last.

Covers: 34 kinds of drift, of a column of numbers, of the label, of lists and of what is beside them. Each is refused
with the name of the column, or it means the same: then the partitions are those of files that were cast by hand.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import dboost
from dboost.data import build_plan
from dboost.data.prepared.mapper import InProcess
from dboost.errors import DataError
from lab.campaign.bit_flips import content
from lab.campaign.tally import Tally

Change = Callable[[pa.Table], pa.Table]
POSITIONS = (0, 1, 2)

NUMBERS = pa.table({"x0": [1.0, 0.0, 2.0], "x1": [3.0, 1.0, 0.0], "label": ["a", "b", "a"]})
LISTS = pa.table(
    {
        "indices": pa.array([[0], [1, 2], []], pa.list_(pa.int32())),
        "values": pa.array([[1.0], [2.0, 3.0], []], pa.list_(pa.float64())),
        "label": ["a", "b", "a"],
    }
)


@dataclass(frozen=True)
class Drift:
    """A drift.

    Parameters
    ----------
    good : pyarrow.Table
        A file without it.
    change : callable
        Makes the file that differs.
    ends : {"refused", "equal"}
        What must come of it.
    """

    good: pa.Table
    change: Change
    ends: str = "refused"


def other(name: str, values: Any) -> Change:
    """Other values, of another type, in one column."""
    return lambda table: table.set_column(table.column_names.index(name), name, values)


def cast(name: str, kind: pa.DataType) -> Change:
    """The same values as another type."""
    return lambda table: table.set_column(table.column_names.index(name), name, table[name].cast(kind))


def _x1(kind: pa.DataType) -> Drift:
    return Drift(NUMBERS, cast("x1", kind))


DRIFTS: dict[str, Drift] = {
    # a column of numbers
    "column missing": Drift(NUMBERS, lambda t: t.drop_columns(["x1"])),
    "column in other case": Drift(NUMBERS, lambda t: t.rename_columns(["x0", "X1", "label"])),
    "column with a blank": Drift(NUMBERS, lambda t: t.rename_columns(["x0", "x1 ", "label"])),
    "two columns of one name": Drift(NUMBERS, lambda t: t.append_column("x1", t["x1"])),
    "int64": _x1(pa.int64()),
    "int8": _x1(pa.int8()),
    "uint64": _x1(pa.uint64()),
    "float32": _x1(pa.float32()),
    "float16": Drift(NUMBERS, lambda t: cast("x1", pa.float16())(cast("x1", pa.float32())(t))),
    "text": _x1(pa.string()),
    "boolean": Drift(NUMBERS, other("x1", pa.array([True, True, False]))),
    "decimal": _x1(pa.decimal128(21, 2)),
    "time": Drift(NUMBERS, other("x1", pa.array([3, 1, 0], pa.timestamp("s")))),
    "date": Drift(NUMBERS, other("x1", pa.array([3, 1, 0], pa.date32()))),
    "duration": Drift(NUMBERS, other("x1", pa.array([3, 1, 0], pa.duration("s")))),
    "bytes": Drift(NUMBERS, other("x1", pa.array([b"3", b"1", b"0"]))),
    "list": Drift(NUMBERS, other("x1", pa.array([[3.0], [1.0], [0.0]]))),
    "struct": Drift(NUMBERS, other("x1", pa.array([{"v": 3.0}, {"v": 1.0}, {"v": 0.0}]))),
    "only nulls": Drift(NUMBERS, other("x1", pa.nulls(3))),
    # the label
    "label missing": Drift(NUMBERS, lambda t: t.drop_columns(["label"])),
    "label of numbers": Drift(NUMBERS, other("label", pa.array([1, 2, 1]))),
    "label of nulls": Drift(NUMBERS, other("label", pa.nulls(3))),
    "label of bytes": Drift(NUMBERS, other("label", pa.array([b"a", b"b", b"a"]))),
    "label as dictionary": Drift(NUMBERS, lambda t: other("label", pc.dictionary_encode(t["label"]))(t), "equal"),
    "label of large text": Drift(NUMBERS, cast("label", pa.large_string()), "equal"),
    # what is beside
    "other order": Drift(NUMBERS, lambda t: t.select(["label", "x1", "x0"]), "equal"),
    "one column more": Drift(NUMBERS, lambda t: t.append_column("more", pa.array([1, 2, 3])), "equal"),
    # lists of a sparse layout
    "indices of int64": Drift(LISTS, cast("indices", pa.list_(pa.int64())), "equal"),
    "indices as large lists": Drift(LISTS, cast("indices", pa.large_list(pa.int32())), "equal"),
    "indices of float64": Drift(LISTS, cast("indices", pa.list_(pa.float64()))),
    "indices missing": Drift(LISTS, lambda t: t.drop_columns(["indices"])),
    "values of float32": Drift(LISTS, cast("values", pa.list_(pa.float32()))),
    "values of int64": Drift(LISTS, cast("values", pa.list_(pa.int64()))),
    "values as numbers": Drift(LISTS, other("values", pa.array([1.0, 2.0, 3.0]))),
}


def files(folder: Path, tables: list[pa.Table]) -> dict[str, str]:
    """Write three files, and return the paths by number."""
    folder.mkdir(parents=True)
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"f{number}.parquet", write_page_checksum=True)
    return {str(folder / f"f{number}.parquet"): str(number) for number in range(len(tables))}


def loaded(folder: Path, good: pa.Table) -> list[bytes]:
    """What a fit would see of the files of a folder."""
    if good is LISTS:
        data = dboost.ParquetData(folder, features=("indices", "values"), label="label", n_features=3)
    else:
        data = dboost.ParquetData(folder, features=["x0", "x1"], label="label")
    with warnings.catch_warnings():
        # Columns that are left unread are told once; that is no refusal.
        warnings.simplefilter("ignore", dboost.DboostWarning)
        return content(build_plan(data, None, None, task="classification", engine=InProcess()))


def run(count: int, folder: Path, tally: Tally) -> None:
    """Try kinds and positions, in their order."""
    trials = [(name, position) for name in DRIFTS for position in POSITIONS][:count]
    for name, position in trials:
        drift, where = DRIFTS[name], f"{name}, file {position}"
        tables = [drift.good] * len(POSITIONS)
        by_hand = loaded_by_hand(folder / f"{name}-{position}-plain", drift.good)
        tables[position] = drift.change(drift.good)
        target = folder / f"{name}-{position}"
        named = files(target, tables)
        try:
            found = loaded(target, drift.good)
        except DataError as error:
            # The first file is what the others are compared with: where it is the odd one, the second is named.
            told = error.column is not None and error.file in named and len(str(error).splitlines()) == 1
            tally.check(
                drift.ends == "refused" and told, "refused by column and file", f"{where}: {error} ({error.column})"
            )
        except Exception as error:
            tally.broke(f"{where}: {type(error).__name__}: {error}")
        else:
            tally.check(drift.ends == "equal" and found == by_hand, "equal", f"{where}: it was taken, as other data")


def loaded_by_hand(folder: Path, good: pa.Table) -> list[bytes]:
    """What a fit would see of three files without the drift."""
    files(folder, [good] * len(POSITIONS))
    return loaded(folder, good)
