"""Reading a model: ``dboost inspect`` shows its features, ``report`` writes its page, ``explain`` reads one row."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from dboost.data.parquet.plan import blocks_of
from dboost.errors import DataError, UsageError
from dboost.estimators.model_folders import find_model, read_transform
from dboost.estimators.text_features import DocumentFeatures, TextFeatures
from dboost.files.storage import check_writable, write_file
from dboost.files.store_folders import local_copy
from dboost.files.stores import any_path
from dboost.model.explained import Contributions, contributions
from dboost.model.fitted import Model
from dboost.partition import NUMBERS

from .. import pages
from ..cluster import engine_on
from ..config import (
    DataSettings,
    FromOne,
    FromZero,
    JudgedDataSettings,
    LogSettings,
    ModelFolderSettings,
    Switch,
    Text,
    key,
)
from ..console import Console
from ..fitting_table import grid
from ..inputs import abbreviated, for_a_while, open_data, read_model, staging_for
from ..predicting.rows import are_raw, check_transform, feature_positions, raw_rows
from ..report_page.held_out import look_at
from ..report_page.page import html, read_json
from ..runs.folder import EVALUATION, MODEL, PATH
from . import evaluate


@dataclass(frozen=True, kw_only=True)
class InspectSettings(ModelFolderSettings, LogSettings):
    """What `dboost inspect` takes."""

    required: ClassVar[tuple[str, ...]] = ("model",)

    top: FromOne = key(30, "features that are listed")


def do_inspect(settings: InspectSettings, console: Console) -> None:
    """Print the map."""
    model = read_model(settings.model)
    blocks = pages.blocks_for(console.rich.encoding)
    shown = [pages.facts(pages.model_facts(model)), "", *pages.sparsity_map(model, settings.top, blocks)]
    console.page("sparsity_map", shown, pages.map_values(model))


@dataclass(frozen=True, kw_only=True)
class ReportSettings(ModelFolderSettings, JudgedDataSettings, LogSettings):
    """What `dboost report` takes."""

    required: ClassVar[tuple[str, ...]] = ("model",)

    out: Text | None = key(None, "HTML file to write (default: report.html in that folder)")
    force: Switch = key(False, "replace the file")
    title: Text | None = key(None, "title of the page (default: the name of the folder)")


def do_report(settings: ReportSettings, console: Console) -> None:
    """Write the page; with data, its labelled rows are judged."""
    given, folder = Path(local_copy(str(settings.model))), find_model(str(settings.model))
    # a retraining's home: what was judged stands in the run of its champion
    made_by = Path(folder).parent if Path(folder).name == MODEL else given
    out = any_path(settings.out, "out") if settings.out else any_path(str(settings.model), "model") / "report.html"
    if out.exists() and not settings.force:
        raise UsageError("the file exists", file=str(out), hint="give --force, or another --out")
    check_writable(out)
    model = read_model(folder)
    evaluation = held_out = None
    if settings.data is not None:
        with console.stage("evaluate"):
            found, _ = evaluate.judged(settings, model, folder, None)
            evaluation, held_out = pages.figure_values(found, model), look_at(model, settings, folder)
    else:
        evaluation = read_json(made_by / EVALUATION / evaluate.MARKER)
    if not model.history and model.n_hypotheses == 0 and evaluation is None:
        raise DataError("there is nothing to report: the model uses no feature and has no rounds", file=folder)
    title = settings.title or given.resolve().name
    path = read_json(made_by / PATH / "path.json")
    text = html(model, folder, title=title, evaluation=evaluation, held_out=held_out, path=path)
    write_file(out, text.encode("utf-8", "backslashreplace"))
    console.event("report", out=str(out))
    console.say(f"report: {out}")


@dataclass(frozen=True, kw_only=True)
class ExplainSettings(ModelFolderSettings, DataSettings, LogSettings):
    """What `dboost explain` takes."""

    required: ClassVar[tuple[str, ...]] = ("model",)

    text: Text | None = key(None, "document to explain; - reads it from the standard input", positional=3)
    data: Text | None = key(None, "data with the row, in place of a document: features as the model reads them")
    row: FromZero = key(0, "row of the data, counted from 0")
    top: FromOne = key(15, "features that are listed")


def do_explain(settings: ExplainSettings, console: Console) -> None:
    """Print the table."""
    if (settings.text is None) == (settings.data is None):
        raise UsageError("what is to be explained?", hint="give a document, or --data and --row")
    model = read_model(settings.model)
    transform = read_transform(find_model(str(settings.model)))
    found, holds = (_of_text if settings.text is not None else _of_row)(settings, model, transform)
    values, shown = values_of(found, model, settings.top, holds), table(found, model, settings.top, holds=holds)
    console.page("explained", shown, values)


def _of_text(settings: ExplainSettings, model: Model, transform: Any) -> tuple[Contributions, dict[str, Any]]:
    reads = sorted(getattr(transform, "kinds_", {}))
    if reads:
        what = f"the model reads the columns of a table, {abbreviated(reads)}, and no single text"
        raise DataError(what, file=str(settings.model), hint="give a file with them: --data and --row")
    if not isinstance(transform, DocumentFeatures | TextFeatures):
        raise DataError(
            "the model holds no transform of documents", file=str(settings.model), hint="give --data and --row"
        )
    text = sys.stdin.read() if settings.text == "-" else str(settings.text)
    return contributions(model, transform.transform([text])[:, model.inputs]), {}


def _of_row(settings: ExplainSettings, model: Model, transform: Any) -> tuple[Contributions, dict[str, Any]]:
    """The parts of a row of the data, and of one that a transform reads what its columns hold."""
    before = 0
    if transform is not None and are_raw(settings, transform):
        check_transform(model, transform, str(settings.model))
        with staging_for(settings, None) as staging, engine_on(None) as engine:
            for piece in raw_rows(settings, transform, (), staging, engine).pieces:
                found = piece.row(settings.row - before, transform)
                if found is not None:
                    row, made = found
                    holds = row.to_pylist()[0] if isinstance(row, pa.Table) else {}
                    origins = getattr(transform, "feature_columns_", None)
                    return contributions(model, made[:, model.inputs], origins), holds
                before += sum(span[3] - span[2] for span in piece.chunk.spans)
    else:
        with for_a_while(settings) as found:
            data = open_data(found, "test", model)
            blocks = blocks_of(data)
            at = feature_positions(model, data, blocks)
            for block in blocks:
                rows = block.read().csr(block.layout.n_features, block.layout.names)
                if settings.row < before + rows.shape[0]:
                    return contributions(model, rows[[settings.row - before]][:, at]), {}
                before += rows.shape[0]
    raise UsageError(f"row {settings.row}, but the data has {before} rows", hint="they are counted from 0")


def _predicted(found: Contributions, model: Model) -> tuple[list[str], np.ndarray[Any, Any]]:
    """Classes, the predicted one first, and their probabilities; of a regression the prediction."""
    scores, labels = found.scores[None], pages.labels_of(model)
    if model.task in NUMBERS:
        return labels, np.asarray(model.labels(scores), dtype=float).reshape(-1)
    chances = model.probabilities(scores)[0]
    order = np.argsort(-chances, kind="stable")
    return [labels[r] for r in order.tolist()], chances[order]


def table(
    found: Contributions, model: Model, top: int, classes: int = 3, holds: Mapping[str, Any] | None = None
) -> list[Any]:
    """The classes and what speaks for them, as renderables; `holds` is what the columns of the row hold."""
    labels, chances = _predicted(found, model)
    number = {label: r for r, label in enumerate(pages.labels_of(model))}
    shown = labels[:classes]
    columns = [found.of_class(number[label]) if model.task != "regression" else found.parts[:, 0] for label in shown]
    head = [(label, f"{chance:.4g}") for label, chance in zip(shown, chances.tolist())]
    parts: list[Any] = [pages.facts(head), ""]
    if not found.words:
        return [*parts, "It has no feature that the model uses: the answer is that of the intercept."]
    order = np.argsort(-np.abs(np.stack(columns)).max(axis=0), kind="stable")[:top]
    rows = []
    for j in order.tolist():
        held = [_shortly(holds[found.columns[j]])] if holds and found.columns is not None else []
        rows.append((found.words[j], f"{found.values[j]:.3g}", *held, *(f"{column[j]:+.3f}" for column in columns)))
    held = ["the column holds"] if holds and found.columns is not None else []
    made = grid(("feature", "value", *held, *shown), rows, left={0, 2} if held else {0}, widest=40)
    title = f"What speaks for (+) and against (-), the strongest {len(order)} of {len(found.words)}"
    return [*parts, pages.titled(title, made)]


def _shortly(value: Any) -> str:
    """What a column holds, in one short line."""
    shown = " ".join(_written(value).split())
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def _written(value: Any) -> str:
    match value:
        case float():
            return f"{value:.4g}"
        case list():
            return ", ".join(map(_written, value))
        case (name, number):
            return f"{name}: {_written(number)}"
        case dict():
            return _written(list(value.items()))
    return str(value)


def values_of(found: Contributions, model: Model, top: int, holds: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The same as plain values."""
    labels, chances = _predicted(found, model)
    order = np.argsort(-np.abs(found.parts).max(axis=1, initial=0.0), kind="stable")[:top]
    features = [
        {"name": found.words[j], "value": float(found.values[j]), "parts": found.parts[j].tolist()}
        for j in order.tolist()
    ]
    for j, one in zip(order.tolist(), features, strict=True):
        if found.columns is not None and holds:
            one |= {"column": found.columns[j], "holds": _shortly(holds[found.columns[j]])}
    return {"classes": labels, "probabilities": chances.tolist(), "scores": found.scores.tolist(), "features": features}


COMMANDS = {
    "inspect": (InspectSettings, do_inspect),
    "report": (ReportSettings, do_report),
    "explain": (ExplainSettings, do_explain),
}
