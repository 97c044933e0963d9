"""Strengths chosen by folds for regressions and tasks: the same as by ``cross_validated``, on both engines, saved.

Covers: ``BoostedRegressorCV``, ``MultiTaskBoostedClassifierCV``. Does not cover: folds and rules (test_cv).
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import dboost
from dboost import BoostedRegressor, BoostedRegressorCV, MultiTaskBoostedClassifier, MultiTaskBoostedClassifierCV
from dboost.errors import UsageError
from dboost.losses import Quantile

FEW = {"cv": 3, "n_alphas": 5, "eps": 0.02}


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 12))
    return X, X[:, 0] - 0.5 * X[:, 1] + rng.normal(size=150)


@pytest.fixture(scope="module")
def tasks(numbers):
    X, _ = numbers
    noise = np.random.default_rng(1).logistic(size=(150, 3))
    Y = (2.0 * X[:, :3] + X[:, :1] + noise > 0).astype(float)
    Y[::11, 1] = np.nan
    return X, Y


# What is of no use where folds choose the strength.
NOT_CHOSEN = ("alpha", "prefer", "max_features", "warm_start")


def both(kind, data):
    """The estimator that chooses, and the function on the one of a strength."""
    if kind == "regressor":
        one, chooses = BoostedRegressor(alpha="quick", loss="huber", penalty="elastic_net"), BoostedRegressorCV
    else:
        one, chooses = MultiTaskBoostedClassifier(alpha="quick", penalty="l1/l2"), MultiTaskBoostedClassifierCV
    params = {name: value for name, value in one.get_params().items() if name not in NOT_CHOSEN}
    return chooses(**params, **FEW), dboost.cross_validated(*data, estimator=one, **FEW)


@pytest.mark.parametrize("kind", ["regressor", "tasks"])
def test_it_chooses_what_the_function_chooses(kind, numbers, tasks, tmp_path):
    data = numbers if kind == "regressor" else tasks
    asked, other = both(kind, data)
    found = asked.fit(*data)
    np.testing.assert_array_equal(found.coef_, other.coef_)
    np.testing.assert_array_equal(found.fold_losses_, other.fold_losses_)
    assert found.alpha_ == other.alpha_ == found.alpha_1se_ and found.duality_gap_ <= 1e-4
    assert 0.0 < found.alpha_ < found.alpha_max_ and found.score(*data) > 0.5
    found.save(tmp_path / "model")
    again = dboost.load_model(tmp_path / "model")
    assert type(again) is type(found) and again.alpha_best_ == found.alpha_best_
    np.testing.assert_array_equal(again.predict(data[0]), found.predict(data[0]))
    last = found.path_.estimator(4)
    assert type(last) is {"regressor": BoostedRegressor, "tasks": MultiTaskBoostedClassifier}[kind]
    assert last.alpha_ == found.alphas_[4]


def test_factors_and_offsets_go_along(numbers):
    X, y = numbers
    begin = np.random.default_rng(2).normal(size=150)
    factors = np.ones(13)
    factors[1] = np.inf
    asked = BoostedRegressorCV(offset=12, penalty_factors=factors, rule="best", **FEW)
    found = asked.fit(np.column_stack([X, begin]), y + begin)
    rest = BoostedRegressorCV(rule="best", **FEW, folds=np.arange(150) % 3).fit(np.delete(X, 1, axis=1), y)
    assert found.coef_[0, 12] == 1.0 and found.coef_[0, 1] == 0.0
    again = clone(asked).set_params(folds=np.arange(150) % 3).fit(np.column_stack([X, begin]), y + begin)
    np.testing.assert_allclose(again.fold_losses_, rest.fold_losses_, rtol=5e-3)


def test_what_has_no_meaning_is_refused(numbers, tasks):
    with pytest.raises(UsageError, match="scoring='error' of a regression"):
        BoostedRegressorCV(scoring="error", **FEW).fit(*numbers)
    with pytest.raises(UsageError, match="penalty 'none' has no strength"):
        BoostedRegressorCV(penalty="none", **FEW).fit(*numbers)
    with pytest.raises(UsageError, match="loss='log'"):
        MultiTaskBoostedClassifierCV(loss="log", **FEW).fit(*tasks)
    assert BoostedRegressorCV(loss=Quantile(0.9), **FEW).fit(*numbers).duality_gap_ <= 1e-4
