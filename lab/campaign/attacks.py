"""Model folders that somebody made to do harm: nothing is run or written, and nothing hangs.

Each is refused by one line, or is the sound model with words that nobody runs. Covers: 40 attacks on the document, the
arrays, the folder and the pipeline around a model. Every document has a sound digest, which whoever can write the
folder can make as well. Does not cover: damage by chance (``mutants``).
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import shutil
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dboost
from dboost.errors import DboostError
from dboost.files.documents import ARRAYS_FILE, DIGEST, MODEL_FILE, content_digest
from dboost.files.storage import pack_arrays, sha256_bytes
from lab.campaign.command import Tally
from lab.campaign.mutants import COLUMNS, MORE_MEMORY, subjects
from lab.campaign.watch import watched

SECONDS = 5.0
"""A sound folder is read in some milliseconds."""

POINTS = np.random.default_rng(5).standard_normal((20, COLUMNS))
"""Rows whose scores tell one model from another."""

Attack = Callable[[Path], None]
PIPELINE_FILE, TRANSFORM_FILE = "pipeline.json", "transform.safetensors"


class Evil:
    """What a pickle would run."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch evil",)


def document(*place_and_value: Any, file: str = MODEL_FILE) -> Attack:
    """Another value at a place of the document, under a digest made anew."""
    *place, value = place_and_value

    def attack(folder: Path) -> None:
        content = json.loads((folder / file).read_text())
        here = content
        for step in place[:-1]:
            here = here[step]
        here[place[-1]] = value
        (folder / file).write_text(json.dumps(content | {DIGEST: content_digest(content)}))

    return attack


def bytes_of(content: bytes, file: str = MODEL_FILE) -> Attack:
    """Other bytes in a file."""

    def attack(folder: Path) -> None:
        (folder / file).write_bytes(content)

    return attack


def arrays(content: bytes) -> Attack:
    """Other arrays, with the size and the digest that the document promises."""

    def attack(folder: Path) -> None:
        (folder / ARRAYS_FILE).write_bytes(content)
        document("arrays", "bytes", len(content))(folder)
        document("arrays", "sha256", sha256_bytes(content))(folder)

    return attack


def header(content: Any, data: bytes = b"\0" * 64) -> bytes:
    """A container of arrays with a header that says anything."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(shape: list[int], ends: list[int], kind: str = "F64") -> dict[str, Any]:
    """What the header says of one array."""
    return {"dtype": kind, "shape": shape, "data_offsets": ends}


def linked(name: str, target: str) -> Attack:
    """A link in place of a file."""

    def attack(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).symlink_to(target)

    return attack


def fifo(folder: Path) -> None:
    """A pipe that nobody writes into, in place of a file."""
    (folder / MODEL_FILE).unlink()
    os.mkfifo(folder / MODEL_FILE)


def sparse(folder: Path) -> None:
    """A file of a terabyte that takes no space."""
    os.truncate(folder / ARRAYS_FILE, 1 << 40)
    document("arrays", "bytes", 1 << 40)(folder)


def folder_for_file(folder: Path) -> None:
    """A folder in place of a file."""
    (folder / ARRAYS_FILE).unlink()
    (folder / ARRAYS_FILE).mkdir()


NEST = b"[" * 200_000
WIDE = np.zeros((1, 3))

ON_MODELS: dict[str, Attack] = {
    "a pickle as document": bytes_of(pickle.dumps(Evil())),
    "a pickle as arrays": arrays(pickle.dumps(Evil())),
    "an array of objects as arrays": arrays(b"\x93NUMPY\x01\x00" + pickle.dumps(Evil())),
    "a document without end of brackets": bytes_of(NEST),
    "a document of an endless number": bytes_of(b'{"version": ' + b"9" * 100_000 + b"}"),
    "a key twice": bytes_of(b'{"format": "dboost-model", "format": "x"}'),
    "a document in UTF-16": bytes_of("{}".encode("utf-16")),
    "a class that is code": document("manifest", "estimator", "class", "__import__('os').system"),
    "a class of another package": document("manifest", "estimator", "class", "subprocess.Popen"),
    "a class that is private": document("manifest", "estimator", "class", "__builtins__"),
    "a parameter that is no parameter": document("manifest", "estimator", "params", {"__class__": "os"}),
    "a parameter of another type": document("manifest", "estimator", "params", "alpha", {"__reduce__": []}),
    "a penalty that is code": document("penalty", "__import__('os')"),
    "a family that is a module": document("hypotheses", "family", "os"),
    "a type of labels that is code": document("classes", "dtype", "O,os.system"),
    "labels of objects": document("classes", {"dtype": "O", "values": [{"__reduce__": 1}, [], None]}),
    "arrays outside the folder": document("arrays", "file", "../../weights"),
    "arrays at an absolute place": document("arrays", "file", "/etc/passwd"),
    "arrays at a device": document("arrays", "file", "/dev/zero"),
    "arrays with a zero byte in their name": document("arrays", "file", "a\0b"),
    "arrays that are the document": document("arrays", "file", MODEL_FILE),
    "columns beyond any table": document("n_features", 1 << 62),
    "columns below zero": document("hypotheses", "indices", [-1, 0, 1, 2, 3]),
    "outputs beyond any memory": document("n_outputs", 1 << 50),
    "arrays of a terabyte": sparse,
    "a header of eight exabytes": arrays(struct.pack("<Q", (1 << 63) - 1) + b"{}"),
    "a header without end of brackets": arrays(header(NEST)),
    "arrays that overlap": arrays(header({"W": tensor([2], [0, 16]), "intercept": tensor([2], [8, 24])})),
    "an array beyond the file": arrays(header({"W": tensor([1 << 40], [0, 1 << 43])})),
    "an array of overflowing shape": arrays(header({"W": tensor([1 << 33, 1 << 33], [0, 64])})),
    "an array of negative shape": arrays(header({"W": tensor([-1, 3], [0, 64])})),
    "an array of another type": arrays(header({"W": tensor([8], [0, 64], "O")})),
    "arrays of few rows": arrays(pack_arrays({"W": WIDE, "intercept": np.zeros(3)})),
    "a link to a file outside": linked(ARRAYS_FILE, "/etc/hostname"),
    "a link to itself": linked(MODEL_FILE, MODEL_FILE),
    "a pipe that nobody writes into": fifo,
    "a folder for a file": folder_for_file,
}
"""Attacks on the folder of a model."""

ON_PIPELINES: dict[str, Attack] = {
    "a transform that is code": document("transform", "kind", "os.system", file=PIPELINE_FILE),
    "a model of another pipeline": document("model", "0" * 64, file=PIPELINE_FILE),
    "a transform outside the folder": document("transform", "arrays", "file", "../x", file=PIPELINE_FILE),
}
"""Attacks on the folder of a pipeline."""


def run(count: int, folder: Path, tally: Tally) -> None:
    """Try each attack on a copy of a sound folder."""
    base = folder / "sound"
    base.mkdir()
    sound = subjects(base)
    expected = dboost.load_model(base / "columns").decision_function(POINTS).tobytes()
    sound["pipeline"].read()
    everything = [(name, attack, "columns") for name, attack in ON_MODELS.items()]
    everything += [(name, attack, "pipeline") for name, attack in ON_PIPELINES.items()]
    for number, (name, attack, kind) in enumerate(everything[:count]):
        target = folder / f"attack-{number}"
        shutil.copytree(base / kind, target)
        attack(target)
        before, held = listing(folder), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with watched() as done:
            seconds, came = read(target, kind)
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held) << 10
        if done or listing(folder) != before:
            tally.broke(f"{name}: it did {done or 'write a file'}")
        elif more > MORE_MEMORY:
            tally.broke(f"{name}: it took {more >> 20} MiB")
        else:
            refused = isinstance(came, DboostError) and len(str(came).splitlines()) == 1
            same = kind == "columns" and came_to(came) == expected
            what = f"{name}: {type(came).__name__}: {came} after {seconds:.1f} s"
            tally.check(refused or same, "refused" if refused else "the sound model", what)


def came_to(model: Any) -> bytes | None:
    """The scores of a model; None of what is none."""
    return model.decision_function(POINTS).tobytes() if isinstance(model, dboost.BoostedClassifier) else None


def read(target: Path, kind: str) -> tuple[float, Any]:
    """Read a folder in a thread of its own; returns its seconds and what came of it, an error as a value."""
    found: list[Any] = [TimeoutError(f"it was not over in {SECONDS:g} s")]

    def work() -> None:
        try:
            found[0] = (dboost.load_pipeline if kind == "pipeline" else dboost.load_model)(target)
        except Exception as error:
            found[0] = error

    begun, thread = time.monotonic(), threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(SECONDS)
    return time.monotonic() - begun, found[0]


def listing(folder: Path) -> list[str]:
    """All files and folders."""
    return sorted(str(path) for path in folder.rglob("*"))
