"""Losses that grow like e^f far from any optimum: fits find back, and AdaBoost+L1 sums in units of e^c."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dboost.boosting.adaboost_l1 import InUnits
from dboost.hypotheses.products.family import Products
from tests.boosting import plain
from tests.boosting.test_over_hypotheses import induced


def test_merging_is_associative_and_keeps_what_is_small():
    parts = [(-np.inf, 0.0), (5000.0, 1.5), (4998.0, 1.0), (-5000.0, 2.0), (-np.inf, 0.0), (4999.5, 1.0)]
    parts = [InUnits(shift, {"a": np.array([value]), "b": value}) for shift, value in parts]
    wanted = 1.5 + np.exp(-2.0) + np.exp(-0.5)

    def fold(lo, hi, split):
        if hi - lo == 1:
            return parts[lo]
        middle = split(lo, hi)
        return fold(lo, middle, split) + fold(middle, hi, split)

    for split in (lambda lo, hi: lo + 1, lambda lo, hi: hi - 1, lambda lo, hi: (lo + hi) // 2):
        total = fold(0, len(parts), split)
        assert total.shift == 5000.0
        assert total.numbers["a"][0] == pytest.approx(wanted, rel=1e-15) == pytest.approx(total.numbers["b"], rel=1e-15)
    assert (parts[0] + parts[4]).numbers["b"] == 0.0


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
    alone = replace(best.state, active=np.arange(0), W=W[:0], intercept=np.array([margin]))
    for far in (replace(best, active=np.arange(6), W=W), replace(best, active=alone.active, W=W[:0], state=alone)):
        with np.errstate(all="raise", under="ignore"):
            result = fitting.fit(alpha, far)
        assert result.stop_reason == "tol"
        assert result.objective == pytest.approx(best.objective, rel=2e-8)
        assert np.isfinite(result.trace[:, 2]).sum() >= len(result.trace) - 1


@pytest.mark.parametrize("update", ["newton", pytest.param("adaboost", marks=pytest.mark.full)])
@pytest.mark.parametrize("family", [Products(max_degree=2), Products(scale="range", decay=0.8)], ids=["pairs", "all"])
def test_a_warm_start_far_away_finds_back_over_induced_hypotheses(update, family):
    data = plain.make("exp", m=60, n=4, weights=True)
    select = "greedy" if update == "newton" else "template"
    fitting = induced(data, family, penalty="l1", tol=1e-6, update=update, select=select)
    alpha = 0.3 * fitting.alpha_max()
    best = fitting.fit(alpha)
    far = replace(best, W=5000.0 * best.W / np.abs(best.W).max())
    with np.errstate(all="raise", under="ignore"):
        result = fitting.fit(alpha, far)
    assert result.stop_reason == "tol"
    assert result.objective == pytest.approx(best.objective, rel=2e-6)
