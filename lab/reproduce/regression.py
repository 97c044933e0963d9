"""The regressions of Fig. 5: products of raw features, eps-insensitive loss, five learners on several splits.

Covers: the learners (``METHODS``), ``study_tables``, which measures them on random splits.
Does not cover: claims and figures (``regression_page``), data.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dboost
from lab.reproduce.base import Context
from lab.reproduce.measure import Staged, followed
from lab.reproduce.regression_parts import (
    Array,
    Split,
    Study,
    booster,
    choose_on_path,
    errors,
    fold_rows,
    quietly,
    split_of,
)
from lab.reproduce.rows import Rows

ALL_DEGREES = "classical AdaBoost, all degrees"
BOOSTERS = ("l1 boosting", "classical AdaBoost", "smooth-l1 boosting", ALL_DEGREES)
LINEAR = ("l1 least squares", "l2 hinge")
METHODS = (*BOOSTERS, *LINEAR)


# ---- the learners --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """What one learner did on one split: its rounds, and one line of results per model."""

    curve: Rows
    results: tuple[dict[str, Any], ...]


def l1_boosting(study: Study, split: Split) -> Measured:
    """Totally corrective boosting, at most 30 new hypotheses a round; the strength by cross-validation."""
    began = time.perf_counter()
    trial = booster(study, penalty="l1", rows_per_round=30, tol=1e-2, max_rounds=40)
    choice = choose_on_path(trial, split.X, split.y, study.ratios, study.folds, seed=split.number)
    choosing = time.perf_counter() - began
    curve, results = Rows(), []
    for rule, place in (("", choice.best), (" (one-se)", choice.sparse)):
        name = f"l1 boosting{rule}"
        staged = Staged(split.judge, split=split.number, method=name)
        model = booster(
            study, penalty="l1", alpha=float(choice.strengths[place]), rows_per_round=30, tol=1e-3, max_rounds=60
        )
        followed(model, staged, split.X, split.y)
        entered = [int(record["rows_in"]) for record in model.history_]
        results.append(
            result(study, split, name, model, staged.rows[-1]["seconds"], choosing)
            | {
                "entered": sum(entered),
                "induction_ended": max((i + 1 for i, count in enumerate(entered) if count), default=0),
                "gap": float(model.duality_gap_),
                "subtrees": sum(int(record.get("subtrees") or 0) for record in model.history_),
                "degree": degree(model),
                "at_edge": choice.at_edge,
            }
        )
        curve += staged.rows
    return Measured(curve, tuple(results))


def degree(model: Any) -> int:
    """Largest degree of the monomials a model holds."""
    return max((len(key) for key in model.model_.hypotheses.keys), default=0)


def looks(rounds: int) -> int:
    """Every how many rounds a long fit is measured; a divisor of the round numbers used here."""
    return 50 if rounds >= 500 else 10 if rounds >= 100 else 1


def classical(study: Study, split: Split) -> Measured:
    """Forward-greedy AdaBoost: the best hypothesis of each round takes one step and is never looked at again."""
    return _forward(study, split, "classical AdaBoost", study.forward_rounds, study.bounded)


def classical_unbounded(study: Study, split: Split) -> Measured:
    """The same over products of every degree, for fewer rounds."""
    return _forward(study, split, ALL_DEGREES, study.unbounded_rounds, study.family)


def _forward(study: Study, split: Split, name: str, rounds: int, family: Any) -> Measured:
    staged = Staged(split.judge, every=looks(rounds), split=split.number, method=name)
    model = booster(study, update="forward", penalty="none", max_rounds=rounds).set_params(hypotheses=family)
    followed(model, staged, split.X, split.y)
    line = result(study, split, name, model, staged.rows[-1]["seconds"], 0.0) | {"degree": degree(model)}
    return Measured(staged.rows, (line,))


def smooth_boosting(study: Study, split: Split) -> Measured:
    """One hypothesis a round, then all weights again, under the smooth l1 penalty.

    The strength with the lowest error in any round on a fifth of the training rows is taken.
    """
    began = time.perf_counter()
    held_out = fold_rows(len(split.y), study.folds, seed=split.number)[0]
    kept = np.setdiff1d(np.arange(len(split.y)), held_out)
    part = Split(split.number, split.X[kept], split.y[kept], split.X[held_out], split.y[held_out])
    lowest = {}
    for strength in study.smooth:
        trial = Staged(part.judge, every=5)
        followed(_smooth(study, strength, study.trial_rounds), trial, part.X, part.y)
        lowest[strength] = float(np.min(trial.rows.column("rmse")))
    choosing = time.perf_counter() - began
    chosen = min(lowest, key=lambda strength: lowest[strength])
    staged = Staged(split.judge, every=looks(study.smooth_rounds), split=split.number, method="smooth-l1 boosting")
    model = _smooth(study, chosen, study.smooth_rounds)
    followed(model, staged, split.X, split.y)
    line = result(study, split, "smooth-l1 boosting", model, staged.rows[-1]["seconds"], choosing)
    return Measured(staged.rows, (line,))


def _smooth(study: Study, strength: float, rounds: int) -> Any:
    return booster(study, penalty="smooth_l1", alpha=strength, rows_per_round=1, tol=1e-3, max_rounds=rounds)


def least_squares(study: Study, split: Split) -> Measured:
    """l1-penalised least squares on the raw columns, brought to unit deviation."""
    began = time.perf_counter()
    X, X_test = standardised(split.X, split.X_test)
    model = dboost.BoostedRegressor(loss="squared", penalty="l1", tol=1e-3)
    choice = choose_on_path(model, X, split.y, study.linear, study.folds, seed=split.number)
    choosing = time.perf_counter() - began
    began = time.perf_counter()
    quietly(model.set_params(alpha=float(choice.strengths[choice.best])).fit, X, split.y)
    seconds = time.perf_counter() - began
    on_scale = replace(split, X_test=X_test)
    line = result(study, on_scale, "l1 least squares", model, seconds, choosing) | {"gap": float(model.duality_gap_)}
    return Measured(Rows(), (line,))


def hinge(study: Study, split: Split) -> Measured:
    """l2-regularised eps-insensitive hinge on the raw columns: scikit-learn's ``LinearSVR``, the target centred."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVR

    X, X_test = standardised(split.X, split.X_test)
    centre = float(np.mean(split.y))

    def fitted(margin: float, rows: NDArray[np.int64]) -> Any:
        model = LinearSVR(epsilon=study.epsilon, C=margin / len(rows), max_iter=20_000, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(X[rows], split.y[rows] - centre)

    began = time.perf_counter()
    found = np.zeros((study.folds, len(study.margins)))
    for fold, held_out in enumerate(fold_rows(len(split.y), study.folds, seed=split.number)):
        kept = np.setdiff1d(np.arange(len(split.y)), held_out)
        for place, margin in enumerate(study.margins):
            predicted = fitted(margin, kept).predict(X[held_out]) + centre
            found[fold, place] = np.mean((predicted - split.y[held_out]) ** 2)
    choosing = time.perf_counter() - began
    began = time.perf_counter()
    best = study.margins[int(np.argmin(found.mean(axis=0)))]
    model = fitted(best, np.arange(len(split.y)))
    line = {
        "split": split.number,
        "method": "l2 hinge",
        **errors(model.predict(X_test) + centre, split.y_test),
        "features": int(np.count_nonzero(model.coef_)),
        "seconds": time.perf_counter() - began,
        "choosing": choosing,
        "strength": 1.0 / best,
    }
    return Measured(Rows(), (line,))


def standardised(X: Array, X_test: Array) -> tuple[Array, Array]:
    """Columns with mean 0 and deviation 1 on the training rows."""
    deviation = X.std(axis=0)
    scale = np.where(deviation > 0.0, deviation, 1.0)
    return (X - X.mean(axis=0)) / scale, (X_test - X.mean(axis=0)) / scale


def result(study: Study, split: Split, name: str, model: Any, seconds: float, choosing: float) -> dict[str, Any]:
    """One line of results."""
    return {
        "split": split.number,
        "method": name,
        **split.judge(model),
        "features": len(model.active_features_),
        "seconds": float(seconds),
        "choosing": choosing,
        "strength": float(model.alpha_),
        "rounds": int(model.n_iter_),
        "stop": str(model.stop_reason_),
    }


LEARNERS: dict[str, Callable[[Study, Split], Measured]] = {
    "l1 boosting": l1_boosting,
    "classical AdaBoost": classical,
    ALL_DEGREES: classical_unbounded,
    "smooth-l1 boosting": smooth_boosting,
    "l1 least squares": least_squares,
    "l2 hinge": hinge,
}


def warm(study: Study) -> None:
    """Compile what the learners call, so that none of them is charged with it."""
    X, y, _ = study.table()
    y = y / study.unit
    few = np.random.default_rng(0).permutation(len(y))[:120]
    small = Split(0, X[few], y[few], X[few[:20]], y[few[:20]])
    short = replace(
        study, ratios=(0.5,), smooth=study.smooth[:1], margins=(1.0,), folds=2,
        forward_rounds=3, unbounded_rounds=3, smooth_rounds=3, trial_rounds=3,
    )  # fmt: skip
    for learner in LEARNERS.values():
        learner(short, small)


def study_tables(study: Study, context: Context) -> dict[str, Rows]:
    """Run every learner on every split.

    Returns
    -------
    dict
        ``curves``: one record per measured round of a booster. ``results``: one per split and model.
    """
    with context.stage("compiling"):
        warm(study)
    curves, results = Rows(), Rows()
    for number in range(study.splits):
        split = split_of(study, number)
        for name, learner in LEARNERS.items():
            with context.stage(name):
                found = learner(study, split)
            curves += found.curve
            results += Rows(found.results)
            for line in found.results:
                context.say(
                    f"split {number}: {line['method']}: RMSE {line['rmse']:.3f}, MAE {line['mae']:.3f}, "
                    f"{line['features']} features, {line['seconds']:.2f} s"
                )
    return {"curves": curves, "results": results}
