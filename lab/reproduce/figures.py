"""How figures look: one style, colours that colour-blind readers can tell apart, one look per method on every page.

Covers: panels, the look of each method, curves with a band of one standard error. Does not cover: what is drawn.

Needs matplotlib (extra ``plots``), which is loaded by the functions that draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import UsageError

# Colours of Okabe and Ito; a second sign (dash, marker) tells the curves apart in grey.
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip

# name of a method -> keywords of matplotlib's plot
STYLES: dict[str, dict[str, Any]] = {
    "l1": {"color": VERMILION, "marker": "o", "linestyle": "-"},
    "l1/l2": {"color": BLUE, "marker": "s", "linestyle": "--"},
    "l1/linf": {"color": GREEN, "marker": "^", "linestyle": "-."},
    "l2": {"color": BLACK, "marker": "D", "linestyle": ":"},
    "adaboost": {"color": ORANGE, "marker": "v", "linestyle": "-"},
    "gradboost": {"color": PURPLE, "marker": "P", "linestyle": "--"},
    "shareboost": {"color": BLUE, "marker": "*", "linestyle": "-", "markersize": 7.0},
    "one-vs-rest": {"color": VERMILION, "marker": "o", "linestyle": "--"},
    "newton": {"color": SKY, "marker": "X", "linestyle": "-."},
}


def require_matplotlib() -> None:
    """Refuse to begin where the figures cannot be drawn in the end.

    Raises
    ------
    UsageError
        When matplotlib is not installed.
    """
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise UsageError(
            "the figures need matplotlib", hint="install dboost with its extra: pip install 'dboost[plots]'"
        )


def panels(columns: int, rows: int = 1, *, width: float = 4.9, height: float = 3.7) -> tuple[Any, list[Any]]:
    """A figure with a grid of panels in the common style.

    Parameters
    ----------
    columns, rows : int
    width, height : float
        Inches of one panel.

    Returns
    -------
    figure : matplotlib.figure.Figure
        Not known to pyplot, so that nothing has to be closed.
    axes : list of matplotlib axes
        Row by row.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(columns * width, rows * height), dpi=150, layout="constrained")
    axes = [figure.add_subplot(rows, columns, number + 1) for number in range(rows * columns)]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(True, color="0.9", linewidth=0.6)
        axis.set_axisbelow(True)
        axis.tick_params(labelsize=9)
    return figure, axes


def bare(axis: Any) -> None:
    """Leave a panel without lines, ticks and numbers, as for a picture."""
    axis.grid(False)
    axis.spines[:].set_visible(False)
    axis.set_xticks([])
    axis.set_yticks([])


def label(axis: Any, x: str, y: str, title: str = "") -> None:
    """Name the axes, with units."""
    axis.set_xlabel(x, fontsize=9.5)
    axis.set_ylabel(y, fontsize=9.5)
    if title:
        axis.set_title(title, fontsize=10, loc="left")


def curve(
    axis: Any, name: str, x: Sequence[float] | NDArray[Any], y: Sequence[float] | NDArray[Any],
    error: Sequence[float] | NDArray[Any] | None = None, *, text: str | None = None, dense: bool = False, **look: Any,
) -> None:  # fmt: skip
    """Draw a method's curve, with a band of one standard error where there is one.

    Parameters
    ----------
    name : str
        Key of ``STYLES``.
    x, y, error : sequences of float, the same length
    text : str, optional
        In the legend; by default `name`.
    dense : bool
        Mark about a dozen points only.
    """
    style = {**STYLES[name], "linewidth": 1.6, "markersize": 4.5, **look}
    if dense:
        style["markevery"] = max(1, len(x) // 12)
    axis.plot(x, y, label=text or name, **style)
    if error is not None:
        middle, half = np.asarray(y, dtype=float), np.nan_to_num(np.asarray(error, dtype=float))
        axis.fill_between(x, middle - half, middle + half, color=style["color"], alpha=0.18, linewidth=0)


def legend(axis: Any, **where: Any) -> None:
    """The legend of one panel."""
    axis.legend(fontsize=8.5, frameon=False, handlelength=3.2, **where)
