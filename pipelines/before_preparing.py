"""Whether a preparation can begin: its memory, disk and seconds, told by footers and sizes of files.

Only what could never do is refused: a piece of documents that no worker can hold, and a disk that is smaller than what
is certainly written.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dboost.data.meaning import codec_of, is_text
from dboost.data.parquet.read import inspect_file, with_folders
from dboost.data.parquet.summary import size_in_words as in_words
from dboost.data.prepared.chunk import TextColumns
from dboost.data.prepared.documents import document_files
from dboost.data.prepared.prepare import SLICE_BYTES, cut_chunks
from dboost.data.prepared.text import TextRule
from dboost.engine.local import LocalEngine
from dboost.errors import DataError, DboostError, StorageError
from dboost.files.stores import any_path

from .before_training import BARE_WORKER, ENDED_AT, MIB, Room, Worker, in_seconds, room_of, say

LIBRARIES = 220 * MIB
"""Bytes. A worker, or the process of a command, before a document weighs anything (measured)."""

COUNTING, LEAST = 20.0, 3.0
"""Bytes for each byte of text in the piece that a thread counts: 17 were measured where half of the words occur once,
3 are there for any text."""

WRITTEN, LEAST_WRITTEN = 2.4, 0.3
"""Bytes of disk for each byte of text: counts and terms between the passes, and the features. 2.1 were measured where
half of the words occur once."""

COPIED = 0.5
"""Bytes of disk for each byte of text that is no Parquet: its copy, compressed."""

UNPACKED = 4.0
"""Bytes of a text file for each of its bytes when it is compressed."""

COUNT, COPY = 1e-7, 4e-8
"""Seconds of a thread for each byte of text: for counting and writing, and for the copy of what is no Parquet; measured
on cores of 2.9 GHz."""


@dataclass(frozen=True)
class Preparation:
    """What a preparation is estimated to take, beside what there is."""

    documents: int | None  # None where the files do not tell
    text: float  # bytes of text
    largest: float  # bytes of text in the largest piece, which one thread counts
    copied: float  # bytes of text in files that are no Parquet
    grams: int  # words that a word is in, one for every term that it is part of
    room: Room
    free: int | None  # bytes of disk that are free; None for a store

    @property
    def memory(self) -> float:
        """Bytes of the process that has least to spare."""
        return self._of(self.fullest)

    @property
    def fullest(self) -> Worker:
        """The process that has least to spare."""
        return max(self.room.places, key=lambda place: self._of(place) / place.memory)

    def _of(self, place: Worker) -> float:
        threads = min(place.threads, max(1, round(self.text / max(self.largest, 1.0))))
        return LIBRARIES + threads * COUNTING * self.grams * self.largest

    @property
    def disk(self) -> float:
        """Bytes of disk."""
        return WRITTEN * self.grams * self.text + COPIED * self.copied

    @property
    def seconds(self) -> float:
        """Seconds of all passes."""
        return (COUNT * self.grams * self.text + COPY * self.copied) / max(1, self.room.threads)

    @property
    def lines(self) -> tuple[str, ...]:
        """What the documents are, what they take, and the advice where there is some: a line each."""
        what = f"{in_words(self.text)} of text" + ("" if self.documents is None else f", {self.documents:,} documents")
        where = f" on the fullest of {len(self.room.places)} workers" if self.room.cluster else ""
        free = "" if self.free is None else f" of {in_words(self.free)} free"
        memory = f"{in_words(self.memory)} of {in_words(self.fullest.memory)}{where}"
        disk = f"disk about {in_words(self.disk)}{free}"
        lines = (f"pre-flight: {what}, {in_seconds(self.seconds)}", f"memory {memory}; {disk}")
        return (*lines, self.advice) if self.advice else lines

    @property
    def advice(self) -> str:
        """What would serve it better; empty where there is nothing to say."""
        if self.memory > self.fullest.memory:
            return "memory may run out: fewer threads for each worker, or more memory (--memory-limit)"
        if self.free is not None and self.disk > self.free:
            return "the disk may run out: write to another one, or count fewer terms (--ngrams, --hashing)"
        return ""

    def refuse(self, out: str) -> None:
        """Refuse what could never do."""
        places = self.room.places
        most = max(place.memory for place in places) * ENDED_AT - BARE_WORKER
        least = LEAST * self.largest
        if all(place.limited for place in places) and least > most:
            raise DataError(
                f"a piece of {in_words(self.largest)} of text takes at least {in_words(least)}, and no worker has as "
                f"much: at most {in_words(max(most, 0.0))} beside its libraries",
                hint="write the documents again with smaller row groups, or give the workers more memory",
            )
        if self.free is not None and LEAST_WRITTEN * self.text > self.free:
            raise StorageError(
                f"the disk has {in_words(self.free)} free, and preparing {in_words(self.text)} of text writes about "
                f"{in_words(self.disk)}",
                file=out,
                hint="write to a larger disk",
            )

    def values(self) -> dict[str, Any]:
        """All of it as plain values, for an event."""
        return {
            "documents": self.documents,
            "text_bytes": round(self.text),
            "memory_needed": round(self.memory),
            "memory": self.fullest.memory,
            "disk_needed": round(self.disk),
            "disk_free": self.free,
            "seconds": self.seconds,
            "advice": self.advice,
            "text": "; ".join(self.lines),
        }


def announce(settings: Any, client: Any, console: Any) -> None:
    """Say in a few lines and one event what a preparation will take."""
    room = room_of(client)
    try:
        found = preparation_of(settings, room)
    except (DboostError, OSError):
        # What cannot be read or has no meaning is refused by the preparation, which is next and knows why.
        return
    if not room.places or not found.text:
        return
    found.refuse(str(settings.out))
    say(found, console)


def preparation_of(settings: Any, room: Room) -> Preparation:
    """Look at the files that `dboost prepare` is to read."""
    files = [file for one in (settings.data, settings.test) if one is not None for file in document_files(one)]
    sizes = [
        any_path(path).stat().st_size * (UNPACKED if codec_of(path) else 1.0) for path, _ in files if is_text(path)
    ]
    copied, largest, rows = sum(sizes), min(max(sizes, default=0.0), 1.5 * SLICE_BYTES), 0
    text = copied
    parquet = [file for file in files if not is_text(file[0])]
    texts = settings.text
    if settings.column is not None:
        texts = [name for name, kind in kinds_of(settings.column).items() if kind == "text"]
    how = TextColumns(tuple(texts), None, (), None, TextRule(), None)
    with LocalEngine() as engine:
        infos = with_folders(engine.on_driver(inspect_file, parquet))
    groups = {
        (info.ref.path, group): sum(info.sizes[group].get(name, 0) for name in how.text) / max(1, count)
        for info in infos
        for group, count in enumerate(info.rows)
    }
    for chunk in cut_chunks([(None, info) for info in infos], set(), how):
        here = sum(groups[ref.path, group] * (end - first) for ref, group, first, end in chunk.spans)
        text, largest = text + here, max(largest, here)
        rows += sum(end - first for _, _, first, end in chunk.spans)
    grams = settings.ngrams * (settings.ngrams + 1) // 2
    return Preparation(None if sizes else rows, text, largest, copied, grams, room, _free(str(settings.out)))


def kinds_of(columns: Sequence[str]) -> dict[str, str]:
    """The kinds of columns that are given as ``title=text``; what has no meaning is refused by the preparation."""
    told = (one.rpartition("=") for one in columns if "=" in one)
    return {name: kind.partition(":")[0] for name, _, kind in told}


def _free(out: str) -> int | None:
    """Bytes that are free where a folder is to be made."""
    folder = any_path(out, "out")
    if not isinstance(folder, Path):
        return None
    there = next((one for one in (folder, *folder.absolute().parents) if one.exists()), Path("/"))
    return shutil.disk_usage(there).free
