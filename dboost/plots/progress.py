"""Objective or gap of fits against time, rounds or passes."""

from __future__ import annotations

from typing import Any

import numpy as np

from dboost.plots.style import Array, by_name, choose, column_of, draw_lines, label_axes, open_axes, records_of


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
