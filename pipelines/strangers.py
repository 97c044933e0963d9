"""Classes of the data that a model does not know, when it is judged: counted, not fatal.

Covers: finding them before anything is judged, their place among the codes of the data, the error with them.
Does not cover: the figures of the rows whose class is known (``dboost.metrics``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.data.labels.labels import LabelStats
from dboost.data.parquet.block import scan_block
from dboost.data.parquet.plan import blocks_of
from dboost.errors import DataError
from dboost.metrics import Evaluation
from dboost.model.fitted import Model
from dboost.partition import Sums

from .inputs import some

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


def unknown_rows(found: Sums, weight: NDArray[np.float64]) -> Sums:
    """The sums of the rows whose class is known, with the weights of the others beside them."""
    return Sums(add={**found.add, UNKNOWN: float(weight.sum())}, peak=found.peak)
