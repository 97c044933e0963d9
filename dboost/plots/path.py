"""A regularization path: features against the strength of the penalty."""

from __future__ import annotations

from typing import Any

import numpy as np

from dboost.errors import UsageError
from dboost.plots.style import COLOURS, choose, draw_lines, label_axes, log_axis, open_axes

QUANTITIES = ("active_rows", "entries", "weights")


def plot_path(path: Any, *, quantity: str = "active_rows", top: int = 7, ax: Any = None) -> Any:
    """How many features a path holds at each strength, or how large their weights are.

    Parameters
    ----------
    path : RegularizationPath
        From ``dboost.regularization_path``.
    quantity : {"active_rows", "entries", "weights"}
        Features held, weights that are not zero, or the largest absolute weight of each feature.
    top : int
        With ``"weights"``: the largest so many are named, the others drawn in grey.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        Strengths fall from left to right: the path begins with no feature.

    Raises
    ------
    UsageError
        When matplotlib is missing, `path` is none, or `quantity` is unknown.

    Examples
    --------
    >>> import dboost
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> path = dboost.regularization_path(X, [0, 0, 1, 1], n_alphas=3, eps=0.1)
    >>> len(plot_path(path).lines)
    1
    """
    choose("quantity", quantity, QUANTITIES)
    models = getattr(path, "models", None)
    if not models:
        raise UsageError(f"path is a {type(path).__name__} without models", hint="expected a RegularizationPath")
    alphas = np.array([model.certificate.alpha for model in models])
    ax = open_axes(ax)
    if quantity == "weights":
        _draw_weights(ax, alphas, models, top)
        label_axes(ax, "", "Largest absolute weight of a feature")
    else:
        counts = [
            np.any(model.W != 0, axis=1).sum() if quantity == "active_rows" else np.count_nonzero(model.W)
            for model in models
        ]
        draw_lines(ax, {"": (alphas, np.array(counts, dtype=np.float64))})
        label_axes(ax, "", quantity)
        ax.set_ylim(bottom=0)
    ax.set_xscale("log")
    log_axis(ax.xaxis, alphas.min(), alphas.max())
    ax.set_xlim(alphas.max() * 1.05, alphas.min() / 1.05)
    ax.set_xlabel("Strength of the penalty, alpha [on the mean loss]")
    return ax


def _draw_weights(ax: Any, alphas: Any, models: Any, top: int) -> None:
    sizes: dict[str, Any] = {}
    for place, model in enumerate(models):
        for name, row in zip(model.hypotheses.words(), np.abs(model.weights).max(axis=1, initial=0.0), strict=True):
            sizes.setdefault(name, np.zeros(len(models)))[place] = row
    ranked = sorted(sizes, key=lambda name: -float(sizes[name].max()))
    for name in ranked[top:]:
        ax.plot(alphas, sizes[name], color="0.8", linewidth=0.8, zorder=1)
    named = ranked[: min(top, len(COLOURS))]
    draw_lines(ax, {name: (alphas, sizes[name]) for name in named}, marks=False)
