"""``dboost predict``: a model and data in, labels with their probabilities out, as Parquet.

The data is what the model was trained on: raw documents, where its folder holds their transform, or features. The
output is a folder that appears when it is complete. Its rows are those of the input, in their order; ``file`` and
``row`` say which row of the input each is. Every part is written once, by the worker that labels it, and stands when
the command is given again after a break: neither the data nor the predictions are ever in one memory.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from dboost.errors import UsageError
from dboost.estimators.model_folders import find_model, read_transform
from dboost.files import store_folders
from dboost.files.storage import write_folder
from dboost.files.stores import AnyPath, StorePath, any_path
from dboost.model.fitted import Model

from ..cluster import ClusterSession, engine_on
from ..config import (
    ClusterSettings,
    FromOne,
    LogSettings,
    ModelFolderSettings,
    Names,
    NewDataSettings,
    OutputSettings,
    Switch,
    key,
)
from ..console import Console, finite
from ..inputs import ENDING, as_parquet, is_text_table, read_model, refuse_existing
from ..predicting.parts import asked_of, label_all, put_together
from ..predicting.rows import are_raw, check_transform, prepared_rows, raw_rows
from ..runs.fingerprints import of_input, of_model, of_values
from ..runs.folder import TABLES, claim
from ..unfinished import PARTS, is_saved, note_saved, resumable_work_folder

MARKER = "_predictions.json"


@dataclass(frozen=True, kw_only=True)
class PredictSettings(ModelFolderSettings, NewDataSettings, ClusterSettings, OutputSettings, LogSettings):
    """What `dboost predict` takes."""

    required: ClassVar[tuple[str, ...]] = ("model", "data", "out")
    first: ClassVar[tuple[str, ...]] = (
        "model", "data", "out", "keep", "probabilities", "top", "scores", "text", "workers", "force"
    )  # fmt: skip

    keep: Names | None = key(None, "columns of the data that are carried through, such as identifiers")
    probabilities: Switch = key(False, "write the probability of every class, not only of the predicted one")
    top: FromOne | None = key(None, "write this many most probable classes, in order, with their probabilities")
    scores: Switch = key(False, "write the decision values")


def done(settings: PredictSettings, console: Console, client: Any = None) -> dict[str, Any]:
    """Label the data and write the folder; returns what was read and written."""
    # a retraining may have another champion tomorrow, when this is resumed
    settings = replace(settings, model=find_model(str(settings.model)))
    force = settings.force or is_saved(settings, "predict", MARKER)
    refuse_existing(settings.out, MARKER, force)
    model = read_model(settings.model)
    asked_of(settings, model)
    transform = read_transform(str(settings.model))
    if are_raw(settings, transform):
        # these say which features to read, and the transform makes them of raw documents
        for name in ("split", "label", "weight", "n_features"):
            if getattr(settings, name) is not None:
                what = f"{name}= has no effect on raw documents, of which the model reads the text alone"
                raise UsageError(what, hint="leave it out; keep= carries a column through")
    else:
        if settings.text is not None:
            raise UsageError("text= has no effect on features, which are read as they are", hint="leave it out")
        if not is_text_table(settings):
            prepared_rows(settings, model, settings.keep or ())  # refused before a cluster starts
    place = ClusterSession(settings, console, client, [settings.data])
    with resumable_work_folder(settings, "predict", console) as work, place as cluster:
        cluster.client()  # starts before the stage whose seconds are counted
        with console.stage("predict"):
            about = cluster.run_with_rejoin(lambda there: predict(settings, model, there, work, console, force))
    console.event("predictions", out=settings.out, **about)
    console.say(f"{about['rows']:,} predictions: {settings.out}   {read_words(about)}")
    return about


def predict(
    settings: PredictSettings, model: Model, client: Any, work: Path, console: Console, force: bool = False
) -> dict[str, Any]:
    """Label the data and write the folder; `work` keeps the parts that are done. Returns what was read and written."""
    asked, transform = asked_of(settings, model), read_transform(str(settings.model))
    parts = _parts_of(settings, work, asked)
    with engine_on(client) as engine:
        if transform is not None and are_raw(settings, transform):
            check_transform(model, transform, str(settings.model))
            read = raw_rows(settings, transform, asked.keep, work, engine)
        else:
            tables = as_parquet(settings, work / TABLES, asked.keep)
            ending = "" if tables is settings else ENDING
            read = prepared_rows(tables, model, asked.keep, ending)

    def tell(done: int, rows: int) -> None:
        console.event("part", done=done, of=len(read.pieces), rows=rows)
        console.parts("labelling", done, len(read.pieces))

    rows = label_all(read.pieces, parts, model, transform, asked, client, tell)
    about = {"rows": rows, "columns_read": read.columns, "columns": read.of, "bytes_read": read.bytes}
    kept = {"classes": model.classes.tolist(), "model": str(settings.model), "data": str(settings.data), **about}
    text = (json.dumps(finite(kept), indent=1, default=str) + "\n").encode()
    if isinstance(parts, StorePath):
        note_saved(work, text)
        # the parts lie where they are to be: they only get their name
        (parts / MARKER).write_bytes(text)
        store_folders.publish(parts.parent, parts.name)
        return about
    with write_folder(str(settings.out), marker=MARKER, force=force) as folder:
        put_together(parts, len(read.pieces), folder)
        (folder / MARKER).write_bytes(text)
        note_saved(work, text)
    return about


def read_words(about: dict[str, Any]) -> str:
    """What was read, in words."""
    return f"read {about['columns_read']} of {about['columns']} columns, {about['bytes_read'] / 1e6:,.1f} MB"


def _parts_of(settings: PredictSettings, work: Path, asked: Any) -> AnyPath:
    """The folder of the parts; those of another model, other data or another question are removed.

    In a store every question has a folder of its own, since no folder can be given another name there.
    """
    data = of_input(str(settings.data))
    columns = {name: getattr(settings, name) for name in ("split", "features", "n_features", "text")}
    model = of_model(str(settings.model))
    mine = of_values([model, data, columns, asdict(asked)])
    out = any_path(str(settings.out), "out")
    if isinstance(out, StorePath):
        return out / store_folders.generation(mine)
    claim(work / PARTS, mine)
    return work / PARTS


COMMANDS: dict[str, Any] = {"predict": (PredictSettings, done)}
