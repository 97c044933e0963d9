"""Random sparse blocks with every kind of degenerate row and column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp


@dataclass
class Block:
    """A block as the kernels take it, and the same numbers as a dense float64 array."""

    dense: Any
    indptr: Any
    rows: Any
    values: Any
    weight: Any

    @property
    def csc(self):
        return self.indptr, self.rows, self.values


def arrays(X):
    """A matrix of SciPy by column as the kernels take it."""
    return X.indptr.astype(np.int64), X.indices, X.data


@pytest.fixture
def rng():
    return np.random.default_rng(20091102)


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def block(request, rng):
    """40 x 12 with empty rows and columns, a dense column, an explicit zero, zero weights."""
    m, n = 40, 12
    X = (rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.3)).astype(request.param)
    X[:, 2] = 0.0
    X[:, n - 1] = 0.0
    X[5] = X[m - 1] = 0.0
    X[:, 4] = 1.5
    matrix = sp.csc_array(X)
    matrix.sort_indices()
    matrix.data[3] = 0.0
    weight = rng.uniform(0.1, 3, m)
    weight[[0, 17, m - 1]] = 0.0
    return Block(
        matrix.toarray().astype(float),
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int32),
        matrix.data,
        weight,
    )
