"""The folder of a run: its files, which stages are done, and what happened.

A stage writes its outputs beside their places, under ``.next``. Then its record is written, with the digests of the
outputs, and that is the moment in which it is done; the outputs are renamed last. A run that was killed between the two
renames them when it goes on.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from dboost.errors import DataError, StorageError
from dboost.files.storage import sha256_json, write_file

from . import fingerprints

RUN_FILE, EVENTS, STAGES = "run.toml", "events.jsonl", "stages.json"
PREPARED, MODEL, PATH, EVALUATION = "prepared", "model", "path", "evaluation"
PREDICTIONS, REPORT, CHECKPOINT, PARTIAL = "predictions", "report.json", "checkpoint", "model.partial"
# Parts of predictions that stand while the stage is not done.
LABELLED = "predictions.partial"
# Tables of numbers in files of text, as Parquet, until the model stands.
TABLES = "tables.partial"
REPORT_PAGE = "report.html"
_FORMAT = 1
# In the folder of work that goes on: the digest of the inputs it belongs to.
_OF = "of"


class RunFolder:
    """A run folder, open for work by the process that holds its lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._records: dict[str, Any] = read_records(path)
        self._events: IO[str] | None = None

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    # ---- stages ----------------------------------------------------------------------------------------------------

    def next(self, name: str) -> Path:
        """Where the next content of an output is written; nothing is there."""
        place = self.path / f".{name}.next"
        remove(place)
        return place

    def record(self, stage: str) -> dict[str, Any]:
        """What is known of a stage that was done; empty for others."""
        return dict(self._records.get(stage, {}))

    def change(self, stage: str, outputs: Sequence[str], inputs: Mapping[str, Any]) -> str:
        """Why a stage has to be done; empty where it is done. Outputs that a kill left without their names get them."""
        record = self.record(stage)
        if not record:
            return "it was not done yet"
        if record["fingerprint"] != sha256_json(dict(inputs)):
            return _difference(record["inputs"], inputs)
        for name in outputs:
            expected = record["outputs"].get(name, "")
            beside = self.path / f".{name}.next"
            if expected and fingerprints.of_output(self.path / name) != expected:
                if fingerprints.of_output(beside) != expected:
                    return f"{name} is not what it wrote"
                _replace(beside, self.path / name)
        return ""

    def done(
        self, stage: str, outputs: Sequence[str], inputs: Mapping[str, Any], facts: Mapping[str, Any], seconds: float
    ) -> None:
        """Note that a stage is done, and give its outputs their names."""
        written = {name: fingerprints.of_output(self.path / f".{name}.next") for name in outputs}
        for name in outputs:
            # a record must not say that a file is there which is not on the disk; writers of folders flush them
            if (self.path / f".{name}.next").is_file():
                with open(self.path / f".{name}.next", "rb+") as handle:
                    os.fsync(handle.fileno())
        self._records[stage] = {
            "fingerprint": sha256_json(dict(inputs)),
            "inputs": dict(inputs),
            "outputs": written,
            "facts": dict(facts),
            "seconds": round(seconds, 3),
            "ended": time.time(),
        }
        text = json.dumps({"format": _FORMAT, "stages": self._records}, indent=1)
        write_file(self.path / STAGES, text.encode())
        for name, digest in written.items():
            if digest:
                _replace(self.path / f".{name}.next", self.path / name)
            else:
                remove(self.path / name)

    # ---- events ----------------------------------------------------------------------------------------------------

    def event(self, record: Mapping[str, Any]) -> None:
        """Add a line to the events; a line that a kill cut short is ended first."""
        if self._events is None:
            path = self.path / EVENTS
            broken = path.is_file() and path.stat().st_size > 0 and not path.read_bytes().endswith(b"\n")
            self._events = open(path, "a", encoding="utf-8")
            if broken:
                self._events.write("\n")
        line = json.dumps({"time": round(time.time(), 3), **record}, ensure_ascii=False, allow_nan=False, default=str)
        self._events.write(line + "\n")
        self._events.flush()

    def close(self) -> None:
        """Close the events."""
        if self._events is not None:
            self._events.close()
            self._events = None


def read_records(path: Path) -> dict[str, Any]:
    """The records of the stages of a run folder that are done, by name."""
    file = path / STAGES
    if not file.is_file():
        return {}
    try:
        found = json.loads(file.read_bytes())
        stages = found["stages"]
        sound = found["format"] == _FORMAT and all(
            {"fingerprint", "inputs", "outputs"} <= set(r) for r in stages.values()
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        sound, stages = False, {}
    if not sound:
        raise DataError("does not say which stages are done", file=str(file), hint="delete it to do all of them again")
    return dict(stages)


def read_events(path: Path) -> list[dict[str, Any]]:
    """The events of a run folder; lines that a kill cut short are left out."""
    found = []
    try:
        with open(path / EVENTS, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    event = json.loads(line)
                except ValueError:
                    continue
                if isinstance(event, dict):
                    found.append(event)
    except OSError:
        return []
    return found


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What has changed among the inputs of a stage, in words."""
    names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    words = []
    for name in names:
        old, new = before.get(name), now.get(name)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            inside = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
            words += [f"{name} {key}" for key in inside]
        else:
            words.append(name)
    shown = ", ".join(words[:3]) + (f" and {len(words) - 3} more" if len(words) > 3 else "")
    return f"changed: {shown}"


def _replace(beside: Path, target: Path) -> None:
    try:
        remove(target)
        os.rename(beside, target)
    except OSError as error:
        raise StorageError(f"cannot write: {error.strerror or error}", file=str(target)) from error


def claim(folder: Path, inputs: str) -> bool:
    """Make a folder of what is done with some inputs, whose digest it keeps; whether what stands there is of these."""
    of = folder / _OF
    mine = of.is_file() and of.read_text(encoding="utf-8") == inputs
    if not mine:
        remove(folder)
        folder.mkdir(parents=True)
        write_file(of, inputs.encode())
    return mine


def remove(path: Path) -> None:
    """Delete a file or a folder, where there is one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
