"""Block coordinate descent on the quadratic models of a Newton step (math notes, section 8).

One block is one row of the step D: the row's model is majorised by its diagonal, and the penalised row problem is
solved exactly by ``penalties.diagonal``. Two models share the row solve: the curvature of sampled examples, kept as
V = H z per example, and the Gram bound, kept as K D.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dboost.penalties.diagonal import diagonal_prox

_SWEEPS_AFTER_FIRST = 0.1


@njit(nogil=True, cache=True)
def curvature_diagonal(columns, rows, values, selected, h, rank_one, weight, intercept, out):
    """Diagonal of a bound on each row's model: sum_i x_ij**2 bound_i for the columns `selected`, the intercept last.

    For a softmax example diag(q) - q q' is bounded by diag(q) when no class holds more than half, else by
    2 diag(q (1 - q)) (math notes, section 8, class-separable Newton); a diagonal Hessian is its own bound.
    """
    m, k = h.shape
    bound = np.empty((m, k), np.float32)
    for i in range(m):
        row = h[i]
        out_row = bound[i]
        if rank_one[i] == 0.0:
            for r in range(k):
                out_row[r] = row[r]
            continue
        s = weight[i]
        top = np.float32(0.0)
        for r in range(k):
            top = max(top, row[r])
        if top <= 0.5 * s:
            for r in range(k):
                out_row[r] = row[r]
        else:
            for r in range(k):
                out_row[r] = np.float32(2.0) * row[r] * (np.float32(1.0) - row[r] / np.float32(s))
    for c in range(selected.shape[0]):
        d = out[c]
        j = selected[c]
        for p in range(columns[j], columns[j + 1]):
            x = np.float64(values[p])
            x *= x
            u = bound[rows[p]]
            for r in range(k):
                d[r] += x * u[r]
    if intercept:
        d = out[selected.shape[0]]
        for i in range(m):
            for r in range(k):
                d[r] += bound[i, r]


@njit(nogil=True, cache=True)
def _shuffle(order, state):
    # xorshift: the order of the blocks is a function of the seed alone
    for i in range(order.shape[0] - 1, 0, -1):
        state ^= (state << np.uint64(13)) & np.uint64(0xFFFFFFFFFFFFFFFF)
        state ^= state >> np.uint64(7)
        state ^= (state << np.uint64(17)) & np.uint64(0xFFFFFFFFFFFFFFFF)
        j = np.int64(state % np.uint64(i + 1))
        t = order[i]
        order[i] = order[j]
        order[j] = t
    return state


@njit(nogil=True, cache=True)
def _nonzero(row):
    for r in range(row.shape[0]):
        if row[r] != 0.0:
            return True
    return False


@njit(nogil=True, cache=True)
def _pull(columns, rows, values, V, j, n_columns, g):
    """Add sum_i x_ij V_i to g."""
    k = g.shape[0]
    if j < n_columns:
        for p in range(columns[j], columns[j + 1]):
            x = np.float32(values[p])
            v = V[rows[p]]
            for r in range(k):
                g[r] += x * v[r]
    else:
        for i in range(V.shape[0]):
            v = V[i]
            for r in range(k):
                g[r] += v[r]


@njit(nogil=True, cache=True)
def _push_example(x, h, rank_one, delta, v):
    k = delta.shape[0]
    if rank_one == 0.0:
        for r in range(k):
            v[r] += x * h[r] * delta[r]
        return
    t0 = np.float32(0.0)
    t1 = np.float32(0.0)
    t2 = np.float32(0.0)
    t3 = np.float32(0.0)
    stop = k - k % 4
    for r in range(0, stop, 4):
        t0 += h[r] * delta[r]
        t1 += h[r + 1] * delta[r + 1]
        t2 += h[r + 2] * delta[r + 2]
        t3 += h[r + 3] * delta[r + 3]
    for r in range(stop, k):
        t0 += h[r] * delta[r]
    t = np.float32(rank_one) * ((t0 + t1) + (t2 + t3))
    for r in range(k):
        v[r] += x * h[r] * (delta[r] - t)


@njit(nogil=True, cache=True)
def _push(columns, rows, values, h, rank_one, V, j, n_columns, delta):
    """Move V = H z along with z += x_j delta."""
    if j < n_columns:
        for p in range(columns[j], columns[j + 1]):
            i = rows[p]
            _push_example(np.float32(values[p]), h[i], rank_one[i], delta, V[i])
    else:
        for i in range(V.shape[0]):
            _push_example(np.float32(1.0), h[i], rank_one[i], delta, V[i])


@njit(nogil=True, cache=True)
def newton_descent(
    columns, rows, values, h, rank_one, G, W, lam, diagonal, damping, code, a, b, max_sweeps, seed, D
):
    """Minimise the sampled Newton model over the step D, by sweeps of exact row solves.

    Model: -<G, D> + 1/2 sum_i z_i' H_i z_i + 1/2 sum damping D**2 + sum_j lam_j omega(W_j + D_j), z = X D; `diagonal`
    bounds the rows' curvature from the examples, `damping` (a + 1, k) is what is added to it.
    The last row is the intercept's when W has one row more than there are columns; its lam is 0.

    Returns the number of sweeps. The first and the last sweep visit every row, the others the nonzero rows; sweeping
    ends when one gains less than a tenth of what the first did (tighter inner solves only cost time).
    """
    n_columns = columns.shape[0] - 1
    n_rows, k = W.shape
    V = np.zeros(h.shape, np.float32)
    order = np.arange(n_rows)
    state = np.uint64(seed * 2 + 1)
    g = np.empty(k, np.float32)
    z = np.empty(k)
    out = np.empty(k)
    work = np.empty(4 * k + 8)
    metric = np.empty(k)
    delta = np.empty(k, np.float32)
    first = 0.0
    last_round = False
    sweeps = 0
    while sweeps < max_sweeps:
        full = sweeps == 0 or last_round or sweeps == max_sweeps - 1
        state = _shuffle(order, state)
        gain = 0.0
        for o in range(n_rows):
            j = order[o]
            nonzero = _nonzero(D[j]) or _nonzero(W[j])
            if not full and not nonzero:
                continue
            for r in range(k):
                g[r] = np.float32(0.0)
            _pull(columns, rows, values, V, j, n_columns, g)
            usable = False
            for r in range(k):
                metric[r] = diagonal[j, r] + damping[j, r]
                usable = usable or metric[r] > 0.0
            if not usable:
                continue
            smallest = 1e-12 * metric.max()
            for r in range(k):
                metric[r] = max(metric[r], smallest)
                z[r] = W[j, r] + D[j, r] + (G[j, r] - g[r] - damping[j, r] * D[j, r]) / metric[r]
            if lam[j] == 0.0:
                for r in range(k):
                    out[r] = z[r]
            else:
                diagonal_prox(code, a, b, z, metric, lam[j], out, work)
            moved = False
            for r in range(k):
                change = out[r] - W[j, r] - D[j, r]
                delta[r] = np.float32(change)
                if delta[r] != 0.0:
                    moved = True
                gain += metric[r] * change * change
                # exact zeros must stay exact: D is set so that W + D reproduces `out`
                D[j, r] = out[r] - W[j, r]
            if moved:
                _push(columns, rows, values, h, rank_one, V, j, n_columns, delta)
        sweeps += 1
        if last_round:
            break
        if sweeps == 1:
            first = gain
        elif gain <= _SWEEPS_AFTER_FIRST * first:
            last_round = True
        if gain == 0.0:
            break
    return sweeps


@njit(nogil=True, cache=True)
def gram_descent(K, kappa, centred, G, W, lam, code, a, b, max_sweeps, tolerance, D):
    """Minimise -<G, D> + kappa/2 tr(D'K D) + sum_j lam_j omega(W_j + D_j) over D (math notes, eq. 5).

    `centred` replaces K D by its row-centred version, the tighter bound of the multinomial loss. Stops when a sweep
    gains less than `tolerance` times the first. Returns the number of sweeps.
    """
    n_rows, k = W.shape
    KD = np.zeros((n_rows, k))
    z = np.empty(k)
    out = np.empty(k)
    metric = np.empty(k)
    delta = np.empty(k)
    work = np.empty(4 * k + 8)
    first = 0.0
    for sweep in range(max_sweeps):
        gain = 0.0
        for j in range(n_rows):
            d = kappa * K[j, j]
            if d <= 0.0:
                continue
            mean = 0.0
            if centred:
                for r in range(k):
                    mean += KD[j, r]
                mean /= k
            for r in range(k):
                metric[r] = d
                z[r] = W[j, r] + D[j, r] + (G[j, r] - kappa * (KD[j, r] - mean)) / d
            if lam[j] == 0.0:
                for r in range(k):
                    out[r] = z[r]
            else:
                diagonal_prox(code, a, b, z, metric, lam[j], out, work)
            moved = False
            for r in range(k):
                delta[r] = out[r] - W[j, r] - D[j, r]
                gain += d * delta[r] * delta[r]
                moved = moved or delta[r] != 0.0
                D[j, r] = out[r] - W[j, r]
            if moved:
                for i in range(n_rows):
                    x = K[j, i]
                    if x != 0.0:
                        row = KD[i]
                        for r in range(k):
                            row[r] += x * delta[r]
        if sweep == 0:
            first = gain
        if gain <= tolerance * first:
            return sweep + 1
    return max_sweeps
