"""``dboost evaluate``: a model and data with labels in, figures out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from dboost import metrics
from dboost.errors import UsageError
from dboost.estimators.model_folders import find_model, read_transform
from dboost.files.storage import write_folder
from dboost.model.fitted import Model
from dboost.partition import NUMBERS

from .. import pages, regression_figures
from ..cluster import ClusterSession
from ..config import (
    ClusterSettings,
    DataSettings,
    FromOne,
    JudgedDataSettings,
    LogSettings,
    ModelFolderSettings,
    OutputSettings,
    Text,
    key,
)
from ..console import Console, finite
from ..inputs import is_text_table, open_data, read_model, refuse_existing
from ..predicting.judged import UnseenLabels, labelled_rows, sums_of, with_labels
from ..predicting.rows import are_raw

MARKER = "evaluation.json"

Figures = metrics.Evaluation | regression_figures.RegressionFigures


@dataclass(frozen=True, kw_only=True)
class EvaluateSettings(ModelFolderSettings, JudgedDataSettings, ClusterSettings, OutputSettings, LogSettings):
    """What `dboost evaluate` takes; `out` is optional."""

    required: ClassVar[tuple[str, ...]] = ("model", "data")
    first: ClassVar[tuple[str, ...]] = ("model", "data", "label", "text", "out", "top", "split", "workers", "force")

    out: Text | None = key(None, "folder for the figures as JSON; it must not exist (default: none)")
    top: FromOne = key(15, "rows of the longer tables")


def done(settings: EvaluateSettings, console: Console, client: Any = None) -> dict[str, Any]:
    """Print the figures, and save them as JSON where `out` says so; returns them as plain values."""
    if settings.out is not None:
        refuse_existing(settings.out, MARKER, settings.force)
    elif settings.force:
        raise UsageError("force= without out=, which is the folder that it replaces", hint="give both, or neither")
    folder = find_model(str(settings.model))
    model = read_model(folder)
    if not are_raw(settings, read_transform(folder)) and not is_text_table(settings):
        open_data(with_labels(settings, folder), "test", model)  # refused before a cluster starts
    with ClusterSession(settings, console, client, [settings.data]) as cluster:
        there = cluster.client()
        with console.stage("evaluate"):
            found = judged(settings, model, folder, there)
    return shown(*found, model, settings.top, console, settings.out, settings.force)


def shown(
    found: Figures, unseen: UnseenLabels, model: Model, top: int, console: Console, out: str | None, force: bool = False
) -> dict[str, Any]:
    """Save the figures as JSON where `out` says so, and print them; returns them as plain values."""
    values = pages.figure_values(found, model) | {
        "unknown_classes": {str(label): n for label, n in unseen.counts.items()}
    }
    if out is not None:
        with write_folder(out, marker=MARKER, force=force) as folder:
            text = json.dumps(finite(values), indent=1, default=str) + "\n"
            Path(folder, MARKER).write_text(text, encoding="utf-8")
    # last, since whoever reads may leave (`| head`), which ends the command
    console.page("evaluation", page(found, model, top, unseen), values)
    return values


def page(found: Figures, model: Model, top: int, unseen: UnseenLabels) -> list[Any]:
    """The figures as renderables."""
    if isinstance(found, regression_figures.RegressionFigures):
        return [pages.facts(pages.regression_rows(found, pages.labels_of(model)) + pages.model_facts(model))]
    tables = [
        pages.recall_table(found, model, top),
        pages.confusion_table(found, model, top),
        pages.task_table(found, model, top),
    ]
    shown = [part for table in tables if table is not None for part in ("", table)]
    rows = pages.evaluation_rows(found, model)
    rows[1:1] = [("", words) for words in unseen.words()]
    return [pages.facts(rows + pages.model_facts(model)), *shown]


def judged(settings: DataSettings, model: Model, folder: str, client: Any) -> tuple[Figures, UnseenLabels]:
    """Judge the model of a folder on the data of settings, and say which classes of it the model does not know."""
    with labelled_rows(settings, model, folder, client) as rows:
        total, unseen = sums_of(rows, model, client)
    if model.task in NUMBERS:
        return regression_figures.summarise(total), unseen
    found = metrics.summarise(total, metrics.margin_norm(model.W))
    return unseen.counted_as_wrong(found, total), unseen


COMMANDS = {"evaluate": (EvaluateSettings, done)}
