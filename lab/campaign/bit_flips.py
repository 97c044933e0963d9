"""One changed bit in a Parquet file, anywhere in it.

Half of the trials change a file with page checksums before it is read: what is read is refused, or equal (a bit that
nothing depends on, such as the name of the writing program). The other half change a file without checksums between
two passes over it, where the fingerprint of the first pass must give it away.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dboost
from dboost.data import build_plan
from dboost.data.prepared.mapper import InProcess
from dboost.errors import DataError
from lab.campaign.command import Tally

ROWS, COLUMNS = 240, 6
CODECS = ("NONE", "SNAPPY", "ZSTD", "GZIP")
LAYOUTS = ("columns", "lists")


def table(layout: str, rng: np.random.Generator) -> pa.Table:
    """Rows of a layout, with their labels."""
    values = rng.standard_normal((ROWS, COLUMNS))
    labels = rng.choice(["ant", "bee", "cat"], ROWS).tolist()
    if layout == "columns":
        return pa.table({**{f"x{j}": values[:, j] for j in range(COLUMNS)}, "label": labels})
    kept = [np.flatnonzero(row > 0.3).astype(np.int32) for row in values]
    stored = [row[columns] for row, columns in zip(values, kept, strict=True)]
    return pa.table({"indices": kept, "values": stored, "label": labels})


def data_of(path: Path, layout: str) -> Any:
    """The data set of a file, with everything named that its footer could say otherwise."""
    if layout == "columns":
        return dboost.ParquetData(path, features=[f"x{j}" for j in range(COLUMNS)], label="label")
    return dboost.ParquetData(path, features=("indices", "values"), label="label", n_features=COLUMNS)


def content(plan: Any) -> list[bytes]:
    """All that a fit would see of a plan's partitions."""
    parts = [item.load() for item in plan.items]
    return [getattr(part, name).tobytes() for part in parts for name in ("indptr", "rows", "values", "y", "weight")]


def planned(path: Path, layout: str) -> Any:
    """The plan of a file, made in this process."""
    return build_plan(data_of(path, layout), None, None, task="classification", engine=InProcess())


def flipped(whole: bytes, rng: np.random.Generator) -> tuple[bytes, int]:
    """A copy with one bit changed, and where."""
    at = int(rng.integers(len(whole)))
    broken = bytearray(whole)
    broken[at] ^= 1 << int(rng.integers(8))
    return bytes(broken), at


def cases(count: int, rng: np.random.Generator) -> Iterator[tuple[str, str, bool]]:
    """Codec, layout and whether the pages have checksums, each in turn."""
    for trial in range(count):
        yield CODECS[trial // 4 % 4], LAYOUTS[trial // 2 % 2], trial % 2 == 0


def run(count: int, folder: Path, tally: Tally) -> None:
    """Change one bit at a time."""
    rng = np.random.default_rng(0)
    files: dict[tuple[str, str, bool], tuple[bytes, list[bytes]]] = {}
    for codec, layout, checksums in cases(count, rng):
        path = folder / f"{codec}-{layout}-{checksums}.parquet"
        if (codec, layout, checksums) not in files:
            rows = table(layout, np.random.default_rng(1))
            pq.write_table(rows, path, row_group_size=60, compression=codec, write_page_checksum=checksums)
            files[codec, layout, checksums] = path.read_bytes(), content(planned(path, layout))
        whole, expected = files[codec, layout, checksums]
        broken, at = flipped(whole, rng)
        where = f"{codec}, {layout}, byte {at} of {len(whole)}"
        try:
            if checksums:
                path.write_bytes(broken)
                before_reading(planned, path, layout, expected, where, tally)
            else:
                plan = planned(path, layout)
                path.write_bytes(broken)
                _between_passes(plan, where, tally)
        finally:
            path.write_bytes(whole)


def before_reading(planned: Any, path: Path, layout: str, expected: list[bytes], where: str, tally: Tally) -> None:
    """Count whether a file is refused or has the content that is expected."""
    try:
        found = content(planned(path, layout))
    except DataError:
        tally.passed("refused when read")
    except Exception as error:
        tally.broke(f"{where}: {type(error).__name__}: {error}")
    else:
        tally.check(found == expected, "equal", f"{where}: other data was taken")


def _between_passes(plan: Any, where: str, tally: Tally) -> None:
    try:
        for item in plan.items:
            item.load()
    except DataError as error:
        tally.check("changed since it was first read" in str(error), "noticed between passes", f"{where}: {error}")
    except Exception as error:
        tally.broke(f"{where}: {type(error).__name__}: {error}")
    else:
        tally.broke(f"{where}: the change was not noticed")
