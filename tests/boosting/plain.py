"""Problems, and the same mathematics in plain dense numpy: of the code under test only the penalties are used.

The penalties are tested on their own (tests/penalties); here they make an independent solver possible.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import xlogy

from dboost.boosting.checks import UPDATES
from dboost.boosting.fit import FitSettings, Fitting
from dboost.engine.local import LocalEngine
from dboost.losses import LOSSES
from dboost.partition import Partition
from dboost.penalties import PENALTIES, ChargesRows, get_penalty
from dboost.problem.accelerators import EVERY

EPSILON = 0.1
HUBER, QUANTILE, WIDTH = 1.35, 0.5, 0.1
MULTICLASS = ("multinomial", "margin_softmax")
# those whose residuals reach the ends of their range: what a scaled dual point loses there falls like the distance from
# the optimum, not like its square, and updates that come near it slowly certify less
KINKED = ("huber", "quantile")
# those that pull up and down at once
TWO_BRANCHED = ("epsilon_insensitive", "poisson")
# those that put rows to zero one by one; the others have test_smooth
PULLING = [name for name in PENALTIES if get_penalty(name).threshold and get_penalty(name).separable]
# of these, the ones for hypotheses that are sized together
SIZED = [name for name in PULLING if not isinstance(get_penalty(name), ChargesRows)]


@dataclass(frozen=True)
class Data:
    """Dense X (m, n), encoded y, weights s, and what a fit needs to know about them."""

    loss: str
    X: Any
    y: Any
    s: Any
    k: int
    # where scores begin, (m, k)
    begin: Any = 0.0

    def take(self, rows):
        return replace(self, X=self.X[rows], y=self.y[rows], s=self.s[rows])

    def columns(self, chosen):
        return replace(self, X=self.X[:, chosen])

    # ---- the loss ----

    @property
    def multiclass(self):
        """Whether the labels are codes of classes."""
        return self.loss in MULTICLASS

    def seen(self, F):
        """The margins as the loss sees them: the other classes of ``margin_softmax`` have one to begin with."""
        F = F + self.begin
        return F + (1 - np.eye(self.k)[self.y]) if self.loss == "margin_softmax" else F

    def value(self, F):
        """L at the margins F."""
        F = self.seen(F)
        if self.multiclass:
            top = F.max(axis=1, keepdims=True)
            own = np.take_along_axis(F, self.y[:, None].astype(np.int64), axis=1)
            return float(self.s @ (np.log(np.exp(F - top).sum(axis=1)) + (top - own)[:, 0]))
        if self.loss == "exp":
            with np.errstate(over="ignore"):
                return float((self.s[:, None] * np.exp(-self.y * F)).sum())
        if self.loss == "squared":
            return float(self.s @ (self.y - F[:, 0]) ** 2 / 2)
        if self.loss == "multitarget":
            return float(np.nansum(self.s[:, None] * (self.y - F) ** 2) / 2)
        if self.loss == "poisson":
            with np.errstate(over="ignore"):
                return float(self.s @ (np.exp(F[:, 0]) - self.y * F[:, 0] + xlogy(self.y, self.y) - self.y))
        if self.loss == "huber":
            z = np.abs(self.y - F[:, 0])
            return float(self.s @ np.where(z <= HUBER, z**2 / 2, HUBER * (z - HUBER / 2)))
        if self.loss == "quantile":
            z = self.y - F[:, 0]
            kink = np.where(np.abs(z) <= WIDTH / 2, z**2 / (2 * WIDTH) + WIDTH / 8, np.abs(z) / 2)
            return float(self.s @ ((QUANTILE - 0.5) * z + kink))
        if self.loss == "epsilon_insensitive":
            z = self.y - F[:, 0]
            return float(self.s @ (np.logaddexp(0, z - EPSILON) + np.logaddexp(0, -z - EPSILON)))
        return float((self.s[:, None] * np.abs(self.y) * np.logaddexp(0, -self.y * F)).sum())

    def residual(self, F):
        """U = -dL/dF, (m, k)."""
        F = self.seen(F)
        if self.multiclass:
            e = np.exp(F - F.max(axis=1, keepdims=True))
            return self.s[:, None] * (np.eye(self.k)[self.y] - e / e.sum(axis=1, keepdims=True))
        if self.loss == "exp":
            with np.errstate(over="ignore"):
                return self.s[:, None] * self.y * np.exp(-self.y * F)
        if self.loss == "squared":
            return (self.s * (self.y - F[:, 0]))[:, None]
        if self.loss == "multitarget":
            return np.nan_to_num(self.s[:, None] * (self.y - F))
        if self.loss == "huber":
            return (self.s * np.clip(self.y - F[:, 0], -HUBER, HUBER))[:, None]
        if self.loss == "quantile":
            return (self.s * (QUANTILE - 0.5 + np.clip((self.y - F[:, 0]) / WIDTH, -0.5, 0.5)))[:, None]
        if self.loss in TWO_BRANCHED:
            plus, minus = self._pulls(F)
            return self.s[:, None] * (plus - minus)
        return self.s[:, None] * self.y * np.exp(-np.logaddexp(0, self.y * F))

    def _pulls(self, F):
        if self.loss == "poisson":
            with np.errstate(over="ignore"):
                return self.y[:, None], np.exp(F)
        z = self.y[:, None] - F
        return np.exp(-np.logaddexp(0, EPSILON - z)), np.exp(-np.logaddexp(0, EPSILON + z))

    def sums(self, F):
        """mu+ and mu-, (n, k) each (docs/math.md, eq. 1 and 2)."""
        if self.loss in TWO_BRANCHED:
            plus, minus = (self.s[:, None] * q for q in self._pulls(F))
        else:
            U = self.residual(F)
            plus, minus = np.maximum(U, 0), np.maximum(-U, 0)
        up, down = np.maximum(self.X, 0).T, np.maximum(-self.X, 0).T
        return up @ plus + down @ minus, up @ minus + down @ plus

    def dual(self, theta):
        """D(Theta) by definition; theta includes the weights. -inf outside the domain."""
        unit = np.divide(theta, self.s[:, None], out=np.zeros_like(theta), where=self.s[:, None] > 0)
        if self.loss == "squared":
            return float(self.s @ (unit[:, 0] * self.y - unit[:, 0] ** 2 / 2))
        if self.loss == "multitarget":
            inside = not unit[np.isnan(self.y)].any()
            return float(np.nansum(self.s[:, None] * (unit * self.y - unit**2 / 2))) if inside else -np.inf
        if self.loss == "huber":
            inside = np.abs(unit[:, 0]).max() <= HUBER * (1 + 1e-12)
            return float(self.s @ (unit[:, 0] * self.y - unit[:, 0] ** 2 / 2)) if inside else -np.inf
        if self.loss == "quantile":
            v = unit[:, 0] - QUANTILE + 0.5
            inside = np.abs(v).max() <= 0.5 + 1e-12
            return float(self.s @ (unit[:, 0] * self.y + WIDTH * (1 / 8 - v**2 / 2))) if inside else -np.inf
        if self.loss == "epsilon_insensitive":
            return float(self.s @ [_epsilon_dual(t, y) for t, y in zip(unit[:, 0], self.y, strict=True)])
        if self.loss == "poisson":
            v = self.y - unit[:, 0]
            return -np.inf if v.min() < 0 else float(self.s @ (v - xlogy(v, v) + xlogy(self.y, self.y) - self.y))
        if self.loss == "exp":
            al = self.y * unit
            return -np.inf if al.min() < 0 else float(self.s @ (al - al * np.log(np.where(al > 0, al, 1)))[:, 0])
        al = np.eye(self.k)[self.y] - unit if self.multiclass else self.y * unit
        if al.min() < -1e-12 or al.max() > 1 + 1e-12:
            return -np.inf
        terms = _entropy(al) if self.multiclass else np.abs(self.y) * (_entropy(al) + _entropy(1 - al))
        if self.loss == "margin_softmax":
            terms = terms - unit * (1 - np.eye(self.k)[self.y])
        return float((self.s[:, None] * terms).sum())

    @property
    def kappa(self):
        """Largest curvature of an example; the exponential losses have none."""
        others = dict.fromkeys(MULTICLASS, 0.5)
        others |= {"huber": 1.0, "quantile": 1 / WIDTH}
        others |= {"squared": 1.0, "multitarget": 1.0}
        others |= {"epsilon_insensitive": 1 / (1 + np.cosh(EPSILON)), "exp": np.inf, "poisson": np.inf}
        return others.get(self.loss, 0.25)


def _epsilon_dual(theta, y):
    """min over f of the loss plus theta f, by scipy."""

    def value(f):
        return np.logaddexp(0, f - y - EPSILON) + np.logaddexp(0, y - f - EPSILON) + theta * (f - y)

    return minimize_scalar(value, bracket=(y - 1, y + 1), tol=1e-14).fun + theta * y


def without(*names):
    """All accelerators but some."""
    assert set(names) <= set(EVERY)
    return tuple(name for name in EVERY if name not in names)


def defined(loss, update):
    """Whether an update has the bound it needs for a loss."""
    lacking = {"exp": ("gradboost",), "poisson": ("gradboost",)}
    lacking |= dict.fromkeys(("squared", "huber", "quantile", "multitarget"), ("adaboost", "forward"))
    return update not in lacking.get(loss, ())


# (loss, update) for which there is a bound. The quadratic bound of quantiles is as narrow as their width, so that every
# fit by it takes a thousand passes: one test of its own must do (test_agreement.py).
SLOW = [("quantile", "gradboost")]
DEFINED = [
    (loss, update) for loss in LOSSES for update in UPDATES if defined(loss, update) and (loss, update) not in SLOW
]


def _entropy(p):
    p = np.clip(p, 0, 1)
    return -p * np.log(np.where(p > 0, p, 1.0))


def make(loss, m=150, n=25, k=3, seed=0, density=0.5, weights=False, noise=1.5):
    """A random sparse problem with a few informative features."""
    rng = np.random.default_rng([seed, m, n, k])
    k = k if loss in (*MULTICLASS, "multitask", "multitarget") else 1
    X = rng.normal(size=(m, n)) * (rng.random((m, n)) < density)
    W = rng.normal(size=(n, k)) * (rng.random((n, 1)) < 0.4)
    F = X @ W + noise * rng.normal(size=(m, k)) + rng.normal(size=k)
    if loss in MULTICLASS:
        y = F.argmax(axis=1).astype(np.int32)
        y[:k] = np.arange(k)
    elif loss in ("squared", "epsilon_insensitive", "huber", "quantile"):
        y = F[:, 0]
    elif loss == "multitarget":
        y = np.where(rng.random(F.shape) < 0.1, np.nan, F)
    elif loss == "poisson":
        y = rng.poisson(np.exp(0.3 * F[:, 0])).astype(float)
    else:
        y = np.where(F > 0, 1, -1).astype(np.int8)
        if loss == "multitask":
            y[rng.random(y.shape) < 0.1] = 0
    s = rng.uniform(0.2, 2.0, m) if weights else np.ones(m)
    return Data(loss, X, y, s, k)


def covering(*axes, allowed=lambda *row: True):
    """Few combinations of the axes in which every allowed pair of values of two axes occurs.

    Errors that need three parties at once are rare; full products of four axes are hundreds of fits.
    """
    rows = [row for row in itertools.product(*axes) if allowed(*row)]
    places = list(itertools.combinations(range(len(axes)), 2))
    pairs = [{(i, j, row[i], row[j]) for i, j in places} for row in rows]
    missing = set().union(*pairs)
    chosen = []
    while missing:
        best = max(range(len(rows)), key=lambda at: len(pairs[at] & missing))
        chosen.append(rows[best])
        missing -= pairs[best]
    return chosen


def plan(data, cuts=3, dtype=np.float64):
    """The data as a plan of `cuts` blocks (or blocks that end at the rows `cuts`)."""
    ends = np.linspace(0, len(data.s), cuts + 1).astype(int)[1:] if isinstance(cuts, int) else np.asarray(cuts)
    items, start = [], 0
    for number, stop in enumerate(ends):
        part = sp.csc_array(data.X[start:stop].astype(dtype))
        part.sort_indices()
        arrays = part.indptr.astype(np.int64), part.indices.astype(np.int32), part.data
        items.append(Partition(*arrays, data.y[start:stop], data.s[start:stop].astype(float), f"block-{number}"))
        start = stop
    rows = tuple(p.n_rows for p in items)
    return SimpleNamespace(
        items=tuple(items),
        rows=rows,
        n_features=data.X.shape[1],
        feature_names=None,
        weight_exponent=0,
        n_outputs=data.k,
        n_rows=sum(rows),
        nbytes_estimate=sum(p.nbytes for p in items),
        classes=None,
    )


def fitting(data, cuts=3, threads=1, dtype=np.float64, **settings):
    """A ``Fitting`` on an engine of its own."""
    return Fitting(plan(data, cuts, dtype), LocalEngine(threads), FitSettings(data.loss, **settings))


def dense(result, n):
    """All rows of W, (n, k)."""
    W = np.zeros((n, result.W.shape[1]))
    W[result.active] = result.W
    return W


def objective(data, penalty, lam, W, b):
    """P(W, b), sum form; lam is a number or one per row."""
    return data.value(data.X @ W + b) + get_penalty(penalty).total(W, lam)


def certified(result, data, penalty, alpha, best, tol, factors=1.0, rel=None):
    """A fit that ended by its gap says what is true of its model, and of the optimum, which is known: in every round.

    `factors` multiply the strength of columns; `rel` is how near the objective is to the optimum.
    """
    weight, lam = data.s.sum(), alpha * data.s.sum() * np.where(np.isinf(factors), 1.0, factors)
    assert result.stop_reason == "tol" and 0.0 <= result.gap <= tol, (result.stop_reason, result.gap)
    assert result.alpha == pytest.approx(alpha, rel=1e-12)
    value = objective(data, penalty, lam, dense(result, data.X.shape[1]), result.intercept)
    assert result.objective * weight == pytest.approx(value, rel=1e-12, abs=1e-12)
    assert best.value * (1 - 1e-11) <= value <= best.value * (1 + (max(tol, 1e-9) if rel is None else rel))
    # the model has the rows that are not zero, and no others
    assert (np.diff(result.active) > 0).all() and np.abs(result.W).max(axis=1).min(initial=np.inf) > 0.0
    assert not np.isinf(np.broadcast_to(factors, data.X.shape[1])[result.active]).any()
    history, last = result.history, result.history[-1]
    assert (last["step"], last["gap"], last["entries"]) == ("certificate", result.gap, np.count_nonzero(result.W))
    assert [record["round"] for record in history] == list(range(1, result.n_iter + 1))
    passes, alphas = ([record[name] for record in history] for name in ("passes", "alpha"))
    assert passes == sorted(passes) and passes[-1] == result.passes
    assert alphas == sorted(alphas, reverse=True) and alphas[-1] == pytest.approx(alpha)
    for before, record in itertools.pairwise(history):
        assert record["features"] == before["features"] + record["features_in"] - record["features_out"]
    sure = [record for record in history if np.isfinite(record["gap"])]
    bounds = [record["lower_bound"] for record in sure]
    assert bounds == sorted(bounds) and bounds[-1] == result.lower_bound
    assert bounds[-1] * weight <= best.value * (1 + 1e-12) + 1e-12
    for record in sure:
        gap = (record["objective"] - record["lower_bound"]) / record["objective"]
        assert record["gap"] == pytest.approx(gap, abs=1e-13)


def null_intercept(data):
    """Optimal intercept without features, by Newton's method (every label must occur)."""
    b = np.zeros(data.k)
    ones = np.ones((len(data.s), 1))
    if data.k == 1:
        return np.array([brentq(lambda t: data.residual(ones * t).sum(), -50.0, 50.0, xtol=1e-15, rtol=1e-15)])
    for _ in range(200):
        U = data.residual(ones * b)
        b = b + U.sum(axis=0) / (data.kappa * data.s.sum())
    return b


def alpha_max(data, penalty, intercept=True):
    """The dual norm of the null model's sums, over sum s: max_j ||G_j||_* for penalties of rows (docs/math.md 3)."""
    b, rule = null_intercept(data) if intercept else np.zeros(data.k), get_penalty(penalty)
    U = data.residual(np.tile(b, (len(data.s), 1)))
    return rule.dual_size(rule.dual_norm(data.X.T @ U), np.ones(data.X.shape[1])) / data.s.sum()


@dataclass(frozen=True)
class Optimum:
    W: Any
    b: Any
    value: float


def optimum(data, penalty, lam, intercept=True, signs=None, steps=60_000):
    """The optimum by `fista`; lam is a number or one for each row, inf where it stays at zero."""
    rule, n = get_penalty(penalty), data.X.shape[1]
    lam = np.broadcast_to(np.asarray(lam, float), (n,))
    usable = np.isfinite(lam)
    strength = np.where(usable, lam, 0.0)
    sides = np.zeros(n) if signs is None else signs

    def prox(Z, step):
        right = np.where((sides[:, None] * Z < 0.0) | ~usable[:, None], 0.0, Z)
        return rule.prox(right, step * strength)

    return fista(data, prox, lambda W: rule.total(W, strength), intercept, steps)


def fista(data, prox, charge, intercept=True, steps=60_000):
    """Accelerated proximal steps with restarts on all rows at once; the intercept is a column of ones that is free."""
    X = np.hstack([data.X, np.ones((len(data.s), 1))]) if intercept else data.X
    n = data.X.shape[1]
    # where no Lipschitz constant exists it is found by backtracking, from that of the null model
    bounded = np.isfinite(data.kappa)
    lipschitz = (data.kappa if bounded else 0.1) * np.linalg.norm(X.T @ (data.s[:, None] * X), 2)

    def value(V):
        return data.value(X @ V) + charge(V[:n])

    def forward(Z):
        """A proximal step from Z, its bound checked where no constant is known."""
        nonlocal lipschitz
        gradient, here = X.T @ data.residual(X @ Z), data.value(X @ Z)
        while True:
            out = Z + gradient / lipschitz
            out[:n] = prox(out[:n], 1.0 / lipschitz)
            D = out - Z
            above = here - np.sum(gradient * D) + lipschitz / 2 * np.sum(D * D)
            if bounded or data.value(X @ out) <= above + 1e-13 * abs(here):
                return out
            lipschitz *= 1.5

    V = np.zeros((X.shape[1], data.k))
    Y, t, best = V, 1.0, value(V)
    for step in range(steps):
        new = forward(Y)
        if np.sum((Y - new) * (new - V)) > 0:
            Y, t = V, 1.0
            new = forward(V)
        after = 0.5 * (1 + np.sqrt(1 + 4 * t * t))
        moved = np.abs(new - V).max()
        Y, V, t = new + (t - 1) / after * (new - V), new, after
        if moved <= 1e-14 * (1 + np.abs(V).max()):
            break
        if step % 50 == 0:
            best = min(best, value(V))
    b = V[n] if intercept else np.zeros(data.k)
    return Optimum(V[:n], b, min(best, value(V)))


def least(data, size=lambda W: (0.0, 0.0), bounds=None, intercept=True, start=None):
    """(P, W, b) by SciPy's L-BFGS-B, sum form; `size` gives the penalty and its slope, `bounds` those of each row."""
    n, k = data.X.shape[1], data.k

    def value(x):
        W, b = x[: n * k].reshape(n, k), x[n * k :]
        U, (charge, slope) = data.residual(data.X @ W + b), size(W)
        return data.value(data.X @ W + b) + charge, np.append((slope - data.X.T @ U).ravel(), -U.sum(axis=0))

    each = [end for end in bounds or [(None, None)] * n for _ in range(k)]
    each += [(None, None) if intercept else (0.0, 0.0)] * k
    options = {"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-10, "maxcor": 40}
    x = np.append(np.zeros(n * k) if start is None else np.ravel(start), np.zeros(k))
    found = minimize(value, x, jac=True, method="L-BFGS-B", bounds=each, options=options)
    return found.fun, found.x[: n * k].reshape(n, k), found.x[n * k :]


def sided(signs):
    """The bounds of weights of these signs, 0 for any."""
    return [(0.0 if sign > 0 else None, 0.0 if sign < 0 else None) for sign in signs]


def near_copies(m=3000, a=60, k=4):
    """Columns as alike as neighbouring pixels, and the classes that a few of them tell."""
    rng = np.random.default_rng(7)
    smooth = np.cumsum(rng.normal(size=(m, a + 20)), axis=1)
    X = np.maximum(smooth[:, 20:] - smooth[:, :-20], 0.0) / 8.0
    return X, (X[:, [5, 25, 35, 55]] + 0.4 * rng.normal(size=(m, k))).argmax(axis=1)
