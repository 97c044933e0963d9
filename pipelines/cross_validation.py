"""What a person sees of the choice of a strength.

Covers: the table of strengths, what to do when the best strength is the last one tried, the hint for those who left
alpha at its rule of thumb. Does not cover: the fits (``training``).
"""

from __future__ import annotations

import math
from typing import Any

from .fit_settings import ModelSettings
from .report import Grid

# Rows of the table of strengths; between its ends, the best and the chosen one, strengths are left out evenly.
MOST_ROWS = 12
# The step down from alpha "auto" that the hint offers. Where cross-validation was run on text, it chose 5 to 20 times
# less than "auto".
NEXT_ALPHA = 0.2


def strengths_table(estimator: Any) -> Grid:
    """Strengths with their loss, error and score on held-out rows, the chosen one marked."""
    table = list(estimator.cv_results_)
    marks = ["" for _ in table]
    least = f"{_sought(estimator)} {_judged(estimator)}"
    best, chosen = place(estimator, estimator.alpha_best_), place(estimator, estimator.alpha_)
    marks[best] = least
    marks[chosen] = "chosen" if chosen != best else f"{least}, chosen"
    rows = [
        (
            f"{row['alpha']:.4g}",
            f"{row['mean_loss']:.4f}",
            f"{row['se_loss']:.4f}",
            _share(row["mean_error"]),
            _share(row["se_error"]),
            *(f"{row[name]:.4f}" for name in ("mean_test_score", "se_test_score") if name in row),
            f"{row['active_rows']:,}",
            mark,
        )
        for row, mark in zip(table, marks, strict=True)
    ]
    shown = spread(len(rows), MOST_ROWS, {best, chosen})
    score = ("score", "+-") if _scored(estimator) else ()
    headings = ("alpha", "loss", "+-", "error", "+-", *score, "features", "")
    return Grid(headings, [rows[t] for t in shown], left=frozenset({len(headings) - 1}))


def _scored(estimator: Any) -> bool:
    """Whether a scorer chose, of which more is better."""
    return hasattr(estimator, "fold_scores_")


def _sought(estimator: Any) -> str:
    return "greatest" if _scored(estimator) else "least"


def _judged(estimator: Any) -> str:
    return "score" if _scored(estimator) else "loss"


def _share(value: float) -> str:
    """A share of wrong labels; a regression has none."""
    return "" if math.isnan(value) else f"{100 * value:.1f} %"


def path_table(path: Any) -> Grid:
    """The models of a path."""
    rows = [
        (f"{r['alpha']:.4g}", f"{r['active_rows']:,}", f"{r['entries']:,}", f"{r['objective']:.6f}", f"{r['gap']:.1e}")
        for r in path.table
    ]
    shown = spread(len(rows), MOST_ROWS, set())
    return Grid(("alpha", "features", "weights", "objective", "certified gap"), [rows[t] for t in shown])


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
    if len(alphas) == 1:
        return [("judged", f"by {folds} folds")]
    said = f"{estimator.alpha_:.4g} by {folds} folds, of {len(alphas)} from {alphas[0]:.4g} to {alphas[-1]:.4g}"
    return [("alpha", said), *(("grid", words) for words in end_of_grid(estimator))]


def end_of_grid(estimator: Any) -> list[str]:
    """What to do when the best strength is at an end of the grid; nothing where it is within."""
    least = f"{_sought(estimator)} {_judged(estimator)}"
    best, last = place(estimator, estimator.alpha_best_), len(estimator.alphas_) - 1
    if last == 0:
        return []
    if best == last:
        share = float(estimator.alphas_[-1] / estimator.alphas_[0]) / 10
        return [f"the {least} is at the end of the grid: try weaker ones with --eps {share:.2g}"]
    if best == 0:
        return [f"the {least} is at the start of the grid, where no feature is used: none of them helps"]
    return []


def hint_of_auto(model: Any) -> str:
    """What those can do who left alpha at its rule of thumb."""
    alpha = model.certificate.alpha
    return f"alpha auto is a rule of thumb, often too strong: try --cv 5, or --alpha {alpha * NEXT_ALPHA:.2g}"


def auto_was_left(settings: ModelSettings, model: Any) -> bool:
    """Whether the strength is the rule of thumb, and a choice of it would change the model."""
    return settings.alpha in (None, "auto") and model.certificate.alpha > 0.0
