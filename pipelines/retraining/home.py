"""The home of champions: versions, decisions, and one pointer that changes whole.

The pointer is one small file that is replaced by a rename, so at every moment there is one champion, whose folder was
complete before the pointer named it. All that it says but versions that were deleted is in the decisions too, so that a
damaged pointer is made again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from time import time as now
from typing import Any

from dboost.errors import DboostError, UsageError
from dboost.estimators.model_folders import CHAMPION, PART, VERSION, VERSIONS
from dboost.files.storage import write_file
from dboost.files.unfinished import FOLDER, beside_of, clear_abandoned

from .judge import model_and_transform

POINTER, MODEL, DECISION = CHAMPION, PART, "decision.json"
PROMOTED = "promoted"


class Home:
    """A home of champions."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def champion(self) -> str | None:
        """The version that is in use; None before the first."""
        found: str | None = self._pointer().get("version")
        return found

    @property
    def former(self) -> list[str]:
        """Champions before it, the latest last."""
        return list(self._pointer().get("former", []))

    @property
    def rolled_back(self) -> list[dict[str, Any]]:
        """What was rolled back: version, digests of what it was made of and of its model, when and why."""
        return list(self._pointer().get("rolled_back", []))

    def folder(self, version: str) -> Path:
        """The run folder of a version."""
        return self.path / VERSIONS / version

    def model(self) -> Path | None:
        """The folder of the champion's model."""
        return None if self.champion is None else self.folder(self.champion) / MODEL

    def next(self) -> str:
        """The version that is being made: the last one where a kill left it without a decision, else a new one."""
        there = self.versions()
        if not there:
            return "v0001"
        last = there[-1]
        if not (self.folder(last) / DECISION).exists() and last not in (self.champion, *self.former):
            return last
        return f"v{int(last[1:]) + 1:04d}"

    def versions(self) -> list[str]:
        """All versions, the latest last."""
        folder = self.path / VERSIONS
        names = [one.name for one in folder.iterdir() if VERSION.fullmatch(one.name)] if folder.is_dir() else []
        return sorted(names, key=lambda name: int(name[1:]))

    def decision(self, version: str) -> dict[str, Any] | None:
        """What was decided of a version; None where nothing was, or where it cannot be read."""
        try:
            found = json.loads((self.folder(version) / DECISION).read_bytes())
        except (OSError, ValueError):
            return None
        whole = isinstance(found, dict) and {"outcome", "version", "before", "state"} <= set(found)
        return found if whole else None

    def latest(self) -> dict[str, Any] | None:
        """The last decision that can be read."""
        decided = (self.decision(name) for name in reversed(self.versions()))
        return next((found for found in decided if found is not None), None)

    def damage(self, version: str) -> str:
        """Why the model of a version cannot be used; empty for a sound one."""
        try:
            model_and_transform(str(self.folder(version) / MODEL))
        except (DboostError, OSError, ValueError) as error:
            return str(error)
        return ""

    def mend(self, say: Callable[[str], Any]) -> None:
        """Do what a kill left to do, and make the pointer name a sound version; says in a line what was wrong."""
        if self._read() is None and (self.path / POINTER).exists():
            say(f"{self.path / POINTER} is damaged; it is made again from the decisions")
        pointer = self._pointer()
        latest = self.latest()
        if latest is not None and latest["outcome"] == PROMOTED and latest["before"] == pointer.get("version"):
            back = {one["version"] for one in pointer.get("rolled_back", [])}
            name = str(latest["version"])
            # A kill between the decision and the pointer.
            if name not in back and not self.damage(name):
                pointer = {**pointer, "version": name, "former": _chain(pointer)}
        chain = _chain(pointer)
        while chain and (why := self.damage(chain[-1])):
            gone = chain.pop()
            then = f"{chain[-1]} takes its place" if chain else "there is none before it, and the next is made afresh"
            say(f"the champion {gone} is damaged ({why}); {then}")
        self._write({**pointer, "version": chain[-1] if chain else None, "former": chain[:-1]})

    def promote(self, version: str) -> None:
        """Make a version the champion; nothing changes where it is the champion already."""
        pointer = self._pointer()
        former = [name for name in _chain(pointer) if name != version]
        self._write({**pointer, "version": version, "former": former})

    def go_back(self, reason: str = "") -> tuple[str, str]:
        """Make the last sound champion before this one the champion, and remember this one; returns both.

        One that was made of the same data and settings as what is left, or was left before, is passed over.
        """
        pointer = self._pointer()
        *former, left = _chain(pointer) or [""]
        decided = self.decision(left) or {}
        about = {"when": time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(now())), "reason": reason}
        back = [*pointer.get("rolled_back", []), _entry(left, decided, about)]
        while former and (self.damage(former[-1]) or like(self.decision(former[-1]) or {}, back) is not None):
            former.pop()
        if not former:
            raise UsageError("there is no champion before this one", file=str(self.path))
        self._write({"version": former[-1], "former": former[:-1], "rolled_back": back})
        if decided:
            self.decide(left, {**decided, "rolled_back": about})
        return left, former[-1]

    def decide(self, version: str, values: dict[str, Any]) -> None:
        """Write the decision of a version."""
        write_file(self.folder(version) / DECISION, (json.dumps(values, indent=1, default=str) + "\n").encode())

    def prune(self, keep: int) -> list[str]:
        """Delete versions but the latest ones, the champion and the one before it; returns those that are gone."""
        there, former = self.versions(), self.former
        staying = {*there[-keep:], self.champion, *former[-1:]}
        gone = [name for name in there if name not in staying]
        if gone and self.champion is not None:
            # First of all, since the pointer must never name what is not there.
            self._write({**self._pointer(), "former": [name for name in former if name in staying]})
        for name in gone:
            # A folder that is deleted in part would look like a version that is being made.
            os.rename(self.folder(name), beside_of(self.folder(name), FOLDER))
        for path in (self.path / VERSIONS).glob(f".v*{FOLDER}"):
            clear_abandoned(path.with_name(path.name.split(".")[1]))
        return gone

    def _write(self, pointer: dict[str, Any]) -> None:
        if pointer.get("version") is None and not (self.path / POINTER).exists():
            return
        if pointer != self._read():
            write_file(self.path / POINTER, json.dumps(pointer, indent=1).encode())

    def _pointer(self) -> dict[str, Any]:
        """What the pointer says; where it is damaged, what the decisions say."""
        found = self._read()
        if found is not None:
            return found
        decided = [one for name in self.versions() if (one := self.decision(name)) is not None]
        promoted = [one for one in decided if one["outcome"] == PROMOTED]
        chain = [str(one["version"]) for one in promoted if not one.get("rolled_back")]
        back = [_entry(str(one["version"]), one, one["rolled_back"]) for one in promoted if one.get("rolled_back")]
        return {"version": chain[-1] if chain else None, "former": chain[:-1], "rolled_back": back}

    def _read(self) -> dict[str, Any] | None:
        """The pointer; None where it cannot be read, or names what is not there."""
        try:
            found = json.loads((self.path / POINTER).read_bytes())
            former, back = found.get("former", []), found.get("rolled_back", [])
            named = [*former, *([] if found["version"] is None else [found["version"]])]
            sound = all(self.folder(name).is_dir() for name in named[-1:]) and all(one["version"] for one in back)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return dict(found) if sound else None


DIGESTS = ("source", "made", "model")


def like(digests: Mapping[str, Any], back: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Which of the versions that were rolled back is of the same data and settings; None for none."""
    named = {name: digests[name] for name in DIGESTS if digests.get(name)}
    return next((one for one in back if any(one.get(name) == value for name, value in named.items())), None)


def _chain(pointer: dict[str, Any]) -> list[str]:
    """Champions in their order, the present one last."""
    version = pointer.get("version")
    return [*pointer.get("former", []), *([] if version is None else [version])]


def _entry(version: str, decision: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    """What is remembered of a version that was rolled back, so that neither it nor one like it comes back."""
    return {"version": version, **{name: decision.get(name) for name in DIGESTS}, **about}
