"""The stumps that a model holds: evaluating, naming, saving and reading them.

Covers: ``StumpSet`` and ``restore``.
Does not cover: which stumps are candidates (``stumps``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.arrays import Float64, Int32, Int64, Values
from dboost.compiled.kept import njit
from dboost.errors import ModelFormatError
from dboost.files.documents import Document, expect_array
from dboost.hypotheses.base import Array, Block

FAMILY = "stumps"


def words(
    columns: Sequence[int], thresholds: Sequence[float], signed: bool, features: Sequence[str] | None
) -> list[str]:
    """Stumps in words, for example ``petal length < 2.45``; with `signed` as ``sign(...)``: -1 and 1."""
    named = [f"x{j}" if features is None else features[j] for j in columns]
    plain = [f"{name} < {threshold:.6g}" for name, threshold in zip(named, thresholds, strict=True)]
    return [f"sign({name})" for name in plain] if signed else plain


@njit(nogil=True, cache=True)
def count_below(indptr: Int64, values: Values, n_rows: int, places: Int64, thresholds: Float64, counts: Int64) -> None:
    """Count the rows of every stump, those below its threshold in the column at its place; others are zeros."""
    for s in range(places.shape[0]):
        begin, end = indptr[places[s]], indptr[places[s] + 1]
        th, found = thresholds[s], 0
        for p in range(begin, end):
            found += np.float64(values[p]) < th
        counts[s] = found + (n_rows - (end - begin) if th > 0.0 else 0)


@njit(nogil=True, cache=True)
def rows_below(
    indptr: Int64,
    rows: Int32,
    values: Values,
    n_rows: int,
    places: Int64,
    thresholds: Float64,
    start: Int64,
    out: Int32,
) -> None:
    """Write the rows of every stump, ascending.

    `start`: int64 array, shape (stumps + 1,). Where the rows of each stump lie.
    `out`: int32 array, shape (start[-1] + 1,). The last entry has no meaning: a row is written before it is known
    whether it counts.
    """
    for s in range(places.shape[0]):
        begin, end = indptr[places[s]], indptr[places[s] + 1]
        th, p = thresholds[s], start[s]
        if end - begin == n_rows or not th > 0.0:
            for q in range(begin, end):
                out[p] = rows[q]
                p += np.float64(values[q]) < th
            continue
        row = 0
        for q in range(begin, end):
            for absent in range(row, rows[q]):
                out[p] = absent
                p += 1
            row = rows[q] + 1
            out[p] = rows[q]
            p += np.float64(values[q]) < th
        for absent in range(row, n_rows):
            out[p] = absent
            p += 1


def made(raw: Block, places: NDArray[np.int64], thresholds: Array, signed: bool) -> Block:
    """Stumps as columns, from the columns of `raw` at some places."""
    n = len(places)
    arrays = raw.n_rows, places, thresholds
    counts = np.empty(n, np.int64)
    count_below(raw.indptr, raw.values, *arrays, counts)
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])
    # one more, which the loop may write to
    found = np.empty(int(indptr[-1]) + 1, np.int32)
    rows_below(raw.indptr, raw.rows, raw.values, *arrays, indptr, found)
    rows, kind = found[:-1], raw.values.dtype
    if not signed:
        return Block(indptr, rows, np.ones(len(rows), kind), raw.n_rows)
    values = np.full((n, raw.n_rows), kind.type(-1.0))
    values[np.repeat(np.arange(n), counts), rows] = kind.type(1.0)
    every = np.tile(np.arange(raw.n_rows, dtype=np.int32), n)
    return Block(np.arange(n + 1, dtype=np.int64) * raw.n_rows, every, values.reshape(-1), raw.n_rows)


@dataclass(frozen=True, eq=False)
class StumpSet:
    """The stumps of a model."""

    columns: NDArray[np.int64]  # (a,): Raw column of each stump.
    thresholds: Array  # (a,): A stump is 1 where the value is below its threshold.
    signed: bool  # Whether it is -1 elsewhere, and not 0.
    names: tuple[str, ...]  # In words.

    family = FAMILY

    @property
    def inputs(self) -> NDArray[np.int64]:
        """Raw columns that some stump compares, ascending."""
        return np.unique(self.columns)

    @property
    def n_hypotheses(self) -> int:
        """How many stumps there are."""
        return len(self.columns)

    def words(self) -> list[str]:
        """Their names."""
        return list(self.names)

    def evaluate(self, raw: Block) -> Block:
        """The stumps as columns, from a block of the columns `inputs`."""
        return made(raw, np.searchsorted(self.inputs, self.columns), self.thresholds, self.signed)

    def to_json(self) -> dict[str, Any]:
        """Family, form and names."""
        return {"family": FAMILY, "signed": self.signed, "names": list(self.names)}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Raw columns and thresholds."""
        return {"columns": self.columns, "thresholds": self.thresholds}


def restore(spec: Document, arrays: Mapping[str, NDArray[Any]], n_features: int) -> StumpSet:
    """The set that ``StumpSet.to_json`` and ``arrays`` describe, trusting nothing.

    Raises ModelFormatError: Arrays or entries that are missing, of another shape or type, or out of range.
    """

    def bad(what: str) -> ModelFormatError:
        return ModelFormatError(f"hypotheses of the family {FAMILY!r}: {what}", file=spec.file)

    odd = sorted(set(arrays) - {"columns", "thresholds"})
    if odd:
        raise bad(f"an array {odd[0]!r} that stumps do not have")
    signed, names = spec.fields.get("signed"), spec.strings("names")
    if not isinstance(signed, bool):
        raise bad("'signed' is neither true nor false")
    if names is None:
        raise bad("'names' is not a list")
    columns = expect_array(arrays, "columns", np.int64, (len(names),), spec.file)
    thresholds = expect_array(arrays, "thresholds", np.float64, (len(names),), spec.file)
    if np.any((columns < 0) | (columns >= n_features)):
        raise bad(f"a raw column is not within 0..{n_features - 1}")
    return StumpSet(columns, thresholds, signed, names)
