"""``penalty_factors`` of the estimators: by place and by name, on both engines, saved, kept, refused; adaptive refits.

Covers: what users see. Does not cover: the optimum they have (tests/boosting/test_penalty_factors.py).
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import dboost
from dboost import BoostedClassifier, BoostedRegressor, UsageError
from tests.boosting import plain

F = np.array([0.5, 2.0, 1.0, np.inf, 0.7, 1.5, 1.0, 3.0])
NAMES = [f"x{j}" for j in range(8)]
# the same, and a feature without penalty
FREED = np.where(np.arange(8) == 1, 0.0, F)
BY_NAME = {"x0": 0.5, "x1": 2.0, "x3": np.inf, "x4": 0.7, "x5": 1.5, "x7": 3.0}


@pytest.fixture(scope="module")
def data():
    return plain.make("multinomial", m=90, n=8, seed=4)


def test_by_name_is_by_place(data):
    table = pd.DataFrame(data.X, columns=NAMES)
    asked = BoostedClassifier(alpha=0.01, penalty_factors=F)
    by_place = asked.fit(data.X, data.y)
    by_name = clone(asked).set_params(penalty_factors=BY_NAME).fit(table, data.y)
    np.testing.assert_array_equal(by_name.coef_, by_place.coef_)
    assert not by_place.coef_[:, 3].any() and by_place.duality_gap_ <= 1e-4


def test_a_path_has_them(data):
    found = dboost.regularization_path(data.X, data.y, n_alphas=5, penalty="l1/l2", penalty_factors=FREED)
    assert (found.gaps <= 1e-4).all() and not found.coefs[:, :, 3].any() and found.n_active_features[-1] == 7
    assert found.coefs[:, :, 1].all() and found.n_active_features[0] == 1


@pytest.mark.parametrize(
    "others,said",
    [
        ({"penalty": "none"}, "penalty_factors .* penalty 'none'"),
        ({"hypotheses": dboost.Products(max_degree=2)}, re.escape("penalty_factors") + ".*hypotheses=Products"),
    ],
)
def test_what_they_cannot_be_combined_with_is_named(data, others, said):
    with pytest.raises(UsageError, match=said):
        BoostedClassifier(penalty_factors=F, **others).fit(data.X, data.y)


# ---- adaptive refits -------------------------------------------------------------------------------------------------


def test_an_adaptive_refit_is_less_biased_and_keeps_out_what_the_first_did_not_use():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 30))
    w = np.zeros(30)
    w[:3] = 2.0, -1.0, 0.7
    y = X @ w + rng.normal(size=400)
    first = BoostedRegressor(alpha=0.05, tol=1e-8).fit(X, y)
    factors = dboost.adaptive_factors(first, gamma=1.0)
    np.testing.assert_allclose(factors[:3], 1.0 / np.abs(first.coef_[0, :3]))
    assert np.isinf(factors[first.coef_[0] == 0.0]).all() and len(first.active_features_) > 3
    second = clone(first).set_params(penalty_factors=factors).fit(X, y)
    assert second.duality_gap_ <= 1e-8 and np.flatnonzero(second.coef_[0]).tolist() == [0, 1, 2]
    free = BoostedRegressor(penalty="none").fit(X[:, :3], y).coef_[0, 0]
    assert free - second.coef_[0, 0] < 0.75 * (free - first.coef_[0, 0])
    np.testing.assert_array_equal(np.isfinite(dboost.adaptive_factors(first, 0.0)), first.coef_[0] != 0.0)


def test_what_has_no_adaptive_factors_is_refused(data):
    with pytest.raises(UsageError, match="uses no feature"):
        dboost.adaptive_factors(BoostedClassifier(alpha=10.0).fit(data.X, data.y))
    with pytest.raises(UsageError, match="induced hypotheses"):
        dboost.adaptive_factors(BoostedClassifier(alpha="quick", hypotheses=dboost.Stumps()).fit(data.X, data.y))
    with pytest.raises(UsageError, match="gamma"):
        dboost.adaptive_factors(BoostedClassifier(alpha=0.01).fit(data.X, data.y), gamma=-1.0)
