"""ShareBoost without a shortlist against brute force, Nesterov's corrective step against Newton's, every engine."""

from __future__ import annotations

import numpy as np
import pytest

from dboost import ShareBoostClassifier, Stumps, UsageError
from dboost.boosting import shareboost as trials
from dboost.boosting.fit import FitSettings, Fitting
from dboost.boosting.shareboost import ShareBoost
from dboost.engine.dask.engine import DaskEngine
from dboost.engine.local import LocalEngine
from dboost.hypotheses.products.family import Products
from tests.boosting import plain
from tests.boosting.test_resume import bits
from tests.boosting.test_shareboost import Reference, stages

COSTLY = ("newton", "line", "row", "full")


def fitted(data, rule="row", rounds=3, alpha=1e-3, cuts=3, threads=1, **settings):
    own = {name: settings.pop(name) for name in ("shortlist", "groups", "keep", "corrective") if name in settings}
    settings = {"penalty": "l2_squared", "tol": 1e-9, "max_rounds": rounds, **settings}
    fitting = plain.fitting(data, cuts=cuts, threads=threads, system=ShareBoost(rule, **own), **settings)
    return fitting.fit(alpha)


def mixed(loss="multinomial"):
    """Columns of very different shapes: what the bound promises says little about what a column gains."""
    data = plain.make(loss, m=70, n=12, k=3, seed=18, weights=True, noise=0.5)
    data.X[:, 4:] = np.sign(data.X[:, 4:]) * np.abs(data.X[:, 4:]) ** 4
    return data


@pytest.mark.parametrize("rule", COSTLY)
@pytest.mark.parametrize("loss", ["multinomial", "log"])
def test_the_best_of_all_candidates_enters(rule, loss):
    data = mixed(loss)
    reference = Reference(data, alpha=1e-3)
    rounds = 1 if rule == "full" else 3
    whole = fitted(data, rule, rounds, shortlist=None)
    rows, W, b = np.zeros(0, int), np.zeros((0, data.k)), plain.null_intercept(data)
    for order, now, bias in stages(whole):
        assert order[-1] == reference.choice(rule, rows, W, b, data.X.shape[1])
        rows, W, b = order.astype(int), now, bias
    # a shortlist of all is no other choice
    every = fitted(data, rule, rounds, shortlist=data.X.shape[1])
    assert bits(every) == bits(whole)


def test_columns_of_a_group_that_say_the_same_count_once_for_newton_alone():
    """Four copies of a useful column, and four columns that are each as useful as that one: sums cannot tell them."""
    data = plain.make("multinomial", m=400, n=8, k=3, seed=5, density=1.0)
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 8))
    X[:, 1:4] = X[:, :1] + 1e-3 * rng.normal(size=(400, 3))
    F = X[:, :1] * [1.0, 0.0, -1.0] + 0.9 * X[:, 4:] @ rng.choice([-1.0, 1.0], (4, 3))
    data.X[:], data.y[:] = X, (F + rng.gumbel(size=F.shape)).argmax(axis=1)
    groups = (0, 0, 0, 0, 1, 1, 1, 1)
    first = {rule: fitted(data, rule, 1, shortlist=2, groups=groups).active.tolist() for rule in ("scaled", "newton")}
    assert first == {"scaled": [0, 1, 2, 3], "newton": [4, 5, 6, 7]}
    assert fitted(data, "full", 1, shortlist=2, groups=groups).active.tolist() == first["newton"]


@pytest.mark.parametrize("rule", COSTLY)
def test_groups_and_listed_hypotheses(rule, monkeypatch):
    data = mixed()
    groups = tuple(np.arange(12) // 3)
    alone = fitted(data, rule, rounds=2, shortlist=None, groups=groups)
    assert len(alone.active) == 6
    listed = fitted(data, rule, rounds=2, shortlist=None, hypotheses=Products(max_degree=1))
    # in pieces the same candidate is found
    monkeypatch.setattr(trials, "AT_ONCE", 2)
    assert fitted(data, rule, rounds=2, shortlist=None, groups=groups).active.tolist() == alone.active.tolist()
    again = fitted(data, rule, rounds=2, shortlist=None, hypotheses=Products(max_degree=1))
    assert again.active.tolist() == listed.active.tolist()


@pytest.mark.parametrize("family", [Products(), Stumps(max_listed=2, bins=4)], ids=["products", "stumps"])
def test_a_class_that_cannot_be_listed_is_refused(family):
    with pytest.raises(UsageError, match="shortlist=None tries every candidate"):
        fitted(mixed(), shortlist=None, hypotheses=family)
    fitted(mixed(), rounds=1, shortlist=3, hypotheses=family)


def distance(data, result, lam):
    """P - P* is at most ||lam W - G||^2 / (2 lam) in the sum form, without an intercept (docs/math.md 6)."""
    rows, W, b = stages(result)[-1]
    X = data.X[:, rows.astype(int)]
    return float(np.sum((lam * W - X.T @ data.residual(X @ W + b)) ** 2) / (2 * lam))


@pytest.mark.parametrize("loss", ["margin_softmax", "multinomial", "log"])
def test_nesterov_s_step_ends_at_the_minimum_of_newton_s(loss):
    data = plain.make(loss, m=120, n=10, seed=6, weights=True)
    data.X[:, 3] *= 40.0
    lam = 1e-2 * data.s.sum()
    found = {
        name: fitted(data, "scaled", rounds=5, alpha=1e-2, tol=1e-8, fit_intercept=False, corrective=name)
        for name in ("newton", "nesterov")
    }
    newton, nesterov = found["newton"], found["nesterov"]
    assert newton.state.carried["order"].tolist() == nesterov.state.carried["order"].tolist()
    for result in found.values():
        # certified: neither is further than this from the minimum
        assert distance(data, result, lam) <= 1e-9 * result.objective * data.s.sum()
    for (_, W, b), (_, V, c) in zip(stages(newton), stages(nesterov), strict=True):
        np.testing.assert_allclose(V, W, atol=1e-6)
        np.testing.assert_allclose(c, b, atol=1e-6)
    assert [r["steps"] for r in nesterov.history] != [r["steps"] for r in newton.history]
    assert all(r["gradient"] >= 0 for r in nesterov.history) and nesterov.passes > newton.passes


@pytest.mark.parametrize("penalty", ["l2_squared", "smooth_l1", "smooth_l1/linf"])
def test_nesterov_with_an_intercept_and_on_the_way_back(penalty):
    data = plain.make("margin_softmax", m=90, n=8, seed=7)
    settings = {"alpha": 1e-2, "tol": 1e-7, "penalty": penalty, "keep": 2}
    newton, nesterov = (fitted(data, "scaled", 4, corrective=one, **settings) for one in ("newton", "nesterov"))
    assert nesterov.stop_reason == newton.stop_reason == "kept" and len(newton.active) == 2
    np.testing.assert_array_equal(nesterov.active, newton.active)
    np.testing.assert_allclose(nesterov.W, newton.W, atol=1e-6)
    assert nesterov.objective == pytest.approx(newton.objective, rel=1e-9)


def test_a_limit_of_passes_ends_a_step():
    data = plain.make("multinomial", m=80, n=8, seed=9)
    result = fitted(data, "scaled", rounds=5, tol=1e-9, corrective="nesterov", max_passes=40)
    assert result.stop_reason == "max_passes" and result.passes < 60


def test_refusals():
    data = plain.make("multinomial", m=60, n=6, seed=1)
    with pytest.raises(UsageError, match="corrective='fista'.*expected one of 'newton', 'nesterov'"):
        ShareBoostClassifier(corrective="fista").fit(data.X, data.y)
    with pytest.raises(UsageError, match=r"shortlist='all'.*expected an integer >= 1, or None"):
        ShareBoostClassifier(shortlist="all").fit(data.X, data.y)


# (system, rounds asked for, rounds done); a pass on a cluster takes time, and Nesterov's step is many of them
NEWTON = ShareBoost("row", 2, keep=2), 3, 5
PAPERS = ShareBoost("row", None, corrective="nesterov"), 2, 2


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
