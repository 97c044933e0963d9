"""One line below a cell of a notebook that tells how far a fit has come, redrawn in its place.

Covers: whether there is a notebook to draw in, the line, and when it is drawn. Does not cover: what a round is worth
(``records``), or terminals, where the command line draws a table of its own.

A fit is given the line where its `callbacks` are None. Whoever gives callbacks, an empty list too, looks after the
rounds; and ``DBOOST_LIVE_LINE=0`` in the environment turns it off for all fits. Nothing is drawn outside of a kernel of
Jupyter, which is found without importing IPython.
"""

from __future__ import annotations

import contextvars
import html
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dboost.progress import Remaining, words

Record = dict[str, Any]

VARIABLE = "DBOOST_LIVE_LINE"
DELAY = 0.5  # seconds that a fit may take without a line: most small ones end before anybody could read it
EVERY = 0.2  # seconds between two drawings; each is a message to the browser

# One fit draws at a time: those of a search that run side by side would write over each other's line.
_drawing = threading.Lock()


def kernel_shell() -> Any:
    """The shell of the Jupyter kernel that this process is, or None."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell if getattr(shell, "kernel", None) is not None else None


@contextmanager
def live_line(callbacks: Any, X: Any, tol: float | None = None) -> Iterator[list[Callable[[Record], None]]]:
    """The functions of a round's record that draw the line while the fit inside runs: one or none.

    `callbacks`: The parameter of the estimator. `X`: What is fitted to. What has to be read first has a line before the
    first round. `tol`: What the gap goes to.
    """
    shell = kernel_shell() if callbacks is None and os.environ.get(VARIABLE) != "0" else None
    if shell is None or not _drawing.acquire(blocking=False):
        yield []
        return
    try:
        line = LiveLine(shell, tol)
        if hasattr(X, "__dask_graph__") or type(X).__name__ == "ParquetData":
            line.draw("reading the data")
        try:
            yield [line]
        except BaseException as error:
            line.end("interrupted" if isinstance(error, KeyboardInterrupt) else "broken off")
            raise
        line.end("done")
    finally:
        _drawing.release()


class LiveLine:
    """A callback that draws the record of a round in place of that of the round before."""

    # The cell that was drawn below last, and the handle of its line: the fits of one cell share a line.
    _last: tuple[Any, Any] = (None, None)

    def __init__(self, shell: Any, tol: float | None) -> None:
        self._cell = (id(shell), shell.execution_count)
        self._tol = tol
        self._begun = self._drawn = time.monotonic()
        self._remaining = Remaining(tol or 0.0)
        self._left: float | None = None
        self._record: Record | None = None
        self._shown = False
        # Rounds of folds are told in threads of theirs, and what these draw would belong to no cell.
        self._context = contextvars.copy_context()

    def __call__(self, record: Record) -> None:
        """Take a round's record; draw it, unless the last one was drawn just now."""
        self._record = record
        now = time.monotonic()
        gap = record.get("margin_gap", record.get("gap"))
        self._left = self._remaining.after(now - self._begun, math.nan if gap is None else gap)
        if now - self._drawn >= (EVERY if self._shown else DELAY):
            self.draw()

    def end(self, how: str) -> None:
        """Draw the last record once more, where there is a line, and say how it ended."""
        if self._shown:
            self.draw(how)

    def draw(self, more: str = "") -> None:
        """Draw the line; `more` comes last in it."""
        parts = [] if self._record is None else self._parts(self._record)
        seconds = time.monotonic() - self._begun
        left = "" if more else words(self._left)
        text = " · ".join([*parts, f"{seconds:.1f} s", *([f"{left} left"] if left else []), *([more] if more else [])])
        page = f"<span style='font-variant-numeric:tabular-nums'>{html.escape(text)}</span>"
        self._context.copy().run(self._show, {"text/plain": text, "text/html": page})
        self._drawn, self._shown = time.monotonic(), True

    def _parts(self, record: Record) -> list[str]:
        """What a record says, in the order of the line."""
        parts = []
        if record.get("fold") is not None:
            parts.append(f"without fold {record['fold']}")
        if "pair" in record:
            parts.append(f"half {record['half'] + 1} of pair {record['pair'] + 1}")
        if "strength" in record:
            parts.append(f"strength {record['strength'] + 1}")
        parts.append(f"round {record['round']}")
        gap = record["margin_gap"] if "margin_gap" in record else record["gap"]
        goal = "" if self._tol is None else f" (to {self._tol:.2g})"
        if not math.isnan(gap):
            parts.append(f"gap {gap:.2g}{goal}")
        parts.append(f"{record['active_rows']} features")
        return parts

    def _show(self, data: dict[str, str]) -> None:
        from IPython.display import display

        cell, handle = LiveLine._last
        if cell == self._cell:
            handle.update(data, raw=True)
        else:
            LiveLine._last = (self._cell, display(data, raw=True, display_id=True))
