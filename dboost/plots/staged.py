"""Test error, sparsity and other measures of the models along a fit."""

from __future__ import annotations

from typing import Any

from dboost.plots.style import by_name, choose, column_of, draw_lines, label_axes, open_axes, records_of


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
