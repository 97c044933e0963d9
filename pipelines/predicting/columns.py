"""What is written for a row: the label, its probability, and what was asked for beside them.

Covers: checking the question against the model, and the table of some rows. Does not cover: where rows come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dboost.errors import UsageError
from dboost.model.fitted import Model
from dboost.model.tasks import decision
from dboost.partition import NUMBERS


@dataclass(frozen=True)
class Asked:
    """Which columns are written beside the labels; the meanings are those of ``PredictSettings``."""

    every: bool = False
    top: int | None = None
    scores: bool = False
    keep: tuple[str, ...] = ()


def asked_of(settings: Any, model: Model) -> Asked:
    """The columns that the settings ask for."""
    if settings.probabilities and model.task in NUMBERS:
        raise UsageError("a regression has no probabilities", hint="leave --probabilities out")
    if settings.top is not None and model.task not in ("binary", "multiclass") and model.tags is None:
        raise UsageError(f"a {model.task} has no most probable classes", hint="leave --top out")
    if settings.top is not None and settings.top > len(model.classes):
        raise UsageError(f"top={settings.top}, but the model has {len(model.classes)} classes", hint="ask for fewer")
    asked = Asked(settings.probabilities, settings.top, settings.scores, tuple(settings.keep or ()))
    clash = [name for name in asked.keep if name in names_of(model, asked)]
    if clash:
        raise UsageError(f"keep names {clash[0]!r}, which is a column of predictions", hint="rename that column")
    return asked


def names_of(model: Model, asked: Asked) -> list[str]:
    """The columns of predictions, without those that are kept."""
    names = ["file", "row", *(["scores"] if asked.scores else [])]
    if model.task == "multitask" and model.tags is None:
        tasks = [str(name) for name in model.classes.tolist()]
        return [*names, *tasks, *(f"{name}_probability" for name in tasks)]
    if model.task == "multitarget":
        return [*names, *(str(name) for name in model.classes.tolist())]
    names.append("prediction")
    if model.task == "regression":
        return names
    names += ["probability", *(["probabilities"] if asked.every else [])]
    return [*names, *(["top_classes", "top_probabilities"] if asked.top is not None else [])]


def predictions(
    model: Model, scores: NDArray[np.float64], file: pa.Array, row: pa.Array, kept: dict[str, Any], asked: Asked
) -> pa.Table:
    """The predictions of some rows.

    `file, row`: which row of the input each is.
    `asked`: what is given beside the label and its probability: ``probabilities`` of every class in the order of the
    model's classes, ``top_classes`` and ``top_probabilities`` (the most probable first, equal ones in the order of the
    classes), ``scores`` (one value, or a list of one for each output). Lists are of a fixed size. Of a model of tags
    the label is the list of those that are named, and its probability a list beside it.
    """
    labels = model.labels(scores)
    columns: dict[str, Any] = {"file": file.dictionary_encode(), "row": row, **kept}
    if asked.scores:
        values = decision(model.task, model.loss, scores)
        columns["scores"] = pa.array(values) if values.ndim == 1 else _lists(values)
    if model.task == "regression":
        return pa.table(columns | {"prediction": pa.array(labels)})
    if model.task == "multitarget":
        names = [str(name) for name in model.classes.tolist()]
        return pa.table(columns | {name: pa.array(labels[:, r]) for r, name in enumerate(names)})
    chances = model.probabilities(scores)
    if model.task == "multitask" and model.tags is None:
        names = [str(name) for name in model.classes.tolist()]
        columns |= {name: pa.array(labels[:, r].astype(np.int8)) for r, name in enumerate(names)}
        columns |= {f"{name}_probability": pa.array(chances[:, r]) for r, name in enumerate(names)}
        return pa.table(columns)
    kind = type_of(model)
    if model.tags is None:
        columns["prediction"] = pa.array(labels.tolist(), kind)
        columns["probability"] = pa.array(chances.max(axis=1, initial=0.0))
    else:
        chosen = model.chosen_tags(scores)
        ends = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))]).astype(np.int32)
        columns["prediction"] = pa.array(labels.tolist(), pa.list_(kind))
        columns["probability"] = pa.ListArray.from_arrays(pa.array(ends), pa.array(chances[chosen]))
    if asked.every:
        columns["probabilities"] = _lists(chances)
    if asked.top is not None:
        best = np.argsort(-chances, axis=1, kind="stable")[:, : asked.top]
        columns["top_classes"] = pa.FixedSizeListArray.from_arrays(
            pa.array(model.classes.tolist(), kind).take(pa.array(best.ravel())), asked.top
        )
        columns["top_probabilities"] = _lists(np.take_along_axis(chances, best, axis=1))
    return pa.table(columns)


def type_of(model: Model) -> Any:
    """The Arrow type of the labels of a model: the same in every part, whichever labels a part has."""
    known = model.classes.tolist()
    if all(isinstance(one, int) and not isinstance(one, bool) for one in known):
        return pa.uint64() if max(known) >= 1 << 63 else pa.int64()
    return pa.array(known).type


def _lists(values: NDArray[np.float64]) -> pa.Array:
    """Rows of numbers as lists of a fixed size."""
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
