"""How many features came in and went out in each round."""

from __future__ import annotations

from typing import Any

import numpy as np

from dboost.plots.style import COLOURS, add_legend, column_of, open_axes, records_of


def plot_feature_life(fit: Any, *, ax: Any = None) -> Any:
    """Features that entered (up) and left (down) in each round, and how many were held after it (line).

    Parameters
    ----------
    fit : estimator, or list of records
        Fitted; or records as in ``history_``, with ``round``, ``rows_in``, ``rows_out`` and ``active_rows``.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    UsageError
        When matplotlib is missing, or the records do not hold what is asked for.

    Examples
    --------
    >>> records = [
    ...     {"round": 1, "rows_in": 3, "rows_out": 0, "active_rows": 3},
    ...     {"round": 2, "rows_in": 1, "rows_out": 2, "active_rows": 2},
    ... ]
    >>> axes = plot_feature_life(records)
    >>> [int(bar.get_height()) for bar in axes.patches]
    [3, 1, 0, -2]
    """
    records = records_of(fit, "fit")
    rounds = column_of(records, "round")
    entered, left, held = (column_of(records, name) for name in ("rows_in", "rows_out", "active_rows"))
    ax = open_axes(ax)
    ax.bar(rounds, entered, color=COLOURS[0], label="entered")
    # Hatched, so that they differ without colour as well.
    ax.bar(rounds, -left, color="white", edgecolor=COLOURS[1], hatch="////", label="left")
    ax.plot(rounds, held, color="black", linewidth=1.6, marker="o", markersize=3, label="held after the round")
    ax.axhline(0.0, color="0.3", linewidth=0.8)
    ax.set_xlim(rounds.min() - 0.7, rounds.max() + 0.7)
    if np.ptp(rounds) < 12:
        ax.set_xticks(rounds)
    ax.set_xlabel("Round")
    ax.set_ylabel("Features or hypotheses")
    add_legend(ax, 3)
    return ax
