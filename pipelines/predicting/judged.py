"""Judging a model on labelled rows that its transform reads: raw documents, or rows of a raw table.

Covers: the sums of all figures, piece by piece, where the pieces are read, and classes that the model does not
know, which are counted and not fatal. Does not cover: data of features, which is
judged by its partitions (``commands.evaluate``), and what a page shows of single rows (``report_page.held_out``).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from dboost import metrics
from dboost.data.labels.factorise import factorise
from dboost.data.labels.labels import LabelStats
from dboost.data.parquet.block import scan_block
from dboost.data.parquet.plan import blocks_of
from dboost.errors import DataError, UsageError
from dboost.estimators.persistence import read_transform
from dboost.files.store_folders import local_copy
from dboost.metrics import Evaluation
from dboost.model.fitted import Model
from dboost.partition import Sums

from .. import targets
from ..cluster import engine_on
from ..config import DataSettings
from ..inputs import some, staging_for
from .parts import in_order
from .rows import Read, are_raw, check_transform, raw_rows


@dataclass(frozen=True)
class Documents:
    """Labelled rows that a transform reads."""

    read: Read  # their pieces
    transform: Any
    label: str
    weight: str | None
    data: str  # what was named, for errors


@contextmanager
def documents_of(
    settings: DataSettings, model: Model, folder: str, client: Any, keep: Sequence[str] = ()
) -> Iterator[Documents | None]:
    """The labelled documents that settings name, with `keep` beside them; None where the data is features.

    What is copied to be read is gone afterwards.

    `folder`: of the model, as ``find_model`` gives it.
    """
    transform = read_transform(folder)
    if not are_raw(settings, transform):
        yield None
        return
    check_transform(model, transform, folder)
    label = label_of(settings, model, folder)
    for name in ("split", "n_features"):
        if getattr(settings, name) is not None:
            raise UsageError(f"{name}= has no effect on raw documents", hint="leave it out")
    columns = (label, *(() if settings.weight is None else (settings.weight,)), *keep)
    with staging_for(settings, client) as staging, engine_on(client) as engine:
        read = raw_rows(settings, transform, tuple(dict.fromkeys(columns)), staging, engine, labels=(label,))
        yield Documents(read, transform, label, settings.weight, str(settings.data))


def label_of(settings: DataSettings, model: Model, folder: str) -> str:
    """The column of the labels of raw documents: the one that is named, else that of the training."""
    named = trained_label(folder) if settings.label is None else settings.label
    if not named:
        raise UsageError("which column of the documents has their labels?", hint="name it with label=")
    if len(named) > 1 or model.task not in ("binary", "multiclass", "regression"):
        raise UsageError(
            f"a {model.task} is not judged on raw documents", hint="prepare them with `dboost prepare`, and judge those"
        )
    return str(named[0])


def trained_label(folder: str) -> Sequence[str]:
    """The columns of the labels that the model of a folder was trained on, where `dboost train` wrote them down."""
    file = Path(local_copy(folder)) / "run.json"
    found = json.loads(file.read_bytes()).get("label") if file.is_file() else None
    return found or ()


def sums_of(documents: Documents, model: Model, client: Any) -> tuple[Sums, Strangers]:
    """Sums over all pieces that all figures follow from, and the labels that the model does not know."""
    total, seen, counts = None, 0, Counter[Any]()
    held, columns = (model, documents.transform), (documents.label, documents.weight)
    for found, known, unknown in in_order(judge, documents.read.pieces, (), held, columns, client):
        total = found if total is None else total.merge(found)
        seen += known
        counts.update(unknown)
    if total is None:
        raise DataError("there are no rows to judge on", file=documents.data)
    if counts and not seen:
        raise none_known(counts, model, documents.data)
    return total, Strangers(counts)


def judge(
    piece: Any, number: int, held: tuple[Model, Any], label: str, weight: str | None
) -> tuple[Sums, int, Counter[Any]]:
    """The sums of one piece, its rows whose label the model knows, and the labels that it does not. Runs on workers."""
    model, transform = held
    scores = piece.scores(model, transform)
    w = np.ones(len(scores)) if weight is None else _numbers(piece, weight)
    if model.task == "regression":
        y = _numbers(piece, label)
        return targets.partial(model.labels(scores), y, w, model.labels(model.intercept[None])), len(y), Counter()
    labels, codes = codes_of(piece.column(label), piece, label, model)
    unknown = Counter(labels[i] for i in np.flatnonzero(codes < 0).tolist())
    return sums_of_codes(model, scores, codes, w), int((codes >= 0).sum()), unknown


def codes_of(found: Any, piece: Any, label: str, model: Model) -> tuple[list[Any], NDArray[np.int64]]:
    """The labels of the rows of a piece, and which class of the model each is, -1 for none."""
    try:
        found = factorise(found)
    except DataError as error:
        raise DataError(error.what, file=error.file or piece.file, column=label, hint=error.hint) from error
    distinct = [value if isinstance(value, str | bytes) else value.item() for value in found.distinct]
    place = {name: c for c, name in enumerate(model.classes.tolist())}
    codes = np.array([place.get(value, -1) for value in distinct], dtype=np.int64)
    return [distinct[c] for c in found.codes.tolist()], codes[found.codes] if len(codes) else found.codes


def _numbers(piece: Any, name: str) -> NDArray[np.float64]:
    """A column of finite numbers."""
    column = piece.column(name)
    try:
        values = np.asarray(pc.cast(column, "float64").to_numpy(), dtype=np.float64)
    except (ValueError, TypeError):
        raise DataError(f"type {column.type}, expected numbers", file=piece.file, column=name) from None
    bad = int(np.count_nonzero(~np.isfinite(values)))
    if bad:
        raise DataError(f"{bad} values are missing or infinite", file=piece.file, column=name, hint="drop these rows")
    return values


# Key of the sum of the weights of rows whose class is unknown.
UNKNOWN = "unknown"
# Classes that are named on a page.
MOST_SHOWN = 5


@dataclass(frozen=True)
class Strangers:
    """Classes that a model does not know, and how many rows of the data each has."""

    counts: Mapping[Any, int]

    def together(self, model: Model) -> NDArray[Any]:
        """The classes of the model and these, in sort order."""
        return np.array(sorted([*model.classes.tolist(), *self.counts]), dtype=object)

    def numbers(self, model: Model, classes: Any) -> NDArray[np.int64] | None:
        """Class of the model for each class of the data, -1 where it knows none; None where it knows all."""
        if not self.counts:
            return None
        place = {label: c for c, label in enumerate(model.classes.tolist())}
        return np.array([place.get(label, -1) for label in classes.tolist()], dtype=np.int64)

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
        classes = "1 class" if len(most) == 1 else f"{len(most)} classes"
        return [
            f"{sum(self.counts.values()):,} of them of {classes} that the model does not know: {shown}{more}; they "
            "count as wrong, and for no other figure"
        ]


def find_strangers(model: Model, data: Any, engine: Any) -> Strangers:
    """Read the labels of the data, and find the classes that a classifier does not know."""
    if model.task not in ("binary", "multiclass"):
        return Strangers({})
    reports = engine.map(scan_block, blocks_of(data, labels=True), "classification", name="scan-labels")
    stats: LabelStats = reduce(LabelStats.merge, reports, LabelStats())
    known = set(model.classes.tolist())
    counts = {label: count for label, count in stats.count.items() if label not in known}
    if counts and len(counts) == len(stats.count):
        raise none_known(counts, model, str(data.path))
    return Strangers(counts)


def none_known(counts: Mapping[Any, int], model: Model, file: str) -> DataError:
    """The error for data of which no label is a class of the model."""
    return DataError(
        f"none of the labels of the data is a class of the model: found {some(list(counts))}, expected "
        f"{some(model.classes.tolist())}",
        file=file,
        hint="check label=; labels and classes have one type, text or number",
    )


def sums_of_codes(model: Model, scores: NDArray[np.float64], codes: Any, weight: NDArray[np.float64]) -> Sums:
    """The sums of the rows whose class is known, with the weights of the others, of code -1, beside them."""
    known = codes >= 0
    own = codes[known]
    right: Any = (2 * own - 1).astype(np.int8).reshape(-1, 1) if model.task == "binary" else own.astype(np.int32)
    found = metrics.partial(scores[known], right, weight[known])
    return Sums(add={**found.add, UNKNOWN: float(weight[~known].sum())}, peak=found.peak)
