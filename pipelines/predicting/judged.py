"""Judging a model on labelled rows: raw documents that its transform reads, or features."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost import metrics
from dboost.data.labels.factorise import factorise
from dboost.data.labels.labels import check_weight
from dboost.data.labels.tags import are_tags, flat_tags, tag_signs, tags_in_texts
from dboost.data.labels.targets import many_targets, regression_targets, task_labels
from dboost.data.manifest import MANIFEST
from dboost.data.named_columns import as_trained
from dboost.data.parquet.plan import blocks_of
from dboost.errors import DataError, UsageError
from dboost.estimators.model_folders import read_transform
from dboost.files.store_folders import current, local_copy
from dboost.files.stores import any_path
from dboost.metrics import Evaluation
from dboost.model.fitted import Model
from dboost.partition import NUMBERS, SEVERAL, Sums

from .. import regression_figures
from ..cluster import engine_on
from ..config import DataSettings
from ..inputs import ENDING, abbreviated, for_a_while, is_text_table, open_data, staging_for
from .parts import in_order
from .rows import PreparedRows, are_raw, check_transform, feature_positions, raw_rows


@dataclass(frozen=True)
class Labels:
    """Where the labels of rows are."""

    columns: tuple[str, ...]
    separator: str | None = None  # what stands between the tags of a label in one text
    weight: str | None = None  # the column of the weights


@dataclass(frozen=True)
class Labelled:
    """Labelled rows."""

    pieces: Sequence[Any]
    transform: Any  # that reads them; None for features
    labels: Labels
    data: str  # what was named, for errors


@contextmanager
def labelled_rows(
    settings: DataSettings, model: Model, folder: str, client: Any, keep: Sequence[str] = ()
) -> Iterator[Labelled]:
    """The labelled rows that settings name, documents with `keep` beside them; copies of them are gone afterwards."""
    transform, settings = read_transform(folder), with_labels(settings, folder)
    if not are_raw(settings, transform):
        ending = ENDING if is_text_table(settings) else ""
        with for_a_while(settings, client) as found:
            data = open_data(found, "test", model)
            if model.task in SEVERAL and isinstance(data.label, tuple | list):
                data.label = as_trained(data.label, model.classes.tolist())
            blocks = blocks_of(data, labels=True)
            places = feature_positions(model, data, blocks)
            pieces = [PreparedRows(block, places, {}, ending) for block in blocks]
            columns = blocks[0].label if blocks else ()
            yield Labelled(pieces, None, Labels(columns, None, settings.weight), str(settings.data))
        return
    check_transform(model, transform, folder)
    labels = _labels_of(settings, model, folder)
    for name in ("split", "n_features"):
        if getattr(settings, name) is not None:
            raise UsageError(f"{name}= has no effect on raw documents", hint="leave it out")
    columns = (*labels.columns, *(() if labels.weight is None else (labels.weight,)), *keep)
    with staging_for(settings, client) as staging, engine_on(client) as engine:
        kind = "labels" if labels.separator is None else "tags"
        read = raw_rows(settings, transform, tuple(dict.fromkeys(columns)), staging, engine, **{kind: labels.columns})
        yield Labelled(read.pieces, transform, labels, str(settings.data))


def with_labels(settings: DataSettings, folder: str) -> DataSettings:
    """The settings with the columns of the labels, which are those of the training where none are named.

    Prepared data says by itself where its labels are.
    """
    trained = tuple(_trained(folder).get("label") or ())
    if settings.label or not trained or settings.data is None:
        return settings
    prepared = (current(any_path(str(settings.data), "data")) / MANIFEST).is_file()
    return settings if prepared else replace(settings, label=trained)


def _trained(folder: str) -> dict[str, Any]:
    """What was written beside a model of how it was trained; nothing where it was saved by Python."""
    file = Path(local_copy(folder)) / "run.json"
    return dict(json.loads(file.read_bytes())) if file.is_file() else {}


def _labels_of(settings: DataSettings, model: Model, folder: str) -> Labels:
    """The labels of raw documents."""
    trained, columns = _trained(folder), tuple(settings.label or ())
    if not columns:
        raise UsageError("which column of the documents has their labels?", hint="name it with label=")
    separator = getattr(settings, "label_separator", None)
    if separator is not None and model.tags is None:
        raise UsageError(f"label_separator={separator!r}, and the model has no tags", hint="leave it out")
    expected = len(model.classes) if model.task in SEVERAL and model.tags is None else 1
    if len(columns) != expected:
        raise UsageError(
            f"label names {len(columns)} columns, and the model has {expected}",
            hint=f"name {expected}: {abbreviated(model.classes.tolist())}" if expected > 1 else "name one",
        )
    if expected > 1:
        columns = tuple(as_trained(columns, model.classes.tolist()))
    if model.tags is not None and separator is None and list(columns) == trained.get("label"):
        separator = trained.get("label_separator")
    return Labels(columns, separator, settings.weight)


def sums_of(rows: Labelled, model: Model, client: Any) -> tuple[Sums, UnseenLabels]:
    """Sums over all pieces that all figures follow from, and the labels that the model does not know."""
    total, seen, counts = None, 0, Counter[Any]()
    for found, known, unknown in in_order(judge, rows.pieces, (), (model, rows.transform), (rows.labels,), client):
        total = found if total is None else total.merge(found)
        seen += known
        counts.update(unknown)
    if total is None:
        raise DataError("there are no rows to judge on", file=rows.data)
    if counts and not seen:
        found, expected = abbreviated(list(counts)), abbreviated(model.classes.tolist())
        what = f"none of the labels of the data is a class of the model: found {found}, expected {expected}"
        raise DataError(what, file=rows.data, hint="check label=; labels and classes have one type, text or number")
    return total, UnseenLabels(counts, model.tags is not None)


def judge(piece: Any, number: int, held: tuple[Model, Any], labels: Labels) -> tuple[Sums, int, Counter[Any]]:
    """The sums of one piece, how many of its labels the model knows, and those that it does not. Runs on workers."""
    model, transform = held
    X, given, weight = piece.labelled(model, transform, labels)
    weight = check_weight(weight, X.shape[0], file=piece.file, column=labels.weight)
    scores = model.scores_of_inputs(X)
    if model.task in ("binary", "multiclass"):
        names, codes = codes_of(given, piece, labels, model)
        unknown = Counter(names[i] for i in np.flatnonzero((codes < 0) & (weight > 0)).tolist())
        return sums_of_codes(model, scores, codes, weight), int((codes >= 0).sum()), unknown
    with _of(piece, labels):
        if model.task in NUMBERS:
            y = regression_targets(given) if model.task == "regression" else many_targets(given)
            centre = model.labels(model.intercept[None])
            return regression_figures.partial(model.labels(scores), y, weight, centre), len(y), Counter()
        if model.tags is None:
            signs = task_labels(given)
            return metrics.partial(scores, signs, weight), len(signs), Counter()
        signs, strange = _signs(given, labels, model)
        return metrics.partial(scores, signs, weight, model.chosen_tags(scores)), int((signs > 0).sum()), strange


@contextmanager
def _of(piece: Any, labels: Labels) -> Iterator[None]:
    """Name the file and the column in an error about labels."""
    try:
        yield
    except DataError as error:
        column = error.column or ", ".join(labels.columns)
        raise DataError(error.what, file=error.file or piece.file, column=column, hint=error.hint) from error


def _signs(given: Any, labels: Labels, model: Model) -> tuple[NDArray[np.int8], Counter[Any]]:
    """The tags of rows as signs for the tasks of a model, and those that it does not know, in how many rows."""
    lists = given if labels.separator is None else tags_in_texts(given, labels.separator)
    if not are_tags(lists) and len(lists):
        raise DataError(
            "expected a list of tags in each row",
            hint="label_separator= says what stands between the tags of one text",
        )
    known = set(model.classes.tolist())
    _, _, names, codes = flat_tags(lists)
    return tag_signs(lists, model.classes.tolist()), Counter(names[c] for c in codes.tolist() if names[c] not in known)


def codes_of(found: Any, piece: Any, labels: Labels, model: Model) -> tuple[list[Any], NDArray[np.int64]]:
    """The labels of the rows of a piece, and which class of the model each is, -1 for none."""
    with _of(piece, labels):
        found = factorise(found)
    distinct = [value if isinstance(value, str | bytes) else value.item() for value in found.distinct]
    place = {name: c for c, name in enumerate(model.classes.tolist())}
    codes = np.array([place.get(value, -1) for value in distinct], dtype=np.int64)
    return [distinct[c] for c in found.codes.tolist()], codes[found.codes] if len(codes) else found.codes


# Key of the sum of the weights of rows whose class is unknown.
UNKNOWN = "unknown"
# Classes that are named on a page.
MOST_SHOWN = 5


@dataclass(frozen=True)
class UnseenLabels:
    """Classes that a model does not know, and how many rows of the data each has."""

    counts: Mapping[Any, int]
    tags: bool = False  # whether they are tags, of which a row may have others too

    def counted_as_wrong(self, found: Evaluation, total: Sums) -> Evaluation:
        """The evaluation with the rows of these classes as examples that are labelled wrongly.

        Log-loss, coverage and margins have no value for a class without a score: they stay those of the other rows.
        """
        unknown = float(total.add.get(UNKNOWN, 0.0))
        if unknown == 0.0:
            return found
        weight = found.weight + unknown
        return replace(found, weight=weight, error=(found.error * found.weight + unknown) / weight)

    def words(self) -> list[str]:
        """A line for a page; none where the model knows every class."""
        if not self.counts:
            return []
        most = sorted(self.counts.items(), key=lambda item: (-item[1], str(item[0])))
        shown = ", ".join(f"{label!r} ({count:,})" for label, count in most[:MOST_SHOWN])
        more = f" and {len(most) - MOST_SHOWN} more" if len(most) > MOST_SHOWN else ""
        if self.tags:
            return [f"tags that the model does not know count for no figure: {shown}{more}"]
        classes = "1 class" if len(most) == 1 else f"{len(most)} classes"
        return [
            f"{sum(self.counts.values()):,} of them of {classes} that the model does not know: {shown}{more}; they "
            "count as wrong, and for no other figure"
        ]


def sums_of_codes(model: Model, scores: NDArray[np.float64], codes: Any, weight: NDArray[np.float64]) -> Sums:
    """The sums of the rows whose class is known, with the weights of the others, of code -1, beside them."""
    known = codes >= 0
    own = codes[known]
    right: Any = (2 * own - 1).astype(np.int8).reshape(-1, 1) if model.task == "binary" else own.astype(np.int32)
    found = metrics.partial(scores[known], right, weight[known])
    return Sums(add={**found.add, UNKNOWN: float(weight[~known].sum())}, peak=found.peak)
