"""Which features a model uses, and which classes share them, as a picture of the weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from dboost.errors import UsageError
from dboost.plots.style import COLOURS, matplotlib, open_axes


def plot_sparsity_map(model: Any, *, top: int = 40, ax: Any = None) -> Any:
    """Weights of the largest features (rows) for each class or task (columns); a zero is a blank.

    Parameters
    ----------
    model : Model, or a fitted estimator
    top : int
        At most so many features, the largest by absolute weight first.
    ax : matplotlib Axes, optional
        The colour bar takes its room beside them.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    UsageError
        When matplotlib is missing, there is no model, or it holds no feature.

    Examples
    --------
    >>> import dboost
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> axes = plot_sparsity_map(dboost.BoostedClassifier(alpha=0.3).fit(X, [0, 0, 1, 1]))
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['x0']
    """
    found = getattr(model, "model_", model)
    if not hasattr(found, "W") or not hasattr(found, "hypotheses"):
        raise UsageError(
            f"a {type(model).__name__} has no model", hint="give a dboost Model, or an estimator after fit"
        )
    by_name = found.weights
    if not np.any(by_name != 0):
        raise UsageError("the model holds no feature, so its map is blank", hint="fit with a smaller alpha")
    sizes = np.abs(by_name).max(axis=1)
    order = np.argsort(-sizes, kind="stable")[:top]
    order = order[sizes[order] > 0]
    weights = np.ma.masked_equal(by_name[order], 0.0)
    words = found.hypotheses.words()
    labels = _outputs(found)
    height = 1.4 + 0.2 * len(order)
    ax = open_axes(ax, width=3.2 + 0.35 * len(labels) + 0.06 * max(len(words[j]) for j in order), height=height)
    ax.grid(False)
    limit = float(sizes.max())
    colours = _colours()
    image = ax.pcolormesh(weights, cmap=colours, vmin=-limit, vmax=limit, edgecolors="0.85", linewidth=0.5)
    ax.invert_yaxis()
    ax.set_yticks(np.arange(len(order)) + 0.5, [words[j] for j in order], fontsize="small")
    crowded = len(labels) > 10 or max(map(len, labels)) > 4
    ax.set_xticks(np.arange(len(labels)) + 0.5, labels, fontsize="small", rotation=90 if crowded else 0)
    ax.tick_params(length=0)
    ax.set_xlabel("Task" if found.task == "multitask" else "Class")
    more = int(np.count_nonzero(sizes)) - len(order)
    ax.set_ylabel(f"Feature, the largest {len(order)} of {len(order) + more}" if more else "Feature")
    bar = ax.figure.colorbar(image, ax=ax, shrink=min(1.0, 3.0 / height), aspect=15)
    bar.set_label("Weight")
    bar.outline.set_visible(False)
    return ax


def _colours() -> Any:
    """Orange, against a class, to blue, for it, which readers with any colour vision tell apart; no weight is white."""
    matplotlib()
    from matplotlib.colors import LinearSegmentedColormap, ListedColormap

    whole = LinearSegmentedColormap.from_list("against to for", [COLOURS[1], "white", COLOURS[0]])
    places = np.concatenate([np.linspace(0.0, 0.4, 128), np.linspace(0.6, 1.0, 128)])
    return ListedColormap(whole(places)).with_extremes(bad="white")


def _outputs(model: Any) -> list[str]:
    """A word for each column of W; for two classes the column speaks for the second."""
    if getattr(model, "classes", None) is None:
        return ["prediction"]
    labels = [str(label) for label in np.asarray(model.classes).tolist()]
    return labels[1:] if model.task == "binary" else labels
