"""Plots in the style of the field: suboptimality against seconds, both on log scales, one file per problem.

Needs matplotlib (extra ``plots``), which is loaded by the functions that draw.
"""

from __future__ import annotations

import re
import statistics
import textwrap
from pathlib import Path
from typing import Any

from lab.benchmarks.against import WITH_INTERCEPT
from lab.benchmarks.curve import TARGETS, suboptimality
from lab.benchmarks.peers import OURS

# Colours of Okabe and Ito; a second sign (dash, marker) tells the curves apart in grey.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"

LOOK: dict[str, dict[str, Any]] = {
    OURS.name: {"color": BLACK, "marker": "", "linestyle": "-", "linewidth": 2.4, "zorder": 5},
    WITH_INTERCEPT: {"color": BLACK, "marker": "", "linestyle": ":", "linewidth": 1.6},
    "liblinear": {"color": VERMILION, "marker": "o", "linestyle": "-"},
    "skglm": {"color": BLUE, "marker": "s", "linestyle": "--"},
    "cyanure": {"color": GREEN, "marker": "^", "linestyle": "-."},
    "glmnet": {"color": ORANGE, "marker": "D", "linestyle": "-"},
    "celer": {"color": PURPLE, "marker": "v", "linestyle": "--"},
    "saga": {"color": SKY, "marker": "P", "linestyle": "-."},
    "lightning": {"color": "#8C510A", "marker": "X", "linestyle": "-"},
    "snapml": {"color": "#1B7837", "marker": "<", "linestyle": "-"},
    "adelie": {"color": "#762A83", "marker": ">", "linestyle": "--"},
    "gblinear": {"color": "#7F7F7F", "marker": "*", "linestyle": ":"},
    "spark": {"color": VERMILION, "marker": "o", "linestyle": "-"},
    "dask-ml": {"color": BLUE, "marker": "s", "linestyle": "--"},
    "dboost on Dask": {"color": BLACK, "marker": "h", "linestyle": "--"},
}
FLOOR = 1e-9
"""Where curves are cut: below it the optimum itself is not certain."""


def file_name(problem: str) -> str:
    """A problem's name as a file name."""
    return re.sub(r"[^a-z0-9.]+", "-", problem.lower()).strip("-") + ".png"


def series(solver: dict[str, Any]) -> tuple[list[float], list[float]]:
    """Seconds and suboptimality of a solver's curve, by seconds, no point worse than one before it."""
    if "curves" in solver:
        points = [(s, v) for s, v, _ in solver["curves"][-1]]
    else:
        points = [(statistics.median(run["seconds"]), run["objective"]) for run in solver["runs"]]
    seconds: list[float] = []
    levels: list[float] = []
    for at, value in sorted(points):
        level = max(suboptimality(value, solver["best"]), FLOOR)
        if not levels or level < levels[-1]:
            seconds.append(at)
            levels.append(level)
    return seconds, levels


def draw(record: dict[str, Any], folder: Path) -> str:
    """Draw one problem into the folder; returns the file's name."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7.2, 4.4), constrained_layout=True)
    for name, solver in record["solvers"].items():
        seconds, levels = series(solver)
        look = LOOK[name]
        if seconds:
            axes.plot(seconds, levels, label=name, markersize=4.5, **look)
        elif solver["note"]:
            # not one run was done: the legend says why
            axes.plot([], [], label=f"{name}:\n{textwrap.fill(solver['note'], 24)}", **look)
    for target in TARGETS[1:]:
        axes.axhline(target, color="#BBBBBB", linewidth=0.8, zorder=0)
    axes.set(xscale="log", yscale="log", xlabel="seconds", ylabel="(P - P*) / P*", title=record["problem"])
    axes.set_ylim(FLOOR, 3.0)
    axes.grid(True, which="major", alpha=0.25)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    name = file_name(record["problem"])
    figure.savefig(folder / name, dpi=110)
    pyplot.close(figure)
    return name
