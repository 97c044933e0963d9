"""Paths and cross-validations of tables as they come: columns of any unit, constant ones, few rows, rare classes.

Every choice is drawn from the seed alone. What is sought is an error that is not the library's own, a warning of
NumPy's, and numbers that are none: whether certificates are true is asked of single fits (``judge``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.fuzz.judge import Outcome, tried

Random = np.random.Generator
STRENGTHS, FOLDS = (1, 3, 10, 50), (2, 3, 5, 10)
"""Of a path and of a cross-validation."""
_PENALTIES = ("l1", "l1/l2", "l1/linf", "l1/l2+l1")


def run(seed: int) -> Outcome:
    """Draw a table and a call, and say how the call ended."""
    import dboost

    rng = np.random.Generator(np.random.Philox(key=[seed, 55]))
    words: list[str] = []
    X = table(rng, words)
    name, call = _call(rng, X, words)
    started = time.perf_counter()

    def outcome(kind: str, detail: str, note: str = "") -> Outcome:
        return Outcome(seed, kind, f"{name}: {detail}", f"{', '.join(words)}; {note}", time.perf_counter() - started)

    found: list[Any] = []
    # what a metric of scikit-learn says of the rows that it is asked about is its own
    ended, said = tried(lambda: found.append(call(dboost)), outcome, not_of="sklearn")
    if ended is not None:
        return ended
    wrong = no_numbers(found[0], X)
    if wrong:
        return outcome("foreign error", f"{wrong}: no number", str(wrong))
    return outcome("fitted, with a warning" if said else "fitted", "")


def table(rng: Random, words: list[str]) -> NDArray[np.float64]:
    """A table whose columns differ in kind and unit."""
    m, n = int(rng.integers(3, 13) if rng.random() < 0.25 else rng.integers(13, 90)), int(rng.integers(1, 11))
    columns = []
    for _ in range(n):
        kind = rng.integers(5)
        column = (
            rng.standard_normal(m), rng.integers(0, 2, m), rng.poisson(2.0, m), np.exp(2.0 * rng.standard_normal(m)),
            np.full(m, rng.integers(0, 3)),
        )[kind].astype(float)  # fmt: skip
        columns.append(column + (rng.normal() * 10.0 if kind == 0 else 0.0))
    X = np.column_stack(columns)
    if rng.random() < 0.8:
        X *= 10.0 ** rng.uniform(-6, 6, n)
    if n > 1 and rng.random() < 0.2:
        X[:, 0] = X[:, 1]
    words.append(f"{m} x {n}")
    return X


def _labels(rng: Random, X: NDArray[np.float64], classes: int) -> NDArray[Any]:
    """Codes of classes that depend on the columns, of which some may be rare."""
    peak = np.abs(X).max(axis=0)
    F = (X / np.where(peak > 0, peak, 1.0)) @ rng.standard_normal((X.shape[1], classes)) * rng.choice([0.0, 1.0, 5.0])
    F += rng.gumbel(size=F.shape)
    F[:, 0] += rng.choice([0.0, 0.0, 3.0])
    codes = F.argmax(axis=1)
    codes[rng.permutation(len(codes))[:classes]] = np.arange(classes)[: len(codes)]
    found: NDArray[Any] = np.array(["a", "b", "c", "d"])[codes]
    return found


def _call(rng: Random, X: NDArray[np.float64], words: list[str]) -> tuple[str, Callable[[Any], Any]]:
    """What is called on the table, by name."""
    m = len(X)
    kind = str(rng.choice(["classifier", "classifier", "classifier", "regressor", "regressor", "tasks", "targets"]))
    classes = int(rng.choice([2, 2, 3, 4]))
    y: NDArray[Any] = _labels(rng, X, classes)
    if kind != "classifier":
        y = np.where(y == "a", 0.0, 1.0)
    if kind == "regressor":
        y = (y + rng.standard_normal(m) * rng.choice([0.0, 1.0])) * 10.0 ** rng.uniform(-6, 6)
    if kind in ("tasks", "targets"):
        y = np.column_stack([y, rng.random(m) < 0.5])
    weight = rng.integers(0, 3, m).astype(float) if rng.random() < 0.2 else None
    single: dict[str, Any] = {"penalty": str(rng.choice(_PENALTIES)), "standardize": bool(rng.random() < 0.5)}
    single["fit_intercept"] = bool(rng.random() < 0.85)
    single["max_rounds"] = 60
    grid = {"n_alphas": int(rng.choice(STRENGTHS)), "eps": float(rng.choice([0.5, 1e-1, 1e-2, 1e-3]))}
    cv = int(rng.choice(FOLDS))
    name = {
        "classifier": "BoostedClassifier",
        "regressor": "BoostedRegressor",
        "tasks": "MultiTaskBoostedClassifier",
        "targets": "MultiTaskBoostedRegressor",
    }[kind]
    words += [f"{name}({single})", f"{grid}", f"cv={cv}", f"{classes} classes", "weights" if weight is not None else ""]
    given = {"sample_weight": weight}
    way = str(rng.choice(["CV", "CV", "CV", "relax", "scoring", "path", "cross_validated", "stability", "halving"]))
    more: dict[str, Any] = {"rule": str(rng.choice(["1se", "best"]))}
    if way == "relax":
        more["relax"] = True
    if way == "scoring":
        scores = {"classifier": ["neg_log_loss", "accuracy", "balanced_accuracy", "neg_brier_score"]}
        more["scoring"] = str(rng.choice(scores.get(kind, ["loss"])))
    seed = int(rng.integers(100))

    def call(dboost: Any) -> Any:
        one = getattr(dboost, name)(**single)
        if way == "path":
            return dboost.regularization_path(X, y, estimator=one, **grid, **given)
        if way == "cross_validated":
            return dboost.cross_validated(X, y, estimator=one, cv=cv, **grid, **given, **more)
        if way == "stability" and kind != "targets":
            return dboost.StabilitySelection(one, n_pairs=2, random_state=seed, **grid).fit(X, y, **given)
        if way == "halving":
            grids = {"alpha": [1.0, 0.1, 0.01]}
            return dboost.successive_halving(X, y, estimator=one, param_grid=grids, cv=cv, min_rows=10, **given)
        return getattr(dboost, f"{name}CV")(**single, **grid, **more, cv=cv, random_state=seed).fit(X, y, **given)

    return f"{name}, {way}", call


def no_numbers(found: Any, X: NDArray[np.float64]) -> str:
    """The name of what of a fitted object holds a number that is none; empty where nothing does."""
    named = {
        name: getattr(found, name, None)
        for name in ("coef_", "intercept_", "alphas_", "frequencies_", "coefs", "intercepts", "alpha_", "best_score_")
    }
    if getattr(found, "gammas_", None) is None:
        # what has no finite refit is nan there, and said so
        named["fold_losses_"] = getattr(found, "fold_losses_", None)
    for way in ("predict_proba", "predict"):
        if hasattr(found, way):
            named[way] = getattr(found, way)(X)
    for name, value in named.items():
        if value is not None and np.asarray(value).dtype.kind == "f" and not np.all(np.isfinite(value)):
            return name
    return ""
