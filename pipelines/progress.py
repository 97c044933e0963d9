"""How far a stage has come: one line, in its place on a terminal, and now and then in a log.

Covers: when something is said, the words, the share of several fits. Does not cover: the rounds of one fit, which have
a table of their own (``console``), or how long work still takes (``dboost.progress``).

Nothing is said in the first two seconds: most stages have ended by then.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from dboost.progress import of_share, words

AFTER = 2.0  # seconds of a stage without a word
EVERY = 0.2  # seconds between two drawings on a terminal
JUDGED_SECONDS = 10.0  # seconds between two lines on fits that are only judged
GROWTH, LONGEST = 2.0, 60.0  # in a log the pauses between two lines grow by this factor, up to so many seconds
_CLEAR = "\r\x1b[2K"
# The passes that a person hears of, and what they are called. Those of a fit are many and short.
PASSES = {
    "read-footers": "reading footers",
    "find-types": "finding types",
    "copy-documents": "copying documents",
    "count-terms": "counting terms",
    "count-shards": "joining counts",
    "write-features": "writing features",
    "scan-labels": "reading labels",
    "count-features": "counting features",
}


class StageLine:
    """What a stage says of itself.

    `in_place`: whether there is a terminal whose line can be written over.
    """

    def __init__(
        self,
        name: str,
        *,
        write: Callable[[str], None],
        say: Callable[[str], None],
        event: Callable[..., None],
        in_place: bool,
    ) -> None:
        self.name = name
        self.quiet = False
        self._write, self._say, self._event = write, say, event
        self._in_place = in_place and os.environ.get("TERM", "dumb") != "dumb"
        self._begun = self._since = monotonic()
        self._next = self._begun + AFTER
        self._pause = AFTER
        self._what = ""
        self._drawn = False
        # Passes tell from the threads that do their work.
        self._lock = threading.Lock()

    def passed(self, name: str, done: int, of: int) -> None:
        """A pass has come so far."""
        if name in PASSES:
            self.show(PASSES[name], done, of)

    def show(self, what: str, done: float, of: float, unit: str = "") -> None:
        """Say how much of a piece of work is done, if it is time for it."""
        with self._lock:
            now = monotonic()
            if what != self._what:
                self._what, self._since = what, now
            if self.quiet or now < self._next:
                return
            left = of_share(done, of, now - self._since)
            text = f"{self.name}: {what}, {unit or f'{done:,.0f} of {of:,.0f}'}, {now - self._begun:.0f} s"
            text += f", {words(left)} left of it" if left is not None and done < of else ""
            self._event("progress", stage=self.name, what=what, share=round(done / of, 4) if of else None, left=left)
            if self._in_place:
                self._next = now + EVERY
                width = shutil.get_terminal_size().columns - 1
                self._write(_CLEAR + text[:width])
                self._drawn = True
            else:
                self._pause = min(self._pause * GROWTH, LONGEST)
                self._next = now + self._pause
                self._say(text)

    def clear(self) -> None:
        """Take the line away, before something else is printed."""
        with self._lock:
            if self._drawn:
                self._write(_CLEAR)
                self._drawn = False


class Judged:
    """Fits that are made to be judged on rows that they do not see, in a line now and then and one at the end."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._fits = 0
        self._said = monotonic()

    def takes(self, record: Mapping[str, Any]) -> bool:
        """Whether the record of a round is of such a fit; the first of another one says how many there were."""
        if "fold" not in record:
            if self._fits:
                self._say(f"{self._fits} fits were judged on held-out rows; these are the rounds of what was chosen:")
                self._fits = 0
            return False
        self._fits += record["round"] == 1
        if monotonic() - self._said > JUDGED_SECONDS:
            self._said = monotonic()
            self._say(f"choosing features: {self._fits} fits judged on held-out rows so far")
        return True


class SeveralFits:
    """How far the fits of a path, or of a cross-validation, have come.

    A weaker strength has more features and takes longer: strength i of n counts i + n/2 parts, so that the last counts
    three times what the first does. On titles of arXiv the estimates were between 0.6 and 2 of what was left.

    `folds`: without which paths are fitted beside that of all rows; 0 for a path alone.
    """

    def __init__(self, line: StageLine, strengths: int, folds: int = 0) -> None:
        self._line = line
        self._strengths, self._folds = strengths, folds
        self._begun: dict[Any, int] = {}

    def __call__(self, record: Mapping[str, Any]) -> None:
        """Take the record of a round, which says its strength and its fold."""
        at, fold = int(record.get("strength", 0)), record.get("fold")
        self._begun[fold] = max(at, self._begun.get(fold, 0))
        parts, done = self._parts(self._strengths), sum(map(self._parts, self._begun.values()))
        where = "" if fold is None else f"without fold {fold + 1} of {self._folds}, "
        unit = f"{where}strength {at + 1} of {self._strengths}, {record['active_rows']} features"
        self._line.show("fitting", done, parts * (1 + self._folds), unit)

    def _parts(self, strengths: int) -> float:
        """What the first strengths count together."""
        return strengths * (strengths - 1 + self._strengths) / 2
