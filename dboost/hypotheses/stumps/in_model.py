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


@dataclass(frozen=True, eq=False)
class StumpSet:
    """The stumps of a model.

    Parameters
    ----------
    columns : int64 array, shape (a,)
        Raw column of each stump.
    thresholds : float64 array, shape (a,)
        A stump is 1 where the value is below its threshold.
    signed : bool
        Whether it is -1 elsewhere, and not 0.
    names : tuple of str
        In words.
    """

    columns: NDArray[np.int64]
    thresholds: Array
    signed: bool
    names: tuple[str, ...]

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
        rows: list[NDArray[np.int32]] = [np.zeros(0, np.int32)] * self.n_hypotheses
        below: list[NDArray[np.bool_]] = [np.zeros(0, np.bool_)] * self.n_hypotheses
        for place, j in enumerate(self.inputs.tolist()):
            span = slice(int(raw.indptr[place]), int(raw.indptr[place + 1]))
            dense = np.zeros(raw.n_rows)
            dense[raw.rows[span]] = raw.values[span]
            for stump in np.flatnonzero(self.columns == j).tolist():
                below[stump] = dense < self.thresholds[stump]
                if not self.signed:
                    rows[stump] = np.flatnonzero(below[stump]).astype(np.int32)
        kind = raw.values.dtype
        if self.signed:
            count = self.n_hypotheses
            every = np.tile(np.arange(raw.n_rows, dtype=np.int32), count)
            values = np.concatenate([np.zeros(0, np.bool_), *below])
            indptr = np.arange(count + 1, dtype=np.int64) * raw.n_rows
            return Block(indptr, every, np.where(values, kind.type(1.0), kind.type(-1.0)), raw.n_rows)
        indptr = np.zeros(self.n_hypotheses + 1, np.int64)
        np.cumsum([len(part) for part in rows], out=indptr[1:])
        joined = np.concatenate([np.zeros(0, np.int32), *rows])
        return Block(indptr, joined, np.ones(len(joined), kind), raw.n_rows)

    def to_json(self) -> dict[str, Any]:
        """Family, form and names."""
        return {"family": FAMILY, "signed": self.signed, "names": list(self.names)}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Raw columns and thresholds."""
        return {"columns": self.columns, "thresholds": self.thresholds}


def restore(spec: Document, arrays: Mapping[str, NDArray[Any]], n_features: int) -> StumpSet:
    """The set that ``StumpSet.to_json`` and ``arrays`` describe, trusting nothing.

    Raises
    ------
    ModelFormatError
        Arrays or entries that are missing, of another shape or type, or out of range.
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
