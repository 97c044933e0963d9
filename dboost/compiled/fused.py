"""Passes over examples that fuse margins, loss and sums: no m x k array is stored unless it is the result.

A block enters as the cut of its active columns, stored by row (``columns.cut_rows``), with the active rows of W and
the intercept b. The loss enters through its target, whose type selects the row functions (``dboost.losses.base``).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dboost.losses.base import branch_row, curvature_row, dual_row, loss_row, peak_row, residual_row, theta_row

# Curvature below this share of an example's weight is dropped: in float32 it would become subnormal numbers, on which
# arithmetic is several times slower.
_NEGLIGIBLE = 1e-20


@njit(nogil=True, cache=True)
def _margin_row(pointer, slots, values, i, W, b, f):
    k = f.shape[0]
    for r in range(k):
        f[r] = b[r]
    for p in range(pointer[i], pointer[i + 1]):
        v = np.float64(values[p])
        w = W[slots[p]]
        for r in range(k):
            f[r] += v * w[r]


@njit(nogil=True, cache=True)
def margins(pointer, slots, values, W, b):
    """F = X_A W + b, shape (m, k)."""
    F = np.empty((pointer.shape[0] - 1, b.shape[0]))
    for i in range(F.shape[0]):
        _margin_row(pointer, slots, values, i, W, b, F[i])
    return F


@njit(nogil=True, cache=True)
def loss_of_margins(F, target, weight):
    """L at given margins (m, k), which may be overwritten."""
    loss = 0.0
    for i in range(F.shape[0]):
        if weight[i] > 0.0:
            loss += loss_row(target, i, F[i], weight[i])
    return loss


@njit(nogil=True, cache=True)
def largest(pointer, slots, values, W, b, target, weight):
    """max_i log |U_i|, -inf without examples of positive weight; for losses that are ``shifted``."""
    f = np.empty(b.shape[0])
    top = -np.inf
    for i in range(weight.shape[0]):
        if weight[i] > 0.0:
            _margin_row(pointer, slots, values, i, W, b, f)
            top = max(top, peak_row(target, i, f, weight[i]))
    return top


@njit(nogil=True, cache=True)
def residuals(pointer, slots, values, W, b, target, weight, total):
    """U of shape (m, k); adds the column sums of U to `total`. Returns (U, L)."""
    k = b.shape[0]
    U = np.empty((weight.shape[0], k))
    f = np.empty(k)
    loss = 0.0
    for i in range(U.shape[0]):
        u = U[i]
        if weight[i] <= 0.0:
            for r in range(k):
                u[r] = 0.0
            continue
        _margin_row(pointer, slots, values, i, W, b, f)
        loss += residual_row(target, i, f, weight[i], u)
        for r in range(k):
            total[r] += u[r]
    return U, loss


@njit(nogil=True, cache=True)
def branches(pointer, slots, values, W, b, target, weight, total):
    """The pulls of the examples up and down, each (m, k), whose difference is U (``losses.base.branch_row``).

    Adds the column sums of U to `total`. Returns (plus, minus, L).
    """
    k = b.shape[0]
    plus = np.empty((weight.shape[0], k))
    minus = np.empty((weight.shape[0], k))
    f = np.empty(k)
    loss = 0.0
    for i in range(plus.shape[0]):
        up = plus[i]
        down = minus[i]
        if weight[i] <= 0.0:
            for r in range(k):
                up[r] = 0.0
                down[r] = 0.0
            continue
        _margin_row(pointer, slots, values, i, W, b, f)
        loss += branch_row(target, i, f, weight[i], up, down)
        for r in range(k):
            total[r] += up[r] - down[r]
    return plus, minus, loss


@njit(nogil=True, cache=True)
def repair(U, target, weight, keep, mix, shift, prior):
    """Overwrite the residuals of a block by the dual point that they are repaired to (``losses.base.theta_row``)."""
    for i in range(weight.shape[0]):
        if weight[i] > 0.0:
            theta_row(target, i, U[i], weight[i], keep, mix, shift, prior)


@njit(nogil=True, cache=True)
def active_gradient(pointer, slots, values, W, b, target, weight, G, total):
    """Add G_A = X_A'U to `G` and the column sums of U to `total`; return L."""
    k = b.shape[0]
    f = np.empty(k)
    u = np.empty(k)
    loss = 0.0
    for i in range(weight.shape[0]):
        if weight[i] <= 0.0:
            continue
        _margin_row(pointer, slots, values, i, W, b, f)
        loss += residual_row(target, i, f, weight[i], u)
        for r in range(k):
            total[r] += u[r]
        for p in range(pointer[i], pointer[i + 1]):
            v = np.float64(values[p])
            g = G[slots[p]]
            for r in range(k):
                g[r] += v * u[r]
    return loss


@njit(nogil=True, cache=True)
def intercept_sums(pointer, slots, values, W, b, target, weight, total, H):
    """Add the column sums of U to `total` and the intercept's Hessian, sum_i H_i, to `H` (k, k); return L."""
    k = b.shape[0]
    f = np.empty(k)
    held = np.empty(k)
    u = np.empty(k)
    h = np.empty(k)
    loss = 0.0
    for i in range(weight.shape[0]):
        if weight[i] <= 0.0:
            continue
        _margin_row(pointer, slots, values, i, W, b, f)
        for r in range(k):
            held[r] = f[r]
        loss += residual_row(target, i, f, weight[i], u)
        rank_one = curvature_row(target, i, held, weight[i], h)
        for r in range(k):
            total[r] += u[r]
            H[r, r] += h[r]
        if rank_one != 0.0:
            for r in range(k):
                t = rank_one * h[r]
                row = H[r]
                for q in range(k):
                    row[q] -= t * h[q]
    return loss


@njit(nogil=True, cache=True)
def losses_along(pointer, slots, values, W, b, D, d, steps, target, weight, out):
    """Add L(F + t (X_A D + d)) to `out[q]` for every t = steps[q] (the GRID pass of the math notes, section 0)."""
    k = b.shape[0]
    f = np.empty(k)
    z = np.empty(k)
    trial = np.empty(k)
    for i in range(weight.shape[0]):
        if weight[i] <= 0.0:
            continue
        _margin_row(pointer, slots, values, i, W, b, f)
        _margin_row(pointer, slots, values, i, D, d, z)
        for q in range(steps.shape[0]):
            for r in range(k):
                trial[r] = f[r] + steps[q] * z[r]
            out[q] += loss_row(target, i, trial, weight[i])


@njit(nogil=True, cache=True)
def curvature(pointer, slots, values, W, b, target, weight, h, rank_one):
    """Hessian of every example as diag(h_i) - r_i h_i h_i': fill `h` (m, k) and `rank_one` (m,)."""
    k = b.shape[0]
    f = np.empty(k)
    row = np.empty(k)
    for i in range(weight.shape[0]):
        if weight[i] <= 0.0:
            rank_one[i] = 0.0
            for r in range(k):
                h[i, r] = 0.0
            continue
        _margin_row(pointer, slots, values, i, W, b, f)
        rank_one[i] = curvature_row(target, i, f, weight[i], row)
        smallest = _NEGLIGIBLE * weight[i]
        for r in range(k):
            h[i, r] = row[r] if row[r] > smallest else 0.0


@njit(nogil=True, cache=True)
def hessian_product(pointer, slots, values, h, rank_one, V, v, out, total):
    """Add X_A' H (X_A V + 1 v') to `out` and the intercept's part to `total`."""
    k = v.shape[0]
    z = np.empty(k)
    for i in range(rank_one.shape[0]):
        _margin_row(pointer, slots, values, i, V, v, z)
        row = h[i]
        for r in range(k):
            z[r] *= row[r]
        if rank_one[i] != 0.0:
            t = 0.0
            for r in range(k):
                t += z[r]
            t *= rank_one[i]
            for r in range(k):
                z[r] -= t * row[r]
        for r in range(k):
            total[r] += z[r]
        for p in range(pointer[i], pointer[i + 1]):
            x = np.float64(values[p])
            g = out[slots[p]]
            for r in range(k):
                g[r] += x * z[r]


@njit(nogil=True, cache=True)
def dual_value(pointer, slots, values, W, b, target, weight, scale, mix, shift, prior):
    """sum_i s_i D_i at the repaired and scaled dual point (``losses.base.dual_row``)."""
    f = np.empty(b.shape[0])
    value = 0.0
    for i in range(weight.shape[0]):
        if weight[i] > 0.0:
            _margin_row(pointer, slots, values, i, W, b, f)
            value += dual_row(target, i, f, weight[i], scale, mix, shift, prior)
    return value
