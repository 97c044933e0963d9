"""``alpha="auto"``: the strength, the features and the ridge of a model chosen on rows that its fits do not see.

Covers: which point of the frontier an estimator takes, its model, what is kept of the search, and what is said of it.
Does not cover: the search (``dboost.boosting.frontier``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dboost.boosting.fit import Callback, FitResult, FitSettings, Fitting
from dboost.boosting.frontier import (
    INDUCED_LEAST,
    INDUCED_STEP,
    REFITTED_STEP,
    Frontier,
    Point,
    Search,
    falling,
    fitted_to_all,
    judgeable,
    refits,
)
from dboost.estimators.fitting import Prepared
from dboost.penalties import get_penalty

# Where a saved model keeps its frontier.
FRONTIER = "frontier"


def holds_out(settings: FitSettings, alpha: Any) -> bool:
    """Whether a fit has a strength to be chosen on held-out rows."""
    penalty = get_penalty(settings.penalty)
    plain = alpha == "auto" and settings.system is None and settings.update != "forward"
    return plain and not penalty.weightless and penalty.certified


def chooses(parts: Prepared, alpha: Any) -> bool:
    """As `holds_out`, and whether there are rows to choose it by."""
    return holds_out(parts.settings, alpha) and judgeable(parts.plan)


def searched(
    parts: Prepared,
    fitting: Fitting,
    prefer: str | None,
    max_features: int | None,
    start: FitResult | None,
    on_judged: Callback,
    *of_all: Any,
) -> tuple[FitResult, dict[str, Any]]:
    """What a search finds, fitted to all rows, as `fitting` is, and what a manifest holds of how it came about.

    `on_judged` is told of the rounds of the search; `of_all` are the callbacks and `run` of ``fitted_to_all``.
    """
    search = Search(parts.plan, parts.engine, parts.settings, on_judged, prefer, max_features)
    if refits(parts.settings):
        frontier = search.both(falling(fitting.alpha_max(), step=REFITTED_STEP))
    else:
        largest = _largest(fitting)
        alphas = falling(largest)
        if parts.settings.hypotheses is not None:
            alphas = falling(largest, INDUCED_LEAST * largest, INDUCED_STEP)
        frontier = search.path_alone(alphas)
    point = search.chosen()
    result, selected, ridge = fitted_to_all(fitting, parts.engine, search, point, max_features, start, *of_all)
    record: dict[str, Any] = {FRONTIER: table_of(frontier, point)}
    if not ridge:
        return result, record
    record["relaxed"] = {
        "gamma": 0.0,
        "ridge": ridge,
        "stop_reason": result.stop_reason,
        "rounds": result.n_iter,
        "passes": result.passes,
        "selected_from": len(selected.active),
        "selection_gap": selected.gap,
    }
    return replace(result, alpha=point.alpha, alpha_max=fitting.alpha_max()), record


def _largest(fitting: Fitting) -> float:
    """Where a path begins: the least strength that uses no feature, or, where there is none, one that does little."""
    largest = fitting.alpha_max()
    if largest > 0.0:
        return largest
    null, problem = fitting.null(), fitting.problem
    size = null.size if null.size is not None else problem.objective.bound().dual_size(null.norms)
    loss = null.iterate.loss * problem.statistics.weight
    return float(size / (0.2 * loss)) if loss > 0.0 else 0.0


def table_of(frontier: Frontier, taken: Point) -> list[dict[str, Any]]:
    """One record for each point of the frontier, as JSON."""
    found, null = [], frontier.null_loss
    rows = frontier.envelope()
    if not any(point is taken for point in rows):
        rows = sorted([*rows, taken], key=lambda point: point.features)
    for point in rows:
        loss = frontier.mean(point.loss)
        score = 1.0 - (frontier.mean(point.error) if frontier.labels else loss / null if null > 0.0 else 0.0)
        error = frontier.error_of(point.error if frontier.labels else point.loss / (null if null > 0.0 else 1.0))
        found.append(
            {
                "features": point.features,
                "score": score,
                "se_score": error,
                "loss": loss,
                "se_loss": frontier.error_of(point.loss),
                "alpha": point.alpha,
                "ridge": point.ridge,
                "chosen": point is taken,
            }
        )
    return found
