"""Which classes are taken for which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dboost.errors import UsageError
from dboost.plots.style import matplotlib, open_axes

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
