"""Families whose hypotheses can be listed: functions of one or a few raw columns, each formed where it is summed.

Covers: ``ListedFamily``, from which such a family is made in a few lines, its pool, and the hypotheses of a model.
Does not cover: classes without end, or too large to be summed one by one (``products``, ``stumps``).

A hypothesis is named by the raw columns that it is a function of, which is also its key.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import ModelFormatError, UsageError
from dboost.files.documents import Document
from dboost.hypotheses.base import (
    Array,
    Block,
    Chosen,
    Context,
    InRanges,
    Key,
    NamedSet,
    saved_arrays,
    side_by_side,
    stored,
    sums_of_columns,
)
from dboost.hypotheses.union import Joinable
from dboost.partition import Partition, Sums

FORMED_VALUES = 2_000_000
"""Values of hypotheses that a pass forms at once, 16 MB of float64: beyond the caches, and little beside a block."""


class ListedFamily(Joinable, ABC):
    """A finite family. A subclass is a frozen dataclass with the parameters of the family as its fields.

    It gives `name`, `keys`, `value` and `word`, and everything else follows.
    """

    @abstractmethod
    def keys(self, n_features: int) -> Iterable[Key]:
        """The hypotheses over so many raw columns, each as the raw columns it is a function of."""

    @abstractmethod
    def value(self, *columns: Array) -> Array:
        """The hypothesis on some rows, from its raw columns, all of shape (m,).

        The value of a row must be computed from that row alone, with the same bits among any other rows: so do sums,
        products, absolute values, comparisons and square roots of NumPy, but not all of its exponentials and sines.
        """

    @abstractmethod
    def word(self, *names: str) -> str:
        """The hypothesis in words, from the names of its raw columns."""

    def prepare(self, context: Context) -> ListedPool:
        """List the hypotheses over the data's columns; no pass."""
        listed = tuple(self.keys(context.n_features))
        if not listed:
            raise UsageError(
                f"family {self.name!r} has no hypothesis over {context.n_features} columns",
                hint="give more columns, or another family",
            )
        return ListedPool(self, listed)

    @classmethod
    def restore(cls, spec: Document, arrays: Mapping[str, NDArray[Any]], n_features: int) -> ListedSet:
        """The hypotheses of a saved model, trusting nothing in it."""
        keys, names = spec.integer_lists("keys"), spec.strings("names")
        family = cls.from_json({"family": cls.name, **spec.mapping("parameters")})
        saved_arrays(cls.name, arrays, {}, spec.file)
        if names is None or len(names) != len(keys) or len(set(keys)) != len(keys):
            raise ModelFormatError("'keys' and 'names' are not distinct lists of one length", file=spec.file)
        if not set(keys) <= set(family.keys(n_features)):
            raise ModelFormatError(f"hypotheses that family {cls.name!r} does not have", file=spec.file)
        return ListedSet(family, keys, names)


def formed(family: ListedFamily, raw: Block, keys: Iterable[Key]) -> Block:
    """Hypotheses as columns without their zeros, from a block whose columns `keys` name."""
    indptr, rows, values = [0], [np.zeros(0, np.int32)], [np.zeros(0)]
    for key in keys:
        h = family.value(*(_dense(raw, j) for j in key))
        rows.append(np.flatnonzero(h).astype(np.int32))
        values.append(h[rows[-1]])
        indptr.append(indptr[-1] + len(rows[-1]))
    return Block(np.array(indptr), np.concatenate(rows), np.concatenate(values), raw.n_rows)


def _dense(raw: Block, j: int) -> Array:
    mine = slice(int(raw.indptr[j]), int(raw.indptr[j + 1]))
    column = np.zeros(raw.n_rows)
    column[raw.rows[mine]] = raw.values[mine]
    return column


@dataclass(frozen=True)
class ListedPool(InRanges):
    """All hypotheses of a family over one data set; a shard is a range (start, stop) of `listed`."""

    family: ListedFamily
    listed: tuple[Key, ...]

    @property
    def units(self) -> int:
        return len(self.listed)

    def numbered(self, numbers: NDArray[np.int64]) -> list[Key]:
        return [self.listed[number] for number in numbers.tolist()]

    @property
    def token(self) -> str:
        return hashlib.sha256(json.dumps([self.family.to_json(), self.listed]).encode()).hexdigest()[:16]

    def columns(self, raw: Block, keys: Sequence[Key]) -> Block:
        return formed(self.family, raw, keys)

    def sums(self, partition: Partition, memo: Any, shard: tuple[int, int], plus: Array, minus: Array | None) -> Sums:
        """Sums of a range of hypotheses over one partition, as ``base.Pool.sums`` says; some are formed at a time."""
        raw = stored(partition)
        first, last = shard
        width = max(1, FORMED_VALUES // max(1, partition.n_rows))
        parts = []
        for start in range(first, last, width):
            some = formed(self.family, raw, self.listed[start : min(start + width, last)])
            parts.append(sums_of_columns(some, range(len(some.indptr) - 1), partition.weight, plus, minus))
        return side_by_side(parts)

    def names(self, keys: Sequence[Key], features: Sequence[str] | None) -> list[str]:
        return [self.family.word(*(f"x{j}" if features is None else features[j] for j in key)) for key in keys]

    def follow(self, held: Chosen, keys: Sequence[Key]) -> tuple[NDArray[np.int64], Array]:
        """Those that are listed here too: they mean the same over any rows."""
        known = set(self.listed)
        places = np.array([place for place, key in enumerate(keys) if key in known], dtype=np.int64)
        return places, np.ones(len(places))

    def chosen(self, keys: Sequence[Key], features: Sequence[str] | None) -> ListedSet:
        return ListedSet(self.family, tuple(keys), tuple(self.names(keys, features)))


@dataclass(frozen=True)
class ListedSet(NamedSet):
    """The hypotheses of a model, with their names in words."""

    of: ListedFamily
    keys: tuple[Key, ...]
    names: tuple[str, ...]

    @property
    def family(self) -> str:
        return self.of.name

    @property
    def inputs(self) -> NDArray[np.int64]:
        return np.array(sorted({j for key in self.keys for j in key}), dtype=np.int64)

    def evaluate(self, raw: Block) -> Block:
        place = {int(j): c for c, j in enumerate(self.inputs)}
        return formed(self.of, raw, [tuple(place[j] for j in key) for key in self.keys])

    def to_json(self) -> dict[str, Any]:
        parameters = {name: value for name, value in self.of.to_json().items() if name != "family"}
        keys = [list(key) for key in self.keys]
        return {"family": self.family, "parameters": parameters, "keys": keys, "names": list(self.names)}
