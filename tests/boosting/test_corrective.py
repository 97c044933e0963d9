"""Totally corrective boosting: however few rows enter in a round, the optimum is the same (docs/math.md 7)."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.losses import LOSSES
from tests.boosting import plain

RUNS = [(*pair, 30) for pair in plain.DEFINED] + [(loss, "newton", 1) for loss in LOSSES]


@pytest.mark.parametrize("loss,update,rows", RUNS)
def test_thirty_rows_a_round(loss, update, rows):
    """30 rows a round as in Duchi & Singer 2009, section 6, and one; among more columns than that."""
    data = plain.make(loss, m=80, n=70, seed=60, weights=True)
    alpha = 0.25 * plain.alpha_max(data, "l1/linf")
    select = "greedy" if update == "newton" else "template"
    tol = 1e-8 if update == "newton" else 1e-5
    fitting = plain.fitting(data, penalty="l1/linf", update=update, select=select, tol=tol, features_per_round=rows)
    result = fitting.fit(alpha)
    best = plain.optimum(data, "l1/linf", alpha * data.s.sum())
    assert result.stop_reason == "tol" and result.gap <= tol
    assert max(record["rows_in"] for record in result.history) <= rows
    assert result.objective * data.s.sum() == pytest.approx(best.value, rel=2 * tol)
    support = set(np.flatnonzero(np.abs(best.W).max(axis=1) > 1e-3 * np.abs(best.W).max()))
    assert support <= set(result.active.tolist())
    # rows that entered too early were pruned again
    if rows == 30 and update == "newton":
        assert sum(record["rows_out"] for record in result.history) > 0


def test_the_quadratic_bound_of_quantiles_leads_to_the_optimum_of_newton_steps():
    data = plain.make("quantile", m=60, n=12, seed=61)
    alpha = 0.4 * plain.alpha_max(data, "l1/l2")
    newton = plain.fitting(data, penalty="l1/l2", tol=1e-7, update="newton").fit(alpha)
    bound = plain.fitting(data, penalty="l1/l2", tol=1e-3, update="gradboost").fit(alpha)
    assert bound.stop_reason == "tol"
    assert newton.objective * (1 - 1e-6) <= bound.objective <= newton.objective * (1 + 2e-3)
