"""Coverage against the share of zeros, for several penalties."""

from __future__ import annotations

from typing import Any

import numpy as np

from dboost.plots.style import by_name, choose, column_of, draw_lines, label_axes, open_axes, records_of


def plot_coverage(curves: Any, *, against: str = "row_sparsity", quantity: str = "coverage", ax: Any = None) -> Any:
    """What sparsity costs: coverage against the share of zero weights or zero rows (Duchi & Singer 2009, figure 6).

    Parameters
    ----------
    curves : mapping of names (penalties) to lists of records, or one list
        One record per model of a path, with ``coverage``, ``sparsity`` and ``row_sparsity``. Their order is free.
    against : {"sparsity", "row_sparsity"}
    quantity : str
        What is drawn upwards; lower is better for ``"coverage"`` and ``"error"``.
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
    >>> records = [{"coverage": 0.5, "sparsity": 0.9, "row_sparsity": 0.8}]
    >>> records += [{"coverage": 0.2, "sparsity": 0.5, "row_sparsity": 0.4}]
    >>> len(plot_coverage({"l1": records}).lines)
    1
    """
    choose("against", against, ("sparsity", "row_sparsity"))
    lines = {}
    for name, given in by_name(curves, "curves").items():
        records = records_of(given, "curves")
        x, y = column_of(records, against), column_of(records, quantity)
        order = np.lexsort((y, x))
        lines[name] = (x[order], y[order])
    ax = open_axes(ax)
    draw_lines(ax, lines)
    label_axes(ax, against, quantity)
    return ax
