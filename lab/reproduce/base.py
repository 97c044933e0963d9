"""What a reproduction is given and what it returns.

Covers: ``Context``, ``Figure``, ``Report``. Does not cover: files (``output``) or verdicts (``claims``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.reproduce.claims import Claim
from lab.reproduce.rows import Tables
from pipelines.console import Console


@dataclass(frozen=True)
class Context:
    """What a reproduction is given.

    Parameters
    ----------
    console : Console
        For progress.
    quick : bool
        Whether to run the version of a minute: fewer examples, repeats and strengths, the same steps.
    checkpoints : path, optional
        Folder for the checkpoints of an experiment whose registry entry says that it goes on from them.
    """

    console: Console
    quick: bool = False
    checkpoints: Path | None = None

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Name a part of the work; its seconds are printed and go onto the page."""
        with self.console.stage(name):
            yield

    def say(self, sentence: str) -> None:
        """One line of progress."""
        self.console.say("  " + sentence)

    def checkpoint(self, fit: str) -> Path | None:
        """Where the fit of this name keeps its checkpoint, if any are kept."""
        if self.checkpoints is None:
            return None
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        return self.checkpoints / fit


@dataclass(frozen=True)
class Figure:
    """A drawing made from the tables alone.

    Parameters
    ----------
    name : str
        Name of the file, without ending.
    caption : str
        What is seen, with the paper's figure it stands beside.
    draw : function of the tables
        Returns a matplotlib figure.
    """

    name: str
    caption: str
    draw: Callable[[Tables], Any]


@dataclass(frozen=True)
class Report:
    """What a reproduction returns.

    Parameters
    ----------
    title : str
    about : str
        Data and question, in two or three sentences.
    claims : tuple of Claim
    protocol : tuple of str
        What was done, with every size and setting that was used in this run.
    differences : tuple of str
        Everything that differs from the paper's experiment, with the reason.
    tables : mapping of name to Rows
        All numbers; each becomes ``<name>.csv``. Verdicts and figures are computed from them after they were written
        and read back, so that they follow from the files.
    figures : tuple of Figure
    findings : tuple of str
        What else the numbers show, each with figures computed from the tables.
    """

    title: str
    about: str
    claims: tuple[Claim, ...]
    protocol: tuple[str, ...]
    differences: tuple[str, ...]
    tables: Tables
    figures: tuple[Figure, ...]
    findings: tuple[str, ...] = field(default=())
