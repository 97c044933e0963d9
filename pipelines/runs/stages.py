"""The stages of a run: what each depends on, and what it does."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import dboost
from dboost.data import load_manifest
from dboost.data.manifest import FORMAT_VERSION, MANIFEST
from dboost.data.meaning import DIALECT
from dboost.errors import UsageError
from dboost.files.storage import write_file
from dboost.files.store_folders import current
from dboost.files.stores import any_path

from .. import pages
from ..commands import evaluate, predict, prepare, train
from ..config import DataSettings, JudgedDataSettings, NewDataSettings, dialect_of
from ..console import Console, finite
from ..inputs import as_parquet, columns_of, naming_sources, open_data, read_model
from ..report_page.held_out import look_at
from ..report_page.page import html, read_json
from ..training import plan_training, save_path
from . import fingerprints
from . import folder as names
from .folder import EVALUATION, MODEL, PATH, RunFolder
from .foresight import raw_test
from .run_file import RunFile, keys_of


@dataclass(frozen=True)
class Work:
    """What a stage works with."""

    run: RunFile
    folder: RunFolder
    console: Console
    client: Callable[[], Any]  # the Dask client, or None; the first call makes it


@dataclass(frozen=True)
class Stage:
    """A stage."""

    name: str
    outputs: tuple[str, ...]  # files and folders of the run folder that it writes, under ``folder.next(name)``
    # Opens what it reads, once: what the two functions below are given; or a text that says why it is left out.
    opens: Callable[[Work], Any]
    inputs: Callable[[Work, Any], dict[str, Any]]  # everything it depends on, as JSON
    # Does it; returns what later stages and a list of runs ask for, as JSON.
    make: Callable[[Work, Any], dict[str, Any]]


def check(run: RunFile) -> None:
    """Refuse, before anything is read, what has no meaning."""
    if "data" not in run.values.get("data", {}):
        raise UsageError("data.data is missing: set it in the table [data], or give --set data.data=PATH")
    plan_training(run.model())


# ---- prepare -------------------------------------------------------------------------------------------------------


def _opened_documents(work: Work) -> prepare.PrepareSettings | str:
    if "prepare" not in work.run.tables:
        return "there is no table [prepare]"
    data, values = work.run.table("data"), work.run.table("prepare")
    label = data.get("label")
    if label is not None and len(label) > 1:
        raise UsageError("documents have one label column", hint="name one in data.label")
    needed = (data.get("weight"), work.run.values.get("model", {}).get("groups"))
    kept = [*values.get("keep", ()), *(name for name in needed if name is not None)]
    values["keep"] = tuple(dict.fromkeys(kept))
    out = str(work.folder.next(names.PREPARED))
    more = {"data": data["data"], "test": data.get("test"), "label": None if label is None else label[0]}
    more |= {name: data.get(name) for name in DIALECT}
    return prepare.PrepareSettings(**values, **more, out=out, force=True)


def _prepare_inputs(work: Work, settings: prepare.PrepareSettings) -> dict[str, Any]:
    mine = {name: getattr(settings, name) for name in (*keys_of("prepare"), "label", *DIALECT)}
    found = {"data": fingerprints.of_input(str(settings.data)), "settings": mine, "versions": _versions()}
    if settings.test is not None:
        found["test"] = fingerprints.of_input(settings.test)
    if settings.expect is not None:
        found["expect"] = fingerprints.of_input(settings.expect)
    return found


def _prepare(work: Work, settings: prepare.PrepareSettings) -> dict[str, Any]:
    manifest = prepare.prepare(settings, work.client(), work.console)
    work.console.page("prepared", [pages.facts(prepare.facts(manifest))], manifest.content())
    return {"features": manifest.features["n_features"], "splits": {k: v["rows"] for k, v in manifest.splits.items()}}


# ---- train ---------------------------------------------------------------------------------------------------------


def _training_data(work: Work) -> DataSettings:
    data = {name: value for name, value in work.run.table("data").items() if name != "test"}
    if "prepare" in work.run.tables:
        return _prepared_data(work, data.get("split"))
    return DataSettings(**data)


def _prepared_data(work: Work, split: str | None) -> NewDataSettings:
    return NewDataSettings(
        data=str(work.folder / names.PREPARED), split=split, weight=work.run.table("data").get("weight")
    )


def _data_inputs(data: DataSettings, preferred: str, more: Sequence[str] = ()) -> dict[str, Any]:
    """The rows that a stage reads: those of a prepared folder by the columns it reads, others as they are."""
    columns = {item.name: getattr(data, item.name) for item in dataclasses.fields(data) if item.name != "data"}
    named = [*(data.label or ()), *([data.weight] if data.weight else ()), *more]
    read = fingerprints.of_rows(str(data.data), data.split or preferred, named)
    return {"data": fingerprints.of_input(str(data.data)) if read is None else read, "columns": columns}


def _train_inputs(work: Work, data: DataSettings) -> dict[str, Any]:
    settings = work.run.values.get("model", {})
    groups = [settings["groups"]] if "groups" in settings else []
    found = {**_data_inputs(data, "train", groups), "settings": settings, "versions": _versions()}
    if settings.get("start") is not None:
        found["start"] = fingerprints.of_model(settings["start"])
    return found


def _train(work: Work, given: DataSettings) -> dict[str, Any]:
    run, folder = work.run, work.folder
    progress, partial = folder / names.CHECKPOINT, folder / names.PARTIAL
    training = plan_training(run.model())
    groups = run.table("model").get("groups")
    tables, where = folder / names.TABLES, (work.client(), work.console)
    with naming_sources(given, tables):
        data = open_data(as_parquet(given, tables, [groups] if groups else []), "train", groups=groups)
        trained = train.fit(training, data, *where, named=given.data, work=progress, partial=partial)
    out = folder.next(names.MODEL)
    train.save(trained, data, out, {"data": run.table("data"), "model": run.values.get("model", {})}, work.console)
    path_out = folder.next(names.PATH)
    if trained.path is not None:
        save_path(trained, path_out)
    train.show(trained, work.console)
    first = getattr(trained.estimator, "estimators_", [trained.estimator])[0]
    facts = {"model": fingerprints.of_model(out), "converged": trained.converged, "stop_reason": first.stop_reason_}
    return facts | {
        "rounds": first.n_iter_,
        "gap": first.duality_gap_,
        "features": len(trained.estimator.active_features_),
    }


# ---- evaluate and predict ------------------------------------------------------------------------------------------


_NOTHING = "no data is held out: set data.test or {}.data"
# Keys of [data] that hold for held-out rows too.
_COLUMNS = ("features", "label", "weight", "n_features", *DIALECT)


def _held_out(work: Work, table: str) -> NewDataSettings | None:
    """What is judged or labelled; None where nothing is held out."""
    given, data = work.run.values.get(table, {}), work.run.table("data")
    columns = {name: data[name] for name in _COLUMNS if name in data}
    more = {name: given.get(name) for name in ("split", "text", "label_separator")}
    if "data" in given:
        return JudgedDataSettings(data=given["data"], **more, **columns)
    if "prepare" in work.run.tables:
        whole = _prepared_data(work, given.get("split", "test"))
        return whole if whole.split in load_manifest(str(whole.data)).splits else None
    if "test" in data:
        return JudgedDataSettings(data=data["test"], **more, **columns)
    folder = current(any_path(data["data"]))
    split = given.get("split", "test")
    if (folder / MANIFEST).is_file() and split in load_manifest(folder).splits and split != data.get("split"):
        return NewDataSettings(data=data["data"], split=split, **columns)
    return None


def _as_given(work: Work, table: str) -> NewDataSettings | None:
    """As ``_held_out``; of documents that were prepared those themselves, in the files and rows of the user."""
    held_out, test = _held_out(work, table), raw_test(work.run, table)
    if held_out is None or test is None or "data" in work.run.values.get(table, {}):
        return held_out
    data = work.run.table("data")
    columns = {name: data[name] for name in ("label", "weight", *DIALECT) if name in data}
    return NewDataSettings(data=test, **columns)


def _opened_held_out(work: Work) -> NewDataSettings | str:
    held_out = _held_out(work, "evaluate")
    if held_out is None:
        return _NOTHING.format("evaluate")
    label = "" if "data" in work.run.values.get("evaluate", {}) else _missing_label(work, held_out)
    return f"the held-out rows have no labels: there is no column {label!r}" if label else held_out


def _opened_new(work: Work) -> NewDataSettings | str:
    if "predict" not in work.run.tables:
        return "there is no table [predict]"
    return _as_given(work, "predict") or _NOTHING.format("predict")


def _missing_label(work: Work, held_out: NewDataSettings) -> str:
    """The label column that held-out rows lack; empty where they have it."""
    label = (held_out.label or work.run.table("data").get("label") or ("label",))[0]
    folder = current(any_path(str(held_out.data)))
    if (folder / MANIFEST).is_file():
        manifest = load_manifest(folder)
        split = manifest.splits.get(str(held_out.split or "test"), {})
        bare = manifest.label is not None and not split.get("classes") and "targets" not in split
        return str(manifest.label) if bare else ""
    return "" if label in columns_of(str(held_out.data), dialect_of(held_out)) or held_out.label is None else label


def _model_inputs(work: Work, held_out: NewDataSettings, table: str) -> dict[str, Any]:
    mine = {name: value for name, value in work.run.table(table).items() if name not in ("data", "split")}
    model = work.folder.record("train")["facts"]["model"]
    keep = tuple(mine.get("keep") or ()) if table == "predict" else ()
    return {"model": model, **_data_inputs(held_out, "test", keep), "settings": mine, "versions": _versions()}


def _evaluate(work: Work, held_out: NewDataSettings) -> dict[str, Any]:
    folder = str(work.folder / names.MODEL)
    model = read_model(folder)
    found = evaluate.judged(held_out, model, folder, work.client())
    top, out = int(work.run.table("evaluate")["top"]), str(work.folder.next(names.EVALUATION))
    values = evaluate.shown(*found, model, top, work.console, out)
    return {name: values[name] for name in ("examples", "error", "log_loss", "rmse", "r2") if name in values}


def _predict(work: Work, held_out: NewDataSettings) -> dict[str, Any]:
    table = work.run.table("predict")
    model = read_model(str(work.folder / names.MODEL))
    given: dict[str, Any] = {item.name: getattr(held_out, item.name) for item in dataclasses.fields(NewDataSettings)}
    given |= {name: table.get(name) for name in ("probabilities", "top", "scores", "keep")}
    settings = predict.PredictSettings(
        **given,
        model=str(work.folder / names.MODEL),
        out=str(work.folder.next(names.PREDICTIONS)),
    )
    parts = work.folder / names.LABELLED
    with naming_sources(settings, parts / names.TABLES):
        about = predict.predict(settings, model, work.client(), parts, work.console)
    shutil.rmtree(parts, ignore_errors=True)
    work.console.say(f"{about['rows']:,} predictions: {work.folder / names.PREDICTIONS}   {predict.read_words(about)}")
    return about


# ---- report --------------------------------------------------------------------------------------------------------


def _report_inputs(work: Work, nothing: None) -> dict[str, Any]:
    done = {name: work.folder.record(name).get("facts", {}) for name in ("train", "evaluate")}
    return {"done": done, "settings": work.run.table("report"), "versions": _versions()}


def _report(work: Work, nothing: None) -> dict[str, Any]:
    """Write the model with its strongest features, the evaluation and the path where they are there, and the page."""
    model = read_model(str(work.folder / MODEL))
    values = pages.map_values(model)
    values["features"] = values["features"][: int(work.run.table("report")["top"])]
    values = {"model": {"facts": dict(pages.model_facts(model)), **values}}
    for name, file in (("evaluation", EVALUATION), ("path", PATH)):
        if (there := read_json(work.folder / file / f"{name}.json")) is not None:
            values[name] = there
    values["versions"] = train.versions()
    text = json.dumps(finite(values), indent=1, default=str, ensure_ascii=False) + "\n"
    write_file(work.folder.next(names.REPORT), text.encode("utf-8", "backslashreplace"))
    page = _page(work, model, values)
    if page:
        write_file(work.folder.next(names.REPORT_PAGE), page.encode("utf-8", "backslashreplace"))
        work.console.say(f"report: {work.folder / names.REPORT_PAGE}")
    return {}


def _page(work: Work, model: Any, values: dict[str, Any]) -> str:
    """The report as a page; none for the models of one class each, which are many."""
    folder = work.folder / names.MODEL
    if not (folder / "model.json").is_file():
        return ""
    looked = None
    if work.folder.record("evaluate") and not isinstance(_opened_held_out(work), str):
        held_out = _as_given(work, "evaluate")
        assert held_out is not None
        same = raw_test(work.run, "evaluate") == raw_test(work.run, "predict")
        keep = (work.run.table("predict").get("keep") or ()) if same else ()
        looked = look_at(model, held_out, str(folder), work.client(), keep)
    return html(
        model, str(folder), title=work.run.name, evaluation=values.get("evaluation"), held_out=looked,
        path=values.get("path"),
    )  # fmt: skip


def _versions() -> dict[str, Any]:
    """What makes the same inputs another result."""
    return {"dboost": dboost.__version__, "prepared": FORMAT_VERSION}


STAGES = (
    Stage("prepare", (names.PREPARED,), _opened_documents, _prepare_inputs, _prepare),
    Stage("train", (names.MODEL, names.PATH), _training_data, _train_inputs, _train),
    Stage("evaluate", (names.EVALUATION,), _opened_held_out, partial(_model_inputs, table="evaluate"), _evaluate),
    Stage("predict", (names.PREDICTIONS,), _opened_new, partial(_model_inputs, table="predict"), _predict),
    Stage("report", (names.REPORT, names.REPORT_PAGE), lambda work: None, _report_inputs, _report),
)
