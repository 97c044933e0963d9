"""Whether a row names a column twice: sorted rows, unsorted ones and empty ones."""

from __future__ import annotations

import numpy as np

from dboost.data.sparse.csr import any_repeats


def test_random_rows_agree_with_sets():
    rng = np.random.default_rng(0)
    for _ in range(300):
        rows = [rng.integers(0, 12, rng.integers(0, 5)) for _ in range(6)]
        rows = [np.sort(row) for row in rows] if rng.random() < 0.5 else rows
        indptr = np.concatenate([[0], np.cumsum([row.shape[0] for row in rows])])
        wanted = any(np.unique(row).shape[0] < row.shape[0] for row in rows)
        assert any_repeats(indptr, np.concatenate(rows).astype(np.int32), 12) is wanted
