"""Parts of a prediction: one file for each piece of the rows, written once by whoever labels it.

Covers: the file of a part, which appears whole; passing over the parts that stand; the work over workers.
Does not cover: where rows come from (``rows``), what is in a part (``columns``).
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from dboost import interruption
from dboost.data.manifest import write_parquet
from dboost.data.parquet.read import open_file
from dboost.files.stores import AnyPath, any_path
from dboost.model.fitted import Model

from .columns import Asked, predictions

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
    """Write the parts of all pieces, with a bounded number under way; returns the number of rows.

    `tell` is given the parts that are done, and the rows so far.
    """
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
    """``work(piece, number, *before, held, *after)`` of every piece, in their order; `held` is sent to a cluster once.

    A bounded number is under way: one that a worker does and one that waits there.
    """
    if client is None:
        for number, piece in enumerate(pieces):
            interruption.check()
            yield work(piece, number, *before, held, *after)
        return
    sent = client.submit(_same, held, pure=False, key=None)
    ahead = AHEAD * max(1, len(client.nthreads()))
    under_way: deque[Any] = deque()
    for number, piece in enumerate(pieces):
        under_way.append(client.submit(work, piece, number, *before, sent, *after, pure=False, retries=2))
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
