"""``positive=``, ``lower=`` and ``upper=`` of the estimators: by place and by name, on both engines, saved, refused.

Covers: what users see. Does not cover: the optimum they have (tests/boosting/test_signs.py).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import dboost
from dboost import BoostedClassifier, BoostedClassifierCV, MultiTaskBoostedRegressor
from dboost.errors import DataError, UsageError
from tests.boosting import plain

LOWER = [0.0, -np.inf, 0.0, -np.inf, -np.inf, -np.inf, -np.inf, -np.inf]
UPPER = {"x1": 0.0, "x3": 0.0}
NAMES = [f"x{j}" for j in range(8)]
BOTH = [1, -1, 1, -1, 0, 0, 0, 0]


@pytest.fixture(scope="module")
def data():
    return plain.make("multinomial", m=90, n=8, seed=4)


def test_by_name_and_by_place_saved_and_kept(data, tmp_path):
    table = pd.DataFrame(data.X, columns=NAMES)
    asked = BoostedClassifier(alpha=0.005, penalty="l1", lower=LOWER, upper=UPPER, checkpoint=tmp_path / "state")
    found = asked.fit(table, data.y)
    assert found.duality_gap_ <= 1e-4 and found.coef_.any() and np.all(BOTH * found.coef_ >= 0.0)
    places = [np.inf, 0.0, np.inf, 0.0, *[np.inf] * 4]
    by_place = clone(asked).set_params(upper=places, checkpoint=None).fit(data.X, data.y)
    np.testing.assert_array_equal(by_place.coef_, found.coef_)
    by_place.save(tmp_path / "model")
    np.testing.assert_array_equal(dboost.load_model(tmp_path / "model").fit(data.X, data.y).coef_, found.coef_)
    with pytest.raises(UsageError, match="signs"):
        clone(asked).set_params(lower=0.0, upper=None).fit(table, data.y)


@pytest.mark.filterwarnings("ignore:alpha_best_")
def test_paths_folds_and_targets_have_them(data):
    along = dboost.regularization_path(data.X, data.y, n_alphas=4, penalty="l1", positive=True)
    assert (along.gaps <= 1e-4).all() and (along.coefs >= 0.0).all() and along.coefs[-1].any()
    found = BoostedClassifierCV(cv=2, n_alphas=3, penalty="l1", upper=0).fit(data.X, data.y)
    assert (found.coef_ <= 0.0).all() and found.coef_.any() and (found.fold_gaps_ <= 1e-2).all()
    labels = data.X @ np.random.default_rng(0).normal(size=(8, 2))
    several = MultiTaskBoostedRegressor(alpha=0.01, positive=True).fit(data.X, labels)
    assert several.duality_gap_ <= 1e-4 and several.coef_.any() and (several.coef_ >= 0.0).all()


@pytest.mark.parametrize(
    "given,said",
    [
        ({"upper": {"x9": 0.0}}, "upper names 'x9'.*did you mean 'x"),
        ({"lower": 0, "upper": UPPER}, "lower and upper are both 0 for 'x1'"),
        ({"positive": True, "penalty": "smooth_l1"}, "need a certificate.*penalty 'smooth_l1' has none"),
        ({"positive": True, "hypotheses": dboost.Products(max_degree=2)}, "made in the fit"),
    ],
)
def test_what_has_no_meaning_is_refused(data, given, said):
    with pytest.raises(UsageError, match=said):
        BoostedClassifier(**({"penalty": "l1"} | given)).fit(pd.DataFrame(data.X, columns=NAMES), data.y)


def test_where_no_feature_may_have_its_sign_there_is_no_path():
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    X, y = np.column_stack([x, x + 0.01 * rng.normal(size=100)]), -x + 0.1 * rng.normal(size=100)
    estimator = dboost.BoostedRegressor(alpha="quick", positive=True)
    one = dboost.BoostedRegressor(positive=True, alpha=0.1).fit(X, y)
    assert one.alpha_max_ == 0.0 and not one.coef_.any() and one.duality_gap_ <= 1e-4
    for asked in (
        lambda: dboost.regularization_path(X, y, estimator=estimator),
        lambda: dboost.BoostedRegressorCV(positive=True, cv=3).fit(X, y),
        lambda: dboost.StabilitySelection(estimator, n_pairs=2).fit(X, y),
    ):
        with pytest.raises(DataError, match="alpha_max.* is 0; check positive=, lower= and upper="):
            asked()
    path = dboost.regularization_path(X, y, estimator=estimator, alphas=[0.1, 0.01])
    assert path.n_active_features.tolist() == [0, 0]
