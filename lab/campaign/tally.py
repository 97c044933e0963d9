"""What a part of the campaign has tried, and what came of it.

Covers: counts by kind, the failures in words, figures that a part adds. Does not cover: what is tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

SHOWN = 20
"""Failures that are printed as they come; of a broken part, more would say the same."""


class Tally:
    """Counts of one part.

    Parameters
    ----------
    say : callable
        Takes a line that somebody reads while the part runs.

    Attributes
    ----------
    tried, failed : int
    outcomes : Counter of str
        How trials ended that passed, in words of the part.
    figures : dict of str to str
        What a part has measured beside.
    left_out : str
        Why the part could not be run here; empty where it was.
    """

    def __init__(self, say: Callable[[str], None] = print) -> None:
        self._say = say
        self.tried = 0
        self.failed = 0
        self.outcomes: Counter[str] = Counter()
        self.figures: dict[str, str] = {}
        self.left_out = ""

    def passed(self, outcome: str, count: int = 1) -> None:
        """Count trials that ended as they may."""
        self.tried += count
        self.outcomes[outcome] += count

    def broke(self, what: str) -> None:
        """Count a trial that did not, and say what was seen."""
        self.tried += 1
        self.failed += 1
        if self.failed <= SHOWN:
            self._say(f"  FAILED {what}")

    def check(self, good: bool, outcome: str, what: str) -> None:
        """Count a trial as what it is."""
        if good:
            self.passed(outcome)
        else:
            self.broke(what)

    @property
    def words(self) -> str:
        """How the trials ended, with their counts, and the figures."""
        if self.left_out:
            return f"left out: {self.left_out}"
        counted = [f"{outcome} {count}" for outcome, count in sorted(self.outcomes.items())]
        return "; ".join([*counted, *(f"{name} {value}" for name, value in self.figures.items())])
