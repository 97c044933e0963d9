"""``dboost predict``: a model and data in, labels with their probabilities out, as Parquet.

The output is a folder that appears when it is complete. Its rows are those of the input, in their order; ``file`` and
``row`` say which row of the input each is. Blocks are read, labelled and sent back one by one: neither the data nor
the predictions are ever in one memory.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dboost import interruption
from dboost.data.parquet.plan import blocks_of
from dboost.errors import UsageError
from dboost.files.storage import write_folder
from dboost.model.fitted import Model
from dboost.model.tasks import decision

from ..cluster import connect
from ..config import ClusterSettings, DataSettings, LogSettings, OutputSettings, boolean, key, needed, string, whole
from ..console import Console, finite
from ..inputs import input_positions, open_data, read_model, refuse_existing

MARKER = "_predictions.json"
# Blocks under way for each worker: one that is computed and one that is on its way.
AHEAD = 2
# Seconds of a turn of waiting for one.
TURN = 0.5

Columns = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class PredictSettings(DataSettings, ClusterSettings, OutputSettings, LogSettings):
    """What `dboost predict` takes."""

    required: ClassVar[tuple[str, ...]] = ("model", "data", "out")

    model: str | None = key(string, None, "folder of a model", positional=1)
    probabilities: bool = key(boolean, False, "write the probability of every class, not only of the predicted one")
    top: int | None = key(whole(1), None, "write this many most probable classes, in order, with their probabilities")
    scores: bool = key(boolean, False, "write the decision values")


@dataclass(frozen=True)
class Asked:
    """Which columns are written beside the labels; the meanings are those of ``PredictSettings``."""

    every: bool = False
    top: int | None = None
    scores: bool = False


SETTINGS = PredictSettings


def run(settings: PredictSettings, console: Console) -> int:
    """Label the data and write the folder."""
    needed(settings, *settings.required)
    refuse_existing(settings.out, MARKER, settings.force)
    model = read_model(settings.model)
    asked_of(settings, model)
    data = open_data(settings, "test", model)
    feature_positions(model, data, blocks_of(data))
    with connect(settings, console) as client, console.stage("predict"):
        rows = predict(settings, model, data, client)
    console.event("predictions", out=settings.out, rows=rows)
    console.say(f"{rows:,} predictions: {settings.out}")
    return 0


def asked_of(settings: PredictSettings, model: Model) -> Asked:
    """The columns that the settings ask for.

    Raises
    ------
    UsageError
        For columns that a model of this task cannot give.
    """
    if settings.probabilities and model.task == "regression":
        raise UsageError("a regression has no probabilities", hint="leave --probabilities out")
    if settings.top is not None and model.task not in ("binary", "multiclass"):
        raise UsageError(f"a {model.task} has no most probable classes", hint="leave --top out")
    if settings.top is not None and settings.top > len(model.classes):
        raise UsageError(f"top={settings.top}, but the model has {len(model.classes)} classes", hint="ask for fewer")
    return Asked(settings.probabilities, settings.top, settings.scores)


def predict(settings: PredictSettings, model: Model, data: Any, client: Any) -> int:
    """Label the data, write the folder, and return the number of rows."""
    rows, blocks = 0, blocks_of(data)
    at, asked = feature_positions(model, data, blocks), asked_of(settings, model)
    with write_folder(str(settings.out), marker=MARKER, force=settings.force) as folder:
        for number, table in enumerate(tables(model, blocks, at, asked, client)):
            file = Path(folder, f"part-{number:05d}.parquet")
            pq.write_table(table, file, compression="zstd", write_page_checksum=True)
            rows += table.num_rows
        about = {"rows": rows, "classes": model.classes.tolist(), "model": str(settings.model), "data": str(data)}
        Path(folder, MARKER).write_text(json.dumps(finite(about), indent=1, default=str) + "\n", encoding="utf-8")
    return rows


def feature_positions(model: Model, data: Any, blocks: Sequence[Any]) -> Columns:
    """Where the columns that the model reads are in a block; a prepared folder of another vocabulary is refused."""
    manifest, layout = data.resolve()[1], blocks[0].layout if blocks else None
    names = layout.columns if layout is not None and layout.kind == "columns" else None
    if manifest is not None:
        names = manifest.feature_names()
    return input_positions(model, names, model.n_features if layout is None else layout.n_features, data)


def tables(model: Model, blocks: Iterable[Any], at: Columns, asked: Asked, client: Any) -> Iterator[pa.Table]:
    """One table of predictions per block, in order, with a bounded number under way."""
    if client is None:
        for block in blocks:
            interruption.check()
            yield label_block(block, model, at, asked)
        return
    held = client.submit(_same, model, pure=False, key=None)
    ahead = AHEAD * max(1, len(client.nthreads()))
    under_way: deque[Any] = deque()
    for block in blocks:
        under_way.append(client.submit(label_block, block, held, at, asked, pure=False, retries=2))
        if len(under_way) >= ahead:
            yield result_of(under_way.popleft())
    while under_way:
        yield result_of(under_way.popleft())


def result_of(future: Any) -> Any:
    """The result of a task, waited for in turns, between which a request to stop is looked for."""
    ended = threading.Event()
    future.add_done_callback(lambda _: ended.set())
    while not ended.wait(TURN):
        interruption.check()
    return future.result()


def _same(model: Model) -> Model:
    return model


def label_block(block: Any, model: Model, at: Columns, asked: Asked) -> pa.Table:
    """The predictions of one block of rows; runs where there is room.

    Parameters
    ----------
    block : dboost.data.parquet.block.ParquetBlock
    model : Model
    at : int64 array
        Where the columns that the model reads are among those of the block.
    asked : Asked
        What is given beside the label and its probability: ``probabilities`` of every class in the order of the
        model's classes, ``top_classes`` and ``top_probabilities`` (the most probable first, equal ones in the order of
        the classes), ``scores`` (one value, or a list of one for each output). Lists are of a fixed size.

    Returns
    -------
    pyarrow.Table
        ``file``, ``row``, ``prediction`` (for tasks one 0/1 column each) and, but for a regression, the probabilities.
    """
    scores = model.scores_of_inputs(block.read().csr(block.layout.n_features)[:, at])
    labels = model.labels(scores)
    file, row = positions(block)
    columns: dict[str, Any] = {"file": file.dictionary_encode(), "row": row}
    if asked.scores:
        values = decision(model.task, model.loss, scores)
        columns["scores"] = pa.array(values) if values.ndim == 1 else _lists(values)
    if model.task == "regression":
        return pa.table(columns | {"prediction": pa.array(labels)})
    chances = model.probabilities(scores)
    if model.task == "multitask":
        names = [str(name) for name in model.classes.tolist()]
        columns |= {name: pa.array(labels[:, r].astype(np.int8)) for r, name in enumerate(names)}
        columns |= {f"{name}_probability": pa.array(chances[:, r]) for r, name in enumerate(names)}
        return pa.table(columns)
    columns["prediction"] = pa.array(labels.tolist())
    columns["probability"] = pa.array(chances.max(axis=1, initial=0.0))
    if asked.every:
        columns["probabilities"] = _lists(chances)
    if asked.top is not None:
        best = np.argsort(-chances, axis=1, kind="stable")[:, : asked.top]
        columns["top_classes"] = pa.FixedSizeListArray.from_arrays(
            pa.array(model.classes.tolist()).take(pa.array(best.ravel())), asked.top
        )
        columns["top_probabilities"] = _lists(np.take_along_axis(chances, best, axis=1))
    return pa.table(columns)


def _lists(values: NDArray[np.float64]) -> pa.Array:
    """Rows of numbers as lists of a fixed size."""
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])


def positions(block: Any) -> tuple[pa.Array, pa.Array]:
    """File name and row within the file of every row of a block."""
    files: list[str] = []
    rows: list[np.ndarray[Any, np.dtype[np.int64]]] = []
    for ref, groups in block.spans:
        footer = pq.read_metadata(ref.path)
        sizes = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        for group in groups:
            files.extend([ref.name] * sizes[group])
            rows.append(np.arange(starts[group], starts[group + 1], dtype=np.int64))
    return pa.array(files, pa.string()), pa.array(np.concatenate(rows) if rows else np.zeros(0, np.int64))
