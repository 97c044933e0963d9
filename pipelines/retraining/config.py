"""The file of a retraining: the run that makes a challenger, where champions live, and what a challenger must do.

Covers: keys, their types and defaults. Does not cover: what a gate looks at (``gates``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dboost.errors import UsageError
from dboost.files.paths import local_path

from .. import trust
from ..config import FromOne, NonNegative, Text, hints, read_keys, read_tables, read_toml
from ..runs.run_file import read_run_file


@dataclass(frozen=True)
class Gates:
    """What a challenger must do; a share that is not exceeded, unless it says otherwise."""

    # Standard errors by which the paired difference of losses must be away from zero to count.
    significance: NonNegative = 2.0
    loss: NonNegative = 0.0  # how much worse the mean loss may be beyond that, in nats
    class_error: NonNegative = 0.1  # how much the error of a class may rise, beyond two standard errors
    class_rows: FromOne = 50  # held-out rows below which a class is not judged by itself
    # Largest mean distance between probabilities and shares of right answers, beyond what the number of rows explains.
    # By default a first version may have any, and a later one that of the champion, or 0.1.
    calibration: NonNegative | None = None
    rows: NonNegative = 0.5  # least number of training rows, as a share of the champion's
    size: NonNegative = 4.0  # most features in use, as a multiple of the champion's
    # Largest population stability index of the labels, and of the terms, beyond what the number of rows explains.
    label_drift: NonNegative = 0.25
    feature_drift: NonNegative = 0.25


@dataclass(frozen=True)
class RetrainTable:
    """The keys of the table [retrain], as they are given."""

    run: Text | None = (
        None  # the run file of a challenger; both models are judged on the raw documents of its data.test
    )
    home: Text = "retraining"  # the folder of versions, decisions and the pointer to the champion
    # Where the fit of a challenger begins (default: at the champion, where such a fit can begin with a model).
    begin: Literal["champion", "nothing"] | None = None
    # How many of the latest versions stay, beside the champion and the one before it (default: all).
    keep: FromOne | None = None


@dataclass(frozen=True)
class Retraining:
    """A checked file, with its paths from the root."""

    run: Path
    home: Path
    begin: str | None = None
    keep: int | None = None
    gates: Gates = field(default_factory=Gates)
    file: Path | None = None  # that it was read from; None for tables that Python gave

    def refuse_reaching(self) -> None:
        """Refuse a file that names what needs consent (``trust``), or whose run file does."""
        if self.file is not None:
            trust.refuse({"home": str(self.home)}, self.file.parent, file=str(self.file), where="retrain.")
        if self.run.is_file():
            read_run_file(str(self.run)).refuse_reaching()


TABLES: dict[str, Any] = {"retrain": RetrainTable, "gates": Gates}


def read_retraining(path: str) -> Retraining:
    """Read and check a file with the tables [retrain] and [gates]; paths are relative to its folder."""
    return checked(read_toml(path, "retrain file"), local_path(path).resolve().parent, path)


def checked(tables: Mapping[str, Any], folder: Path, file: str | None = None) -> Retraining:
    """Check the tables of a retraining; paths are relative to `folder`."""
    given = read_tables(tables, TABLES, file)
    table, gates = (
        kind(**read_keys(hints(kind), given.get(name, {}), file, table=name)) for name, kind in TABLES.items()
    )
    if table.run is None:
        raise UsageError("retrain.run is missing: name the run file that makes a challenger", file=file)
    run, home = (folder / local_path(getattr(table, name), f"retrain.{name}") for name in ("run", "home"))
    where = None if file is None else local_path(file).resolve()
    return Retraining(run.resolve(), home.resolve(), table.begin, table.keep, gates, where)
