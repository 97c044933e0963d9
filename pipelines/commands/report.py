"""``dboost report``: a model as one HTML page that is read without a network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dboost.errors import DataError, UsageError
from dboost.estimators.model_folders import find_model
from dboost.files.storage import check_writable, write_file
from dboost.files.store_folders import local_copy
from dboost.files.stores import any_path

from ..config import JudgedDataSettings, LogSettings, ModelFolderSettings, Switch, Text, key
from ..console import Console
from ..inputs import read_model
from ..report_page.held_out import look_at
from ..report_page.page import html, read_json
from ..runs.folder import EVALUATION, MODEL, PATH
from . import evaluate


@dataclass(frozen=True, kw_only=True)
class ReportSettings(ModelFolderSettings, JudgedDataSettings, LogSettings):
    """What `dboost report` takes."""

    required: ClassVar[tuple[str, ...]] = ("model",)

    out: Text | None = key(None, "HTML file to write (default: report.html in that folder)")
    force: Switch = key(False, "replace the file")
    title: Text | None = key(None, "title of the page (default: the name of the folder)")


SETTINGS = ReportSettings


def run(settings: ReportSettings, console: Console) -> int:
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
            evaluation, held_out = evaluate.values_of(found, model), look_at(model, settings, folder)
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
    return 0
