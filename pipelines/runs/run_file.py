"""The file of a run: one table for each stage, checked, and printed with the origin of every value."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dboost.data.meaning import DIALECT
from dboost.errors import UsageError
from dboost.files.documents import to_toml
from dboost.files.paths import PathLike, local_path
from dboost.files.stores import StorePath, any_path

from .. import trust
from ..commands.evaluate import EvaluateSettings
from ..commands.predict import PredictSettings
from ..commands.prepare import PrepareSettings
from ..config import (
    ClusterSettings,
    DataSettings,
    FromOne,
    LogSettings,
    OutputSettings,
    Text,
    hints,
    key,
    known_table,
    read_keys,
    read_tables,
    read_toml,
)
from ..model_settings import TrainedSettings
from ..registries import in_words
from ..training import own_defaults

TABLES = ("data", "prepare", "model", "evaluate", "predict", "report", "cluster")
# Keys that are paths: those of a file are relative to its folder.
PATHS = (
    "data.data",
    "data.test",
    "prepare.expect",
    "prepare.write_contract",
    "model.start",
    "evaluate.data",
    "predict.data",
)
FILE, SET, DEFAULT = "file", "--set", "default"


@dataclass(frozen=True, kw_only=True)
class DataTable(DataSettings):
    """The data: what is trained on, and what is held out."""

    test: Text | None = key(
        None, "held-out data, judged and never trained on (default: the split test of what is trained on)"
    )


@dataclass(frozen=True, kw_only=True)
class ReportTable:
    """The report."""

    top: FromOne = key(30, "features that are listed")


# table -> the settings class that has its keys, and those of its keys that belong to other tables
_KINDS: dict[str, tuple[type[Any], tuple[type[Any], ...], tuple[str, ...]]] = {
    "data": (DataTable, (), ()),
    "prepare": (
        PrepareSettings,
        (ClusterSettings, OutputSettings, LogSettings),
        ("data", "test", "label", *DIALECT),
    ),
    "model": (TrainedSettings, (), ()),
    "evaluate": (EvaluateSettings, (ClusterSettings, OutputSettings, LogSettings, DataSettings), ("model",)),
    "predict": (PredictSettings, (ClusterSettings, OutputSettings, LogSettings, DataSettings), ("model",)),
    "report": (ReportTable, (), ()),
    "cluster": (ClusterSettings, (), ()),
}
# Keys that most need, which are shown before the others of their table.
_FIRST = {
    "data": ("data", "test", "label"),
    **{name: getattr(kind, "first", ()) for name, (kind, _, _) in _KINDS.items() if name not in ("data", "model")},
    "model": ("penalty", "alpha", "cv", "loss", "estimator"),
}
# Which data is judged or labelled; everything else about it is what `data` says.
_HELD_OUT = ("data", "split")


def keys_of(table: str) -> dict[str, dataclasses.Field[Any]]:
    """The keys of a table."""
    kind, others, names = _KINDS[table]
    foreign = {item.name for other in others for item in dataclasses.fields(other)} | set(names)
    found = {item.name: item for item in dataclasses.fields(kind) if item.name not in foreign}
    if table in ("evaluate", "predict"):
        found |= {item.name: item for item in dataclasses.fields(DataSettings) if item.name in _HELD_OUT}
    return found


@dataclass(frozen=True)
class RunFile:
    """A checked run file."""

    values: dict[str, dict[str, Any]]  # those that were given
    origins: dict[str, str]  # where each comes from
    tables: frozenset[str]  # tables that are there, empty ones included
    name: str = "run"  # of the run
    folder: Path = field(default_factory=Path.cwd)  # the folder of the file
    file: str | None = None  # its path as it was given; None for tables that Python gave

    def reaches(self, cluster: bool = True) -> tuple[str, str, str]:
        """The first key of the file that needs consent (``trust``), as table, key and what it does; else empty texts.

        `cluster`: whether the table [cluster] is used at all.
        """
        for table, values in self.values.items():
            if self.file is None or (table == "cluster" and not cluster):
                continue
            mine = {name: value for name, value in values.items() if self.origins[f"{table}.{name}"] != SET}
            name, does = trust.asked(mine, self.folder)
            if name:
                return table, name, does
        return "", "", ""

    def refuse_reaching(self, cluster: bool = True) -> None:
        """Refuse a file that has such a key."""
        table, name, _ = self.reaches(cluster)
        if name:
            trust.refuse({name: self.values[table][name]}, self.folder, file=str(self.file), where=f"{table}.")

    def table(self, name: str) -> dict[str, Any]:
        """The values of a table, with the defaults of the keys that have one."""
        keys = keys_of(name)
        found = {each: item.default for each, item in keys.items() if item.default is not None}
        return found | self.values.get(name, {})

    def target(self, out: PathLike | None) -> Path:
        """The run folder that is named, or else ``runs/NAME`` beside the file."""
        return (self.folder / "runs" / self.name if out is None else local_path(out, "out")).resolve()

    def model(self) -> TrainedSettings:
        """The table of the model."""
        return TrainedSettings(**self.values.get("model", {}))

    def cluster(self) -> ClusterSettings:
        """The table of the cluster."""
        return ClusterSettings(**self.values.get("cluster", {}))

    def data(self) -> list[str]:
        """All data that the run reads."""
        keys = (("data", "data"), ("data", "test"), ("evaluate", "data"), ("predict", "data"))
        return [str(self.values[table][key]) for table, key in keys if self.values.get(table, {}).get(key) is not None]

    def to_toml(self) -> str:
        """The file as it was understood: every key, with where its value comes from."""
        lines = []
        for name in TABLES:
            if name not in self.tables and name in ("prepare", "predict"):
                lines += [f"# [{name}] is not there: this stage is left out", ""]
                continue
            lines.append(f"[{name}]")
            taken = own_defaults(self.values.get("model", {}).get("estimator")) if name == "model" else {}
            keys, first = keys_of(name), _FIRST.get(name, ())
            ordered = [*(each for each in first if each in keys), *(each for each in keys if each not in first)]
            for each in ordered:
                item, origin = keys[each], self.origins.get(f"{name}.{each}")
                if origin is not None:
                    lines.append(f"{each} = {to_toml(self.values[name][each])}  # {origin}")
                elif item.default is not None:
                    lines.append(f"# {each} = {to_toml(item.default)}  # default")
                else:
                    # what the estimator takes, or else what the help of the key says
                    known = taken.get(each)
                    lines.append(f"# {each}: " + (_words(item) if known is None else f"default {in_words(known)}"))
            lines.append("")
        return "\n".join(lines)


def read_run_file(config: PathLike | Mapping[str, Any], overrides: Sequence[str] = ()) -> RunFile:
    """Read and check a run file, or its tables; `overrides`, such as ``"table.key=value"``, win over it."""
    if isinstance(config, Mapping):
        return checked(config, overrides)
    path = os.fspath(config)
    file = local_path(path, "run file")
    tables = read_toml(path, "run file")
    return checked(tables, overrides, file=path, name=file.stem, folder=file.resolve().parent)


def checked(
    tables: Mapping[str, Any],
    overrides: Sequence[str] = (),
    *,
    file: str | None = None,
    name: str = "run",
    folder: Path | None = None,
) -> RunFile:
    """Check the tables of a run; see ``read_run_file``. Paths are relative to `folder` (default: the current one)."""
    read = {table: _read(table, content, file) for table, content in read_tables(tables, TABLES, file).items()}
    values = {table: content for table, content in read.items() if content}
    origin = FILE if file is None else Path(file).name
    origins = {f"{table}.{each}": origin for table, content in values.items() for each in content}
    for text in overrides:
        place, equals, value = text.partition("=")
        table, dot, each = place.strip().partition(".")
        if not equals or not dot:
            raise UsageError(f"--set {text}: expected TABLE.KEY=VALUE", hint="as in --set model.alpha=1e-4")
        known_table(table, TABLES)
        found = _read(table, {each: value.strip()}, None)
        values.setdefault(table, {}).update(found)
        origins |= {f"{table}.{each}": SET for each in found}
    base = Path.cwd() if folder is None else folder
    for path in PATHS:
        table, _, each = path.partition(".")
        given = values.get(table, {}).get(each)
        if given is not None:
            start = base if origins[path] != SET else Path.cwd()
            where = any_path(given, path)
            values[table][each] = str(where) if isinstance(where, StorePath) else os.path.normpath(start / where)
    return RunFile(values, origins, frozenset({*tables, *values}), name, base, file)


def _read(table: str, given: Mapping[str, Any], file: str | None) -> dict[str, Any]:
    """What was given for the keys of a table."""

    def elsewhere(name: str) -> str:
        homes = [other for other in TABLES if name in keys_of(other)]
        return f"; it belongs to [{homes[0]}]" if homes else ""

    types = hints(_KINDS[table][0])
    known = {name: types[name] for name in keys_of(table)}
    return read_keys(known, given, file, table=table, elsewhere=elsewhere)


def _words(item: dataclasses.Field[Any]) -> str:
    """The default of a key that has none of its own, as its help says it."""
    _, _, tail = str(item.metadata["help"]).partition("(default: ")
    return f"default {tail.removesuffix(')')}" if tail else "not set"
