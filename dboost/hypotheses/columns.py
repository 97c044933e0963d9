"""The raw columns as hypotheses: ``Columns`` for users, ``ColumnsPool`` on a data set, ``ColumnSet`` in a model.

Covers: scoring sums of raw columns for any residuals, and which columns a model holds. A fit without `hypotheses`
takes its own, faster way (``dboost.problem.problem``); the pool is for unions with other families.
Does not cover: unions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import ModelFormatError
from dboost.files.documents import Document
from dboost.hypotheses.base import (
    Array,
    Block,
    Chosen,
    Context,
    InRanges,
    Key,
    saved_arrays,
    stored,
    sums_of_columns,
    taken,
)
from dboost.hypotheses.union import Joinable
from dboost.partition import Partition, Sums


@dataclass(frozen=True)
class Columns(Joinable):
    """The raw columns of the data: what a fit without `hypotheses` chooses from, and a part of unions.

    Examples
    --------
    >>> Columns().to_json()
    {'family': 'columns'}
    """

    name = "columns"

    def prepare(self, context: Context) -> ColumnsPool:
        return ColumnsPool(context.n_features)

    @staticmethod
    def restore(spec: Document, arrays: Mapping[str, NDArray[Any]], n_features: int) -> ColumnSet:
        """The columns of a saved model."""
        indices = spec.integers("indices")
        if len(indices) and (indices[0] < 0 or indices[-1] >= n_features or np.any(np.diff(indices) <= 0)):
            raise ModelFormatError(f"the active features are not ascending within 0..{n_features - 1}", file=spec.file)
        names = spec.strings("names")
        if names is not None and len(names) != len(indices):
            raise ModelFormatError(f"{len(names)} names for {len(indices)} active features", file=spec.file)
        saved_arrays(Columns.name, arrays, {}, spec.file)
        return ColumnSet(indices, names)


@dataclass(frozen=True)
class ColumnsPool(InRanges):
    """All raw columns of a data set; the key of column j is (j,), a shard is a range (start, stop)."""

    n_features: int

    @property
    def units(self) -> int:
        return self.n_features

    @property
    def token(self) -> str:
        return f"columns-{self.n_features}"

    def columns(self, raw: Block, keys: Sequence[Key]) -> Block:
        return taken(raw, np.array([j for (j,) in keys], dtype=np.int64))

    def sums(self, partition: Partition, memo: Any, shard: tuple[int, int], plus: Array, minus: Array | None) -> Sums:
        return sums_of_columns(stored(partition), range(*shard), partition.weight, plus, minus)

    def names(self, keys: Sequence[Key], features: Sequence[str] | None) -> list[str]:
        return [f"x{j}" if features is None else features[j] for (j,) in keys]

    def follow(self, held: Chosen, keys: Sequence[Key]) -> tuple[NDArray[np.int64], Array]:
        """All of them: a column is itself over any rows."""
        return np.arange(len(keys)), np.ones(len(keys))

    def chosen(self, keys: Sequence[Key], features: Sequence[str] | None) -> ColumnSet:
        """The columns `keys`, which must ascend."""
        indices = np.array([j for (j,) in keys], dtype=np.int64)
        return ColumnSet(indices, None if features is None else tuple(self.names(keys, features)))


@dataclass(frozen=True, eq=False)
class ColumnSet(Chosen):
    """The raw columns that a model holds."""

    indices: NDArray[np.int64]  # (a,): Columns, ascending and distinct.
    names: tuple[str, ...] | None = None  # Their names, when the data has names.

    family = Columns.name

    @property
    def inputs(self) -> NDArray[np.int64]:
        return self.indices

    def words(self) -> list[str]:
        return list(self.names) if self.names is not None else [f"x{j}" for j in self.indices.tolist()]

    def evaluate(self, raw: Block) -> Block:
        return raw

    def to_json(self) -> dict[str, Any]:
        names = None if self.names is None else list(self.names)
        return {"family": "columns", "indices": self.indices.tolist(), "names": names}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ColumnSet):
            return NotImplemented
        return self.names == other.names and np.array_equal(self.indices, other.indices)

    __hash__ = None  # type: ignore[assignment]
