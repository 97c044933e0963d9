"""A scorer asked about the held-out rows of each fold, at each strength.

Covers: ``HeldOut``, which brings to the driver what a scorer needs of the rows. Does not cover: the fits
(``dboost.boosting.cross_validation``), or what a scorer is (``scoring``).

Of data in memory the rows themselves are handed to the scorer, as ``sklearn.model_selection.cross_val_score`` does. Of
collections of Dask and of data on disk the scores X W + b of the held-out rows come from where the partitions are, and
only predictions can be asked of them. One fold is scored at a time, so that the driver holds, beside what a fit takes,
the held-out rows of one fold: their labels and weights, and a copy of their features or, for as many strengths as take
64 MB and for one at least, twice their scores of 8 k bytes a row.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from dboost.boosting.fit import FitResult, Fitting
from dboost.data.labels.labels import check_weight
from dboost.data.planned import Plan
from dboost.engine.base import Engine
from dboost.errors import DataError
from dboost.estimators.fitting import Prepared, class_places, model_of
from dboost.estimators.predicting import Margins, kind_of
from dboost.estimators.scoring import Scorer, check_rows, check_scorer, labels_of, needs_classes
from dboost.passes import Point
from dboost.passes.folds import Folds, Left
from dboost.passes.held_out import held_out_margins, held_out_rows, weight_facts

Array = NDArray[np.float64]

# Bytes of the scores of the held-out rows, and of the models, that come and go in one pass.
MARGIN_BYTES = 64_000_000
MODEL_BYTES = 4_000_000
_HINT = "use another scoring="


class HeldOut:
    """Asks a scorer about the rows of each fold of the input X; see ``dboost.boosting.cross_validation.HeldOutScorer``.

    Copies of `template`, an unfitted estimator of one strength, are handed to the scorer. One that cannot be asked
    about such models is a UsageError.
    """

    def __init__(self, scorer: Scorer, template: Any, parts: Prepared, X: Any) -> None:
        self._scorer, self._template, self._parts = scorer, template, parts
        coder = parts.plan.coder
        self._given = coder.factors, coder.exponent
        self._weighted = False
        check_scorer(scorer, template, parts)
        self._kind = kind_of(X)
        self._X: Any = None
        if self._kind in ("matrix", "table"):
            self._X = X.tocsr() if hasattr(X, "tocsr") else X if self._kind == "table" else np.asarray(X)
            weight = check_weight(parts.weight, len(X) if not hasattr(X, "shape") else X.shape[0])
            # the plan has left out the rows of weight zero
            self._places = np.flatnonzero(weight > 0.0)
        self._turn = threading.Lock()

    def begin(self, engine: Engine, folds: Folds, masses: dict[str, Any]) -> None:
        """Look at the weights and labels of all rows, and the classes of each fold; refuse what has no score."""
        facts = engine.map_reduce(weight_facts, *self._given, name="weights").peak
        self._weighted = bool(facts["weights"][0] > 0.0)
        check_rows(self._scorer, self._weighted, bool(facts["missing"][0] > 0.0))
        lacking = np.argwhere((masses["mass"] <= 0.0) & (masses["rows"][:, None] > 0.0)) if "mass" in masses else ()
        for number in dict.fromkeys(int(fold) for fold, _ in lacking):
            self._check_classes(number, folds, masses["mass"])

    def _check_classes(self, number: int, folds: Folds, mass: Array) -> None:
        """Refuse a fold that lacks classes, where the scorer needs all of them."""
        places = class_places(self._parts)
        present = np.flatnonzero(mass[number] > 0.0)
        if not needs_classes(self._scorer, self._template, self._parts, places[present].tolist()):
            return
        plan = self._parts.plan
        assert plan.classes is not None and plan.class_counts is not None
        label = plan.classes.tolist()[np.flatnonzero(mass[number] <= 0.0)[0]]
        fewest = min(plan.class_counts)
        hint = "give folds that spread each class"
        if folds.given is None:
            hint = f"use cv={fewest} or fewer, as the rarest class has {fewest} rows"
        if fewest < 2:
            hint = "leave out the classes of fewer than two rows"
        raise DataError(
            f"scoring={self._scorer.name!r} needs each class in each fold, and fold {number} of {folds.count} has no "
            f"row of class {label!r}",
            hint=f"{hint}, or another scoring=, such as 'loss' or 'neg_log_loss'",
        )

    def __call__(self, engine: Engine, fitting: Fitting, left: Left, results: Sequence[FitResult]) -> Array:
        """The score of each result on the held-out rows, float64 (T,); a DataError where one fails or is not finite."""
        with self._turn:
            plan = self._parts.plan
            found = engine.map_reduce(held_out_rows, left, *self._given, name="held-out").parts
            y = labels_of(np.concatenate(found["y"]), plan.task, plan.classes)
            weight = np.concatenate(found["weight"]) if self._weighted else None
            # a fit without a fold may have fewer classes; its plan is this one of these
            parts = replace(self._parts, plan=cast(Plan, fitting.plan), settings=fitting.settings)
            models = [model_of(self._template, parts, result) for result in results]
            if self._X is not None:
                starts = np.cumsum([0, *plan.rows[:-1]])
                rows = [mine + start for mine, start in zip(found["rows"], starts.tolist(), strict=True)]
                X = _taken(self._X, self._places[np.concatenate(rows)])
                seen: Iterator[Any] = iter([X] * len(models))
            else:
                points = [_point(fitting, parts, *pair) for pair in zip(results, models, strict=True)]
                seen = self._margins(engine, left, points, len(y))
            return np.array([self._one(model, X, y, weight, left) for model, X in zip(models, seen, strict=True)])

    def _one(self, model: Any, X: Any, y: NDArray[Any], weight: Array | None, left: Left) -> float:
        estimator = clone(self._template)._adopt(model)
        if self._kind == "matrix":
            # rows without names are those of the fit, whose names may have been given beside it
            estimator.__dict__.pop("feature_names_in_", None)
        where = f"scoring={self._scorer.name!r} on fold {left.number} at alpha={model.certificate.alpha:.6g}"
        try:
            found = self._scorer(estimator, X, y, weight)
        except Exception as fault:
            raise DataError(f"{where} failed: {fault}", hint=_HINT) from fault
        if not math.isfinite(found):
            raise DataError(f"{where} is {found}, expected a finite number", hint=_HINT)
        return found

    def _margins(self, engine: Engine, left: Left, points: Sequence[Point], rows: int) -> Iterator[Margins]:
        """The held-out rows under each model, known by their scores; a few models in each pass."""
        start = 0
        while start < len(points):
            stop, margins, models = start, 0, 0
            while stop < len(points):
                margins += 8 * rows * points[stop].W.shape[1]
                models += points[stop].W.nbytes
                if stop > start and (margins > MARGIN_BYTES or models > MODEL_BYTES):
                    break
                stop += 1
            asked = tuple(points[start:stop])
            found = engine.map_reduce(held_out_margins, left, asked, name="margins").parts["margins"]
            for F in np.concatenate(found, axis=1):
                yield Margins(F, self._parts.plan.n_features)
            start = stop


def _point(fitting: Fitting, parts: Prepared, result: FitResult, model: Any) -> Point:
    """Where the scores of a model are computed: with all its outputs, of classes without rows outside the fold too."""
    point = fitting.point_of(result)
    if parts.plan.task != "multiclass":
        return point
    W = np.zeros((len(point.W), len(parts.classes)))
    W[:, class_places(parts)] = point.W
    return replace(point, W=W, intercept=model.intercept)


def _taken(X: Any, rows: NDArray[np.int64]) -> Any:
    """Some rows of a matrix or a table."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "take") and hasattr(X, "column_names"):
        return X.take(rows)
    return X[rows]
