"""A small block of examples with the Hessians of a multinomial loss, for what preconditions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dboost.compiled.sparse import columns

M, A, K = 60, 9, 3


@pytest.fixture
def curved():
    """Examples by row with their Hessians, the dense matrix, and the diagonal of the curvature, the intercept last."""
    rng = np.random.default_rng(3)
    X = (rng.normal(size=(M, A)) * (rng.random((M, A)) < 0.5)).astype(np.float32)
    csc = sp.csc_array(X)
    csc.sort_indices()
    csc = (csc.indptr.astype(np.int64), csc.indices.astype(np.int32), csc.data)
    cut = columns.cut_rows(*csc, np.arange(A), M)
    q = rng.dirichlet(np.ones(K), M)
    weight = rng.uniform(0.5, 2.0, M)
    h = np.zeros((M, 4), np.float32)
    h[:, :K] = q * weight[:, None]
    d = h[:, :K].astype(float) - h[:, :K].astype(float) ** 2 / weight[:, None]
    Z = np.hstack([X.astype(float), np.ones((M, 1))])
    return cut, h, 1.0 / weight, Z, d, np.einsum("ij,ir->jr", Z**2, d)
