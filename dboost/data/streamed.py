"""A block of examples that is read again in every pass: its features by row, as they lie in the file.

Covers: ``StreamedPartition``, which leaves take in place of a ``Partition``.
Does not cover: reading (``parquet_block``), or which passes make do with rows (``dboost.passes``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.data.sparse.csc import to_csc
from dboost.data.sparse.csr import CsrPiece
from dboost.partition import ByRow


@dataclass(frozen=True)
class StreamedPartition:
    """A block stored by row; it is put by column when a pass first asks for that.

    Most passes need only the columns that a model holds. To take them out of the rows costs less than to turn the
    whole block, which lasts for one pass.
    """

    pointer: NDArray[np.int64]  # (m + 1,): Start of each row in `index` and `data`, the first 0.
    index: NDArray[np.int32]  # (nnz,): Columns, ascending and unique within a row.
    data: NDArray[Any]  # (nnz,): The stored values, finite and not zero.
    n_features: int
    y: NDArray[Any]  # y, weight, key: As in ``dboost.partition.Partition``.
    weight: NDArray[np.float64]
    key: str
    group: NDArray[np.uint64] | None = None
    offset: NDArray[np.float64] | None = None

    @property
    def n_rows(self) -> int:
        """Number of examples m in the block."""
        return int(self.weight.shape[0])

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays by row."""
        return int(sum(a.nbytes for a in (self.pointer, self.index, self.data, self.y, self.weight)))

    @property
    def rowwise(self) -> bool:
        """True: the features are at hand by row."""
        return True

    @property
    def by_row(self) -> ByRow:
        """The features by row."""
        return self.pointer, self.index, self.data

    @cached_property
    def _by_column(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]:
        return to_csc([CsrPiece(*self.by_row)], self.n_features, dtype=self.data.dtype)

    @property
    def indptr(self) -> NDArray[np.int64]:
        """Start of each column in `rows` and `values`."""
        return self._by_column[0]

    @property
    def rows(self) -> NDArray[np.int32]:
        """Row of each stored value, by column."""
        return self._by_column[1]

    @property
    def values(self) -> NDArray[Any]:
        """The stored values, by column."""
        return self._by_column[2]
