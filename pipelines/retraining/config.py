"""The file of a retraining: the run that makes a challenger, where champions live, and what a challenger must do.

Covers: keys, their types and defaults. Does not cover: what a gate looks at (``gates``).
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dboost.errors import UsageError
from dboost.files.paths import local_path

from .. import trust
from ..config import Expected, near, one_of, real, string, whole
from ..runs.run_file import read_run_file


def _field(parse: Any, default: Any) -> Any:
    return dataclasses.field(default=default, metadata={"parse": parse})


@dataclass(frozen=True)
class Gates:
    """What a challenger must do; a share that is not exceeded, unless it says otherwise."""

    # Standard errors by which the paired difference of losses must be away from zero to count.
    significance: float = _field(real(0.0), 2.0)
    loss: float = _field(real(0.0), 0.0)  # how much worse the mean loss may be beyond that, in nats
    class_error: float = _field(real(0.0), 0.1)  # how much the error of a class may rise, beyond two standard errors
    class_rows: int = _field(whole(1), 50)  # held-out rows below which a class is not judged by itself
    # Largest mean distance between probabilities and shares of right answers, beyond what the number of rows explains.
    # By default a first version may have any, and a later one that of the champion, or 0.1.
    calibration: float | None = _field(real(0.0), None)
    rows: float = _field(real(0.0), 0.5)  # least number of training rows, as a share of the champion's
    size: float = _field(real(0.0), 4.0)  # most features in use, as a multiple of the champion's
    # Largest population stability index of the labels, and of the terms, beyond what the number of rows explains.
    label_drift: float = _field(real(0.0), 0.25)
    feature_drift: float = _field(real(0.0), 0.25)


@dataclass(frozen=True)
class Retraining:
    """A checked file."""

    run: Path  # the run file of a challenger; its ``data.test`` are the raw documents that both models are judged on
    home: Path  # the folder of versions, decisions and the pointer to the champion
    # Where the fit of a challenger begins (default: at the champion, where such a fit can begin with a model).
    begin: str | None = None
    # How many of the latest versions stay, beside the champion and the one before it (default: all).
    keep: int | None = None
    gates: Gates = dataclasses.field(default_factory=Gates)
    file: Path | None = None  # that it was read from; None for tables that Python gave

    def refuse_reaching(self) -> None:
        """Refuse a file that names what needs consent (``trust``), or whose run file does."""
        if self.file is not None:
            trust.refuse({"home": str(self.home)}, self.file.parent, file=str(self.file), where="retrain.")
        if self.run.is_file():
            read_run_file(str(self.run)).refuse_reaching()


_KEYS: dict[str, Any] = {"run": string, "home": string, "begin": one_of("champion", "nothing"), "keep": whole(1)}


def read_retraining(path: str) -> Retraining:
    """Read and check a file with the tables [retrain] and [gates]; paths are relative to its folder."""
    file = local_path(path, "retrain file")
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError("there is no such file", file=path) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"the file cannot be read: {error}", file=path) from None
    return checked(tables, file.resolve().parent, path)


def checked(tables: Mapping[str, Any], folder: Path, file: str | None = None) -> Retraining:
    """Check the tables of a retraining; paths are relative to `folder`."""
    for table in tables:
        if table not in ("retrain", "gates"):
            hint = "known: retrain, gates"
            raise UsageError(f"unknown table {table!r}{near(table, ('retrain', 'gates'))}", file=file, hint=hint)
    values = _parsed(tables.get("retrain", {}), _KEYS, "retrain", file)
    if "run" not in values:
        raise UsageError("retrain.run is missing: name the run file that makes a challenger", file=file)
    known = {item.name: item.metadata["parse"] for item in dataclasses.fields(Gates)}
    gates = Gates(**_parsed(tables.get("gates", {}), known, "gates", file))
    run = folder / local_path(values["run"], "retrain.run")
    home = folder / local_path(values.get("home", "retraining"), "retrain.home")
    more = {name: values[name] for name in ("begin", "keep") if name in values}
    where = None if file is None else local_path(file).resolve()
    return Retraining(run.resolve(), home.resolve(), gates=gates, file=where, **more)


def _parsed(given: Any, known: Mapping[str, Any], table: str, file: str | None) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise UsageError(f"{table}: found {given!r}, expected a table [{table}]", file=file)
    found = {}
    for name, value in given.items():
        if name not in known:
            raise UsageError(f"unknown key {name!r} in [{table}]{near(name, known)}", file=file)
        try:
            found[name] = known[name](value)
        except Expected as wanted:
            raise UsageError(f"{table}.{name}: found {value!r}, expected {wanted}", file=file) from None
    return found
