"""The kernels that a model holds: their centres, and evaluating, saving and reading them.

Covers: ``KernelSet`` and ``restore``.
Does not cover: candidates (``kernels``), or distances (``centres``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import DataError, ModelFormatError
from dboost.files.documents import Document
from dboost.hypotheses.base import Block
from dboost.hypotheses.kernels import kernel_loops
from dboost.hypotheses.kernels.centres import Centres, by_row, kernel_block, squares_of

FAMILY = "kernels"
INPUTS = ("raw", "cosine")


def kernel_columns(raw: Block, centres: Centres, gamma: float, cosine: bool) -> Block:
    """The kernels of all rows and centres as columns; values that underflow to zero are not stored."""
    lines = by_row(raw)
    K = kernel_block(lines, squares_of(lines), centres, gamma, cosine)
    indptr, rows, values = kernel_loops.sparse_columns(K)
    return Block(indptr, rows, values, raw.n_rows)


def words_of(numbers: NDArray[np.int64], given: bool) -> list[str]:
    """Names of kernels by the numbers of their centres."""
    kind = "centre" if given else "row"
    return [f"K(x; {kind} {number})" for number in numbers.tolist()]


@dataclass(frozen=True, eq=False)
class KernelSet:
    """The kernels that a model holds, with their centres."""

    centres: Centres
    gamma: float
    cosine: bool  # cosine, given: As in `KernelPool`.
    given: bool
    n_features: int  # Raw columns offered.

    @property
    def family(self) -> str:
        """``"kernels"``."""
        return FAMILY

    @property
    def inputs(self) -> NDArray[np.int64]:
        """All raw columns: each one is part of the distance."""
        return np.arange(self.n_features, dtype=np.int64)

    @property
    def n_hypotheses(self) -> int:
        """Number of centres."""
        return len(self.centres)

    def words(self) -> list[str]:
        """``K(x; row 17)``, ..."""
        return words_of(self.centres.numbers, self.given)

    def evaluate(self, raw: Block) -> Block:
        """The kernels as columns.

        Raises DataError: When the block has another number of columns, or a row has no finite length.
        """
        if len(raw.indptr) - 1 != self.n_features:
            raise DataError(f"a block of {len(raw.indptr) - 1} columns; the kernels need {self.n_features}")
        return kernel_columns(raw, self.centres, self.gamma, self.cosine)

    def to_json(self) -> dict[str, Any]:
        """All but the centres."""
        return {
            "family": FAMILY,
            "gamma": self.gamma,
            "input": INPUTS[self.cosine],
            "given": self.given,
            "n_features": self.n_features,
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The centres."""
        return {f"kernel_{name}": getattr(self.centres, name) for name in _KINDS}


_KINDS: dict[str, tuple[Any, ...]] = {
    "pointer": (np.int64,),
    "slots": (np.int32,),
    "values": (np.float32, np.float64),
    "numbers": (np.int64,),
}


def restore(spec: Document, arrays: Mapping[str, NDArray[Any]], n_features: int) -> KernelSet:
    """Read a `KernelSet` back, trusting nothing.

    `spec`: What ``KernelSet.to_json`` gave.
    `arrays`: What ``KernelSet.arrays`` gave.
    `n_features`: Raw columns of the model.
    Raises ModelFormatError.
    """
    file = spec.file
    spec.choice("family", (FAMILY,))
    gamma, cosine = spec.number("gamma"), spec.choice("input", INPUTS) == "cosine"
    given = spec.fields.get("given")
    if not 0.0 < gamma < math.inf or not isinstance(given, bool) or spec.count("n_features") != n_features:
        raise ModelFormatError("the kernels' gamma, number of features or origin is wrong", file=file)
    odd = sorted(set(arrays) - {f"kernel_{name}" for name in _KINDS})
    if odd:
        raise ModelFormatError(f"hypotheses of family {FAMILY!r} with an array {odd[0]!r}", file=file)
    parts = [_checked_array(arrays, f"kernel_{name}", kinds, file) for name, kinds in _KINDS.items()]
    centres = Centres(*parts)
    pointer, slots, size = centres.pointer, centres.slots, len(centres.slots)
    sound = (
        len(pointer) == len(centres.numbers) + 1
        and len(centres.values) == size
        and pointer[0] == 0
        and pointer[-1] == size
        and bool(np.all(np.diff(pointer) >= 0))
        and bool(np.all((slots >= 0) & (slots < n_features)))
        and bool(np.all(np.isfinite(centres.values)) and np.all(centres.numbers >= 0))
    )
    if sound and size > 1:
        ascends = np.diff(slots.astype(np.int64)) > 0
        starts = pointer[1:-1]
        ascends[starts[(starts > 0) & (starts < size)] - 1] = True
        sound = bool(np.all(ascends))
    if not sound:
        raise ModelFormatError("the centres of the kernels are damaged", file=file)
    return KernelSet(centres, gamma, cosine, given, n_features)


def _checked_array(arrays: Mapping[str, NDArray[Any]], name: str, kinds: tuple[Any, ...], file: str) -> NDArray[Any]:
    value = arrays.get(name)
    if value is None or value.dtype not in [np.dtype(kind) for kind in kinds] or value.ndim != 1:
        found = "nothing" if value is None else f"{value.dtype} of {value.ndim} dimensions"
        raise ModelFormatError(f"array {name!r}: expected {np.dtype(kinds[-1])} (n,), found {found}", file=file)
    return value
