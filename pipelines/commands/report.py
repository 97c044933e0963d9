"""``dboost report``: a model as one HTML page that is read without a network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dboost.errors import DataError, UsageError
from dboost.files.storage import check_writable, write_file
from dboost.files.store_folders import local_copy
from dboost.files.stores import any_path

from ..config import DataSettings, LogSettings, boolean, key, needed, string
from ..console import Console
from ..inputs import open_data, read_model
from ..report_page.held_out import look_at
from ..report_page.page import html, read_json
from ..runs.folder import MODEL
from . import evaluate


@dataclass(frozen=True, kw_only=True)
class ReportSettings(DataSettings, LogSettings):
    """What `dboost report` takes."""

    required: ClassVar[tuple[str, ...]] = ("model",)

    model: str | None = key(string, None, "folder of a model, or of a run", positional=1)
    out: str | None = key(string, None, "HTML file to write (default: report.html in that folder)")
    force: bool = key(boolean, False, "replace the file")
    title: str | None = key(string, None, "title of the page (default: the name of the folder)")


SETTINGS = ReportSettings


def run(settings: ReportSettings, console: Console) -> int:
    """Write the page; with data, its labelled rows are judged."""
    needed(settings, *settings.required)
    given = Path(local_copy(str(settings.model)))
    folder = given / MODEL if (given / MODEL).is_dir() else given
    out = any_path(settings.out, "out") if settings.out else any_path(str(settings.model), "model") / "report.html"
    if out.exists() and not settings.force:
        raise UsageError("the file exists", file=str(out), hint="give --force, or another --out")
    check_writable(out)
    model = read_model(str(folder))
    evaluation = held_out = None
    if settings.data is not None:
        with console.stage("evaluate"):
            data = open_data(settings, "test", model)
            found, _ = evaluate.figures(model, data, None)
            evaluation, held_out = evaluate.values_of(found, model), look_at(model, data)
    elif (given / "evaluation").is_dir():
        evaluation = read_json(given / "evaluation" / "evaluation.json")
    if not model.history and model.n_hypotheses == 0 and evaluation is None:
        raise DataError("there is nothing to report: the model uses no feature and has no rounds", file=str(folder))
    title = settings.title or given.resolve().name
    made, path = read_json(folder / "run.json"), read_json(given / "path" / "path.json")
    text = html(model, title=title, evaluation=evaluation, held_out=held_out, path=path, made=made)
    write_file(out, text.encode("utf-8", "backslashreplace"))
    console.event("report", out=str(out))
    console.say(f"report: {out}")
    return 0
