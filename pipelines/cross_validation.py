"""``dboost train --cv``: the strength of the penalty by cross-validation, and what a person sees of it.

Covers: the estimator of the settings, the table of strengths, what to do when the best strength is the last one tried,
the hint for those who left alpha at its rule of thumb. Does not cover: the fits (``dboost.BoostedClassifierCV``).
"""

from __future__ import annotations

from typing import Any

import dboost
from dboost.errors import UsageError

from .config import CrossValidationSettings, ModelSettings, given
from .inputs import checked, kind_and_parameters
from .report import Grid

# Rows of the table of strengths; between its ends, the best and the chosen one, strengths are left out evenly.
MOST_ROWS = 12
# The step down from alpha "auto" that the hint offers. Where cross-validation was run on text, it chose 5 to 20 times
# less than "auto".
NEXT_ALPHA = 0.2


def make_cross_validation(settings: Any, **more: Any) -> Any:
    """The estimator of a run with ``--cv``, its parameters checked.

    Raises
    ------
    UsageError
        For a regression or tasks, which are not served yet, for a strength beside ``--cv``, and for parameters that
        have no meaning with it.
    """
    kind, parameters = kind_and_parameters(settings)
    if kind is not dboost.BoostedClassifier:
        raise UsageError(
            f"cv={settings.cv} with loss {settings.loss!r}: cross-validation is served for classifiers only, not yet "
            "for regression and tasks",
            hint="leave cv= out, train with several alpha= and compare them with `dboost evaluate` on held-out rows",
        )
    if parameters.pop("alpha", "auto") != "auto":
        raise UsageError(
            f"cv={settings.cv} chooses alpha, and alpha={settings.alpha:g} was given", hint="use one of them"
        )
    from dboost.penalties import get_penalty

    if "penalty" in parameters and get_penalty(parameters["penalty"]).weightless:
        raise UsageError(f"penalty {parameters['penalty']!r} has no strength to choose", hint="use another --penalty")
    known = dboost.BoostedClassifierCV().get_params(deep=False)
    odd = sorted(set(parameters) - set(known))
    if odd:
        raise UsageError(
            f"{odd[0]}={parameters[odd[0]]} has no meaning with cross-validation", hint=f"leave {odd[0]}= out"
        )
    estimator = dboost.BoostedClassifierCV(**parameters, **given(settings, CrossValidationSettings), **more)
    estimator._check()
    return checked(estimator)


def needs_cv(settings: Any) -> None:
    """Refuse what only cross-validation reads where there is none.

    Raises
    ------
    UsageError
    """
    for name, value in given(settings, CrossValidationSettings).items():
        raise UsageError(f"{name}={value} without cv=", hint=f"give cv=5, or leave {name}= out")


def strengths_table(estimator: Any) -> Grid:
    """Strengths with their loss and error on held-out rows, the chosen one marked."""
    table = list(estimator.cv_results_)
    marks = ["" for _ in table]
    best, chosen = place(estimator, estimator.alpha_best_), place(estimator, estimator.alpha_)
    marks[best] = "least loss"
    marks[chosen] = "chosen" if chosen != best else "least loss, chosen"
    rows = [
        (
            f"{row['alpha']:.4g}",
            f"{row['mean_loss']:.4f}",
            f"{row['se_loss']:.4f}",
            f"{100 * row['mean_error']:.1f} %",
            f"{100 * row['se_error']:.1f} %",
            f"{row['active_rows']:,}",
            mark,
        )
        for row, mark in zip(table, marks, strict=True)
    ]
    shown = spread(len(rows), MOST_ROWS, {best, chosen})
    headings = ("alpha", "loss", "+-", "error", "+-", "features", "")
    return Grid(headings, [rows[t] for t in shown], left=frozenset({6}))


def place(estimator: Any, alpha: float) -> int:
    """Place of a strength in the grid."""
    return [float(one) for one in estimator.alphas_].index(float(alpha))


def spread(count: int, most: int, kept: set[int]) -> list[int]:
    """At most about `most` of `count` places, the ends and `kept` among them, the others evenly."""
    if count <= most:
        return list(range(count))
    even = {round(i * (count - 1) / (most - 1)) for i in range(most)}
    return sorted(even | kept)


def strength_facts(estimator: Any) -> list[tuple[str, str]]:
    """How the strength was chosen, in words."""
    alphas = estimator.alphas_
    folds = len(estimator.fold_weights_)
    said = f"{estimator.alpha_:.4g} by {folds} folds, of {len(alphas)} from {alphas[0]:.4g} to {alphas[-1]:.4g}"
    return [("alpha", said), *(("grid", words) for words in end_of_grid(estimator))]


def end_of_grid(estimator: Any) -> list[str]:
    """What to do when the least loss is at an end of the grid; nothing where it is within."""
    best, last = place(estimator, estimator.alpha_best_), len(estimator.alphas_) - 1
    if best == last:
        share = float(estimator.alphas_[-1] / estimator.alphas_[0]) / 10
        return [f"the least loss is at the end of the grid: try weaker ones with --eps {share:.2g}"]
    if best == 0:
        return ["the least loss is at the start of the grid, where no feature is used: none of them helps"]
    return []


def hint_of_auto(model: Any) -> str:
    """What those can do who left alpha at its rule of thumb."""
    alpha = model.certificate.alpha
    choose = "--cv 5, or " if model.task in ("binary", "multiclass") else ""
    return f"alpha auto is a rule of thumb, often too strong: try {choose}--alpha {alpha * NEXT_ALPHA:.2g}"


def auto_was_left(settings: ModelSettings, model: Any) -> bool:
    """Whether the strength is the rule of thumb, and a choice of it would change the model."""
    return settings.alpha in (None, "auto") and model.certificate.alpha > 0.0
