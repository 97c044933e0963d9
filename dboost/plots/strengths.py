"""The models of many strengths: a path, what folds say of it, and what half samples use along it."""

from __future__ import annotations

from typing import Any

import numpy as np

from dboost.errors import UsageError
from dboost.plots.style import (
    COLOURS,
    add_legend,
    choose,
    column_of,
    draw_lines,
    label_axes,
    log_axis,
    open_axes,
    records_of,
)

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


def plot_cv(fit: Any, *, quantity: str = "loss", ax: Any = None) -> Any:
    """Held-out loss, error or score by strength, with one standard error, and the strength that was chosen.

    Parameters
    ----------
    fit : estimator
        Fitted with cross-validation: it has ``cv_results_`` and ``alpha_``.
    quantity : {"loss", "error", "score"}
        ``"score"`` is that of a scorer that chose (``scoring="roc_auc"``).
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    UsageError
        When matplotlib is missing, the fit had no cross-validation, or no scorer was asked.

    Examples
    --------
    >>> import numpy as np
    >>> import dboost
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = dboost.BoostedClassifierCV(cv=3, n_alphas=3).fit(X, X[:, 0] > 0)
    >>> len(plot_cv(model).containers[0].lines[0].get_xdata())
    3
    """
    choose("quantity", quantity, ("loss", "error", "score"))
    if not hasattr(fit, "cv_results_"):
        raise UsageError(
            f"a {type(fit).__name__} has no cv_results_", hint="fit one that ends in CV, or use dboost.cross_validated"
        )
    records = records_of(fit.cv_results_, "fit")
    if hasattr(fit, "gammas_"):
        # the curve of the share that was chosen
        records = [record for record in records if record["gamma"] == fit.relaxed_["gamma"]]
    alphas = column_of(records, "alpha")
    what = "test_score" if quantity == "score" else quantity
    mean, error = column_of(records, f"mean_{what}"), column_of(records, f"se_{what}")
    ax = open_axes(ax)
    ax.errorbar(
        alphas, mean, yerr=error, color=COLOURS[0], marker="o", markersize=4, capsize=3, label="mean and standard error"
    )
    ax.axvline(float(fit.alpha_), color=COLOURS[1], linestyle="--", linewidth=1.4, label=f"chosen: {fit.alpha_:.3g}")
    if np.all(alphas > 0.0):
        ax.set_xscale("log")
        log_axis(ax.xaxis, float(alphas.min()), float(alphas.max()))
        ax.set_xlim(alphas.max() * 1.1, alphas.min() / 1.1)
    label_axes(ax, "", "error" if quantity == "error" else f"Held-out {quantity} [mean]")
    ax.set_xlabel("Strength of the penalty, alpha [on the mean loss]")
    add_legend(ax, 2)
    return ax


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
