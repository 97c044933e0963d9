"""ShareBoost against the formulas (docs/math.md 7 (J)): rules, shortlists, corrective steps, guarantee, engines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import dboost
from dboost import Stumps, UsageError
from dboost.boosting import shareboost as trials
from dboost.boosting.fit import FitSettings, Fitting
from dboost.boosting.shareboost import CORRECTIVE, RULES, ShareBoost
from dboost.engine.dask.engine import DaskEngine
from dboost.engine.local import LocalEngine
from dboost.hypotheses.columns import Columns
from dboost.hypotheses.products.family import Products
from dboost.penalties import get_penalty
from dboost.solvers.corrective import CorrectedModel, left_over
from tests.boosting import plain
from tests.boosting.test_resume import bits

RIDGE = 1e-4
LOSSES = ("margin_softmax", "multinomial", "log")
COSTLY = ("newton", "line", "row", "full")


def fitted(data, rule="scaled", rounds=5, cuts=3, threads=1, alpha=RIDGE, callback=None, resume=None, **settings):
    names = ("shortlist", "groups", "bound", "keep", "corrective")
    own = {"shortlist": 4} | {name: settings.pop(name) for name in names if name in settings}
    settings = {"penalty": "l2_squared", "tol": 1e-9, "max_rounds": rounds} | settings
    fitting = plain.fitting(data, cuts=cuts, threads=threads, system=ShareBoost(rule, **own), **settings)
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

    def minimum(self, rows, start, fixed=0, b=None):
        """The lowest objective over W of `rows` from `fixed` on, and over the intercept unless b is given."""
        lam, held = self.lam, start[:fixed]
        begin = self.data.X[:, rows[:fixed]] @ held + (0.0 if b is None else b)
        data = replace(self.data.columns(rows[fixed:]), begin=begin)
        free = self.intercept and b is None
        least = plain.least(data, lambda W: (lam / 2 * np.sum(W**2), lam * W), intercept=free, start=start[fixed:])[0]
        return least + lam / 2 * np.sum(held**2)

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
                values.append(self.minimum(more, start))
            elif rule == "row":
                values.append(self.minimum(more, start, fixed=len(rows), b=b))
            else:

                def along(t, more=more, j=j):
                    return self.objective(more, np.vstack([W, t * G[j]]), b)

                found = minimize_scalar(along, bounds=(0, 50 / self.lengths()[j]), options={"xatol": 1e-9})
                values.append(found.fun)
        return int(candidates[int(np.argmin(values))])

    def agrees(self, result, rule, shortlist):
        """Given the model of a round, the next column is the reference's, and the next model its minimiser."""
        data, rows, W = self.data, np.zeros(0, int), np.zeros((0, self.data.k))
        b = plain.null_intercept(data) if self.intercept else np.zeros(data.k)
        for order, now, bias in stages(result):
            assert order[-1] == self.choice(rule, rows, W, b, shortlist)
            best = self.minimum(order.astype(int), np.vstack([W, np.zeros((1, data.k))]))
            assert self.objective(order.astype(int), now, bias) <= best * (1 + 1e-9)
            rows, W, b = order.astype(int), now, bias


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("loss,intercept", [("margin_softmax", True), ("margin_softmax", False), ("log", True)])
def test_every_round_is_the_reference_s(rule, loss, intercept):
    data = plain.make(loss, m=60, n=10, weights=True, seed=31)
    data.X[:, 3] *= 40.0
    data.X[:, 5] += 2.0
    Reference(data, intercept=intercept).agrees(fitted(data, rule, rounds=3, fit_intercept=intercept), rule, 4)


def mixed(loss="multinomial"):
    """Columns of very different shapes: what the bound promises says little about what a column gains."""
    data = plain.make(loss, m=70, n=12, k=3, seed=18, weights=True, noise=0.5)
    data.X[:, 4:] = np.sign(data.X[:, 4:]) * np.abs(data.X[:, 4:]) ** 4
    return data


@pytest.mark.full
@pytest.mark.parametrize("rule", COSTLY)
@pytest.mark.parametrize("loss", ["multinomial", "log"])
def test_without_a_shortlist_the_best_of_all_candidates_enters(rule, loss):
    data = mixed(loss)
    rounds = 1 if rule == "full" else 3
    whole, every = (fitted(data, rule, rounds, alpha=1e-3, shortlist=size) for size in (None, 12))
    Reference(data, alpha=1e-3).agrees(whole, rule, 12)
    # a shortlist of all is no other choice
    assert bits(every) == bits(whole)


@pytest.mark.full
@pytest.mark.parametrize("rule", COSTLY)
def test_candidates_that_are_tried_in_pieces_are_the_same(rule, monkeypatch):
    groups = tuple(np.arange(12) // 3)

    def found():
        both = ({"groups": groups}, {"hypotheses": Products(max_degree=1)})
        return [fitted(mixed(), rule, 2, alpha=1e-3, shortlist=None, **more).active.tolist() for more in both]

    alone, listed = found()
    assert len(alone) == 6 and len(listed) == 2
    monkeypatch.setattr(trials, "AT_ONCE", 2)
    assert found() == [alone, listed]


def test_columns_of_a_group_that_say_the_same_count_once_for_newton_alone():
    """Four copies of a useful column, and four columns that are each as useful as that one: sums cannot tell them."""
    data = plain.make("multinomial", m=400, n=8, k=3, seed=5, density=1.0)
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 8))
    X[:, 1:4] = X[:, :1] + 1e-3 * rng.normal(size=(400, 3))
    F = X[:, :1] * [1.0, 0.0, -1.0] + 0.9 * X[:, 4:] @ rng.choice([-1.0, 1.0], (4, 3))
    data.X[:], data.y[:] = X, (F + rng.gumbel(size=F.shape)).argmax(axis=1)
    groups = (0, 0, 0, 0, 1, 1, 1, 1)
    for rule, first in (("scaled", [0, 1, 2, 3]), ("newton", [4, 5, 6, 7]), ("full", [4, 5, 6, 7])):
        assert fitted(data, rule, 1, alpha=1e-3, shortlist=2, groups=groups).active.tolist() == first


@pytest.mark.parametrize("family", [Products(), Stumps(max_listed=2, bins=4)], ids=["products", "stumps"])
def test_a_class_that_cannot_be_listed_is_refused_without_a_shortlist(family):
    with pytest.raises(UsageError, match="shortlist=None tries every candidate"):
        fitted(mixed(), "row", shortlist=None, hypotheses=family)
    fitted(mixed(), "row", rounds=1, shortlist=3, hypotheses=family)


def left(data, penalty, lam, rows, W, b):
    """The gradient on the rows held, and that of the intercept."""
    U = data.residual(data.X[:, rows] @ W + b)
    face = get_penalty(penalty).face(W)
    return data.X[:, rows].T @ U - face.gradient(np.full(len(W), lam)).reshape(W.shape), U.sum(axis=0)


@pytest.mark.full
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", ["l2_squared", "smooth_l1", "smooth_l1/linf"])
def test_corrective_steps_end_with_no_gradient_on_the_rows_held(loss, penalty):
    """Those of Newton and of Nesterov at the same models, which are the minima."""
    data = plain.make(loss, m=120, n=12, weights=True, seed=5)
    data.X[:, 3] *= 40.0 if penalty == "l2_squared" else 1.0
    U = data.residual(np.tile(plain.null_intercept(data), (len(data.s), 1)))
    largest, lam = np.abs(data.X.T @ U).max(), 1e-2 * data.s.sum()
    settings = {"rounds": 5, "alpha": 1e-2, "penalty": penalty, "tol": 1e-8}
    newton, nesterov = (fitted(data, corrective=name, **settings) for name in ("newton", "nesterov"))
    for (rows, W, b), (others, V, c) in zip(stages(newton), stages(nesterov), strict=True):
        assert rows.tolist() == others.tolist()
        rest, bias = left(data, penalty, lam, rows, W, b)
        assert max(np.abs(rest).max(), np.abs(bias).max()) <= 1e-7 * largest
        np.testing.assert_allclose(V, W, atol=1e-6)
        np.testing.assert_allclose(c, b, atol=1e-6)
    # and on the way back
    one, other = (fitted(data, corrective=name, keep=2, **settings) for name in ("newton", "nesterov"))
    assert one.stop_reason == other.stop_reason == "kept" and len(one.active) == 2
    assert one.active.tolist() == other.active.tolist()
    np.testing.assert_allclose(other.W, one.W, atol=1e-6)
    assert [r["steps"] for r in other.history[5:]] != [r["steps"] for r in one.history[5:]]
    assert [r["steps"] for r in nesterov.history] != [r["steps"] for r in newton.history]
    assert all(r["gradient"] >= 0 for r in nesterov.history) and nesterov.passes > newton.passes


def test_a_limit_of_passes_ends_a_step():
    data = plain.make("multinomial", m=80, n=8, seed=9)
    result = fitted(data, tol=1e-9, corrective="nesterov", shortlist=None, alpha=1e-3, max_passes=40)
    assert result.stop_reason == "max_passes" and result.passes < 60


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
    best = Reference(data, 1e-6).minimum(ridge.active, ridge.W)
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


# (system, rounds asked for, rounds done); a pass on a cluster takes time, and Nesterov's step is many of them
NEWTON = ShareBoost("row", 2, keep=2), 3, 5
PAPERS = ShareBoost("row", None, corrective="nesterov"), 2, 2


@pytest.mark.full
@pytest.mark.parametrize(
    "family,case",
    [(None, NEWTON), (Products(max_degree=2), NEWTON), (Stumps(), NEWTON), (None, PAPERS)],
    ids=["columns", "products", "stumps", "no shortlist, nesterov"],
)
def test_a_fit_has_the_same_bits_on_threads_and_on_a_cluster(family, case, one_worker, two_processes):
    system, rounds, done = case
    data = plain.make("margin_softmax", m=120, n=6, weights=True, seed=61)
    settings = FitSettings(
        "margin_softmax", "l2_squared", tol=1e-2, max_rounds=rounds, hypotheses=family, system=system
    )
    plan = plain.plan(data, [10, 40, 41, 41, 90, 120])
    results = []
    for engine in (LocalEngine(1), LocalEngine(3), DaskEngine(one_worker), DaskEngine(two_processes)):
        with engine:
            result = Fitting(plan, engine, settings).fit(1e-4)
            results.append((bits(result), {name: value.tobytes() for name, value in result.state.carried.items()}))
    assert all(result == results[0] for result in results[1:])
    assert results[0][0][1][3] == done
