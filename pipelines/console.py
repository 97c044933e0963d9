"""What a run prints: a live table on a terminal, plain lines in a log, JSON lines for a machine."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import sys
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from time import monotonic
from typing import IO, Any

from rich.console import Console as Terminal
from rich.console import Group
from rich.live import Live
from rich.text import Text

from dboost import interruption
from dboost.errors import DboostError, DboostWarning
from dboost.progress import Remaining, of_share, telling, words
from dboost.redact import redact, redact_urls, redact_value

from .fitting_table import grid

# A page is laid out for this width wherever there is no terminal to ask.
PLAIN_WIDTH = 100
# Rounds that stay in view on a terminal; a log keeps all of them.
VISIBLE_ROUNDS = 12

Record = Mapping[str, Any]

# key of the history record, heading, format
COLUMNS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("round", "round", lambda v: f"{v}"),
    ("objective", "objective", lambda v: f"{v:.7f}"),
    ("gap", "certified gap", lambda v: "unknown" if not math.isfinite(v) else f"{v:.2e}"),
    ("features_in", "in", lambda v: f"+{v}"),
    ("features_out", "out", lambda v: f"-{v}"),
    ("features", "features", lambda v: f"{v}"),
    ("entries", "weights", lambda v: f"{v}"),
    ("passes", "passes", lambda v: f"{v}"),
    ("seconds", "seconds", lambda v: f"{v:.2f}"),
)


class Console:
    """One place through which everything is printed.

    `log_format`: ``auto`` is a table on a terminal and plain lines elsewhere.
    `speak`: puts what the library says in a warning into the words of the command line; see ``flags``.
    """

    def __init__(
        self,
        log_format: str = "auto",
        *,
        debug: bool = False,
        secrets: frozenset[str] = frozenset(),
        speak: Callable[[str], str] = str,
        out: IO[str] | None = None,
        err: IO[str] | None = None,
    ) -> None:
        self.out = out if out is not None else sys.stdout
        self.err = err if err is not None else sys.stderr
        self.debug = debug
        self.secrets = secrets
        self.speak = speak
        terminal = self.out.isatty()
        self.mode = log_format if log_format != "auto" else "table" if terminal else "plain"
        # the width that COLUMNS asks for, as other programs of the terminal take it
        asked = os.environ.get("COLUMNS", "")
        width = None if terminal else int(asked) if asked.isdecimal() and int(asked) > 0 else PLAIN_WIDTH
        # In a notebook rich would show every line below the cell, whatever file it was given.
        self.rich = Terminal(
            file=self.out, width=width, highlight=False, soft_wrap=False, emoji=False, markup=False, force_jupyter=False
        )
        self.seconds: dict[str, float] = {}
        self._line: StageLine | None = None
        # gets every event, whatever is printed: the events of a run folder
        self.sink: Callable[[Mapping[str, Any]], None] | None = None
        # what a run that is broken off leaves, and how it goes on
        self.left = ""

    def event(self, name: str, **fields: Any) -> None:
        """One JSON line; nothing in the other formats."""
        if self.mode != "json" and self.sink is None:
            return
        record = redact_value({"event": name, **finite(fields)}, self.secrets)
        if self.sink is not None:
            self.sink(record)
        if self.mode == "json":
            print(json.dumps(record, ensure_ascii=False, allow_nan=False, default=str), file=self.out, flush=True)

    def say(self, sentence: str) -> None:
        """One line for a person; a message event for a machine."""
        self._clear()
        if self.mode == "json":
            self.event("message", text=sentence)
        else:
            self.rich.print(redact_urls(sentence, self.secrets), soft_wrap=True)

    def text(self, lines: str) -> None:
        """Text as it is, for a file; one event for a machine."""
        clean = redact_urls(lines, self.secrets)
        if self.mode == "json":
            self.event("text", text=clean)
        else:
            print(clean, file=self.out, flush=True)

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Name a part of the run and state its seconds when it is done."""
        interruption.check()
        start = time.perf_counter()
        name = redact_urls(name, self.secrets)
        if self.mode == "table":
            self.rich.print(f"{name} ...", style="bold")
        self.event("stage_start", stage=name)
        line = self._line = StageLine(name, self)
        try:
            with telling(line.passed):
                yield
        finally:
            self._clear()
            self._line = None
        seconds = time.perf_counter() - start
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        self.event("stage", stage=name, seconds=round(seconds, 3))
        if self.mode != "json":
            self.rich.print(f"{name}: {seconds:.1f} s")

    def note(self, text: str) -> None:
        """A line on the way, for a person who reads a log."""
        if self.mode != "json":
            self.rich.print(redact_urls(text, self.secrets), soft_wrap=True)

    def _clear(self) -> None:
        if self._line is not None:
            self._line.clear()

    @contextlib.contextmanager
    def rounds(self, title: str = "", tol: float = 0.0) -> Iterator[Callable[[Record], None]]:
        """Yield a function that takes one history record per round, of a fit to a gap of `tol`.

        Rounds of fits that are only judged, on a fold that they do not see, are counted and not shown.
        """
        title = redact_urls(title, self.secrets)
        begun, remaining = monotonic(), Remaining(tol)
        line, self._line = self._line, None
        if line is not None:
            # the rounds tell more than the passes of which they are made
            line.clear()
            line.quiet = True
        with contextlib.ExitStack() as shown:
            show = self._shown_rounds(title, shown)
            judged = Judged(self.note)

            def told(record: Record) -> None:
                self.event("round", title=title, **record)
                if judged.takes(record):
                    return
                gap = record.get("gap")
                seconds = monotonic() - begun
                left = None if gap is None else remaining.after(seconds, gap)
                # most fits have ended before anybody could read it
                show(record, f"{words(left)} left" if left and seconds >= AFTER else "")

            yield told
        if line is not None:
            self._line, line.quiet = line, False

    def several_fits(self, strengths: int, folds: int = 0) -> Callable[[Record], None]:
        """A function that takes the records of all rounds of several fits."""
        line = self._line
        show = None if line is None else SeveralFits(line, strengths, folds)

        def told(record: Record) -> None:
            self.event("round", **record)
            if show is not None:
                show(record)

        return told

    def parts(self, what: str, done: int, of: int) -> None:
        """Say how many parts of some work are done, and how many there are."""
        if self._line is not None:
            self._line.show(what, done, of)

    def _shown_rounds(self, title: str, opened: contextlib.ExitStack) -> Callable[[Record, str], None]:
        """Shows a record as a row of a table, or as a line, with what is left of the fit."""
        if self.mode == "json":
            return lambda record, left: None
        if self.mode == "plain":
            self.rich.print(title, style="bold")
            self.rich.print(_plain_line([heading for _, heading, _ in COLUMNS]), soft_wrap=True)
            return lambda record, left: self.rich.print(
                f"{_plain_line(_cells(record))}{left and f'   {left}'}", soft_wrap=True
            )
        rows: deque[list[str]] = deque(maxlen=VISIBLE_ROUNDS)
        live = opened.enter_context(Live(_table(title, rows), console=self.rich, refresh_per_second=4))

        def add(record: Record, left: str) -> None:
            rows.append(_cells(record))
            live.update(_table(f"{title}   {left}" if left else title, rows))

        return add

    def page(self, name: str, renderables: list[Any], data: Mapping[str, Any]) -> None:
        """A result: rich renderables for a person, `data` as one JSON line for a machine."""
        if self.mode == "json":
            self.event(name, **data)
            return
        self._clear()
        with self.rich.capture() as page:
            self.rich.print(*renderables, sep="\n")
        lines = redact_urls(page.get(), self.secrets).splitlines()
        if self.mode != "table":
            # Rich pads cells to the width of their column; in a log that is noise at the end of lines.
            lines = [line.rstrip() for line in lines]
        print("\n".join(lines), file=self.out, flush=True)

    def warning(self, sentence: str) -> None:
        """One line on stderr."""
        line = one_line(redact(sentence, self.secrets))
        self._clear()
        print(f"dboost: warning: {line}", file=self.err, flush=True)
        self.event("warning", text=line)

    def error(self, code: str, error: BaseException | str, line: str | None = None) -> None:
        """One line on stderr (the error's own text, or `line`); below it the traceback, with ``--debug``."""
        # Our own errors hold no secret, and names of files and columns that only look like one.
        clean = redact_urls if isinstance(error, DboostError) else redact
        self._clear()
        line = one_line(clean(line or str(error) or type(error).__name__, self.secrets))
        print(f"dboost: error[{code}]: {line}", file=self.err, flush=True)
        self.event("error", code=code, text=line)
        if self.debug and isinstance(error, BaseException):
            trace = "".join(traceback.format_exception(error))
            print(redact(trace, self.secrets), file=self.err, end="", flush=True)

    @contextlib.contextmanager
    def warnings(self) -> Iterator[None]:
        """Print Python warnings as our own one-line warnings, each text once."""
        seen: set[str] = set()

        def show(message: Warning | str, *_: Any, **__: Any) -> None:
            sentence = str(message)
            if sentence not in seen:
                seen.add(sentence)
                self.warning(self.speak(sentence) if isinstance(message, DboostWarning) else sentence)

        with warnings.catch_warnings():
            # Ours are meant for the person at the terminal; those of libraries follow Python's own filters.
            warnings.simplefilter("always", DboostWarning)
            warnings.showwarning = show
            yield


def console_of_call(opened: contextlib.ExitStack, show: bool | None = None) -> Console:
    """Where a function says how far it is: by default below the cell of a notebook, and elsewhere nowhere."""
    if show is None:
        from dboost.estimators.rounds import VARIABLE, kernel_shell

        show = kernel_shell() is not None and os.environ.get(VARIABLE) != "0"
    return Console("plain", out=None if show else opened.enter_context(open(os.devnull, "w", encoding="utf-8")))


def finite(value: Any) -> Any:
    """JSON has no infinity: non-finite numbers become null, NumPy numbers plain ones."""
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if hasattr(value, "tolist"):
        return finite(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def one_line(sentence: str) -> str:
    """A message without line breaks: an error is one line, so that a log stays one record per line."""
    return " ".join(sentence.split())


def _cells(record: Record) -> list[str]:
    return [form(record[name]) if record.get(name) is not None else "" for name, _, form in COLUMNS]


def _plain_line(cells: list[str]) -> str:
    # A number that is wider than its place moves the rest of its line, which nothing cuts or folds.
    widths = (5, 11, 13, 5, 5, 8, 7, 6, 7)
    return " ".join(cell.rjust(width) for cell, width in zip(cells, widths)).rstrip()


def _table(title: str, rows: deque[list[str]]) -> Group:
    table = grid([heading for _, heading, _ in COLUMNS], rows, left=())
    return Group(*([Text(title)] if title else []), table)


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
    """What a stage says of itself; on a terminal in one line, which is written over."""

    def __init__(self, name: str, console: Console) -> None:
        self.name, self.console = name, console
        self.quiet = False
        self._in_place = console.mode == "table" and os.environ.get("TERM", "dumb") != "dumb"
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
            self.console.event(
                "progress", stage=self.name, what=what, share=round(done / of, 4) if of else None, left=left
            )
            if self._in_place:
                self._next = now + EVERY
                width = shutil.get_terminal_size().columns - 1
                print(_CLEAR + text[:width], file=self.console.out, end="", flush=True)
                self._drawn = True
            else:
                self._pause = min(self._pause * GROWTH, LONGEST)
                self._next = now + self._pause
                self.console.note(text)

    def clear(self) -> None:
        """Take the line away, before something else is printed."""
        with self._lock:
            if self._drawn:
                print(_CLEAR, file=self.console.out, end="", flush=True)
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
        unit = f"{where}strength {at + 1} of {self._strengths}, {record['features']} features"
        self._line.show("fitting", done, parts * (1 + self._folds), unit)

    def _parts(self, strengths: int) -> float:
        """What the first strengths count together."""
        return strengths * (strengths - 1 + self._strengths) / 2
