"""ShareBoost against the formulas (docs/math.md 7 (J)): rules, corrective step, guarantee, path."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

import dboost
from dboost.boosting.shareboost import CORRECTIVE, RULES, ShareBoost
from dboost.hypotheses.columns import Columns
from dboost.hypotheses.products.family import Products
from dboost.solvers.corrective import CorrectedModel, left_over
from tests.boosting import plain

RIDGE = 1e-4
LOSSES = ("margin_softmax", "multinomial", "log")


def fitted(data, rule="scaled", rounds=5, cuts=3, threads=1, alpha=RIDGE, callback=None, resume=None, **settings):
    own = {name: settings.pop(name) for name in ("shortlist", "groups", "bound", "keep") if name in settings}
    system = ShareBoost(rule, **{"shortlist": 4} | own)
    settings = {"penalty": "l2_squared", "tol": 1e-9, "max_rounds": rounds, "system": system} | settings
    fitting = plain.fitting(data, cuts=cuts, threads=threads, **settings)
    return fitting.fit(alpha, callback=callback, resume=resume)


def stages(result):
    """(rows in the order of entering, W over all of them, intercept) after each round."""
    carried, k = result.state.carried, result.W.shape[1]
    start, found = 0, []
    for t, count in enumerate(carried["counts"].tolist()):
        W = carried["weights"][start : start + count]
        found.append((carried["order"][:count], W.reshape(count, k), carried["intercepts"][t]))
        start += count
    return found


class Reference:
    """The method in plain numpy: a dense gradient, scipy's minimiser for every step."""

    def __init__(self, data, alpha=RIDGE, intercept=True):
        self.data, self.lam, self.intercept = data, alpha * data.s.sum(), intercept

    def objective(self, rows, W, b):
        F = self.data.X[:, rows] @ W + b
        return self.data.value(F) + self.lam / 2 * np.sum(W**2)

    def minimum(self, rows, start=None, fixed=0, b=None):
        """The lowest objective over W of `rows` from `fixed` on, and over the intercept unless b is given."""
        data, k = self.data, self.data.k
        W0 = np.zeros((len(rows), k)) if start is None else start
        free_b = self.intercept and b is None
        b0 = np.zeros(k) if b is None else b
        X = data.X[:, rows]

        def unpack(v):
            W = W0.copy()
            W[fixed:] = v[: W[fixed:].size].reshape(-1, k)
            return W, (v[W[fixed:].size :] if free_b else b0)

        def value(v):
            W, bias = unpack(v)
            F = X @ W + bias
            U = data.residual(F)
            gradient = (self.lam * W - X.T @ U)[fixed:].ravel()
            if free_b:
                gradient = np.append(gradient, -U.sum(axis=0))
            return data.value(F) + self.lam / 2 * np.sum(W**2), gradient

        v0 = np.append(W0[fixed:].ravel(), b0 if free_b else np.zeros(0))
        asked = {"maxiter": 5000, "ftol": 1e-16, "gtol": 1e-11}
        found = minimize(value, v0, jac=True, method="L-BFGS-B", options=asked)
        return found.fun, *unpack(found.x)

    def pulls(self, rows, W, b):
        """(G, ||G_j||_1) at a model."""
        U = self.data.residual(self.data.X[:, rows] @ W + b)
        G = self.data.X.T @ U
        return G, np.abs(G).sum(axis=1)

    def lengths(self):
        """S_j: about the mean where the intercept is free."""
        s, X = self.data.s[:, None], self.data.X
        mean = (s * X).sum(axis=0) / s.sum() if self.intercept else 0.0
        return (s * (X - mean) ** 2).sum(axis=0)

    def promised(self, rows, W, b, group):
        """(1/2) sum_r g_r' H_r^-1 g_r over the columns of a group and the intercept, g_r zero for the intercept."""
        X, step = self.data.X[:, group], 1e-5
        X = np.hstack([X, np.ones((len(X), 1))]) if self.intercept else X
        F = self.data.X[:, rows] @ W + b
        G, found = self.data.X[:, group].T @ self.data.residual(F), 0.0
        for r in range(self.data.k):
            lift = np.zeros(self.data.k)
            lift[r] = step
            h = -(self.data.residual(F + lift) - self.data.residual(F - lift))[:, r] / (2 * step)
            H = X.T @ (h[:, None] * X)
            H[np.arange(len(group)), np.arange(len(group))] += self.lam
            g = np.append(G[:, r], 0.0) if self.intercept else G[:, r]
            found += 0.5 * g @ np.linalg.lstsq(H, g, rcond=None)[0]
        return found

    def choice(self, rule, rows, W, b, shortlist):
        """The column that a rule takes, and what it thinks of the second best relative to it."""
        G, norms = self.pulls(rows, W, b)
        scaled = norms**2 / self.lengths()
        scaled[rows] = norms[rows] = -1.0
        if rule in ("norm", "scaled"):
            return int(np.argmax(norms if rule == "norm" else scaled))
        candidates = np.argsort(-scaled, kind="stable")[:shortlist]
        values = []
        for j in candidates.tolist():
            more = np.append(rows, j).astype(int)
            start = np.vstack([W, np.zeros((1, self.data.k))])
            if rule == "newton":
                values.append(-self.promised(rows, W, b, [j]))
            elif rule == "full":
                values.append(self.minimum(more, start)[0])
            elif rule == "row":
                values.append(self.minimum(more, start, fixed=len(rows), b=b)[0])
            else:

                def along(t, more=more, j=j):
                    return self.objective(more, np.vstack([W, t * G[j]]), b)

                found = minimize_scalar(along, bounds=(0, 50 / self.lengths()[j]), options={"xatol": 1e-9})
                values.append(found.fun)
        return int(candidates[int(np.argmin(values))])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("loss,intercept", [("margin_softmax", True), ("margin_softmax", False), ("log", True)])
def test_every_round_is_the_reference_s(rule, loss, intercept):
    """Given the model of a round, the next column is the reference's, and the next model its minimiser."""
    data = plain.make(loss, m=60, n=10, weights=True, seed=31)
    data.X[:, 3] *= 40.0
    data.X[:, 5] += 2.0
    result = fitted(data, rule, rounds=3, fit_intercept=intercept)
    reference = Reference(data, intercept=intercept)
    rows, W = np.zeros(0, int), np.zeros((0, data.k))
    b = plain.null_intercept(data) if intercept else np.zeros(data.k)
    for order, now, bias in stages(result):
        assert order[-1] == reference.choice(rule, rows, W, b, 4)
        best = reference.minimum(order.astype(int), np.vstack([W, np.zeros((1, data.k))]))
        assert reference.objective(order.astype(int), now, bias) <= best[0] * (1 + 1e-9)
        rows, W, b = order.astype(int), now, bias


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", ["l2_squared", "smooth_l1"])
def test_the_corrective_step_ends_with_no_gradient_on_the_rows_held(loss, penalty):
    data = plain.make(loss, m=120, n=15, weights=True, seed=5)
    result = fitted(data, rounds=6, alpha=1e-3, penalty=penalty)
    b = plain.null_intercept(data)
    U = data.residual(np.tile(b, (len(data.s), 1)))
    largest = np.abs(data.X.T @ U).max()
    for order, W, bias in stages(result):
        U = data.residual(data.X[:, order] @ W + bias)
        slope = W if penalty == "l2_squared" else np.tanh(W / 2)
        rest = data.X[:, order].T @ U - 1e-3 * data.s.sum() * slope
        assert np.abs(rest).max() <= 1e-7 * largest
        assert np.abs(U.sum(axis=0)).max() <= 1e-7 * largest


def test_groups_enter_whole_and_by_the_sum_of_their_scores():
    data = plain.make("margin_softmax", m=120, n=12, seed=8)
    groups = tuple((np.arange(12) % 4 + 7).tolist())
    for rule in ("norm", "scaled"):
        result = fitted(data, rule, rounds=2, groups=groups)
        reference = Reference(data)
        rows, W, b = np.zeros(0, int), np.zeros((0, 3)), plain.null_intercept(data)
        for order, now, bias in stages(result):
            norms = reference.pulls(rows, W, b)[1]
            each = norms if rule == "norm" else norms**2 / reference.lengths()
            sums = [-1.0 if g in rows % 4 else each[np.arange(12) % 4 == g].sum() for g in range(4)]
            assert (order[-3:] % 4 == int(np.argmax(sums))).all() and len(set(order[-3:].tolist())) == 3
            rows, W, b = order, now, bias


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_what_a_step_leaves_of_a_group_is_less_than_what_entered(seed):
    """Else a copy of a group that is held could look better than any other group: scores are sums over the rows."""
    data = plain.make("multinomial", m=150, n=24, seed=seed)
    groups = np.repeat(np.arange(3), 8)
    # one column of a group pulls far more than the others, of which two are nearly the same
    data.X[:, np.arange(24) % 8 != 0] *= 0.3
    data.X[:, 1::8] = 0.5 * data.X[:, 2::8] + 0.05 * data.X[:, 1::8]
    length = np.sqrt(data.s @ (data.X - data.s @ data.X / data.s.sum()) ** 2)
    for tol in (0.3, 0.1):
        W, b = np.zeros((24, data.k)), plain.null_intercept(data)
        for rows, found, intercept in stages(fitted(data, rounds=3, groups=tuple(groups.tolist()), tol=tol)):
            before = np.abs(data.X.T @ data.residual(data.X @ W + b)).sum(axis=1) / length
            W, b = np.zeros((24, data.k)), intercept
            W[rows] = found
            rest = RIDGE * data.s.sum() * W - data.X.T @ data.residual(data.X @ W + b)
            after = np.abs(rest).sum(axis=1) / length
            for group in np.unique(groups[rows]):
                assert after[groups == group].sum() <= tol * before[rows[-8:]].sum() * (1.0 + 1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_a_family_of_columns_is_the_columns(rule):
    """The induced problem chooses and solves as the plain one does."""
    data = plain.make("margin_softmax", m=90, n=9, weights=True, seed=9)
    own, induced = fitted(data, rule), fitted(data, rule, hypotheses=Columns())
    keys = [induced.state.keys[i][0] for i in induced.state.carried["order"].tolist()]
    assert keys == own.state.carried["order"].tolist()
    assert induced.objective == pytest.approx(own.objective, rel=1e-10)


def test_products_are_chosen_as_from_the_explicit_matrix():
    data = plain.make("margin_softmax", m=90, n=6, seed=10)
    induced = fitted(data, hypotheses=Products(max_degree=2), standardize=True)
    keys = [induced.state.keys[i] for i in induced.state.carried["order"].tolist()]
    scaled = data.X / np.abs(data.X).max(axis=0)
    every = [(j,) for j in range(6)] + [(i, j) for i in range(6) for j in range(i, 6)]
    columns = np.column_stack([np.prod(scaled[:, list(key)], axis=1) for key in every])
    explicit = fitted(plain.Data(data.loss, columns, data.y, data.s, data.k), standardize=True)
    assert keys == [every[j] for j in explicit.state.carried["order"].tolist()]
    assert induced.objective == pytest.approx(explicit.objective, rel=1e-8)


def test_separated_classes_have_finite_weights():
    """With a ridge there is an optimum; without one the steps end by the gradient."""
    X = np.repeat(np.eye(3), 4, axis=0)
    data = plain.Data("margin_softmax", X, np.repeat(np.arange(3), 4).astype(np.int32), np.ones(12), 3)
    ridge = fitted(data, rounds=10, alpha=1e-6)
    assert ridge.stop_reason in ("gradient", "exhausted") and np.abs(ridge.W).max() < 100
    best = Reference(data, 1e-6).minimum(ridge.active, ridge.W)[0]
    assert ridge.objective * 12 <= best * (1 + 1e-6)
    free = fitted(data, rounds=2, penalty="none", alpha=0.0, tol=1e-3)
    assert np.isfinite(free.W).all() and free.history[-1]["error"] == 0.0


def test_it_ends_when_there_is_nothing_to_add():
    data = plain.make("margin_softmax", m=60, n=4, seed=13)
    data.X[:, 2] = 1.0
    result = fitted(data, rounds=50)
    # a constant column is the intercept
    assert result.n_iter == 3 and result.active.tolist() == [0, 1, 3]
    limited = fitted(data, rounds=50, max_features=2)
    assert (limited.stop_reason, limited.n_iter) == ("max_features", 2)


def test_the_generalisation_bound_ends_a_fit_at_its_lowest():
    data = plain.make("margin_softmax", m=300, n=25, seed=14, noise=0.5)
    result = fitted(data, rounds=25, bound=0.2, tol=1e-2)
    T, k, d, m = np.arange(1, result.n_iter + 1), 3, 25, 300
    inside = T * k * np.log(T * k) * np.log(k) + T * np.log(d) + np.log(1 / 0.05)
    bounds = [r["error"] for r in result.history] + 0.2 * np.sqrt(inside / m)
    np.testing.assert_allclose([r["bound"] for r in result.history], bounds, rtol=1e-12)
    best = int(np.argmin(bounds))
    assert result.stop_reason == "bound" and result.n_iter == best + 11
    order, W, _ = stages(fitted(data, rounds=best + 1, tol=1e-2))[-1]
    assert result.active.tolist() == sorted(order.tolist())
    np.testing.assert_array_equal(result.W, W[np.argsort(order)])
    errors = [(data.X[:, o] @ W + b).argmax(axis=1) != data.y for o, W, b in stages(result)]
    np.testing.assert_allclose([e.mean() for e in errors], [r["error"] for r in result.history[: best + 1]])


def test_a_step_that_leaves_more_gradient_than_the_new_feature_brought_is_told(monkeypatch):
    def not_solved(problem, iterate, lam, free, tol, limits):
        return CorrectedModel(iterate, 0, left_over(problem, iterate, lam, free), 0.0)

    data = plain.make("multinomial", m=60, n=12, seed=3)
    monkeypatch.setitem(CORRECTIVE, "newton", not_solved)
    with pytest.warns(dboost.ConvergenceWarning, match="could not be solved again") as told:
        result = fitted(data, rounds=4)
    assert result.n_iter == 4 and all(warning.filename == __file__ for warning in told)
