"""What a fit tells of its rounds: to callbacks, on one line below a cell of a notebook, and as a small table.

scikit-learn has a protocol of callbacks (``sklearn.callback``) since 1.9. With an older one plain functions work, and
an object with the protocol's hooks is refused.

A fit is given the line, which is redrawn in its place, where its `callbacks` are None. Whoever gives callbacks, an
empty list too, looks after the rounds; and ``DBOOST_LIVE_LINE=0`` in the environment turns it off for all fits. Nothing
is drawn outside of a kernel of Jupyter, which is found without importing IPython.

The seconds of a round in the table, ``seconds``, are the sum of four columns:

- ``seconds_kernels``: in each pass, the worker that took longest to read partitions, run the leaf functions on them and
  merge their sums; where workers reduce shards, the longest reduction as well. Measured inside the tasks, which return
  it with their sums. In-process: all time inside passes.
- ``seconds_network``: in each pass, the longest time a worker took to receive arguments from other workers and to
  decode them, and the time from the moment all results were ready to the moment all were here, decoded. What the
  scheduler copies from the driver to workers cannot be told apart from its other work. In-process: 0.
- ``seconds_scheduler``: the rest of the wait for passes: turns through the scheduler, queues of the workers, and tasks
  that had to be repeated. In-process: 0.
- ``seconds_driver``: everything outside of waits: the solver, packing arguments, merging what workers returned.
"""

from __future__ import annotations

import contextvars
import html
import math
import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, overload

import numpy as np
from sklearn.base import clone

from dboost import notebook_html as page
from dboost.errors import UsageError, type_name
from dboost.files.documents import plain
from dboost.former_names import UnderBothNames, column_now
from dboost.progress import Remaining, words

_SHOWN = 12


class Table(Sequence[Mapping[str, Any]]):
    """Records with a common set of columns.

    Parameters
    ----------
    records : iterable of mappings
        The columns are the keys in the order of their first appearance.

    Examples
    --------
    >>> table = Table([{"round": 1, "gap": 0.5}, {"round": 2, "gap": 0.25}])
    >>> table[-1]["gap"], table.column("round").tolist()
    (0.25, [1, 2])
    """

    def __init__(self, records: Iterable[Mapping[str, Any]] = ()) -> None:
        self._records = tuple(dict(record) for record in records)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(dict.fromkeys(name for record in self._records for name in record))

    @property
    def records(self) -> tuple[dict[str, Any], ...]:
        """The records themselves."""
        return tuple(UnderBothNames(record) for record in self._records)

    def column(self, name: str) -> Any:
        """One column as an array, None where a record has no value.

        Raises
        ------
        KeyError
            When no record has the column.
        """
        name = name if name in self.columns else column_now(name)
        if name not in self.columns:
            raise KeyError(f"no column {name!r}; there are {', '.join(self.columns) or 'none'}")
        return np.array([record.get(name) for record in self._records])

    def to_pandas(self) -> Any:
        """The table as a ``pandas.DataFrame``."""
        import pandas as pd

        return pd.DataFrame.from_records(list(self._records), columns=list(self.columns))

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> Table: ...

    def __getitem__(self, index: int | slice) -> Mapping[str, Any] | Table:
        if isinstance(index, slice):
            return Table(self._records[index])
        return UnderBothNames(self._records[index])

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return (UnderBothNames(record) for record in self._records)

    def __eq__(self, other: object) -> bool:
        # In plain values, where "no number" equals itself.
        return isinstance(other, Table) and bool(plain(self._records) == plain(other._records))

    __hash__ = None  # type: ignore[assignment]

    def _cells(self) -> list[list[str]]:
        """Header and rows as text, the middle left out when there are many."""
        names = self.columns
        rows = [[_text(record.get(name)) for name in names] for record in self._records]
        if len(rows) > _SHOWN:
            half = _SHOWN // 2
            rows = [*rows[:half], ["..."] * len(names), *rows[-half:]]
        return [list(names), *rows]

    def __repr__(self) -> str:
        if not self._records:
            return "Table(no records)"
        cells = self._cells()
        widths = [max(len(row[c]) for row in cells) for c in range(len(cells[0]))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        if not self._records:
            return page.block(page.lines([repr(self)]))
        header, *rows = self._cells()
        left_out = len(self._records) - (len(rows) - 1)
        more = [f"{left_out} of {len(self._records)} records left out"] if len(self._records) > _SHOWN else []
        return page.block(page.table(header, rows, named=False), page.lines(more))


def induction_stop(history: Sequence[Mapping[str, Any]]) -> int | None:
    """The round after which no feature entered, 0 if none ever did; None if one did in the last, or nobody knows."""
    if not all({"round", "step", "features_in"} <= record.keys() for record in history):
        return None
    rounds = [record for record in history if record["step"] != "certificate"]
    entered = [int(record["round"]) for record in rounds if record["features_in"] > 0]
    if not entered:
        return 0
    return None if entered[-1] == rounds[-1]["round"] else entered[-1]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    return str(value)


Record = dict[str, Any]

try:
    from sklearn.callback import CallbackSupportMixin, FitCallback, with_callbacks
except ImportError:  # scikit-learn < 1.9
    HAS_PROTOCOL = False

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands where scikit-learn has no callback protocol; offers no hooks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method: there is nothing to tear down."""
        return method
else:
    HAS_PROTOCOL = True


class ModelCallback(ABC):
    """A callback that is told of the model after each round of a single fit, and not of its record alone."""

    @abstractmethod
    def begin(self) -> None:
        """A fit begins."""

    @abstractmethod
    def after_round(self, record: Record, estimator: Any) -> bool:
        """Whether the fit is to end, by an estimator that is fitted as if it had ended here."""


def split(callbacks: Any) -> tuple[list[Any], list[Any]]:
    """Part the list into objects with scikit-learn's hooks, and plain functions of a record or callbacks of models."""
    hooks, functions = [], []
    if callbacks is not None and not isinstance(callbacks, list | tuple):
        raise UsageError(f"callbacks is {type_name(callbacks)}, expected a list", hint="give callbacks=[it]")
    for callback in callbacks or ():
        named = not isinstance(callback, type) and hasattr(callback, "on_fit_task_end")
        if named and HAS_PROTOCOL and isinstance(callback, FitCallback):
            hooks.append(callback)
        elif named:
            raise UsageError(
                f"the callback {callback!r} has hooks of scikit-learn's protocol, but not all of them are usable here",
                hint="it needs setup, on_fit_task_begin, on_fit_task_end and teardown, and scikit-learn >= 1.9",
            )
        elif isinstance(callback, ModelCallback) or (callable(callback) and not isinstance(callback, type)):
            functions.append(callback)
        else:
            raise UsageError(
                f"callbacks holds {callback!r}",
                hint="expected functions of a round's record, or objects with the hooks of sklearn.callback",
            )
    return hooks, functions


@contextmanager
def registered(estimator: Any, hooks: list[Any]) -> Iterator[None]:
    """Register the hooks of the parameter beside those of ``set_callbacks`` for the length of a fit."""
    if not hooks:
        yield
        return
    before = list(getattr(estimator, "_skl_callbacks", []))
    estimator.set_callbacks(*before, *[hook for hook in hooks if hook not in before])
    try:
        yield
    finally:
        estimator.set_callbacks(*before)


class CallbackDispatcher:
    """Tells every callback of one fit about its rounds; X, y and weights are for hooks that ask for them."""

    def __init__(self, estimator: Any, functions: list[Any], X: Any, y: Any, weight: Any) -> None:
        self._estimator = estimator
        self._functions = [one for one in functions if not isinstance(one, ModelCallback)]
        self._of_models = [one for one in functions if isinstance(one, ModelCallback)]
        for one in self._of_models:
            one.begin()
        self._context: Any = None
        self._data: dict[str, Any] = {}
        if HAS_PROTOCOL and getattr(estimator, "_skl_callbacks", None):
            metadata = None if weight is None else {"sample_weight": weight}
            self._data = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
            # How many rounds a fit takes is not known before it ends.
            self._context = estimator._init_callback_context(max_subtasks=None)
            self._context.call_on_fit_task_begin(**self._data)

    def __call__(self, record: Record, attributes: Callable[[], dict[str, Any]] | None = None) -> bool:
        """Report the end of a round; returns whether a callback asks the fit to stop."""
        stop = False
        for function in self._functions:
            stop |= bool(function(UnderBothNames(record)))
        if self._of_models:
            assert attributes is not None
            model = attributes()["model_"]
            for one in self._of_models:
                stop |= one.after_round(UnderBothNames(record), clone(self._estimator)._adopt(model).to_local())
        if self._context is not None:
            task = self._context.subcontext(task_name="round")
            task.call_on_fit_task_begin(**self._data)
            stop |= bool(task.call_on_fit_task_end(**self._data, reconstruction_attributes=attributes))
        return stop

    def after_judged_round(self, record: dict[str, Any], state: Any) -> bool:
        """Report the end of a round of a fit that is only judged, to functions of the record alone."""
        return any([bool(function(UnderBothNames(record))) for function in self._functions])

    def finish(self, attributes: Callable[[], dict[str, Any]]) -> None:
        """Report the end of the fit."""
        if self._context is not None:
            self._context.call_on_fit_task_end(**self._data, reconstruction_attributes=attributes)


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
    """The function of a round's record that draws the line while the fit runs, or none; X may have to be read first."""
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
        parts.append(f"{record['features']} features")
        return parts

    def _show(self, data: dict[str, str]) -> None:
        from IPython.display import display

        cell, handle = LiveLine._last
        if cell == self._cell:
            handle.update(data, raw=True)
        else:
            LiveLine._last = (self._cell, display(data, raw=True, display_id=True))


# Of scikit-learn, where it has them: imported from here.
__all__ = ["CallbackSupportMixin", "with_callbacks"]
