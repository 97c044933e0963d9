"""One decoded block of examples, and the sums that blocks are reduced to.

Covers: the two frozen values that cross process borders, ``Partition`` and ``Sums``; the kinds of labels.
Does not cover: how a block is read (``dboost.data``), what is summed (``dboost.passes``), or along which tree
(``dboost.engine``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Features by row (CSR): start of each row, columns, values.
ByRow = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]

# Kinds of labels. What a block holds of each is told by ``Partition``.
TASKS = ("binary", "multiclass", "multitask", "regression", "multitarget")
# Those with a column of labels for each output, in any of which a label may be missing.
SEVERAL = ("multitask", "multitarget")
# Those whose labels are numbers: there are no classes, and nothing has a probability.
NUMBERS = ("regression", "multitarget")


@dataclass(frozen=True)
class Partition:
    """A block of examples with the features stored by column (CSC).

    Columns, because a full scoring pass produces one row of G = X'U per column and may be asked for a range of
    columns only; passes over the active rows cut their columns out once and keep them by row.

    Parameters
    ----------
    indptr : int64 array, shape (n_features + 1,)
        Start of each column in `rows` and `values`.
    rows : int32 array, shape (nnz,)
        Row of each stored value, ascending within a column.
    values : float32 or float64 array, shape (nnz,)
        The stored values, finite.
    y : array
        Encoded labels. int8 (m, k) with -1, +1, and 0 for a missing label (losses ``log`` with k = 1, ``multitask``);
        int32 (m,) class codes 0..k-1 (``multinomial``); float64 (m,) (regression);
        float64 (m, k), NaN for a missing target (``multitarget``).
    weight : float64 array, shape (m,)
        Example weights s_i >= 0, class weights included.
    key : str
        Names the block uniquely and stably within its data set.
    group : uint64 array, shape (m,), or None
        The same number for rows that belong together, which no draw parts (``dboost.data.labels.groups``).
    offset : float64 array, shape (m, k), or None
        Where the scores of each example begin (``passes.offsets``); None: at zero.
    """

    indptr: NDArray[np.int64]
    rows: NDArray[np.int32]
    values: NDArray[Any]
    y: NDArray[Any]
    weight: NDArray[np.float64]
    key: str
    group: NDArray[np.uint64] | None = None
    offset: NDArray[np.float64] | None = None

    @property
    def n_rows(self) -> int:
        """Number of examples m in the block."""
        return int(self.weight.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns n."""
        return int(self.indptr.shape[0]) - 1

    @property
    def nbytes(self) -> int:
        """Bytes held by the arrays."""
        arrays = (self.indptr, self.rows, self.values, self.y, self.weight, self.group, self.offset)
        return int(sum(a.nbytes for a in arrays if a is not None))

    @property
    def rowwise(self) -> bool:
        """False: the features are at hand by column only."""
        return False

    @property
    def by_row(self) -> ByRow | None:
        """None, as they are at hand by column only."""
        return None

    def load(self) -> Partition:
        """Return itself: a decoded block needs no reading (the items of a plan share this method)."""
        return self


@dataclass
class Sums:
    """What a pass returns for one block, and for every union of blocks.

    Parameters
    ----------
    add : dict of str to float, array or another value with an associative +
        Added elementwise.
    peak : dict of str to array
        Merged by the elementwise maximum.
    parts : dict of str to list
        Concatenated in the order of the partitions.
    """

    add: dict[str, Any] = field(default_factory=dict)
    peak: dict[str, NDArray[Any]] = field(default_factory=dict)
    parts: dict[str, list[Any]] = field(default_factory=dict)

    def merge(self, right: Sums) -> Sums:
        """Absorb the sums of the blocks to the right, in place, and return self."""
        for name, value in right.add.items():
            mine = self.add[name]
            if isinstance(mine, np.ndarray):
                np.add(mine, value, out=mine)
            else:
                self.add[name] = mine + value
        for name, value in right.peak.items():
            np.maximum(self.peak[name], value, out=self.peak[name])
        for name, value in right.parts.items():
            self.parts[name].extend(value)
        return self
