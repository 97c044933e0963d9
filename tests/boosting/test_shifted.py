"""Exponential losses far from any optimum: sums in units of e^c, merged in any shape, and fits that find back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dboost import passes
from dboost.hypotheses.products.family import Products
from dboost.partition import Sums
from tests.boosting import plain
from tests.boosting.test_induced import induced
from tests.test_passes import ACTIVE, Run

WIDE = np.longdouble
DATA = plain.make("exp", m=80, n=12, weights=True, seed=50)


def run_at(cuts, size):
    run = Run(DATA, cuts)
    run.point = replace(run.point, W=run.W * size, intercept=run.b * size, token=f"at {size}")
    return run


@pytest.mark.parametrize("cuts", [1, 3, [1, 2, 3, 60, 80], [0, 0, 40, 40, 80]], ids=str)
@pytest.mark.parametrize("size", [1.0, 100.0, 3000.0, -3000.0])
def test_sums_times_e_to_the_shift(cuts, size):
    run = run_at(cuts, size)
    F = (DATA.X[:, ACTIVE] @ run.point.W + run.point.intercept).astype(WIDE)
    z = -DATA.y * F + np.log(DATA.s)[:, None]
    top = z.max()
    q = np.exp(z - top)
    for leaf, args in ((passes.active_gradient, ()), (passes.score, (False, True)), (passes.score, (True, True))):
        given = (np.arange(12), run.point, *args) if args else (run.point,)
        total = run.engine.map_reduce(leaf, *given, name="pass")
        assert total.shift == pytest.approx(float(top), rel=1e-14, abs=1e-12)
        assert all(np.isfinite(value).all() for value in total.add.values())
        assert total.add["loss"] == pytest.approx(float(q.sum()), rel=1e-12 * max(1, abs(size)))
        X = DATA.X[:, ACTIVE] if leaf is passes.active_gradient else DATA.X
        G = total.add["G"] if "G" in total.add else total.add["mu_plus"] - total.add["mu_minus"]
        np.testing.assert_allclose(G, (X.T @ (DATA.y * q)).astype(float), atol=1e-11 * max(1, abs(size)) * X.max())


def test_merging_is_associative_and_keeps_what_is_small():
    def sums(shift, value):
        return Sums(add={"a": np.array([value]), "b": value}, shift=shift)

    parts = [(-np.inf, 0.0), (5000.0, 1.5), (4998.0, 1.0), (-5000.0, 2.0), (-np.inf, 0.0), (4999.5, 1.0)]
    wanted = 1.5 + np.exp(-2.0) + np.exp(-0.5)

    def fold(lo, hi, split):
        if hi - lo == 1:
            return sums(*parts[lo])
        middle = split(lo, hi)
        return fold(lo, middle, split).merge(fold(middle, hi, split))

    for split in (lambda lo, hi: lo + 1, lambda lo, hi: hi - 1, lambda lo, hi: (lo + hi) // 2):
        total = fold(0, len(parts), split)
        assert total.shift == 5000.0
        assert total.add["a"][0] == pytest.approx(wanted, rel=1e-15) == pytest.approx(total.add["b"], rel=1e-15)
        assert total.plain().shift == 5000.0
    empty = sums(-np.inf, 0.0).merge(sums(-np.inf, 0.0)).plain()
    assert (empty.shift, empty.add["b"]) == (0.0, 0.0)
    assert sums(3.0, 2.0).plain().add["b"] == pytest.approx(2.0 * np.exp(3.0))
    assert sums(-5000.0, 2.0).plain().add["b"] == 0.0


@pytest.mark.parametrize("loss", ["exp", "poisson"])
@pytest.mark.parametrize("update", ["newton", "adaboost"])
@pytest.mark.parametrize("margin", [200.0, 5000.0, -5000.0])
def test_a_warm_start_far_away_finds_back(loss, update, margin):
    data = plain.make(loss, m=60, n=6, weights=True)
    select = "greedy" if update == "newton" else "template"
    fitting = plain.fitting(data, penalty="l1", tol=1e-8, update=update, select=select)
    alpha = 0.3 * fitting.alpha_max()
    best = fitting.fit(alpha)
    W = np.random.default_rng(0).normal(size=(6, 1))
    W *= margin / np.abs(data.X @ W).max()
    with np.errstate(all="raise", under="ignore"):
        result = fitting.fit(alpha, replace(best, active=np.arange(6), W=W))
    assert result.stop_reason == "tol"
    assert result.objective == pytest.approx(best.objective, rel=2e-8)
    assert np.isfinite(result.trace[:, 2]).sum() >= len(result.trace) - 25


@pytest.mark.parametrize("update", ["newton", "adaboost"])
@pytest.mark.parametrize("family", [Products(max_degree=2), Products(scale="range", decay=0.8)], ids=["pairs", "all"])
def test_a_warm_start_far_away_finds_back_over_induced_hypotheses(update, family):
    data = plain.make("exp", m=60, n=4, weights=True)
    select = "greedy" if update == "newton" else "template"
    fitting = induced(data, penalty="l1", tol=1e-6, update=update, select=select, hypotheses=family)
    alpha = 0.3 * fitting.alpha_max()
    best = fitting.fit(alpha)
    far = replace(best, W=5000.0 * best.W / np.abs(best.W).max())
    with np.errstate(all="raise", under="ignore"):
        result = fitting.fit(alpha, far)
    assert result.stop_reason == "tol"
    assert result.objective == pytest.approx(best.objective, rel=2e-6)


@pytest.mark.parametrize("update,select", [("newton", "greedy"), ("adaboost", "template"), ("adaboost", "cyclic")])
def test_separable_data_without_penalty_end_by_name(update, select):
    data = plain.make("exp", m=40, n=30, seed=41, density=1.0)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        fitting = plain.fitting(data, penalty="none", tol=1e-2, max_rounds=2, update=update, select=select)
        result = fitting.fit("auto")
    assert result.stop_reason in ("gradient", "max_rounds", "precision")
    assert np.isfinite(result.W).all() and np.isfinite(result.intercept).all()
    assert result.objective < 0.1
