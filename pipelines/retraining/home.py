"""The home of champions: versions, decisions, and one pointer that changes whole.

Covers: which version is the champion, promoting and going back, the next version, decisions that were made.
Does not cover: how a version comes to be, which is a run folder.

The pointer is one small file that is replaced by a rename, so at every moment there is one champion, whose folder was
complete before the pointer named it.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from dboost.errors import DataError, UsageError
from dboost.files.storage import write_file
from dboost.files.unfinished import FOLDER, beside_of, clear_abandoned

POINTER, DECISION, VERSIONS = "champion.json", "decision.json", "versions"
_NAME = re.compile(r"v\d{4,}")


class Home:
    """A home of champions.

    Parameters
    ----------
    path : pathlib.Path
        Made when something is written.
    """

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

    def folder(self, version: str) -> Path:
        """The run folder of a version."""
        return self.path / VERSIONS / version

    def model(self) -> Path | None:
        """The folder of the champion's model."""
        return None if self.champion is None else self.folder(self.champion) / "model"

    def next(self) -> str:
        """The version that is being made: one without a decision where a kill left it, else a new one."""
        there = self.versions()
        open_ones = [name for name in there if self.decision(name) is None]
        if open_ones:
            return open_ones[-1]
        return f"v{int(there[-1][1:]) + 1:04d}" if there else "v0001"

    def versions(self) -> list[str]:
        """All versions, the latest last."""
        folder = self.path / VERSIONS
        names = [one.name for one in folder.iterdir() if _NAME.fullmatch(one.name)] if folder.is_dir() else []
        return sorted(names, key=lambda name: int(name[1:]))

    def decision(self, version: str) -> dict[str, Any] | None:
        """What was decided of a version; None where nothing was."""
        try:
            found: dict[str, Any] = json.loads((self.folder(version) / DECISION).read_bytes())
            return found
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise DataError("is no decision", file=str(self.folder(version) / DECISION)) from error

    def latest(self) -> dict[str, Any] | None:
        """The last decision."""
        decided = [found for name in self.versions() if (found := self.decision(name)) is not None]
        return decided[-1] if decided else None

    def promote(self, version: str) -> None:
        """Make a version the champion; one that is it already stays it."""
        if self.champion == version:
            return
        former = self.former + ([self.champion] if self.champion else [])
        self._write(version, former)

    def go_back(self) -> tuple[str, str]:
        """Make the champion before this one the champion; returns both.

        Raises
        ------
        UsageError
            There is none.
        """
        former = self.former
        if self.champion is None or not former:
            raise UsageError("there is no champion before this one", file=str(self.path))
        left = self.champion
        self._write(former[-1], former[:-1])
        return left, former[-1]

    def prune(self, keep: int) -> list[str]:
        """Delete versions but the latest ones, the champion and the one before it.

        Parameters
        ----------
        keep : int
            How many of the latest stay.

        Returns
        -------
        list of str
            The versions that are gone.
        """
        there, former = self.versions(), self.former
        staying = {*there[-keep:], self.champion, *former[-1:]}
        gone = [name for name in there if name not in staying]
        if gone and self.champion is not None:
            # First of all, since the pointer must never name what is not there.
            self._write(self.champion, [name for name in former if name in staying])
        for name in gone:
            # A folder that is deleted in part would look like a version that is being made.
            os.rename(self.folder(name), beside_of(self.folder(name), FOLDER))
        for path in (self.path / VERSIONS).glob(f".v*{FOLDER}"):
            clear_abandoned(path.with_name(path.name.split(".")[1]))
        return gone

    def _write(self, version: str, former: list[str]) -> None:
        text = json.dumps({"version": version, "former": former}, indent=1)
        write_file(self.path / POINTER, text.encode())

    def _pointer(self) -> dict[str, Any]:
        try:
            found = json.loads((self.path / POINTER).read_bytes())
        except FileNotFoundError:
            return {}
        except ValueError:
            found = None
        version = found.get("version") if isinstance(found, dict) else None
        if not isinstance(version, str) or not self.folder(version).is_dir():
            raise DataError("names no version that is there", file=str(self.path / POINTER), hint="restore it")
        return dict(found)
