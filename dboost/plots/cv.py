"""What the folds of a cross-validation say of each strength."""

from __future__ import annotations

from typing import Any

import numpy as np

from dboost.errors import UsageError
from dboost.plots.style import COLOURS, add_legend, choose, column_of, label_axes, log_axis, open_axes, records_of


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
