"""What all plots share: the Axes to draw on, colours, lines, legends, and reading records.

Covers: loading matplotlib when a plot is drawn, and the one look of all plots.
Does not cover: what is drawn (one file per plot).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import UsageError

Array = NDArray[np.float64]

# Okabe & Ito (2008): told apart by readers with any colour vision. Yellow is left out; it is too light for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
# Lines differ by more than colour, for print in grey.
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
MANY_POINTS = 40
"""Lines with more points than this carry no markers."""

WORDS = {
    "seconds": "Time [s]",
    "rounds": "Round",
    "passes": "Passes over the data",
    "gap": "Relative duality gap",
    "objective": "Objective (penalised mean loss)",
    "error": "Test error [share of examples]",
    "coverage": "Coverage [classes ranked above the true one]",
    "sparsity": "Zero weights [share of entries]",
    "row_sparsity": "Features never computed [share of rows]",
    "active_rows": "Features or hypotheses held",
    "entries": "Nonzero weights",
    "log_loss": "Test log-loss [nats]",
}


def matplotlib() -> Any:
    """``matplotlib.pyplot``."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as fault:
        raise UsageError(
            f"plots need matplotlib, which cannot be imported ({fault})",
            hint="install the extra: pip install 'dboost[plots]'",
        ) from fault
    return plt


def open_axes(ax: Any, width: float = 6.0, height: float = 4.0) -> Any:
    """The Axes to draw on: `ax`, or those of a new figure whose layout leaves room for the legend."""
    plt = matplotlib()
    if ax is None:
        _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    elif not hasattr(ax, "plot"):
        raise UsageError(f"ax is a {type(ax).__name__}", hint="expected matplotlib Axes, or None for a new figure")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    return ax


def log_axis(axis: Any, low: float, high: float) -> None:
    """Ticks of a logarithmic axis in plain numbers; 1, 2 and 5 of each decade where there are few decades."""
    matplotlib()
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 200.0 * low else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def label_axes(ax: Any, x: str, y: str) -> None:
    """Name the axes in words, with units."""
    ax.set_xlabel(WORDS.get(x, x))
    ax.set_ylabel(WORDS.get(y, y))


def draw_lines(ax: Any, lines: Mapping[str, tuple[Array, Array]], steps: bool = False, marks: bool = True) -> None:
    """One line per name, and a legend above the Axes where it covers no data."""
    looks = zip(cycle(COLOURS), cycle(DASHES), cycle(MARKERS))
    for (name, (x, y)), (colour, dash, marker) in zip(lines.items(), looks):
        shown = marker if marks and len(x) <= MANY_POINTS else None
        ax.plot(
            x,
            y,
            label=name,
            color=colour,
            linestyle=dash,
            marker=shown,
            markersize=4,
            linewidth=1.6,
            drawstyle="steps-post" if steps else "default",
        )
    if len(lines) > 1:
        add_legend(ax, len(lines))


def add_legend(ax: Any, count: int) -> None:
    """A legend above the Axes; a title of the Axes is better put on the figure (``ax.figure.suptitle``)."""
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.01), ncols=min(count, 3), frameon=False, fontsize="small")


def by_name(given: Any, what: str) -> dict[str, Any]:
    """One thing or a mapping of names to things, as a mapping."""
    named = dict(given) if isinstance(given, Mapping) else {"": given}
    if not named:
        raise UsageError(f"{what} is empty", hint="there is nothing to draw")
    return {str(name): value for name, value in named.items()}


def records_of(given: Any, what: str) -> list[Mapping[str, Any]]:
    """A list of records, or those of a fitted estimator (``history_``)."""
    found = getattr(given, "history_", given)
    if isinstance(found, Mapping | str) or not isinstance(found, Sequence):
        raise UsageError(
            f"{what} holds a {type(given).__name__}", hint="expected a fitted estimator or a list of records"
        )
    records = list(found)
    if not records or not all(isinstance(record, Mapping) for record in records):
        raise UsageError(f"{what} holds no records", hint="expected at least one, each a mapping of names to numbers")
    return records


def column_of(records: Sequence[Mapping[str, Any]], name: str) -> Array:
    """One quantity of all records; NaN where a record has none."""
    if not any(name in record for record in records):
        known = dict.fromkeys(key for record in records for key in record)
        raise UsageError(f"no record has {name!r}", hint=f"there are {', '.join(map(str, known))}")
    return np.array([np.nan if record.get(name) is None else record[name] for record in records], dtype=np.float64)


def choose(name: str, value: Any, known: Sequence[str]) -> None:
    """Refuse an unknown choice."""
    if value not in known:
        raise UsageError(f"{name}={value!r}", hint=f"use one of {', '.join(known)}")
