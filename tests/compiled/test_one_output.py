"""The loops of one output against numpy, against the loops over rows of outputs, and digests of arrays."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numba import njit

from dboost.compiled.examples import loss_of_rows
from dboost.compiled.solves import descent, one_output
from dboost.compiled.vectors.digest import digest_of
from dboost.compiled.vectors.exponential import log1p_unit, log_positive
from dboost.losses import LOSSES, get_loss
from dboost.penalties import get_penalty
from tests.compiled.conftest import arrays

SEVERAL = ("multinomial", "margin_softmax", "multitarget")
SINGLE = [name for name in LOSSES if name not in SEVERAL]


@njit
def _logarithms(x, ones, out, out_ones):
    for i in range(x.shape[0]):
        out[i] = log_positive(x[i])
        out_ones[i] = log1p_unit(ones[i])


@pytest.fixture(params=[np.float32, np.float64])
def block(request, rng):
    """A CSC block of 1300 examples, more than are turned to rows at once, with an empty column."""
    dense = np.where(rng.random((1300, 14)) < 0.3, rng.normal(size=(1300, 14)), 0.0)
    dense[:, 5] = 0.0
    return sp.csc_matrix(dense.astype(request.param))


def labels(loss, m, rng):
    if loss in ("squared", "epsilon_insensitive", "huber", "quantile"):
        return rng.normal(size=m)
    if loss == "poisson":
        return rng.poisson(2.0, size=m).astype(float)
    return rng.choice([-1, 1], (m, 1)).astype(np.int8)


def test_logarithms(rng):
    x = np.concatenate([10.0 ** rng.uniform(-300, 2, 100_000), rng.random(100_000), 1 - 10.0 ** rng.uniform(-16, 0, 9)])
    x = np.append(x, [1.0, np.finfo(float).tiny])
    ones = np.append(rng.random(x.shape[0] - 2), [0.0, 1.0])
    out, out_ones = np.empty_like(x), np.empty_like(x)
    _logarithms(x, ones, out, out_ones)
    exact, exact_ones = np.log(x.astype(np.longdouble)), np.log1p(ones.astype(np.longdouble))
    assert np.all(np.abs(out - exact) <= 4 * np.spacing(np.abs(exact.astype(float))))
    assert np.all(np.abs(out_ones - exact_ones) <= 4 * np.spacing(exact_ones.astype(float)))


@pytest.mark.parametrize("loss", SINGLE)
def test_an_example_has_the_same_bits_wherever_it_stands(loss, rng):
    """In a vector or in what is left over: a pass goes by partition, the driver over all examples at once."""
    m = 300
    weight, f, y = rng.random(m), 3.0 * rng.normal(size=m), labels(loss, m, rng)
    whole = np.empty((2, m))
    loss_of_rows.single_state(get_loss(loss).target(y), f, weight, *whole)
    for first in range(1, 20):
        part = np.empty((2, m - first))
        target = get_loss(loss).target(y[first:].copy())
        loss_of_rows.single_state(target, f[first:].copy(), weight[first:].copy(), *part)
        np.testing.assert_array_equal(part, whole[:, first:])


@pytest.mark.parametrize("loss", SINGLE)
def test_state_and_dual_value_are_those_of_the_row_functions(loss, rng):
    m = 700
    weight = np.where(rng.random(m) < 0.1, 0.0, rng.random(m))
    f = rng.normal(size=m) * np.where(rng.random(m) < 0.1, 900.0, 2.0)
    target = get_loss(loss).target(labels(loss, m, rng))
    u, h = np.empty(m), np.empty(m)
    got = loss_of_rows.single_state(target, f, weight, u, h)
    U, total, H, rank_one = np.empty((m, 1)), np.zeros(1), np.empty((m, 1)), np.empty(m)
    assert got == pytest.approx(loss_of_rows.residuals(f[:, None].copy(), 0, 1, target, weight, U, total), rel=1e-13)
    np.testing.assert_allclose(u, U[:, 0], rtol=1e-13, atol=0)
    loss_of_rows.curvature(f[:, None].copy(), 0, 1, target, weight, H, rank_one)
    np.testing.assert_allclose(h, H[:, 0], rtol=1e-12, atol=1e-19)
    f = rng.normal(size=m)
    for given in [(0.9, 0.0, 0.0, 0.0), (0.8, 0.1, 0.01, 0.3)]:
        scale, mix, shift, prior = (np.array([v]) for v in given)
        dual = loss_of_rows.dual_values(f[:, None].copy(), 0, target, weight, scale, mix, shift[None], prior)
        assert loss_of_rows.single_dual_value(target, f, weight, *given) == pytest.approx(dual, rel=1e-12)


@pytest.mark.parametrize("repair", [(0.0, 0.0, 0.0), (1e-3, 1e-9, 0.3)])
@pytest.mark.parametrize("scale", [1.0, 1.0 - 1e-9, 0.7])
def test_the_dual_value_of_examples_far_from_the_boundary_has_its_digits(rng, scale, repair):
    """A probability near one is told by what it lacks, else a certificate would inherit the error of a difference."""
    one, (mix, shift, prior) = np.ones(1), repair
    for label in (-1, 1):
        target = get_loss("log").target(np.array([[label]], np.int8))
        for f in np.concatenate([rng.uniform(-30.0, 30.0, 200), [0.0]]):
            z = np.longdouble(label) * np.longdouble(f)
            moved = 1 / (1 + np.exp(z))
            other = prior if label < 0 else 1 - np.longdouble(prior)
            moved = (1 - np.longdouble(mix)) * (moved + label * np.longdouble(shift)) + mix * other
            al = np.longdouble(scale) * moved
            if not 0 < al < 1:
                continue
            exact = -(al * np.log(al) + (1 - al) * np.log1p(-al))
            got = loss_of_rows.single_dual_value(target, np.array([f]), one, scale, mix, shift, prior)
            given = (np.array([v]) for v in (scale, mix, [shift], prior))
            rows = loss_of_rows.dual_values(np.array([[f]]), 0, target, one, *given)
            # the unit of what is near one, and a few of those of the value itself
            allowed = 2.0**-52 + 16 * 2.0**-53 * float(exact)
            assert abs(float(got - exact)) <= allowed and abs(float(rows - exact)) <= allowed, (label, f)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_without_gaps_have_the_sums_of_columns_by_row(dtype, rng):
    """An example more, which no column has, makes the loops read the row of each value."""
    places, w = np.arange(6), np.array([0.5, -1.0, 2.0, 0.3, 0.0, 1.5])
    for m in (1, 3, 16, 47, 1301):
        X, u, h, found = rng.normal(size=(m, 6)).astype(dtype), rng.normal(size=m), rng.random(m), []
        for more in (0, 1):
            cut = sp.csc_matrix(np.vstack([X, np.zeros((more, 6), dtype)]))
            f, sums, G, diagonal = np.ones(m + more), np.empty(6), np.empty(6), np.empty(6)
            one_output.add_columns(*arrays(cut), places, w, f)
            given = *arrays(cut), places, np.append(u, np.ones(more))
            one_output.column_sums(*given, sums)
            one_output.column_curvature(*given, np.append(h, np.ones(more)), G, diagonal)
            found.append((f[:m], sums, G, diagonal))
        np.testing.assert_array_equal(found[0][0], found[1][0])
        exact = X.astype(np.longdouble)
        sizes = np.abs(exact).T @ np.abs(u), (exact**2).T @ h
        for _, sums, G, diagonal in found:
            assert np.all(np.abs(sums - exact.T @ u) <= 1e-14 * sizes[0])
            assert np.all(np.abs(G - exact.T @ u) <= 1e-14 * sizes[0])
            assert np.all(np.abs(diagonal - (exact**2).T @ h) <= 1e-14 * sizes[1])


def test_a_descent_over_columns_without_gaps_ends_where_one_by_row_does(rng):
    m, places = 1301, np.arange(3)
    X = sp.csc_matrix(rng.normal(size=(m, 3)).astype(np.float32))
    h, G, found = rng.random(m).astype(np.float32), 300.0 * rng.normal(size=3), []
    for more in (0, 1):
        new, curvature = np.zeros(3), np.append(h, np.zeros(more, np.float32))
        rest = np.full(3, 0.5), np.full(3, 700.0), np.zeros(3), False, 500, 0.0, 7, new, np.zeros(3, np.int8)
        one_output.descend(*arrays(X), places, curvature, G, np.zeros(3), *rest)
        found.append(new)
    np.testing.assert_allclose(*found, rtol=1e-5)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("signed", [False, True])
def test_descent_ends_where_the_loops_over_outputs_end(block, intercept, signed, rng):
    """Both solve the same model; neither is asked to stop early."""
    n = 14 + intercept
    signs = np.append(np.resize([1, 0, -1] if signed else [0], 14), [0] * intercept).astype(np.int8)
    h = rng.random(1300).astype(np.float32)
    G, W = rng.normal(size=n) * 3, np.where(rng.random(n) < 0.5, rng.normal(size=n), 0.0)
    W = np.where(signs * W < 0.0, 0.0, W)
    strength = np.append(np.full(14, 1.5), [0.0] * intercept)
    diagonal = np.append((block.power(2).T @ h).astype(float), [h.sum()] * intercept)
    damping = 0.01 * diagonal
    single = block.data.astype(np.float32)
    indptr, row, _ = arrays(block)
    new = W.copy()
    one_output.descend(
        indptr, row, single, np.arange(14), h, G, W, strength, diagonal, damping, intercept, 500, 0.0, 1, new, signs
    )
    D = np.zeros((n, 1))
    wide = [v[:, None].copy() for v in (G, W, diagonal, damping)]
    model = (indptr, row, single, h[:, None].copy(), np.zeros(1300), wide[0], wide[1], strength, wide[2], wide[3])
    descent.newton_descent(*model, *get_penalty("l1").compiled, 500, 1, D, 1e-9, signs)
    assert np.all(signs * new >= 0.0) and np.all(signs * (W + D[:, 0]) >= 0.0)
    np.testing.assert_allclose(new, W + D[:, 0], atol=2e-5)
    assert np.array_equal(new[:14] == 0.0, (W + D[:, 0])[:14] == 0.0) and np.any(new == 0.0)
    assert new[5] == W[5]


def test_digests(rng):
    for dtype in (np.float64, np.float32, np.int32, np.int8):
        a = (rng.normal(size=1003) * 50).astype(dtype)
        assert digest_of(a) == digest_of(a.copy())
        for i in (0, 1, 500, 1002):
            b = a.copy()
            b[i] += 1
            assert digest_of(a) != digest_of(b)
        b = a.copy()
        b[[3, 19]] = 7, 9
        c = a.copy()
        c[[3, 19]] = 9, 7
        assert digest_of(b) != digest_of(c)
    assert digest_of(np.zeros(16)) != digest_of(np.zeros(24))
