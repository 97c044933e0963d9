"""Monomials of scaled raw features: the columns of some of them, their names, and the set that a model holds.

A monomial is the sorted tuple of the raw columns it multiplies, with repetition: (4, 4, 7) is x4^2 * x7. Raw features
enter as (x - low) / width, so that |x| <= 1 and products stay bounded (docs/math.md 7 (F)).
Does not cover: which monomials are candidates (``products``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import ModelFormatError
from dboost.files.documents import Document, expect_array
from dboost.hypotheses.base import Array, Block, Key
from dboost.hypotheses.products import product_loops

MAX_DEGREE = 1000


def flattened(keys: Sequence[Key], places: dict[int, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(ends, letters) of some monomials for the compiled loops; `places` maps raw columns to columns of the block."""
    ends = np.zeros(len(keys) + 1, np.int64)
    np.cumsum([len(key) for key in keys], out=ends[1:])
    letters = np.fromiter((places[j] for key in keys for j in key), np.int64, count=int(ends[-1]))
    return ends, letters


def words(key: Key, features: Sequence[str] | None, low: Mapping[int, float] | None = None) -> str:
    """A monomial in words, for example ``lstat^2 * rm``, or ``(lstat - 1.73)^2 * rm``.

    `features`: Names of the raw columns.
    `low`: What is taken from raw columns before they are multiplied, where it is not 0.
    """
    parts = []
    for j, run in groupby(key):
        name = f"x{j}" if features is None else features[j]
        moved = 0.0 if low is None else low.get(j, 0.0)
        if moved:
            name = f"({name} {'-' if moved > 0.0 else '+'} {abs(moved):.4g})"
        power = len(list(run))
        parts.append(name if power == 1 else f"{name}^{power}")
    return " * ".join(parts) if parts else "1"


@dataclass(frozen=True, eq=False)
class MonomialSet:
    """The monomials of a model."""

    inputs: NDArray[np.int64]  # (b,): Raw columns that occur, ascending.
    low: Array  # low, width: float64 arrays, shape (b,). Scale of each.
    width: Array
    keys: tuple[Key, ...]  # The monomials, in raw columns.
    names: tuple[str, ...]  # In words.

    family = "products"

    @property
    def n_hypotheses(self) -> int:
        """How many monomials there are."""
        return len(self.keys)

    def words(self) -> list[str]:
        """Their names."""
        return list(self.names)

    def named_weights(self, W: Array) -> Array:
        """Weights of the monomials of raw features, moved where the words say so, and not divided."""
        width = dict(zip(self.inputs.tolist(), self.width.tolist()))
        found = np.array(W, dtype=np.float64)
        # one after the other: the product of all may overflow where the weight does not
        for row, key in zip(found, self.keys, strict=True):
            for j in key:
                row /= width[j]
        return found

    def evaluate(self, raw: Block) -> Block:
        """The monomials as columns, from a block of the columns `inputs`."""
        letters = np.arange(len(self.inputs))
        scaled = product_loops.scaled_columns(
            raw.indptr, raw.rows, raw.values, raw.n_rows, letters, self.low, self.width
        )
        ends, flat = flattened(self.keys, {int(j): c for c, j in enumerate(self.inputs)})
        indptr, rows, values = product_loops.monomials(*scaled, raw.n_rows, ends, flat)
        return Block(indptr, rows, values, raw.n_rows)

    def to_json(self) -> dict[str, Any]:
        """Family, monomials and names."""
        return {"family": "products", "monomials": [list(key) for key in self.keys], "names": list(self.names)}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Raw columns and their scale."""
        return {"inputs": self.inputs, "low": self.low, "width": self.width}


def restore(spec: Document, arrays: Mapping[str, NDArray[Any]], n_features: int) -> MonomialSet:
    """The set that ``MonomialSet.to_json`` and ``arrays`` describe, trusting nothing.

    Raises ModelFormatError: Arrays or entries that are missing, of another shape or type, or out of range.
    """

    def bad(what: str) -> ModelFormatError:
        return ModelFormatError(f"hypotheses of the family 'products': {what}", file=spec.file)

    inputs = arrays.get("inputs")
    if inputs is None or inputs.dtype != np.int64 or inputs.ndim != 1:
        raise bad("array 'inputs' is not one row of int64")
    if len(inputs) and (inputs[0] < 0 or inputs[-1] >= n_features or np.any(np.diff(inputs) <= 0)):
        raise bad(f"the raw columns are not ascending within 0..{n_features - 1}")
    low, width = (expect_array(arrays, name, np.float64, inputs.shape, spec.file) for name in ("low", "width"))
    if np.any(width <= 0.0):
        raise bad("a width is not positive")
    keys, names, known = spec.integer_lists("monomials"), spec.strings("names"), set(inputs.tolist())
    if names is None or len(keys) != len(names):
        raise bad("'monomials' and 'names' are not lists of one length")
    for key in keys:
        if not 0 < len(key) <= MAX_DEGREE or list(key) != sorted(key) or not known.issuperset(key):
            raise bad(f"monomial {str(key)[:60]} is not a sorted list of raw columns")
    return MonomialSet(inputs, low, width, keys, names)
