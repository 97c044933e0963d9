"""Whether every stage of a run can work, told from schemas before the first one begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dboost.data import load_manifest
from dboost.data.absent_column import listed, nearest
from dboost.data.manifest import MANIFEST
from dboost.data.meaning import CSV, DIALECT, FILE, Dialect, format_of, is_text
from dboost.data.parquet.read import NUMBERS, inspect_file, with_folders
from dboost.data.prepared.contract import read_contract
from dboost.data.prepared.documents import csv_header, document_files
from dboost.data.prepared.where import parsed
from dboost.errors import DataError, UsageError
from dboost.files.documents import to_toml
from dboost.files.storage import check_writable
from dboost.files.store_folders import current
from dboost.files.stores import any_path

from ..before_preparing import kinds_of
from ..commands.prepare import refuse_unused
from ..inputs import read_model
from ..training import Training, plan_training
from .run_file import RunFile

# Columns of every prediction; beside them a classifier has its probabilities.
_WRITTEN = ("file", "row", "prediction")
_OF_CLASSES = ("probability", "probabilities", "top_classes", "top_probabilities")


@dataclass(frozen=True)
class Columns:
    """The columns of a data set."""

    where: str  # as the run file names it
    # Column to kind (``dboost.data.meaning.column_kind``); None where the files do not tell types.
    kinds: Mapping[str, str | None]
    whole: bool = True  # whether these are all columns; rows of JSON need not have all
    prepared: bool = False  # whether it is a folder of ``dboost prepare``
    splits: frozenset[str] | None = None  # splits, where they are known
    label: str | None = None  # the label of a prepared folder

    def has(self, names: Iterable[str]) -> bool:
        """Whether all of these may be columns here."""
        return not self.whole or all(name in self.kinds for name in names)

    def need(self, key: str, names: Iterable[str | None]) -> None:
        """Refuse names that are no columns here."""
        for name in names:
            if name is not None and name not in self.kinds and self.whole:
                known = list(self.kinds)
                what = f"{key} names a column that is not there"
                raise DataError(what, file=self.where, column=name, hint=f"{nearest(name, known)}{listed(known)}")

    def need_kind(self, key: str, name: str, good: tuple[str, ...], expected: str) -> None:
        """Refuse a column of another kind, where its kind is known."""
        kind = self.kinds.get(name)
        if kind is not None and kind not in (*good, "null"):
            raise DataError(f"{key} is of type {kind}, expected {expected}", file=self.where, column=name)


def foresee(run: RunFile) -> None:
    """Refuse a run of which a stage cannot work, before anything is done."""
    data = run.table("data")
    training = plan_training(run.model())
    if run.values.get("model", {}).get("start") is not None:
        read_model(run.values["model"]["start"])
    dialect = Dialect(*map(data.get, DIALECT))
    source = columns_of(str(data["data"]), dialect)
    test = None if data.get("test") is None else columns_of(str(data["test"]), dialect)
    learned = _prepared(run, source, test) if "prepare" in run.tables else source
    _train(run, source, learned, training)
    for table in ("evaluate", "predict"):
        held_out = _held_out(run, table, learned, source if "prepare" in run.tables else None, test)
        if held_out is not None and table == "evaluate":
            judged = test if held_out is learned and test is not None else held_out
            # Documents that are held out may be new ones without labels: judging them is left out then, in a line.
            if "data" in run.values.get(table, {}) or judged.has(_labels(run, learned)):
                _evaluate(run, held_out, learned, judged)
        if held_out is not None and table == "predict" and table in run.tables:
            as_given = test is not None and held_out is learned and raw_test(run, table) is not None
            _predict(run, test if as_given and test is not None else held_out, learned, training)


def raw_test(run: RunFile, table: str) -> str | None:
    """The documents that are labelled, as the user has them; None for prepared rows, which may be some of them only."""
    given, prepare = run.values.get(table, {}), run.table("prepare")
    if "data" in given:
        return str(given["data"])
    whole = "split" not in given and prepare.get("where") is None and prepare.get("on_bad_rows") == "refuse"
    test = run.table("data").get("test") if whole and "prepare" in run.tables else None
    return None if test is None else str(test)


def columns_of(path: str, dialect: Dialect) -> Columns:
    """The columns of some data."""
    folder = current(any_path(path, "data"))
    if (folder / MANIFEST).is_file():
        manifest = load_manifest(folder)
        return Columns(
            path, dict(manifest.schema), prepared=True, splits=frozenset(manifest.splits), label=manifest.label
        )
    kinds: dict[str, str | None] = {}
    whole = True
    files = document_files(folder)
    for file in [file for file in files if not is_text(file[0])][:1]:
        kinds |= with_folders([inspect_file(file)])[0].kinds
    for name, _ in [file for file in files if is_text(file[0])][:1]:
        if format_of(name) == CSV:
            kinds |= dict.fromkeys(csv_header(name, dialect))
        whole = format_of(name) == CSV
    return Columns(path, kinds, whole)


def _read_by(prepare: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """The key that names the columns that become features, and these columns with their kinds."""
    if prepare.get("column") is None:
        return "prepare.text", dict.fromkeys(prepare.get("text", ()), "text")
    return "prepare.column", kinds_of(prepare["column"])


def _prepared(run: RunFile, source: Columns, test: Columns | None) -> Columns:
    """What the documents will be once they are prepared."""
    data, prepare = run.table("data"), run.table("prepare")
    keep, split = prepare.get("keep", ()), prepare.get("split")
    key, read = _read_by(prepare)
    labels, weight = tuple(data.get("label") or ()), data.get("weight")
    groups = run.table("model").get("groups")
    if source.prepared:
        raise UsageError(f"data.data is prepared already: {source.where}", hint="leave the table [prepare] out")
    if not labels:
        raise UsageError("data.label is missing: there is nothing to learn", hint="name the label column in [data]")
    refuse_unused(prepare)
    if split is not None and test is not None:
        raise UsageError("prepare.split and data.test both say what is held out", hint="use one of them")
    for name in ("features", "n_features"):
        if data.get(name) is not None:
            raise UsageError(f"data.{name} has no effect on documents, whose features are their terms")
    source = replace(source, kinds={FILE: "str"} | dict(source.kinds))
    test = None if test is None else replace(test, kinds={FILE: "str"} | dict(test.kinds))
    source.need(key, read)
    source.need("prepare.keep", keep)
    source.need("prepare.split", [split])
    source.need("data.label", labels)
    source.need("data.weight", [weight])
    if prepare.get("where") is not None:
        source.need("prepare.where", parsed(prepare["where"])[1])
    for name in (name for name, kind in read.items() if kind == "text"):
        source.need_kind(key, name, ("str",), "text")
    if prepare.get("expect") is not None:
        read_contract(prepare["expect"])
    if prepare.get("write_contract") is not None:
        check_writable(prepare["write_contract"])
    if test is not None:
        test.need(f"{key}, which is read of data.test too,", read)
        test.need("prepare.keep, which is read of data.test too,", [*keep, weight, groups])
    source.need("model.groups", [groups])
    kept = [*labels, *keep, *(name for name in (weight, groups) if name)]
    kinds = {name: source.kinds.get(name) for name in kept}
    splits = None if split is not None else frozenset({"train", "test"} if test is not None else {"train"})
    columns = {"indices": "list<int>", "values": "list<float32>", **kinds}
    return Columns("the prepared documents", columns, prepared=True, splits=splits, label=labels[0])


def _train(run: RunFile, source: Columns, learned: Columns, training: Training) -> None:
    data = run.table("data")
    labels = _labels(run, learned)
    source.need("data.weight", [data.get("weight")] if not source.prepared else [])
    if not learned.prepared:
        learned.need("data.label", labels)
        learned.need("data.features", data.get("features") or ())
    learned.need("model.groups", [run.table("model").get("groups")])
    _need_split("data.split", data.get("split"), learned)
    if data.get("weight") is not None:
        learned.need_kind("data.weight", data["weight"], NUMBERS, "numbers")
    for name in labels if _is_regression(training) else ():
        learned.need_kind("data.label, of a regression,", name, NUMBERS, "numbers")


def _held_out(
    run: RunFile, table: str, learned: Columns, documents: Columns | None, test: Columns | None
) -> Columns | None:
    """What a stage judges or labels, as ``stages`` has it; None where nothing is held out."""
    given = run.values.get(table, {})
    if "data" in given:
        data = run.table("data")
        found = columns_of(given["data"], Dialect(*map(data.get, DIALECT)))
        _need_split(f"{table}.split", given.get("split"), found)
        return found
    if documents is None and test is not None:
        return test
    if given.get("split") is not None:
        _need_split(f"{table}.split", given["split"], learned)
    there = learned.splits is None or given.get("split", "test") in learned.splits
    return learned if learned.prepared and there else None


def _labels(run: RunFile, learned: Columns) -> tuple[str, ...]:
    return tuple(run.table("data").get("label") or ([learned.label] if learned.label else ()))


def _evaluate(run: RunFile, found: Columns, learned: Columns, judged: Columns) -> None:
    """Refuse what cannot be judged; `judged` is `found` before it is prepared."""
    labels = _labels(run, learned)
    _need_what_is_read("evaluate", run, found, learned)
    if found.prepared and found.label is None:
        raise DataError("evaluate: these documents have no labels to be judged by", file=found.where)
    if not judged.has(labels):
        raise DataError(
            "evaluate: these rows have no labels to be judged by",
            file=judged.where,
            column=", ".join(labels),
            hint="leave the table [evaluate] out, or name labelled rows in evaluate.data",
        )
    if not found.prepared:
        found.need("data.features", run.table("data").get("features") or ())
        found.need("data.weight", [run.table("data").get("weight")])
    for name in labels:
        one, other = judged.kinds.get(name), learned.kinds.get(name)
        if one is not None and other is not None and (one in NUMBERS) != (other in NUMBERS) and one != "null":
            raise DataError(
                f"the label is of type {one}, and of type {other} in the data that is learned from",
                file=judged.where,
                column=name,
                hint="write both with one type",
            )


def _predict(run: RunFile, found: Columns, learned: Columns, training: Training) -> None:
    table, data = run.table("predict"), run.table("data")
    keep, numbers = tuple(table.get("keep") or ()), _is_regression(training)
    lacking = [name for name in keep if name not in found.kinds]
    if lacking and found is learned and "prepare" in run.tables:
        raise UsageError(
            f"predict.keep names {lacking[0]!r}, which the prepared rows will not have",
            hint=f"add it to prepare.keep, as in keep = {to_toml(list(keep))}",
        )
    found.need("predict.keep", keep)
    written = (*_WRITTEN, *(() if numbers else _OF_CLASSES), *(["scores"] if table.get("scores") else []))
    for name in keep:
        if name in written:
            raise UsageError(f"predict.keep names {name!r}, a column of predictions", hint="rename that column")
    if table.get("probabilities") and numbers:
        raise UsageError("predict.probabilities: a regression has no probabilities", hint="leave it out")
    if table.get("top") is not None and (numbers or len(data.get("label") or ()) > 1):
        raise UsageError("predict.top: this model has no most probable classes", hint="leave it out")
    if not found.prepared and not learned.prepared:
        found.need("data.features", data.get("features") or ())
    _need_what_is_read("predict", run, found, learned)


def _need_what_is_read(table: str, run: RunFile, found: Columns, learned: Columns) -> None:
    """Refuse documents that lack a column of which features are made."""
    if learned.prepared and not found.prepared and "prepare" in run.tables and "indices" not in found.kinds:
        key, read = _read_by(run.table("prepare"))
        found.need(f"{table}, which reads {key},", read)


def _need_split(key: str, split: str | None, data: Columns) -> None:
    if split is not None and data.splits is not None and split not in data.splits:
        raise UsageError(
            f"{key} is {split!r}, and {data.where} has no such split",
            hint=f"there are {', '.join(sorted(data.splits))}",
        )


def _is_regression(training: Training) -> bool:
    return "Regressor" in training.kind.__name__
