"""The objective, its certificate and its proximal steps, written plainly with numpy and scipy.

Covers: losses ``log``, ``multinomial``, ``multitask``; penalties ``l1``, ``l1/l2``, ``l1/linf``, ``l1/l2+l1``,
``none``; the largest penalty strength that is not useless; a duality gap of any W. Of ``elastic_net`` and
``l2_squared`` the objective only, and of the former that strength.
Does not cover: solving (``reference``). Nothing here imports the library, so that it can be judged by this file.

The objective is mean_i loss(y_i, x_i W + b) + alpha sum_j omega(W_j), all in float64. X is (m, n), W (n, k), b (k,).
y: -1/+1 (m,) for ``log``; codes 0..k-1 (m,) for ``multinomial``; -1/+1 and 0 for a missing label, (m, k), for
``multitask``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, expit, logsumexp, softmax

Array = NDArray[Any]
L1_RATIO = 0.5
"""Share of the l1 norm in ``l1/l2+l1`` and ``elastic_net``; the rest is the l2 norm of the row, or half its square."""


def margins(X: Any, W: Array, b: Array) -> Array:
    """Return the scores X W + b, shape (m, k)."""
    return np.asarray(X @ W) + b


def mean_loss(F: Array, y: Array, loss: str) -> float:
    """Return the loss of scores F (m, k), averaged over the m examples."""
    if loss == "multinomial":
        return float(np.mean(logsumexp(F, axis=1) - F[np.arange(F.shape[0]), y]))
    Y = _signs(y)
    return float(np.sum(np.where(Y != 0, np.logaddexp(0.0, -Y * F), 0.0)) / F.shape[0])


def residual(F: Array, y: Array, loss: str) -> Array:
    """Return U = minus the gradient of the summed loss in the scores, shape (m, k)."""
    if loss == "multinomial":
        U = -softmax(F, axis=1)
        rows = np.arange(F.shape[0])
        U[rows, y] = 0.0
        # 1 - q as the sum of the other probabilities: no cancellation when q is next to 1.
        U[rows, y] = -U.sum(axis=1)
        return U
    Y = _signs(y)
    return Y * expit(-Y * F)


def _signs(y: Array) -> Array:
    return np.asarray(y, dtype=np.float64).reshape(y.shape[0], -1)


def omega(W: Array, penalty: str) -> Array:
    """Return the penalty of each row, shape (n,)."""
    if penalty == "none":
        return np.zeros(W.shape[0])
    if penalty == "l1":
        return np.abs(W).sum(axis=1)
    if penalty == "l1/l2":
        return np.sqrt((W**2).sum(axis=1))
    if penalty == "l1/linf":
        return np.abs(W).max(axis=1)
    if penalty == "l1/l2+l1":
        return L1_RATIO * omega(W, "l1") + (1.0 - L1_RATIO) * omega(W, "l1/l2")
    if penalty == "l2_squared":
        return 0.5 * (W**2).sum(axis=1)
    if penalty == "elastic_net":
        return L1_RATIO * omega(W, "l1") + (1.0 - L1_RATIO) * omega(W, "l2_squared")
    raise ValueError(f"unknown penalty {penalty!r}")


def dual_norm(G: Array, penalty: str) -> Array:
    """Return the smallest t with G_j in t times the dual unit ball, shape (n,)."""
    if penalty == "l1":
        return np.abs(G).max(axis=1)
    if penalty == "l1/l2":
        return np.sqrt((G**2).sum(axis=1))
    if penalty == "l1/linf":
        return np.abs(G).sum(axis=1)
    if penalty == "l1/l2+l1":
        # The ball is {a u + c v: |u|_inf <= 1, |v|_2 <= 1}, so t solves |soft(G, a t)|_2 = c t: bisection from above.
        a, c = L1_RATIO, 1.0 - L1_RATIO
        A = np.abs(G)
        low, high = np.zeros(G.shape[0]), A.max(axis=1) / a
        for _ in range(80):
            t = 0.5 * (low + high)
            outside = np.sqrt((np.maximum(A - a * t[:, None], 0.0) ** 2).sum(axis=1)) > c * t
            low, high = np.where(outside, t, low), np.where(outside, high, t)
        return high
    if penalty == "elastic_net":
        # next to zero nothing is left of the square
        return dual_norm(G, "l1") / L1_RATIO
    raise ValueError(f"penalty {penalty!r} has no dual norm")


def prox(Z: Array, t: float, penalty: str) -> Array:
    """Return argmin_W |W - Z|^2 / 2 + t sum_j omega(W_j), row by row."""
    if penalty == "none":
        return Z
    if penalty == "l1":
        return np.sign(Z) * np.maximum(np.abs(Z) - t, 0.0)
    if penalty == "l1/l2":
        size = np.sqrt((Z**2).sum(axis=1, keepdims=True))
        return Z * np.maximum(1.0 - t / np.maximum(size, 1e-300), 0.0)
    if penalty == "l1/linf":
        ordered = -np.sort(-np.abs(Z), axis=1)
        level = (np.cumsum(ordered, axis=1) - t) / np.arange(1, Z.shape[1] + 1)
        bound = np.maximum(level.max(axis=1, keepdims=True), 0.0)
        return np.clip(Z, -bound, bound)
    if penalty == "l1/l2+l1":
        return prox(prox(Z, L1_RATIO * t, "l1"), (1.0 - L1_RATIO) * t, "l1/l2")
    raise ValueError(f"unknown penalty {penalty!r}")


def objective(X: Any, y: Array, W: Array, b: Array, alpha: float, penalty: str, loss: str) -> float:
    """Return the penalised mean loss of W (n, k) and b (k,)."""
    value = mean_loss(margins(X, W, b), y, loss)
    return value + (alpha * float(omega(W, penalty).sum()) if alpha else 0.0)


def n_outputs(y: Array, loss: str) -> int:
    """Return the number of columns of W."""
    if loss == "multinomial":
        return int(y.max()) + 1
    return 1 if loss == "log" else int(y.shape[1])


def null_intercept(y: Array, loss: str) -> Array:
    """Return the best intercept for W = 0, shape (k,)."""
    if loss == "multinomial":
        return np.log(np.bincount(y) / y.shape[0])
    Y = _signs(y)
    return np.log((Y > 0).sum(axis=0)) - np.log((Y < 0).sum(axis=0))


def alpha_max(X: Any, y: Array, penalty: str, loss: str, intercept: bool) -> float:
    """Return the smallest alpha for which W = 0 is optimal."""
    k = n_outputs(y, loss)
    b = null_intercept(y, loss) if intercept else np.zeros(k)
    U = residual(np.broadcast_to(b, (X.shape[0], k)), y, loss)
    return float(dual_norm(np.asarray(X.T @ U), penalty).max()) / X.shape[0]


def dual_value(Theta: Array, y: Array, loss: str) -> float:
    """Return the dual objective sum_i D_i(Theta_i), -inf outside its domain."""
    if loss == "multinomial":
        a = -Theta
        a[np.arange(y.shape[0]), y] += 1.0
    else:
        Y = _signs(y)
        a = np.where(Y != 0, Y * Theta, 0.0)
    if a.min() < -1e-15 or a.max() > 1.0 + 1e-15:
        return -np.inf
    a = np.clip(a, 0.0, 1.0)
    return float(entr(a).sum()) if loss == "multinomial" else float(entr(a).sum() + entr(1.0 - a).sum())


def balanced(U: Array, y: Array, loss: str) -> Array:
    """Return a point next to U whose columns sum to zero, as a free intercept asks for (docs/math.md 6)."""
    m = U.shape[0]
    if loss == "multinomial":
        counts = np.bincount(y, minlength=U.shape[1]).astype(np.float64)
        excess = -U.sum(axis=0)
        t = float(np.max(np.maximum(excess, 0.0) / (np.maximum(excess, 0.0) + counts)))
        one_hot = np.eye(U.shape[1])[y]
        a = (1.0 - t) * (one_hot - U - excess / m) + t * counts / m
        return one_hot - a
    positive = np.where(U > 0, U, 0.0).sum(axis=0)
    negative = np.where(U < 0, -U, 0.0).sum(axis=0)
    common = np.minimum(positive, negative)
    up, down = (common / np.maximum(size, 1e-300) for size in (positive, negative))
    return np.where(U > 0, U * up, U * down)


def relative_gap(X: Any, y: Array, W: Array, b: Array, alpha: float, penalty: str, loss: str, intercept: bool) -> float:
    """Return a certified bound on (P - P*) / P, from W and b alone.

    With a penalty the dual point is the residual, balanced for a free intercept and scaled into the dual ball. Without
    one it is the residual moved to X' Theta = 0 by Newton steps, for which X must be small; what is left of X' Theta
    by rounding is charged at the size of W.
    """
    m = X.shape[0]
    primal = objective(X, y, W, b, alpha, penalty, loss)
    U = residual(margins(X, W, b), y, loss)
    leak = 0.0
    if penalty == "none":
        Theta = _null_space_point(X, y, U, loss, intercept)
        leak = float(np.abs(W * np.asarray(X.T @ Theta)).sum() + intercept * np.abs(b * Theta.sum(axis=0)).sum())
    else:
        Theta = balanced(U, y, loss) if intercept else U
        largest = float(dual_norm(np.asarray(X.T @ Theta), penalty).max())
        Theta = Theta * min(1.0, alpha * m / largest) if largest > 0 else Theta
    return (primal - dual_value(Theta, y, loss) / m + leak / m) / primal


def _null_space_point(X: Any, y: Array, U: Array, loss: str, intercept: bool) -> Array:
    """Return a point next to U with X' Theta = 0: U - H X v, H the curvature of the loss (small changes to small U)."""
    D = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    if intercept:
        D = np.hstack([D, np.ones((D.shape[0], 1))])
    n, k = D.shape[1], U.shape[1]
    if n * k > 3000:
        raise ValueError(f"a certificate without a penalty needs n k <= 3000, found {n * k}")
    Theta = U
    for _ in range(3):
        Theta = _multinomial_step(D, y, Theta) if loss == "multinomial" else _binary_step(D, Theta)
    return Theta


def _multinomial_step(D: Array, y: Array, Theta: Array) -> Array:
    n, k = D.shape[1], Theta.shape[1]
    Q = np.eye(k)[y] - Theta
    H = np.block([[_weighted(D, Q[:, r] * ((r == s) - Q[:, s])) for s in range(k)] for r in range(k)])
    v = np.linalg.lstsq(H, (D.T @ Theta).T.ravel(), rcond=1e-13)[0].reshape(k, n).T
    Z = D @ v
    return Theta - Q * (Z - (Q * Z).sum(axis=1, keepdims=True))


def _binary_step(D: Array, Theta: Array) -> Array:
    moved = Theta.copy()
    for r in range(Theta.shape[1]):
        h = np.abs(Theta[:, r]) * (1.0 - np.abs(Theta[:, r]))
        v = np.linalg.lstsq(_weighted(D, h), D.T @ Theta[:, r], rcond=1e-13)[0]
        moved[:, r] -= h * (D @ v)
    return moved


def _weighted(D: Array, h: Array) -> Array:
    return np.asarray(D.T @ (D * h[:, None]))
