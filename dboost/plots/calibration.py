"""Whether probabilities can be believed: what was said against how often it was so."""

from __future__ import annotations

from typing import Any

import numpy as np

from dboost.errors import UsageError
from dboost.plots.style import COLOURS, add_legend, open_axes


def plot_calibration(probability: Any, right: Any, *, bins: int = 10, ax: Any = None) -> Any:
    """The share of events among examples that were given about the same probability, with 95 % intervals (Wilson).

    Parameters
    ----------
    probability : array, shape (m,)
        What was predicted: of the second of two classes, or of the class that was named.
    right : array of bool, shape (m,)
        Whether it was so.
    bins : int
        Intervals of equal width between 0 and 1; those without examples are left out.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    UsageError
        When matplotlib is missing, shapes disagree, or a probability lies outside [0, 1].

    Examples
    --------
    >>> axes = plot_calibration([0.1, 0.1, 0.9, 0.9], [False, False, True, True], bins=2)
    >>> axes.lines[1].get_ydata().tolist()
    [0.0, 1.0]
    """
    p, hit = np.asarray(probability, dtype=np.float64), np.asarray(right, dtype=bool)
    if p.ndim != 1 or p.shape != hit.shape or not len(p):
        raise UsageError(f"probability of shape {p.shape} and right of shape {hit.shape}", hint="give one for each row")
    if not np.all((p >= 0.0) & (p <= 1.0)):
        raise UsageError("a probability lies outside [0, 1]", hint="give predict_proba, not decision_function")
    if bins < 1:
        raise UsageError(f"bins={bins}", hint="use at least 1")
    place = np.minimum((p * bins).astype(np.int64), bins - 1)
    rows = np.bincount(place, minlength=bins).astype(np.float64)
    seen = rows > 0
    rows = rows[seen]
    said = np.bincount(place, weights=p, minlength=bins)[seen] / rows
    share = np.bincount(place, weights=hit, minlength=bins)[seen] / rows
    # Wilson (1927): unlike the plain one, this interval has a width where every example of a bin was right.
    z = 1.959964
    middle = (share + z**2 / (2 * rows)) / (1 + z**2 / rows)
    half = z / (1 + z**2 / rows) * np.sqrt(share * (1 - share) / rows + z**2 / (4 * rows**2))
    low, high = np.maximum(share - (middle - half), 0.0), np.maximum(middle + half - share, 0.0)
    ax = open_axes(ax, width=4.8, height=4.4)
    ax.plot([0, 1], [0, 1], color="0.5", linestyle="--", linewidth=1.0, label="as often as said")
    ax.errorbar(said, share, yerr=[low, high], color=COLOURS[0], marker="o", markersize=4, capsize=3, label="observed")
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    ax.set_aspect("equal")
    ax.set_xlabel("Predicted probability")
    ax.set_ylabel("Share that was right")
    add_legend(ax, 2)
    return ax
