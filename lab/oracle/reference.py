"""A slow and obvious solver of the same objective, for where no other program solves it.

Covers: a growing set of columns, stopped by the duality gap of ``plain`` over all of them. On a small set: proximal
Newton steps with the whole Hessian, each model minimised by accelerated proximal gradient (FISTA) with restart. On a
large one: FISTA on the data with backtracking. Without a penalty: Newton's method.
Does not cover: speed. It shares no code with the library.

Sources: Beck & Teboulle 2009 (FISTA); O'Donoghue & Candes 2015 (restart by the gradient test).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from lab.oracle import plain

Array = NDArray[Any]
GAP_EVERY = 20
HESSIAN_SIZE = 2500
"""Largest side of a Hessian that is formed."""
NEWTON_STEPS = 60


@dataclass(frozen=True)
class Reference:
    """What the reference returns."""

    W: Array
    b: Array
    # Relative duality gap over all columns.
    gap: float
    iterations: int


def solve(
    X: Any,
    y: Array,
    *,
    loss: str,
    penalty: str,
    alpha: float,
    intercept: bool,
    tol: float = 1e-9,
    seconds: float = 600.0,
) -> Reference:
    """Minimise the objective of ``plain`` until its relative gap is `tol` or the time is up."""
    if penalty == "none":
        return _newton(X, y, loss, intercept)
    return _working_sets(X, y, loss, penalty, alpha, intercept, tol, time.perf_counter() + seconds)


def _working_sets(
    X: Any, y: Array, loss: str, penalty: str, alpha: float, intercept: bool, tol: float, deadline: float
) -> Reference:
    m, n = X.shape
    k = plain.n_outputs(y, loss)
    W, b = np.zeros((n, k)), plain.null_intercept(y, loss) if intercept else np.zeros(k)
    columns = X.tocsc() if hasattr(X, "tocsc") else np.asarray(X)
    iterations, lipschitz = 0, 0.0
    while True:
        gap = plain.relative_gap(X, y, W, b, alpha, penalty, loss, intercept)
        if gap <= tol or time.perf_counter() > deadline:
            return Reference(W, b, gap, iterations)
        support = np.flatnonzero(np.abs(W).max(axis=1) > 0)
        G = np.asarray(X.T @ plain.residual(plain.margins(X, W, b), y, loss))
        size = plain.dual_norm(G, penalty)
        size[support] = -np.inf
        best = np.argsort(-size)[: max(20, support.size)]
        active = np.union1d(support, best[size[best] > alpha * m * (1.0 - 1e-12)])
        part = columns[:, active]
        # An early set need not be solved to the end: what it lacks is seen in the gap over all columns.
        inner_tol = max(0.3 * tol, 0.02 * gap)
        task = _Task(part, y, loss, penalty, alpha, intercept, inner_tol, deadline)
        if (active.size + intercept) * (k if loss == "multinomial" else 1) <= HESSIAN_SIZE:
            W_part, b, count = _prox_newton(task, W[active], b)
        else:
            W_part, b, count, lipschitz = _fista(task, W[active], b, 0.5 * lipschitz)
        iterations += count
        W = np.zeros((n, k))
        W[active] = W_part


@dataclass(frozen=True)
class _Task:
    """The problem restricted to a few columns."""

    X: Any
    y: Array
    loss: str
    penalty: str
    alpha: float
    intercept: bool
    tol: float
    deadline: float

    def value(self, W: Array, b: Array) -> float:
        return plain.objective(self.X, self.y, W, b, self.alpha, self.penalty, self.loss)

    def done(self, W: Array, b: Array) -> bool:
        gap = plain.relative_gap(self.X, self.y, W, b, self.alpha, self.penalty, self.loss, self.intercept)
        return gap <= self.tol or time.perf_counter() > self.deadline


def _prox_newton(task: _Task, W: Array, b: Array) -> tuple[Array, Array, int]:
    """Minimise by proximal Newton steps with the whole Hessian; returns W, b and the number of steps."""
    X = task.X.toarray() if hasattr(task.X, "toarray") else np.asarray(task.X)
    task = replace(task, X=X)
    m, n = X.shape
    D = np.hstack([X, np.ones((m, 1))]) if task.intercept else X
    theta = np.vstack([W, b]) if task.intercept else W
    k = theta.shape[1]

    def parts(theta: Array) -> tuple[Array, Array]:
        return theta[:n], theta[n] if task.intercept else np.zeros(k)

    value, count = task.value(*parts(theta)), 0
    while not task.done(*parts(theta)):
        count += 1
        F = D @ theta
        G = D.T @ plain.residual(F, task.y, task.loss) / m
        target = _model_minimum(_hessian(D, F, task.y, task.loss), G, theta, n, task.alpha, task.penalty)
        size, tried = 1.0, np.inf
        while size > 1e-8:
            tried = task.value(*parts(theta + size * (target - theta)))
            if tried <= value:
                break
            size *= 0.5
        if size <= 1e-8 or np.array_equal(target, theta):
            break
        theta, value = theta + size * (target - theta), tried
    return *parts(theta), count


def _hessian(D: Array, F: Array, y: Array, loss: str) -> Array:
    """Return the Hessian of the mean loss: (1, nk, nk) by class, or (k, n, n), the tasks being separate."""
    m, k = F.shape
    if loss == "multinomial":
        Q = softmax(F, axis=1)
        return np.block(
            [[D.T @ (D * (Q[:, r] * ((r == s) - Q[:, s]))[:, None]) / m for s in range(k)] for r in range(k)]
        )[None]
    h = (np.asarray(y).reshape(m, -1) != 0) * expit(F) * expit(-F) / m
    return np.stack([D.T @ (D * h[:, [r]]) for r in range(k)])


def _model_minimum(H: Array, G: Array, theta: Array, n: int, alpha: float, penalty: str) -> Array:
    """Minimise -<G, T - theta> + (T - theta)' H (T - theta) / 2 + alpha omega over the first n rows of T, by FISTA."""

    def product(T: Array) -> Array:
        if H.shape[0] == 1:
            return np.asarray((H[0] @ T.T.ravel()).reshape(T.shape[1], -1).T)
        return np.einsum("rjl,lr->jr", H, T, optimize=True)

    probe = np.random.default_rng(0).standard_normal(theta.shape)
    for _ in range(30):
        probe = product(probe)
        norm = float(np.linalg.norm(probe)) or 1.0
        probe /= norm
    # The power iteration comes from below: a tenth more is above.
    level = 1.1 * norm
    T, V, momentum, first = theta, theta, 1.0, 0.0
    for _ in range(5000):
        Z = V + (G - product(V - theta)) / level
        T_new = np.vstack([plain.prox(Z[:n], alpha / level, penalty), Z[n:]])
        moved = float(np.linalg.norm(T_new - V))
        first = first or moved
        uphill = float(((V - T_new) * (T_new - T)).sum()) > 0
        after = 1.0 if uphill else 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        V = T_new + (0.0 if uphill else (momentum - 1.0) / after) * (T_new - T)
        T, momentum = T_new, after
        if moved <= 1e-4 * first:
            break
    return T


def _fista(task: _Task, W: Array, b: Array, lipschitz: float) -> tuple[Array, Array, int, float]:
    """Run FISTA on a few columns until their own gap is `tol`; returns W, b, iterations and the curvature found."""
    y, loss, penalty, alpha = task.y, task.loss, task.penalty, task.alpha
    X = task.X
    if hasattr(X, "toarray"):
        X = X.toarray() if X.nnz > 0.03 * X.shape[0] * X.shape[1] else X.tocsr()
    task = replace(task, X=X)
    m = X.shape[0]
    # The intercept is one more column, scaled to the size of the others so that it does not set the step.
    scale = float(np.sqrt((X.multiply(X) if hasattr(X, "multiply") else X * X).sum() / (m * X.shape[1])) or 1.0)
    level = lipschitz or 1e-3 * scale**2
    V, c = W.copy(), b / scale
    W_old, b_old = W, c
    momentum, count = 1.0, 0
    while True:
        F = plain.margins(X, V, c * scale)
        value, U = plain.mean_loss(F, y, loss), plain.residual(F, y, loss) / m
        G, g = np.asarray(X.T @ U), scale * U.sum(axis=0) * task.intercept
        while True:
            W_new, b_new = plain.prox(V + G / level, alpha / level, penalty), c + g / level
            D, d = W_new - V, b_new - c
            bound = value - float((G * D).sum() + g @ d) + 0.5 * level * float((D * D).sum() + d @ d)
            if plain.mean_loss(plain.margins(X, W_new, b_new * scale), y, loss) <= bound + 1e-14 * value:
                break
            level *= 1.5
        count += 1
        uphill = float(((V - W_new) * (W_new - W_old)).sum() + (c - b_new) @ (b_new - b_old)) > 0
        next_momentum = 1.0 if uphill else 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        weight = 0.0 if uphill else (momentum - 1.0) / next_momentum
        V, c = W_new + weight * (W_new - W_old), b_new + weight * (b_new - b_old)
        W_old, b_old, momentum = W_new, b_new, next_momentum
        if count % GAP_EVERY == 0 and task.done(W_new, b_new * scale):
            return W_new, b_new * scale, count, level


def _newton(X: Any, y: Array, loss: str, intercept: bool) -> Reference:
    """Minimise the mean loss without a penalty by Newton's method with the whole Hessian; its optimum is finite."""
    m, n = X.shape
    k = plain.n_outputs(y, loss)
    D = X.toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=np.float64)
    if intercept:
        D = np.hstack([D, np.ones((m, 1))])
    theta = np.zeros((D.shape[1], k))
    value = plain.mean_loss(D @ theta, y, loss)
    count = 0
    while count < NEWTON_STEPS:
        count += 1
        F = D @ theta
        G = D.T @ plain.residual(F, y, loss) / m
        H = _hessian(D, F, y, loss)
        if H.shape[0] == 1:
            step = np.linalg.lstsq(H[0], G.T.ravel(), rcond=1e-12)[0].reshape(k, -1).T
        else:
            step = np.stack([np.linalg.lstsq(H[r], G[:, r], rcond=1e-12)[0] for r in range(k)], axis=1)
        slope, size = float((G * step).sum()), 1.0
        while size > 1e-10:
            tried = plain.mean_loss(D @ (theta + size * step), y, loss)
            if tried <= value - 1e-4 * size * slope:
                break
            size *= 0.5
        else:
            break
        theta, value = theta + size * step, tried
        if slope <= 1e-15 * value:
            break
    W, b = theta[:n], theta[n] if intercept else np.zeros(k)
    return Reference(W, b, plain.relative_gap(X, y, W, b, 0.0, "none", loss, intercept), count)
