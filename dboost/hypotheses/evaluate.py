"""The hypotheses of a model on rows in SciPy's form.

Covers: ``evaluate_rows``. Does not cover: any family.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dboost.errors import DataError
from dboost.hypotheses.base import Block, Chosen


def evaluate_rows(hypotheses: Chosen, batch: Any) -> Any:
    """The hypotheses of some rows.

    `hypotheses`: b inputs, a hypotheses.
    `batch`: Scipy.sparse.csr_array of float64, shape (m, b). The columns ``inputs``; finite.
    Returns scipy.sparse.csr_array of float64, shape (m, a): Columns ascending within a row.
    Raises DataError: When a hypothesis overflows.
    """
    from scipy.sparse import csc_array

    m = batch.shape[0]
    columns = batch.tocsc()
    indptr, rows = columns.indptr.astype(np.int64, copy=False), columns.indices.astype(np.int32, copy=False)
    made = hypotheses.evaluate(Block(indptr, rows, columns.data, m))
    finite = np.isfinite(made.values)
    if not np.all(finite):
        column = int(np.searchsorted(made.indptr, np.argmin(finite), side="right")) - 1
        raise DataError(f"hypothesis {hypotheses.words()[column]!r} overflows on the values of the batch")
    values = made.values.astype(np.float64, copy=False)
    return csc_array((values, made.rows, made.indptr), shape=(m, hypotheses.n_hypotheses)).tocsr()
