"""Cross-validation of every estimator: its folds are those of a plain loop over the rows.

Covers: ``cross_validated``. Does not cover: ``BoostedClassifierCV`` (test_cv.py), which shares it.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import dboost
from dboost import cross_validated

rng = np.random.default_rng(0)
X = rng.normal(size=(160, 6))
KIND = np.argmax(X[:, :3] + 0.5 * rng.normal(size=(160, 3)), axis=1)
TWO = (X[:, 0] + 0.7 * rng.normal(size=160) > 0).astype(int)
NUMBER = X[:, 0] * 2 + X[:, 1] + rng.normal(size=160)
TASKS = np.stack([TWO, X[:, 1] > 0], axis=1).astype(float)
FOLDS = rng.integers(0, 3, 160)

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
    "regression": (dboost.BoostedRegressor(alpha=0.05, tol=1e-6), NUMBER),
    "tasks": (dboost.MultiTaskBoostedClassifier(alpha=0.02, tol=1e-6), TASKS),
    "forward": (dboost.BoostedClassifier(update="forward", max_rounds=6, penalty="none", alpha=0.0), TWO),
}


@pytest.mark.filterwarnings("ignore::dboost.errors.DboostWarning")
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


@pytest.mark.filterwarnings("ignore:alpha_best_")
def test_a_strength_is_chosen_for_a_regression_and_goes_on_from_a_folder(tmp_path):
    params = {"estimator": dboost.BoostedRegressor(), "cv": 3, "n_alphas": 6, "eps": 0.01}
    found = cross_validated(X, NUMBER, **params)
    mean = [row["mean_loss"] for row in found.cv_results_]
    assert found.alpha_best_ == found.alphas_[int(np.argmin(mean))] and found.alpha_ == found.alpha_1se_
    seen = []

    def stop(record):
        seen.append(record)
        if len(seen) == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cross_validated(X, NUMBER, **params, checkpoint=tmp_path / "c", callbacks=[stop])
    again = cross_validated(X, NUMBER, **params, checkpoint=tmp_path / "c")
    assert again.fold_losses_.tobytes() == found.fold_losses_.tobytes()
    assert again.model_.W.tobytes() == found.model_.W.tobytes()
