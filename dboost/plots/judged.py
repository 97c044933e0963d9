"""What a model says and holds: its probabilities, mistakes, the cost of its sparsity, and the weights themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dboost.errors import UsageError
from dboost.plots.style import (
    COLOURS,
    add_legend,
    by_name,
    choose,
    column_of,
    draw_lines,
    label_axes,
    matplotlib,
    open_axes,
    records_of,
)


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


# A matrix of more classes than this has no room for its numbers.
MOST_NUMBERS = 20


def plot_confusion(counts: Any, labels: Sequence[Any], *, ax: Any = None) -> Any:
    """A confusion matrix: right classes in rows, predicted ones in columns, shaded by the share of the row.

    Parameters
    ----------
    counts : array, shape (k, k)
        Examples, or their weight, as in ``dboost.metrics.Evaluation.confusion``.
    labels : sequence, shape (k,)
        The classes.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    UsageError
        When matplotlib is missing, or the shapes disagree.

    Examples
    --------
    >>> axes = plot_confusion([[8, 2], [1, 9]], ["no", "yes"])
    >>> [text.get_text() for text in axes.texts]
    ['8', '2', '1', '9']
    """
    found = np.asarray(counts, dtype=np.float64)
    k = len(labels)
    if found.shape != (k, k):
        raise UsageError(f"counts of shape {found.shape} for {k} labels", hint="expected one row and column for each")
    totals = found.sum(axis=1, keepdims=True)
    shares = np.divide(found, totals, out=np.zeros_like(found), where=totals > 0)
    ax = open_axes(ax, width=2.6 + 0.4 * k, height=2.0 + 0.4 * k)
    ax.grid(False)
    image = ax.pcolormesh(shares, cmap=matplotlib().get_cmap("Greys"), vmin=0.0, vmax=1.0, edgecolors="0.85")
    ax.invert_yaxis()
    ax.set_aspect("equal")
    words = [str(label) for label in labels]
    crowded = max(map(len, words), default=0) > 4
    ax.set_xticks(np.arange(k) + 0.5, words, fontsize="small", rotation=90 if crowded else 0)
    ax.set_yticks(np.arange(k) + 0.5, words, fontsize="small")
    ax.tick_params(length=0)
    ax.set_xlabel("Predicted class")
    ax.set_ylabel("Right class")
    if k <= MOST_NUMBERS:
        for (right, said), count in np.ndenumerate(found):
            if count:
                # White on dark and black on light, so that every number can be read.
                colour = "white" if shares[right, said] > 0.55 else "black"
                ax.text(
                    said + 0.5, right + 0.5, f"{count:.6g}", ha="center", va="center", color=colour, fontsize="small"
                )
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8)
    bar.set_label("Share of the right class")
    bar.outline.set_visible(False)
    return ax


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
