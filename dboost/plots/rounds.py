"""The way of a fit, round by round: how far it is from the optimum, its models, and the features they hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from dboost.plots.style import (
    COLOURS,
    Array,
    add_legend,
    by_name,
    choose,
    column_of,
    draw_lines,
    label_axes,
    open_axes,
    records_of,
)


def plot_progress(fits: Any, *, quantity: str = "gap", against: str = "seconds", ax: Any = None) -> Any:
    """How fits approach their optimum.

    Parameters
    ----------
    fits : estimator, list of records, or mapping of names to these
        Fitted estimators; or records as in ``history_``, with ``round``, ``seconds`` (of the round) and ``passes``
        (so far).
    quantity : str
        ``"gap"``, ``"objective"``, ``"active_rows"``, ``"entries"`` or another number in the records. Gaps are drawn
        on a logarithmic scale; rounds without one are left out.
    against : {"seconds", "rounds", "passes"}
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
    >>> records = [{"round": 1, "gap": 0.5, "seconds": 0.1}, {"round": 2, "gap": 0.01, "seconds": 0.1}]
    >>> len(plot_progress({"newton": records}).lines)
    1
    """
    choose("against", against, ("seconds", "rounds", "passes"))
    lines = {}
    for name, fit in by_name(fits, "fits").items():
        records = records_of(fit, "fits")
        y = column_of(records, quantity)
        x = elapsed(records, against)
        if quantity == "gap":
            y = np.where(y > 0.0, y, np.nan)
        known = np.isfinite(y)
        lines[name] = (x[known], y[known])
    ax = open_axes(ax)
    if quantity == "gap":
        ax.set_yscale("log")
    draw_lines(ax, lines)
    label_axes(ax, against, quantity)
    return ax


def elapsed(records: Any, against: str) -> Array:
    """Time so far, number of the round, or passes so far."""
    if against == "seconds":
        return np.cumsum(column_of(records, "seconds"))
    return column_of(records, "round" if against == "rounds" else "passes")


def plot_staged(
    stages: Any, *, quantity: str = "error", against: str = "seconds", log_time: bool = False, ax: Any = None
) -> Any:
    """A measure of the model after each round, against time or rounds.

    Parameters
    ----------
    stages : list of records, or mapping of names to such lists
        One record per model looked at, in order, with ``seconds`` (since the start of the fit), ``round`` and the
        measures, such as ``error``, ``sparsity``, ``row_sparsity`` or ``coverage``.
    quantity : str
        Which measure; ``dboost.metrics`` computes them.
    against : {"seconds", "rounds"}
    log_time : bool
        Whether the axis of time or rounds is logarithmic: methods often differ by factors of ten.
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
    >>> records = [{"round": 1, "error": 0.5, "seconds": 0.1}, {"round": 2, "error": 0.2, "seconds": 0.3}]
    >>> len(plot_staged(records).lines)
    1
    """
    choose("against", against, ("seconds", "rounds"))
    lines = {}
    for name, given in by_name(stages, "stages").items():
        records = records_of(given, "stages")
        lines[name] = (column_of(records, "round" if against == "rounds" else "seconds"), column_of(records, quantity))
    ax = open_axes(ax)
    if log_time:
        ax.set_xscale("log")
    draw_lines(ax, lines)
    label_axes(ax, against, quantity)
    if quantity in ("sparsity", "row_sparsity"):
        ax.set_ylim(top=1.0 + 0.02 * (1.0 - ax.get_ylim()[0]))
    return ax


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
