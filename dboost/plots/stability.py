"""Which features come again on half samples, by strength of the penalty."""

from __future__ import annotations

from typing import Any

import numpy as np

from dboost.errors import UsageError
from dboost.plots.style import COLOURS, draw_lines, label_axes, log_axis, open_axes


def plot_stability(selection: Any, *, top: int = 7, ax: Any = None) -> Any:
    """Share of the half samples that use each feature, over falling strengths, and the threshold of the selection.

    Parameters
    ----------
    selection : StabilitySelection
        Fitted.
    top : int
        The most stable selected features, so many, are named; other selected ones are thin and blue, the rest grey.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        Strengths fall from left to right. Those that the selection does not use, so that no more false features are
        expected than was asked for, are shaded.

    Raises
    ------
    UsageError
        When matplotlib is missing, or `selection` is no fitted one.

    Examples
    --------
    >>> import dboost
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> selection = dboost.StabilitySelection(n_pairs=2, alphas=[0.2, 0.1]).fit(X, X[:, 0] > 0)
    >>> [line.get_label() for line in plot_stability(selection).get_lines()][-2:]
    ['x0', 'threshold 0.6']
    """
    if not hasattr(selection, "frequencies_"):
        raise UsageError(
            f"selection is a {type(selection).__name__} without frequencies_",
            hint="expected a fitted StabilitySelection",
        )
    alphas = np.asarray(selection.alphas_, dtype=np.float64)
    shares = np.asarray(selection.frequencies_, dtype=np.float64)
    stability, used = np.asarray(selection.stability_), int(selection.n_strengths_)
    names = dict(zip(np.asarray(selection.selected_).tolist(), selection.support_names_, strict=True))
    ranked = sorted(names, key=lambda j: (-float(stability[j]), -float(shares[:, j].sum())))
    named = ranked[: min(top, len(COLOURS))]
    ax = open_axes(ax)
    # A feature that no half uses would hide the axis, and one grey line cannot be told from many.
    for j in np.flatnonzero(shares.any(axis=0)).tolist():
        if j not in names:
            ax.plot(alphas, shares[:, j], color="0.8", linewidth=0.8, zorder=1)
        elif j not in named:
            ax.plot(alphas, shares[:, j], color=COLOURS[0], linewidth=0.8, alpha=0.5, zorder=1.5)
    draw_lines(ax, {names[j]: (alphas, shares[:, j]) for j in named}, marks=len(alphas) == 1)
    threshold = float(selection.threshold)
    ax.axhline(threshold, color="0.3", linestyle=":", linewidth=1.2, label=f"threshold {threshold:g}")
    ax.set_xscale("log")
    log_axis(ax.xaxis, alphas.min(), alphas.max())
    left, right = alphas.max() * 1.05, alphas.min() / 1.05
    if used < len(alphas):
        edge = float(np.sqrt(alphas[used - 1] * alphas[used]))
        ax.axvspan(edge, right, color="0.94", zorder=0, label="strengths not used")
    ax.set_xlim(left, right)
    ax.set_ylim(-0.02, 1.02)
    label_axes(ax, "", "Half samples that use a feature [share]")
    ax.set_xlabel("Strength of the penalty, alpha [on the mean loss]")
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize="small")
    return ax
