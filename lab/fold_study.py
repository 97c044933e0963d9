"""Whether folds and halves that are drawn by default are unbiased: on rows of few values, beside scikit-learn's.

Run with ``python -m lab fold-study``. Each draw is a data set of yes/no columns, groups of passengers, short texts or
ratings; a path is cross-validated over the default folds and over those of ``StratifiedKFold`` (of numbers ``KFold``),
and judged on new rows. Shown are the mean loss over the folds at a weak strength by both, how far they are apart in
standard errors of the paired difference, and how often each chooses the empty model. Of halves the frequency of columns
of noise is shown, by default and over halves of ``StratifiedKFold(2)``. Exit code 1 where they differ by more than four
standard errors, or the empty model is chosen where scikit-learn's folds choose features.

Covers: bias. Does not cover: evenness, which is exact (``tests/test_draws.py``).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold

import dboost
from lab import tables

Array = NDArray[np.float64]
Rows = tuple[Array, NDArray[Any]]

_DRAWS = 200
_FOLDS = 5
_NEW_ROWS = 4000
# Standard errors of the mean difference; of five kinds one in three thousand studies would be further off by chance.
_FAR = 4.0
COLUMNS = (
    "data", "draws", "ours", "scikit-learn's", "difference", "standard error", "apart", "empty", "theirs", "new rows",
)  # fmt: skip


def yes_no(rng: np.random.Generator, m: int) -> Rows:
    """Five yes/no columns, as of a survey: 32 different rows."""
    X = rng.integers(0, 2, (m, 5)).astype(float)
    return X, rng.random(m) < 1 / (1 + np.exp(-(X - 0.5) @ np.array([1.5, 0.8, 0.0, -0.8, -1.5])))


def passengers(rng: np.random.Generator, m: int) -> Rows:
    """Sex, class, port, child: about 33 different rows."""
    sex, child = rng.random(m) < 0.35, rng.random(m) < 0.1
    kind, port = rng.choice(3, m, p=[0.24, 0.21, 0.55]), rng.choice(3, m, p=[0.72, 0.19, 0.09])
    score = -1.5 + 2.6 * sex + np.array([1.0, 0.3, -0.6])[kind] + 0.4 * (port == 1) + child
    X = np.column_stack([sex, np.eye(3)[kind], np.eye(3)[port], child]).astype(float)
    return X, rng.random(m) < 1 / (1 + np.exp(-score))


def texts(rng: np.random.Generator, m: int) -> Rows:
    """Texts of three words out of twelve, in three topics, of which one is rare."""
    topic = rng.choice(3, m, p=[0.55, 0.35, 0.1])
    likely = np.full((3, 12), 1.0)
    likely[np.arange(3), np.arange(3)] = 6.0
    words = np.array([rng.choice(12, 3, replace=False, p=likely[t] / likely[t].sum()) for t in topic])
    X = np.zeros((m, 12))
    np.put_along_axis(X, words, 1.0, axis=1)
    return X, topic


def ratings(rng: np.random.Generator, m: int) -> Rows:
    """Stars from one to five, by four yes/no columns: targets of few values, which rows share."""
    X = rng.integers(0, 2, (m, 4)).astype(float)
    return X, np.clip(np.round(3.0 + X @ np.array([1.0, 0.5, 0.0, -1.0]) + rng.normal(size=m)), 1.0, 5.0)


@dataclass(frozen=True)
class Kind:
    """A kind of data, and how many rows a draw has."""

    name: str
    rows: Callable[[np.random.Generator, int], Rows]
    m: int
    estimator: Any
    splitter: Any


KINDS = (
    Kind("yes/no", yes_no, 300, dboost.BoostedClassifierCV, StratifiedKFold),
    Kind("passengers", passengers, 300, dboost.BoostedClassifierCV, StratifiedKFold),
    Kind("short texts", texts, 200, dboost.BoostedClassifierCV, StratifiedKFold),
    Kind("ratings", ratings, 200, dboost.BoostedRegressorCV, KFold),
)


def compared(kind: Kind, draws: int) -> dict[str, Any]:
    """Both cross-validations of some draws of one kind, as a row of the table."""
    losses, empty, new = np.empty((draws, 2)), np.zeros((draws, 2), np.bool_), np.empty(draws)
    for draw in range(draws):
        rng = np.random.default_rng([draw, kind.m])
        X, y = kind.rows(rng, kind.m)
        for place, cv in enumerate((_FOLDS, kind.splitter(_FOLDS, shuffle=True, random_state=draw))):
            given = {"cv": cv, "penalty": "l1", "n_alphas": 6, "eps": 0.01, "tol": 1e-3, "rule": "best"}
            model = kind.estimator(random_state=draw, **given).fit(X, y)
            # at the same weak strength for both: which one is best is chosen by the very losses
            losses[draw, place] = np.average(model.fold_losses_[:, 3], weights=model.fold_weights_)
            empty[draw, place] = len(model.active_features_) == 0
        single = model.path_.estimator(3)
        new[draw] = _loss(single, *kind.rows(rng, _NEW_ROWS))
    apart = losses[:, 0] - losses[:, 1]
    return _row(kind.name, losses, apart, new.mean()) | {
        "empty": int(np.sum(empty[:, 0] & ~empty[:, 1])), "theirs": int(np.sum(empty[:, 1])),
    }  # fmt: skip


def halves(draws: int) -> dict[str, Any]:
    """How often halves use columns of noise, ours and those of scikit-learn, as a row of the table."""
    used = np.empty((draws, 2))
    for draw in range(draws):
        rng = np.random.default_rng([draw, 7])
        X, y = rng.integers(0, 2, (200, 6)).astype(float), rng.integers(0, 2, 200)
        ours = dboost.StabilitySelection(
            dboost.BoostedClassifier(penalty="l1", tol=1e-3), n_pairs=2, alphas=[0.03], random_state=draw
        ).fit(X, y)
        used[draw, 0] = ours.frequencies_.mean()
        fits = [
            dboost.BoostedClassifier(penalty="l1", tol=1e-3, alpha=0.03).fit(X[half], y[half])
            for pair in range(2)
            for half, _ in StratifiedKFold(2, shuffle=True, random_state=2 * draw + pair).split(X, y)
        ]
        used[draw, 1] = np.mean([np.any(fit.coef_ != 0.0, axis=0) for fit in fits])
    return _row("halves: columns of noise used", used, used[:, 0] - used[:, 1], None)


def _row(name: str, both: Array, apart: Array, new: float | None) -> dict[str, Any]:
    error = float(apart.std(ddof=1) / np.sqrt(len(apart)))
    mean = [float(value) for value in both.mean(axis=0)]
    difference = float(apart.mean())
    return {
        "data": name, "draws": len(apart), "ours": mean[0], "scikit-learn's": mean[1], "difference": difference,
        "standard error": error, "apart": difference / max(error, 1e-300), "new rows": new,
    }  # fmt: skip


def _loss(model: Any, X: Array, y: NDArray[Any]) -> float:
    if not hasattr(model, "predict_proba"):
        return float(0.5 * np.mean((model.predict(X) - y) ** 2))
    proba = model.predict_proba(X)
    return float(-np.mean(np.log(proba[np.arange(len(y)), np.searchsorted(model.classes_, y)])))


def study(draws: int) -> list[dict[str, Any]]:
    """All rows of the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [*(compared(kind, draws) for kind in KINDS), halves(draws)]


def biased(row: dict[str, Any]) -> bool:
    """Whether a row of the table shows a bias."""
    return bool(abs(row["apart"]) > _FAR or row.get("empty", 0) > 0)


def main(arguments: Sequence[str]) -> int:
    """Run the study; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lab fold-study", description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=_DRAWS, help=f"data sets of each kind (default {_DRAWS})")
    rows = study(parser.parse_args(list(arguments)).draws)
    print(tables.markdown(rows, COLUMNS))
    return int(any(biased(row) for row in rows))
