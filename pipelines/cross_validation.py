"""What a person sees of the choice of a strength.

Covers: the table of strengths, what to do when the best strength is the last one tried, how features were chosen where
alpha was left to the fit. Does not cover: the fits (``training``).
"""

from __future__ import annotations

import math
from typing import Any

from .report import Grid

# Rows of the table of strengths; between its ends, the best and the chosen one, strengths are left out evenly.
MOST_ROWS = 12


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


def choice_facts(estimator: Any) -> list[tuple[str, str]]:
    """How features were chosen where nobody gave a strength, in words; nothing for others."""
    frontier = list(getattr(estimator, "frontier_", ()))
    taken = [row for row in frontier if row["chosen"]]
    if not taken:
        return []
    best = max(frontier, key=lambda row: row["score"])
    said = [
        f"{row['score']:.3g} +- {row['se_score']:.2g} with {row['features']:,.0f} features" for row in (taken[0], best)
    ]
    held_out = f"held-out score {said[0]}" + (f", best {said[1]}" if best is not taken[0] else ", the best")
    return [("chosen", f"{held_out}; --prefer few, --prefer accurate or --max-features take another")]
