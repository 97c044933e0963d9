"""The quadratic model of one output: its curvature, and its minimiser."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dboost.compiled.examples import projected
from dboost.compiled.solves import quadratic
from dboost.solvers.one_output.columns_by_row import ColumnsByRow
from tests.compiled.conftest import arrays


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.fixture(params=[np.float32, np.float64])
def block(request, rng):
    """Columns of 1300 examples, one of them empty and one full."""
    X = sp.random(1300, 14, 0.2, format="csc", rng=rng, dtype=request.param)
    X = X.tolil()
    X[:, 5] = 0
    X[:, 9] = rng.normal(size=(1300, 1))
    return sp.csc_matrix(X.astype(request.param))


def in_turn(each, given):
    return [each(part) for part in given]


@pytest.mark.parametrize("intercept", [False, True])
def test_curvature_among_columns(block, intercept, rng):
    places = np.array([2, 9, 4, 5, 0])
    h = rng.random(1300)
    dense = np.column_stack([block.toarray().astype(float)[:, places]] + [np.ones(1300)] * intercept)
    whole = dense.T @ (h[:, None] * dense)
    got = quadratic.gram(*arrays(block), places, h, intercept)
    np.testing.assert_allclose(got, whole, rtol=1e-11, atol=1e-12)
    assert np.array_equal(got, got.T)
    some = [slice(0, 3), slice(3, 700), slice(700, 700), slice(700, 1300)]
    parts = quadratic.gram(*arrays(block), places, h, intercept, some, in_turn)
    np.testing.assert_allclose(parts, got, rtol=1e-12, atol=1e-12)


def test_products_of_columns_by_row_have_the_same_bits_however_they_were_held(block, rng):
    whole, h = block.toarray().astype(float), rng.random(1300)
    held, new = np.arange(11), np.array([12, 11, 13])
    found = []
    for counts in ([11], [1, 2, 3, 11], [6, 8, 9, 10, 11], [4, 8, 11, 11]):
        columns = ColumnsByRow(1300)
        for count in counts:
            columns.hold(*arrays(block), held[:count])
        found.append(columns.products(*arrays(block), new, h, in_turn))
    np.testing.assert_allclose(found[0], whole[:, new].T @ (h[:, None] * whole[:, held]), rtol=1e-11, atol=1e-12)
    assert all(np.array_equal(other, found[0]) for other in found[1:])


@pytest.mark.parametrize("dense", [False, True])
def test_curvature_of_several_outputs(dense, rng):
    """Of classes that pull on one another and of outputs that do not, summed with what was there, in any order."""
    X = np.where(rng.random((141, 7)) < (1.0 if dense else 0.1), rng.normal(size=(141, 7)), 0.0)
    X[:64] *= not dense
    rows, h, k = sp.csr_matrix(X), rng.dirichlet(np.ones(3), 141), 3
    place, used = np.array([2, -1, 0, 1, -1, 4, 3]), [2, 3, 0, 6, 5]
    for bias in (0, 1):
        F = np.column_stack([X[:, used], np.ones((141, bias))])
        entries = F.shape[1] * k
        for rank_one in (np.zeros(141), np.ones(141), rng.random(141)):
            each = np.einsum("ir,rs->irs", h, np.eye(k)) - np.einsum("i,ir,is->irs", rank_one, h, h)
            before = np.full((entries, entries), 2.0)
            projected.add_curvature(*arrays(rows), place, bias, h, rank_one, before)
            whole = np.einsum("ia,ic,irs->arcs", F, F, each).reshape(entries, entries) + 2.0
            np.testing.assert_allclose(before, whole, rtol=1e-12, atol=1e-12)
            assert np.array_equal(before, before.T)


def test_curvature_of_an_example_that_is_nearly_sure_is_not_lost():
    """The difference of two sums would leave its rounding, a ten millionth of it."""
    h = np.tile([1.0 - 2e-9, 1e-9, 1e-9], (200, 1))
    H, rows = np.zeros((9, 9)), sp.csr_matrix(np.ones((200, 3)))
    projected.add_curvature(*arrays(rows), np.arange(3), 0, h, np.ones(200), H)
    np.testing.assert_allclose(H[::3, ::3], 200 * h[0, 0] * (1.0 - h[0, 0]), rtol=1e-7)


@pytest.mark.parametrize("intercept", [False, True])
def test_columns_without_zeros_have_the_bits_of_columns_by_row(intercept, rng):
    """A column with one value more makes the loops turn every example to a row."""
    X = rng.normal(size=(1303, 7))
    X[:, 6] = 0.0
    X[::400, 6] = 1.0
    block, places, h = arrays(sp.csc_matrix(X)), np.arange(6), rng.random(1303)
    whole = quadratic.gram(*block, places, h, intercept)
    by_row = quadratic.gram(*block, np.arange(7), h, intercept)
    np.testing.assert_array_equal(whole, np.delete(np.delete(by_row, 6, 0), 6, 1))


def residual(H, g, prices, W, start):
    """How far each entry of W is from the optimum of the model at `start`."""
    net = g - H @ (W - start)
    return np.where(W != 0.0, np.abs(net - prices * np.sign(W)), np.maximum(np.abs(net) - prices, 0.0))


@pytest.mark.parametrize("size", [1, 7, 40])
def test_minimiser_is_optimal(size, rng):
    A = rng.normal(size=(3 * size, size + 3)) + rng.normal(size=(3 * size, 1))
    H = np.zeros((size + 9, size + 9))
    H[: size + 3, : size + 3] = A.T @ A
    slots = rng.permutation(size + 3)[:size]
    mine = H[np.ix_(slots, slots)]
    start = np.where(rng.random(size) < 0.5, rng.normal(size=size), 0.0)
    g, prices = 20.0 * rng.normal(size=size), 12.0 * rng.random(size)
    prices[0] = 0.0
    W, pull = start.copy(), np.empty(size + 3)
    share = quadratic.minimise(H, slots, g, prices, 0.0, 100_000, 1e-26, W, pull)
    assert share <= 1e-26
    assert residual(mine, g, prices, W, start).max() <= 1e-8
    assert size == 1 or np.any(W == 0.0)
    np.testing.assert_allclose(pull, H[: size + 3][:, slots] @ (W - start), rtol=1e-8, atol=1e-8)
