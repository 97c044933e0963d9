"""What documents are expected to be: a file of their columns, ranges, missing values, labels and rows.

Covers: what is seen in files, the file that says what is expected, and the differences between the two.
Does not cover: what is done about a difference (``prepare``).

A contract is TOML::

    rows = [100, 1_000_000]        # fewest and most

    [columns.year]
    kind = "int"                   # as in a manifest: int, float32, float64, str, bool, ...
    range = [2000, 2030]
    missing = 0.01                 # at most this share

    [labels]
    known = ["sea", "sky"]         # every label is one of them, and each of them comes

All of it may be left out. Ranges and missing values are those of the statistics in the footers of Parquet, so that no
row is read for them; a file without statistics is said.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dboost.data.manifest import Manifest
from dboost.data.meaning import column_kind
from dboost.data.parquet.read import as_data_errors, column_chunks, open_file
from dboost.errors import DataError, UsageError
from dboost.files.documents import to_toml
from dboost.files.paths import PathLike, local_path
from dboost.notices import warn_user

_TABLES = ("rows", "columns", "labels")
_KEYS = ("kind", "range", "missing")


@dataclass
class Seen:
    """One column of some files."""

    kind: str
    rows: int = 0  # rows, missing: `missing` is -1 where a file does not tell.
    missing: int = 0
    low: Any = None  # low, high: Least and largest value; None where there is none, or a file does not tell.
    high: Any = None


def look(item: tuple[str, str]) -> dict[str, Seen]:
    """What the footer of a file, (path, name), says of its columns. Runs on workers."""
    path, _ = item
    with as_data_errors(path):
        with open_file(path) as file:
            found = {one.name: Seen(column_kind(one.type)) for one in file.schema_arrow}
        for rows, column in column_chunks(path):
            if column.path_in_schema not in found:
                continue
            one, told = found[column.path_in_schema], column.statistics
            one.rows += rows
            untold = told is None or not told.has_null_count
            one.missing = -1 if untold or one.missing < 0 else one.missing + int(told.null_count)
            if told is not None and told.has_min_max and one.kind != "str":
                one.low = told.min if one.low is None else min(one.low, told.min)
                one.high = told.max if one.high is None else max(one.high, told.max)
    return found


def together(parts: Sequence[Mapping[str, Seen]]) -> dict[str, Seen]:
    """What several files say; a column that some lack has the kind ``"absent in some"``."""
    whole: dict[str, Seen] = {}
    for part in parts:
        for name, one in part.items():
            before = whole.setdefault(name, Seen(one.kind))
            if before.kind != one.kind and one.kind != "null":
                before.kind = one.kind if before.kind == "null" else f"{before.kind} and {one.kind}"
            before.rows += one.rows
            before.missing = -1 if min(before.missing, one.missing) < 0 else before.missing + one.missing
            for side, choose in (("low", min), ("high", max)):
                ends = [value for value in (getattr(before, side), getattr(one, side)) if value is not None]
                setattr(before, side, choose(ends) if ends else None)
    for name, one in whole.items():
        if any(name not in part for part in parts):
            one.kind = f"{one.kind}, absent in some files"
    return whole


@dataclass(frozen=True)
class Contract:
    """What documents are expected to be."""

    # ``kind``, ``range`` and ``missing``, each where it is expected.
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    labels: tuple[Any, ...] | None = None
    rows: tuple[int, int] | None = None

    def differences(self, seen: Mapping[str, Seen], rows: int, labels: Sequence[Any] | None) -> list[str]:
        """What is not as it is expected, in words; nothing where all is."""
        found = []
        for name, expected in self.columns.items():
            one = seen.get(name)
            if one is None:
                found.append(f"column {name!r} is not there")
                continue
            kind = expected.get("kind")
            if kind is not None and one.kind != kind:
                found.append(f"column {name!r} is {one.kind}, expected {kind}")
            if "range" in expected and one.low is not None:
                low, high = expected["range"]
                if one.low < low or one.high > high:
                    found.append(f"column {name!r} goes from {one.low} to {one.high}, expected {low} to {high}")
            if "missing" in expected and one.rows:
                share = one.missing / one.rows
                if one.missing < 0:
                    found.append(f"column {name!r}: its files do not tell how many values are missing")
                elif share > expected["missing"]:
                    found.append(f"column {name!r}: {share:.2%} is missing, expected at most {expected['missing']:.2%}")
        if self.rows is not None and not self.rows[0] <= rows <= self.rows[1]:
            found.append(f"{rows:,} rows, expected {self.rows[0]:,} to {self.rows[1]:,}")
        if self.labels is not None and labels is not None:
            new = [label for label in labels if label not in self.labels]
            gone = [label for label in self.labels if label not in labels]
            found += [f"label {label!r} is not expected" for label in new[:3]]
            found += [f"label {label!r} does not come" for label in gone[:3]]
        return found

    def text(self) -> str:
        """The contract as TOML."""
        lines = [] if self.rows is None else [f"rows = [{self.rows[0]}, {self.rows[1]}]", ""]
        for name, expected in self.columns.items():
            fields = [f"{key} = {to_toml(value)}" for key, value in expected.items()]
            lines += [f"[columns.{to_toml(name)}]", *fields, ""]
        if self.labels is not None:
            lines += ["[labels]", f"known = {to_toml(list(self.labels))}", ""]
        return "\n".join(lines)


def kept(contract: Contract, seen: Mapping[str, Seen], manifest: Manifest, *, refuses: bool) -> Manifest:
    """The manifest with what is not as it is expected, which is warned of, or a refusal (DataError)."""
    found = contract.differences(seen, _rows(manifest), _labels(manifest))
    if found and refuses:
        more = f" (and {len(found) - 3} more)" if len(found) > 3 else ""
        raise DataError(
            f"the documents are not as expected: {'; '.join(found[:3])}{more}",
            hint="repair them, change the contract, or go on with a note: --on-drift note",
        )
    for difference in found:
        warn_user(f"not as expected: {difference}")
    return replace(manifest, settings={**manifest.settings, "drift": found})


def _rows(manifest: Manifest) -> int:
    return sum(int(split["rows"]) for split in manifest.splits.values())


def _labels(manifest: Manifest) -> list[Any] | None:
    """All labels of the splits that have some."""
    classes = [split["classes"] for split in manifest.splits.values() if split.get("classes") is not None]
    return sorted({label for found in classes for label, _ in found}) if classes else None


def contract_of(seen: Mapping[str, Seen], manifest: Manifest) -> Contract:
    """What was seen, as what is expected from now on: half to twice the rows, the same ranges, labels and kinds."""
    rows, labels = _rows(manifest), _labels(manifest)
    columns: dict[str, dict[str, Any]] = {}
    for name, one in seen.items():
        columns[name] = {"kind": one.kind}
        if one.kind == "int" or one.kind.startswith("float"):
            columns[name] |= {} if one.low is None else {"range": [one.low, one.high]}
        if one.missing >= 0 and one.rows:
            columns[name]["missing"] = round(one.missing / one.rows, 4)
    known = None if labels is None or len(labels) > 1_000 else tuple(labels)
    return Contract(columns, known, (rows // 2, rows * 2))


def read_contract(path: PathLike) -> Contract:
    """A contract from its TOML file; what is not there or has no meaning is a UsageError."""
    file = local_path(path, "expect")
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError("there is no such contract", file=str(file), hint="--write-contract makes one") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"the contract cannot be read: {error}", file=str(file)) from None

    def refuse(what: str) -> UsageError:
        return UsageError(what, file=str(file), hint="see the guide on text, or begin with --write-contract")

    odd = sorted(set(tables) - set(_TABLES))
    if odd:
        raise refuse(f"unknown key {odd[0]!r}; known: {', '.join(_TABLES)}")
    columns = tables.get("columns", {})
    for name, expected in columns.items() if isinstance(columns, dict) else [("columns", None)]:
        if not isinstance(expected, dict) or set(expected) - set(_KEYS):
            raise refuse(f"columns.{name}: expected a table of {', '.join(_KEYS)}")
        if not isinstance(expected.get("kind", ""), str) or not _share(expected.get("missing", 0.0)):
            raise refuse(f"columns.{name}: kind is a text, and missing a share from 0 to 1")
        if "range" in expected and not _pair(expected["range"]):
            raise refuse(f"columns.{name}: range is [least, largest]")
    rows = tables.get("rows")
    if rows is not None and not (_pair(rows) and all(isinstance(end, int) for end in rows)):
        raise refuse("rows: expected [fewest, most]")
    labels = tables.get("labels", {})
    if not isinstance(labels, dict) or set(labels) - {"known"} or not isinstance(labels.get("known", []), list):
        raise refuse("labels: expected a list known")
    known = tuple(labels["known"]) if "known" in labels else None
    return Contract(columns, known, None if rows is None else (rows[0], rows[1]))


def _share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _pair(value: Any) -> bool:
    numbers = isinstance(value, list) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in value)
    return numbers and len(value) == 2 and value[0] <= value[1]
