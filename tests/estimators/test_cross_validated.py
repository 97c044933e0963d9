"""Cross-validation of every estimator: its folds are those of a plain loop, and classes that choose do as the function.

Covers: ``cross_validated``, ``BoostedRegressorCV``, ``MultiTaskBoostedClassifierCV``. Does not cover:
``BoostedClassifierCV``, folds and rules (test_cv.py).
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import dboost
from dboost import BoostedRegressor, BoostedRegressorCV, MultiTaskBoostedClassifierCV, cross_validated
from dboost.errors import UsageError
from dboost.losses import Quantile
from tests.estimators.conftest import Killed, after

pytestmark = pytest.mark.filterwarnings("ignore::dboost.errors.DboostWarning")

rng = np.random.default_rng(0)
X = rng.normal(size=(160, 6))
KIND = np.argmax(X[:, :3] + 0.5 * rng.normal(size=(160, 3)), axis=1)
TWO = (X[:, 0] + 0.7 * rng.normal(size=160) > 0).astype(int)
NUMBER = X[:, 0] * 2 + X[:, 1] + rng.normal(size=160)
TASKS = np.stack([TWO, X[:, 1] > 0], axis=1).astype(float)
MISSING = np.where((np.arange(160) % 11 == 0)[:, None] & (np.arange(2) == 1), np.nan, TASKS)
FOLDS = rng.integers(0, 3, 160)
FEW = {"cv": 3, "n_alphas": 5, "eps": 0.02}

CASES = {
    "shareboost": (dboost.ShareBoostClassifier(max_rounds=3), KIND),
    "jointboost": (dboost.JointBoostClassifier(max_rounds=4), KIND),
    "jointboost of two classes": (dboost.JointBoostClassifier(max_rounds=4), TWO),
    "adaboost_l1": (dboost.AdaBoostL1Classifier(hypotheses=dboost.Columns(), max_rounds=8), TWO),
    "adaboost_l1 regression": (dboost.AdaBoostL1Regressor(hypotheses=dboost.Columns(), max_rounds=8), NUMBER),
    "leveraging": (dboost.LeveragingClassifier(hypotheses=dboost.Columns(), max_rounds=8), TWO),
    "leveraging with a penalty": (
        dboost.LeveragingClassifier(hypotheses=dboost.Columns(), alpha=0.02, loss="log"),
        TWO,
    ),
    "leveraging regression": (dboost.LeveragingRegressor(hypotheses=dboost.Columns(), max_rounds=8), NUMBER),
    "regression": (BoostedRegressor(alpha=0.05, tol=1e-6), NUMBER),
    "tasks": (dboost.MultiTaskBoostedClassifier(alpha=0.02, tol=1e-6), TASKS),
    "forward": (dboost.BoostedClassifier(update="forward", max_rounds=6, penalty="none", alpha=0.0), TWO),
}


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_folds_are_those_of_a_plain_loop(name):
    estimator, y = CASES[name]
    alphas = None if "alpha" in estimator.get_params() or name.startswith(("joint", "ada")) else [0.0]
    found = cross_validated(X, y, estimator=estimator, folds=FOLDS, alphas=alphas, fold_tol=1e-6)
    assert found.fold_losses_.shape == (3, 1) and len(found.path_) == 1
    for fold in range(3):
        peer = clone(estimator).fit(X[fold != FOLDS], y[fold != FOLDS])
        held_out, guess = y[fold == FOLDS], peer.predict(X[fold == FOLDS])
        if y is NUMBER:
            expected = 0.5 * np.mean((guess - held_out) ** 2)
            assert found.fold_losses_[fold, 0] == pytest.approx(expected, rel=1e-3)
        else:
            assert found.fold_errors_[fold, 0] == pytest.approx(np.mean(guess != held_out))
    whole = clone(estimator).fit(X, y)
    assert found.model_.W.tobytes() == whole.model_.W.tobytes()
    assert type(found) is type(estimator) and estimator.__sklearn_is_fitted__() is False


CHOOSING = {
    "regressor": (BoostedRegressor(alpha="quick", loss="huber", penalty="elastic_net"), BoostedRegressorCV, NUMBER),
    "tasks": (
        dboost.MultiTaskBoostedClassifier(alpha="quick", penalty="l1/l2"), MultiTaskBoostedClassifierCV, MISSING
    ),
}  # fmt: skip
# What is of no use where folds choose the strength.
NOT_CHOSEN = ("alpha", "prefer", "max_features", "warm_start")


@pytest.mark.parametrize("kind", CHOOSING)
def test_it_chooses_what_the_function_chooses(kind, tmp_path):
    one, chooses, y = CHOOSING[kind]
    params = {name: value for name, value in one.get_params().items() if name not in NOT_CHOSEN}
    found = chooses(**params, **FEW).fit(X, y)
    kept = {"estimator": one, "checkpoint": tmp_path / "c", **FEW}
    with pytest.raises(Killed):
        cross_validated(X, y, **kept, callbacks=[after(9)])
    other = cross_validated(X, y, **kept)
    np.testing.assert_array_equal(found.coef_, other.coef_)
    np.testing.assert_array_equal(found.fold_losses_, other.fold_losses_)
    assert found.alpha_ == other.alpha_ == found.alpha_1se_ and found.duality_gap_ <= 1e-4
    assert 0.0 < found.alpha_ < found.alpha_max_ and found.score(X, y) > 0.5
    found.save(tmp_path / "model")
    again = dboost.load_model(tmp_path / "model")
    assert type(again) is type(found) and again.alpha_best_ == found.alpha_best_
    np.testing.assert_array_equal(again.predict(X), found.predict(X))
    last = found.path_.estimator(4)
    assert type(last) is type(one) and last.alpha_ == found.alphas_[4]


def test_factors_and_offsets_go_along():
    begin = np.random.default_rng(2).normal(size=160)
    factors = np.ones(7)
    factors[1] = np.inf
    given = {"rule": "best", "folds": np.arange(160) % 3, "n_alphas": 5, "eps": 0.02}
    found = BoostedRegressorCV(offset=6, penalty_factors=factors, **given)
    found.fit(np.column_stack([X, begin]), NUMBER + begin)
    rest = BoostedRegressorCV(**given).fit(np.delete(X, 1, axis=1), NUMBER)
    assert found.coef_[0, 6] == 1.0 and found.coef_[0, 1] == 0.0
    np.testing.assert_allclose(found.fold_losses_, rest.fold_losses_, rtol=5e-3)


def test_what_has_no_meaning_is_refused():
    for asked, y, said in (
        (BoostedRegressorCV(scoring="error", **FEW), NUMBER, "scoring='error' of a regression"),
        (BoostedRegressorCV(penalty="none", **FEW), NUMBER, "penalty 'none' has no strength"),
        (MultiTaskBoostedClassifierCV(loss="log", **FEW), TASKS, "loss='log'"),
    ):
        with pytest.raises(UsageError, match=said):
            asked.fit(X, y)
    assert BoostedRegressorCV(loss=Quantile(0.9), **FEW).fit(X, NUMBER).duality_gap_ <= 1e-4
