"""Rounds that lead nowhere end the fit, with the reason and the gap that was reached."""

from __future__ import annotations

import time

import numpy as np
import pytest

from dboost import BoostedClassifier, ConvergenceWarning


def far_rows(m, n):
    """Rows at 1e5, which only an intercept or an exactly solved sum of columns could bring back to zero."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, n))
    return X + 1e5, X[:, 0] - X[:, 1] + rng.normal(size=m) > 0


@pytest.mark.parametrize("rows, alpha", [((20000, 50), 0.01), ((2000, 20), 1e-3)], ids=str)
def test_a_fit_of_far_columns_without_intercept_ends_once_its_rounds_lead_nowhere(rows, alpha):
    X, y = far_rows(*rows)
    start = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match=r"stopped \(stalled\) at a certified relative gap of 0\.\d+, above"):
        model = BoostedClassifier(fit_intercept=False, alpha=alpha).fit(X, y)
    assert model.stop_reason_ == "stalled" and model.n_iter_ <= 60
    assert time.perf_counter() - start < 20.0
    assert model.objective_ * (1 - model.duality_gap_) == pytest.approx(model.model_.certificate.lower_bound, rel=1e-9)
    # as good a model as any number of rounds would have led to
    assert model.history_[-1]["objective"] <= model.history_[-10]["objective"]


def test_rare_classes_at_a_weak_strength_are_certified():
    """A column of its own for each example of two rare classes."""
    rng, n = np.random.RandomState(0), 1000
    y = (rng.rand(n) < 0.5).astype(int)
    y[:12], y[12:24] = 2, 3
    X = (rng.rand(n, 40) < 0.1).astype(float)
    X[np.arange(24), y[:24]] = X[np.arange(24), 10 + np.arange(24)] = 1.0
    weight = np.where(np.arange(n) < 24, 1.0, 100.0)
    for penalty, least in (("l1", 0.6680674133), ("l1/l2", 0.6679121512)):
        model = BoostedClassifier(standardize=False, penalty=penalty, alpha=1e-6).fit(X, y, weight)
        assert model.stop_reason_ == "tol" and model.duality_gap_ <= 1e-4
        assert model.objective_ == pytest.approx(least, rel=1e-8) and model.model_.certificate.passes <= 120
