"""With many classes no table of a row for each example is formed for the model without features."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.compiled.sparse import by_class
from dboost.losses import LOSSES, get_loss
from dboost.passes.point import Point
from dboost.passes.residuals import residuals_of_classes
from tests.boosting import plain

K = 7


def of_classes(m=400, n=30, k=K):
    """Classes of very different sizes, and columns that tell some of them."""
    rng = np.random.default_rng(3)
    y = np.minimum(rng.geometric(0.4, m) - 1, k - 1).astype(np.int32)
    y[:k] = np.arange(k)
    X = rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.4)
    X[np.arange(m), y % n] += 1.0
    return plain.Data("multinomial", X, y, rng.uniform(0.5, 1.5, m), k)


@pytest.mark.parametrize("b", [np.zeros(K), np.linspace(-3, 3, K), np.array([40.0, *np.zeros(K - 1)])])
@pytest.mark.parametrize("name", LOSSES)
def test_what_a_loss_says_of_the_classes_is_what_their_residuals_are(name, b):
    mass = np.array([3.0, 0.5, 0.0, 1.0, 2.0, 7.0, 1e-3])
    found = get_loss(name).without_features(b, mass)
    if found is None:
        assert name != "multinomial"
        return
    y = np.arange(K, dtype=np.int32)
    at = Point(loss=name, held=None, W=np.zeros((0, K)), intercept=b, token="here")
    U, total, loss = residuals_of_classes(at, y, mass)
    np.testing.assert_allclose(mass - mass.sum() * found.p, total, atol=1e-13 * mass.sum())
    np.testing.assert_allclose((np.eye(K) - found.p)[mass > 0], U[mass > 0, :K], atol=1e-15)
    assert found.loss == pytest.approx(loss, rel=1e-13)


def test_sums_by_class_are_those_of_the_table_of_residuals():
    data = of_classes()
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(K))
    X = np.ascontiguousarray(data.X)
    stored = [np.flatnonzero(X[:, j]) for j in range(X.shape[1])]
    indptr = np.concatenate([[0], np.cumsum([len(rows) for rows in stored])])
    rows = np.concatenate(stored).astype(np.int32)
    values = np.concatenate([X[some, j] for j, some in enumerate(stored)]).astype(np.float32)
    chosen = np.array([0, 3, 4, 29])
    out = np.full((4, K), np.nan)
    by_class.null_gradient(indptr, rows, values, data.s, data.y, p, chosen, out)
    U = data.s[:, None] * (np.eye(K)[data.y] - p)
    dense = np.zeros_like(X)
    for j, some in enumerate(stored):
        dense[some, j] = values[indptr[j] : indptr[j + 1]]
    np.testing.assert_allclose(out, dense.T[chosen] @ U, atol=1e-12)
