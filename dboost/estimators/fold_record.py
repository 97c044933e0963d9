"""What the folds of a cross-validation say of each strength, and which strength that chooses.

Covers: the record that a model is saved with, the attributes made from it, the rules of choice.
Does not cover: how it came about (``cross_validated``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.cross_validation import FoldScores
from dboost.estimators.history import Table
from dboost.model.fitted import Model

Array = NDArray[np.float64]


def recorded(models: Sequence[Model], scores: FoldScores, scoring: str, gammas: Sequence[float] = ()) -> dict[str, Any]:
    """What cross-validation found, as JSON.

    `models`: Of all rows, one for each strength. `scoring`: The name of what judges the strengths. `gammas`: The shares
    of each model that were judged, one after the other; empty for the model alone.
    """
    shares = max(1, len(gammas))
    loss, se_loss = _mean_and_error(scores.loss, scores.weight)
    error, se_error = _mean_and_error(scores.error, scores.weight)
    table = [
        {
            "alpha": float(models[t // shares].certificate.alpha),
            **({"gamma": float(gammas[t % shares])} if gammas else {}),
            "mean_loss": float(loss[t]),
            "se_loss": float(se_loss[t]),
            "mean_error": float(error[t]),
            "se_error": float(se_error[t]),
            "active_rows": int(models[t // shares].W.shape[0]),
        }
        for t in range(len(models) * shares)
    ]
    names = ["loss", "error", "gap", "weight", "active_rows"]
    if np.any(np.isfinite(scores.score)):
        names.append("score")
        for row, more in zip(table, _of_scorer(scores.score), strict=True):
            row |= more
    found: dict[str, Any] = {"table": table, "scoring": scoring}
    if gammas:
        found["gammas"] = list(gammas)
    return found | {name: getattr(scores, name).tolist() for name in names}


def attributes(record: dict[str, Any]) -> dict[str, Any]:
    """The fitted attributes that say what the folds say."""
    best = choose(record)
    alphas = np.array([r["alpha"] for r in record["table"]])
    gammas = np.array(record.get("gammas", []))

    def of_folds(name: str, kind: Any = np.float64) -> NDArray[Any]:
        values = np.array(record[name], dtype=kind)
        return values.reshape(len(values), -1, len(gammas)) if len(gammas) else values

    found = {
        "alphas_": alphas[:: max(1, len(gammas))],
        "alpha_best_": float(alphas[best["best"]]),
        "alpha_1se_": float(alphas[best["1se"]]),
        "cv_results_": Table(record["table"]),
        "fold_losses_": of_folds("loss"),
        "fold_errors_": of_folds("error"),
        "fold_gaps_": of_folds("gap"),
        "fold_weights_": np.array(record["weight"]),
        "fold_active_rows_": of_folds("active_rows", np.int64),
    }
    if len(gammas):
        found["gammas_"] = gammas
        found["gamma_best_"], found["gamma_1se_"] = (
            float(gammas[best[rule] % len(gammas)]) for rule in ("best", "1se")
        )
    if "score" in record:
        found["fold_scores_"] = of_folds("score")
        found["best_score_"] = float(record["table"][best["best"]]["mean_test_score"])
    return found


def choose(record: dict[str, Any]) -> dict[str, int]:
    """Place in the table that each rule chooses; ties go to the larger strength, and then to the larger share."""
    table, scoring = record["table"], record["scoring"]
    if "score" in record:
        # a greater score is better, a lesser loss
        mean = -np.array([r["mean_test_score"] for r in table])
        error = np.array([r["se_test_score"] for r in table])
    else:
        mean = np.array([r[f"mean_{scoring}"] for r in table])
        error = np.array([r[f"se_{scoring}"] for r in table])
    # what some fold does not know is not chosen
    mean = np.where(np.isnan(mean), np.inf, mean)
    best = int(np.argmin(mean))
    return {"best": best, "1se": int(np.argmax(mean <= mean[best] + error[best]))}


def _of_scorer(score: Array) -> list[dict[str, Any]]:
    """What a scorer says of each strength, under the names of ``GridSearchCV``: every fold counts as much."""
    mean, error = _mean_and_error(score, np.ones(len(score)))
    spread = score.std(axis=0)
    known = np.where(np.isnan(mean), -np.inf, mean)
    rank = 1 + np.sum(known[None, :] > known[:, None], axis=1)
    return [
        {
            "mean_test_score": float(mean[t]),
            "std_test_score": float(spread[t]),
            "se_test_score": float(error[t]),
            "rank_test_score": int(rank[t]),
        }
        for t in range(len(mean))
    ]


def _mean_and_error(values: Array, weight: Array) -> tuple[Array, Array]:
    """Mean over folds (F, T) by weight, and its standard error."""
    share = (weight / weight.sum())[:, None]
    mean = np.sum(share * values, axis=0)
    spread = np.sum(share * (values - mean) ** 2, axis=0)
    return mean, np.sqrt(spread / (values.shape[0] - 1))
