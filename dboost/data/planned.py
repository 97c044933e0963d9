"""The plan of a fit, and what the plans of all kinds of input are made with.

Covers: ``Plan``, the encoding of its labels, and digests of it.
Does not cover: how each kind of input becomes one (``plan``, ``collections``, ``parquet_plan``), or summing
(``dboost.passes``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.vectors.digest import digest_of
from dboost.data.labels.labels import LabelCoder, LabelStats, plan_labels
from dboost.data.labels.tags import TAGS
from dboost.errors import UsageError
from dboost.partition import SEVERAL, Partition


@dataclass(frozen=True)
class Plan:
    """What a fit runs over."""

    items: tuple[Any, ...]  # Partitions, specs with ``load() -> Partition``, or futures of partitions (see the engine).
    rows: tuple[int, ...]  # Of each item, without those of weight 0.
    n_features: int
    feature_names: tuple[str, ...] | None
    classes: NDArray[Any] | None  # Labels in sort order; the names (or None) of several tasks or targets.
    n_outputs: int  # k: 1 for binary and regression.
    task: str
    digest: Callable[[], str]  # Gives `fingerprint`, and waits for it where it is still being computed.
    nbytes_estimate: int  # Of all decoded partitions.
    streams: bool  # Whether that exceeds the memory there is, so that partitions are read again in every pass.
    class_counts: tuple[int, ...] | None  # Rows of each class, without those of weight 0.
    class_weights: tuple[float, ...] | None  # Sum of the final weights of each class.
    notes: tuple[str, ...]  # What a person should know about the data, for example files without checksums.
    coder: LabelCoder

    @classmethod
    def of(cls, coder: LabelCoder, stats: LabelStats, **of_input: Any) -> Plan:
        """The plan of an encoding, of the report on all labels that it was made from, and of what the input is."""
        labels, counts, weights = class_list(coder), None, None
        if labels is not None:
            factors = np.ones(len(labels)) if coder.factors is None else coder.factors
            counts = tuple(stats.count.get(label, 0) for label in labels)
            weights = tuple(stats.weight.get(label, 0.0) * float(f) for label, f in zip(labels, factors, strict=True))
        about: dict[str, Any] = {"n_outputs": n_outputs(coder, stats), "task": coder.task, "coder": coder}
        return cls(**about, class_counts=counts, class_weights=weights, **of_input)

    @property
    def n_rows(self) -> int:
        """Number of examples m."""
        return sum(self.rows)

    @property
    def weight_exponent(self) -> int:
        """The weights of all items are 2**weight_exponent times those given (``ranges``)."""
        return self.coder.exponent

    def of_classes(self, present: Sequence[int]) -> Plan:
        """The plan of the same items with some of the classes only, by number: the others have no example in a fit."""
        if self.classes is None:
            raise UsageError(f"a plan for task {self.task!r} has no classes to take some of")
        return replace(self, n_outputs=len(present), classes=self.classes[list(present)])

    def of_columns(self, columns: NDArray[np.int64]) -> Plan:
        """The plan of the same items with some of the columns only, ascending."""
        names = self.feature_names
        some = None if names is None else tuple(names[j] for j in columns.tolist())
        return replace(self, n_features=len(columns), feature_names=some)

    @property
    def fingerprint(self) -> str:
        """A digest of features, labels and weights (in memory) or of sizes, footers and labels (files)."""
        return self.digest()


def known(text: str) -> Callable[[], str]:
    """A digest that is known already."""
    return lambda: text


def joined_digest(about: Any, parts: Iterable[bytes]) -> str:
    """The digest of a whole plan from what it is about and the digests of its blocks, in their order."""
    digest = hashlib.sha256(repr(about).encode())
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def partition_digest(partition: Partition) -> bytes:
    """A digest of the arrays of a partition."""
    digest = hashlib.sha256()
    arrays = (partition.indptr, partition.rows, partition.values, partition.y, partition.weight, partition.group)
    for array in (array for array in arrays if array is not None):
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(digest_of(array))
    return digest.digest()


def count_rows(y: Any) -> int:
    """Number of rows of any labels."""
    return int(y.shape[0]) if getattr(y, "shape", None) else len(y)


def take_rows(y: Any, keep: NDArray[np.bool_]) -> Any:
    """The rows of `y` where `keep` holds."""
    if hasattr(y, "iloc"):
        return y.iloc[np.flatnonzero(keep)]
    if hasattr(y, "filter") and not isinstance(y, np.ndarray):
        import pyarrow as pa

        return y.filter(pa.array(keep))
    if hasattr(y, "tocsr"):
        return y.tocsr()[np.flatnonzero(keep)]
    return np.asarray(y)[keep]


def plan_coder(
    stats: LabelStats, task: str, classes: Any, class_weight: Any, task_names: Sequence[str] | None
) -> tuple[LabelCoder, NDArray[Any] | None]:
    """The encoding, and what ``Plan.classes`` holds."""
    if task not in SEVERAL or stats.kind == TAGS:
        coder = plan_labels(stats, task, classes=classes, class_weight=class_weight)
        return coder, coder.classes
    names = task_names if classes is None else list(classes)
    coder = plan_labels(stats, task, class_weight=class_weight, task_names=names)
    if names is None:
        return coder, None
    assert stats.tasks is not None
    if len(names) != stats.tasks.shape[0] or len(set(names)) != len(names):
        raise UsageError(
            f"classes names {len(set(names))} different columns, the labels have {stats.tasks.shape[0]} columns",
            hint="give one name per column of y",
        )
    return coder, np.array(names, dtype=object)


def n_outputs(coder: LabelCoder, stats: LabelStats) -> int:
    """k: the number of columns of W."""
    if coder.task == "multiclass" or coder.kind == TAGS:
        assert coder.classes is not None
        return len(coder.classes)
    return int(stats.tasks.shape[0]) if stats.tasks is not None else 1


def class_list(coder: LabelCoder) -> list[Any] | None:
    """The classes as plain values."""
    return None if coder.classes is None else coder.classes.tolist()
