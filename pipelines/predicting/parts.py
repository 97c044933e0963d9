"""Parts of a prediction: one file for each piece of the rows, written once by whoever labels it."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dboost import interruption
from dboost.data.manifest import write_parquet
from dboost.data.parquet.read import open_file
from dboost.engine.machine import available_cores
from dboost.errors import UsageError
from dboost.files.stores import AnyPath, any_path
from dboost.model.fitted import Model
from dboost.model.tasks import decision, of_rows
from dboost.partition import NUMBERS

# Pieces under way for each worker: one that is labelled and one that waits there.
AHEAD = 2
# Seconds of a turn of waiting for one.
TURN = 0.5


def name_of(number: int) -> str:
    """The file of a part."""
    return f"part-{number:05d}.parquet"


def label_part(piece: Any, number: int, folder: str, held: tuple[Model, Any], asked: Asked) -> int:
    """Write the predictions of a piece, unless they stand; returns the number of rows. Runs on workers."""
    target = any_path(folder) / name_of(number)
    if target.is_file():
        return int(open_file(str(target)).metadata.num_rows)
    model, transform = held
    scores = piece.scores(model, transform)
    file, row = piece.positions()
    table = predictions(model, scores, file, row, piece.kept(asked.keep), asked)
    # a part that another try of the same task wrote holds the same bytes
    write_parquet(table, target)
    return table.num_rows


def label_all(
    pieces: Sequence[Any], folder: AnyPath, model: Model, transform: Any, asked: Asked, client: Any, tell: Any
) -> int:
    """Write the parts of all pieces; returns the number of rows. `tell` hears the parts that are done, and the rows."""
    rows = 0
    for file in folder.glob(".part-*") if isinstance(folder, Path) else ():
        # of a process that was killed while it wrote
        file.unlink(missing_ok=True)
    for done, more in enumerate(in_order(label_part, pieces, (str(folder),), (model, transform), (asked,), client), 1):
        rows += more
        tell(done, rows)
    return rows


def in_order(
    work: Callable[..., Any],
    pieces: Sequence[Any],
    before: tuple[Any, ...],
    held: tuple[Model, Any],
    after: tuple[Any, ...],
    client: Any,
) -> Iterator[Any]:
    """``work(piece, number, *before, held, *after)`` of every piece, in order, a bounded number of them under way.

    They are done by the workers of `client`, or by threads of this process; one piece alone by the thread that asks.
    """
    if client is None and min(available_cores(), len(pieces)) < 2:
        for number, piece in enumerate(pieces):
            interruption.check()
            yield work(piece, number, *before, held, *after)
        return
    with _workers(client) as (submit, given, count):
        sent = given(held)
        under_way: deque[Any] = deque()
        for number, piece in enumerate(pieces):
            under_way.append(submit(work, piece, number, *before, sent, *after))
            if len(under_way) >= AHEAD * count:
                yield result_of(under_way.popleft())
        while under_way:
            yield result_of(under_way.popleft())


@contextmanager
def _workers(client: Any) -> Iterator[tuple[Callable[..., Any], Callable[[Any], Any], int]]:
    """How work is handed over, how what all of it is given is, and how many do it at a time."""
    if client is not None:
        given = partial(client.submit, _same, pure=False, key=None)
        yield partial(client.submit, pure=False, retries=2), given, max(1, len(client.nthreads()))
        return
    pool = ThreadPoolExecutor(available_cores(), thread_name_prefix="dboost-piece")

    def submit(work: Callable[..., Any], *arguments: Any) -> Any:
        # Its thread looks for the same request to stop as this one.
        return pool.submit(copy_context().run, work, *arguments)

    try:
        yield submit, _same, available_cores()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def result_of(future: Any) -> Any:
    """The result of a piece of work, waited for in turns, between which a request to stop is looked for."""
    ended = threading.Event()
    future.add_done_callback(lambda _: ended.set())
    while not ended.wait(TURN):
        interruption.check()
    return future.result()


def _same(held: Any) -> Any:
    return held


def put_together(parts: Path, count: int, folder: Path) -> None:
    """Give a folder the finished parts; they stay where they are until it has its name."""
    for number in range(count):
        file = parts / name_of(number)
        try:
            os.link(file, folder / file.name)
        except OSError:  # a file system without a second name for a file
            (folder / file.name).write_bytes(file.read_bytes())


@dataclass(frozen=True)
class Asked:
    """Which columns are written beside the labels; the meanings are those of ``PredictSettings``."""

    every: bool = False
    top: int | None = None
    scores: bool = False
    keep: tuple[str, ...] = ()


def asked_of(settings: Any, model: Model) -> Asked:
    """The columns that the settings ask for."""
    if settings.probabilities and model.task in NUMBERS:
        raise UsageError("a regression has no probabilities", hint="leave --probabilities out")
    if settings.top is not None and model.task not in ("binary", "multiclass") and model.tags is None:
        raise UsageError(f"a {model.task} has no most probable classes", hint="leave --top out")
    if settings.top is not None and settings.top > len(model.classes):
        raise UsageError(f"top={settings.top}, but the model has {len(model.classes)} classes", hint="ask for fewer")
    asked = Asked(settings.probabilities, settings.top, settings.scores, tuple(settings.keep or ()))
    nothing = pa.array([], pa.int64())
    written = predictions(model, np.zeros((0, model.n_outputs)), nothing, nothing, {}, asked).column_names
    clash = [name for name in asked.keep if name in written]
    if clash:
        raise UsageError(f"keep names {clash[0]!r}, which is a column of predictions", hint="rename that column")
    return asked


def predictions(
    model: Model, scores: NDArray[np.float64], file: pa.Array, row: pa.Array, kept: dict[str, Any], asked: Asked
) -> pa.Table:
    """The predictions of some rows.

    `file, row`: which row of the input each is.
    `asked`: what is given beside the label and its probability: ``probabilities`` of every class in the order of the
    model's classes, ``top_classes`` and ``top_probabilities`` (the most probable first, equal ones in the order of the
    classes), ``scores`` (one value, or a list of one for each output). Lists are of a fixed size. Of a model of tags
    the label is the list of those that are named, and its probability a list beside it.
    """
    labels = model.labels(scores)
    columns: dict[str, Any] = {"file": file.dictionary_encode(), "row": row, **kept}
    if asked.scores:
        values = decision(model.task, model.loss, scores)
        columns["scores"] = pa.array(values) if values.ndim == 1 else _lists(values)
    if model.task == "regression":
        return pa.table(columns | {"prediction": pa.array(labels)})
    if model.task == "multitarget":
        names = [str(name) for name in model.classes.tolist()]
        return pa.table(columns | {name: pa.array(labels[:, r]) for r, name in enumerate(names)})
    chances = model.probabilities(scores)
    if model.task == "multitask" and model.tags is None:
        names = [str(name) for name in model.classes.tolist()]
        columns |= {name: pa.array(labels[:, r].astype(np.int8)) for r, name in enumerate(names)}
        columns |= {f"{name}_probability": pa.array(chances[:, r]) for r, name in enumerate(names)}
        return pa.table(columns)
    kind = type_of(model)
    if model.tags is None:
        columns["prediction"] = pa.array(labels.tolist(), kind)
        columns["probability"] = pa.array(of_rows(np.maximum, chances))
    else:
        chosen = model.chosen_tags(scores)
        ends = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))]).astype(np.int32)
        columns["prediction"] = pa.array(labels.tolist(), pa.list_(kind))
        columns["probability"] = pa.ListArray.from_arrays(pa.array(ends), pa.array(chances[chosen]))
    if asked.every:
        columns["probabilities"] = _lists(chances)
    if asked.top is not None:
        best = np.argsort(-chances, axis=1, kind="stable")[:, : asked.top]
        columns["top_classes"] = pa.FixedSizeListArray.from_arrays(
            pa.array(model.classes.tolist(), kind).take(pa.array(best.ravel())), asked.top
        )
        columns["top_probabilities"] = _lists(np.take_along_axis(chances, best, axis=1))
    return pa.table(columns)


def type_of(model: Model) -> Any:
    """The Arrow type of the labels of a model: the same in every part, whichever labels a part has."""
    known = model.classes.tolist()
    if all(isinstance(one, int) and not isinstance(one, bool) for one in known):
        return pa.uint64() if max(known) >= 1 << 63 else pa.int64()
    return pa.array(known).type


def _lists(values: NDArray[np.float64]) -> pa.Array:
    """Rows of numbers as lists of a fixed size."""
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
