"""Predictions at scores of any size: every way to predict says the same, and says it in numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import is_classifier

import dboost
from dboost.errors import DataError
from dboost.estimators.base import BoostedEstimator
from dboost.estimators.persistence import ESTIMATORS
from dboost.hypotheses.columns import ColumnSet
from dboost.losses import LOSSES
from dboost.model.tasks import labels, log_probabilities, probabilities
from pipelines.inputs import read_one_for_each
from tests.model.models import make

RNG = np.random.default_rng(0)
SIZES = np.array([0.0, 1e-300, 1e-20, 1e-16, 1.0, 1.0 + 2.0**-52, 36.0, 40.0, 50.0, 745.0, 800.0, 1e16, 1e308, 1.7e308])
X = RNG.standard_normal((60, 3))
CODES = X.argmax(axis=1)


def rows(k):
    """Scores of every size beside each other, near each other and equal to each other."""
    return np.concatenate([RNG.choice(np.concatenate([SIZES, -SIZES]), size=(400, k)), np.repeat(SIZES[:, None], k, 1)])


def of_scores(cls, loss):
    """An estimator as fitted, whose scores are its columns."""
    model = make(LOSSES[loss].task, names=False)
    k = model.n_outputs
    held = ColumnSet(np.arange(k))
    made = replace(model, loss=loss, hypotheses=held, W=np.eye(k), intercept=np.zeros(k), n_features=k)
    # as a fit leaves them, without what cross-validation records besides
    return BoostedEstimator._adopt(cls(), made)


def test_every_estimator_predicts_the_most_probable_label_at_any_score():
    kinds = [(cls, loss) for cls in ESTIMATORS.values() if is_classifier(cls()) for loss in cls._losses()]
    assert len({cls for cls, _ in kinds}) >= 8
    assert {"log", "exp", "multinomial", "multitask"} <= {loss for _, loss in kinds}
    for cls, loss in kinds:
        fitted = of_scores(cls, loss)
        F = rows(fitted.model_.n_outputs)
        name = f"{cls.__name__} of {loss}"
        chances, logs = fitted.predict_proba(F), fitted.predict_log_proba(F)
        shown = fitted.decision_function(F)
        assert np.isfinite(chances).all() and np.isfinite(logs).all() and np.isfinite(shown).all(), name
        np.testing.assert_allclose(np.exp(logs), chances, rtol=1e-9, atol=1e-300, err_msg=name)
        if fitted.model_.task == "multitask":
            assert np.array_equal(fitted.predict(F), chances > 0.5), name
            continue
        assert np.array_equal(fitted.predict(F), fitted.classes_[chances.argmax(axis=1)]), name
        assert np.array_equal(fitted.predict(F), fitted.classes_[logs.argmax(axis=1)]), name
        np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-15, err_msg=name)


def test_one_classifier_for_each_class_has_probabilities_where_all_single_ones_are_zero(tmp_path):
    fitted = dboost.OneVsRestBoostedClassifier(dboost.BoostedClassifier(alpha=0.05)).fit(X, CODES)
    for r, one in enumerate(fitted.estimators_):
        one.model_ = replace(one.model_, hypotheses=ColumnSet(np.array([r])), W=np.ones((1, 1)), intercept=np.zeros(1))
    F = rows(3)
    chances, logs = fitted.predict_proba(F), fitted.predict_log_proba(F)
    assert np.isfinite(logs).all()
    assert np.array_equal(fitted.predict(F), chances.argmax(axis=1))
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-15)
    # at -800 and below a probability is its exponential, which is none: the shares are still those of the exponentials
    np.testing.assert_allclose(
        fitted.predict_proba(np.array([[-800.0, -801.0, -900.0]]))[0, :2], [1 / (1 + np.exp(-1)), 1 / (1 + np.e)]
    )
    fitted.save(tmp_path / "m")
    as_one = read_one_for_each(str(tmp_path / "m"))
    assert np.array_equal(as_one.predict(F), fitted.predict(F))


def test_one_classifier_for_each_class_takes_losses_with_a_score_for_each_label():
    for loss in ("multinomial", "margin_softmax"):
        binary = dboost.BoostedClassifier(loss=loss, penalty="l1/l2", alpha=0.01)
        fitted = dboost.OneVsRestBoostedClassifier(binary).fit(X, CODES)
        singles = np.column_stack([one.predict_proba(X)[:, 1] for one in fitted.estimators_])
        np.testing.assert_allclose(fitted.predict_proba(X), singles / singles.sum(axis=1, keepdims=True), rtol=1e-12)
        assert np.array_equal(fitted.predict(X), singles.argmax(axis=1))
        assert fitted.score(X, CODES) > 0.8


def test_a_mean_beyond_all_numbers_is_the_largest_one():
    fitted = of_scores(dboost.BoostedRegressor, "poisson")
    found = fitted.predict(np.array([[0.0], [1e308], [-1e308]]))
    assert found[0] == 1.0 and 1e308 < found[1] < np.inf and found[2] == 0.0


def test_scores_beyond_all_numbers_are_refused_by_their_row():
    fitted = dboost.BoostedClassifier(alpha=0.01).fit(X, CODES)
    fitted.model_ = replace(fitted.model_, W=1e10 * fitted.model_.W)
    new = X.copy()
    new[7] = 1e305
    for one in (new, new.astype(object)):
        with pytest.raises(DataError, match="scores of row 7 of the batch are beyond all numbers"):
            fitted.predict(one)


def test_probabilities_of_equal_scores_are_equal_and_of_near_ones_in_their_order():
    near = np.array([[0.0, 1e-20, 1e-20], [1.0, 1.0, 1.0 + 2.0**-52]])
    assert labels("multiclass", "multinomial", np.arange(3), near).tolist() == [1, 2]
    for made in (probabilities, log_probabilities):
        assert made("multiclass", "multinomial", near).argmax(axis=1).tolist() == [1, 2]
        assert made("binary", "log", np.array([[1e-20], [0.0], [-1e-20]])).argmax(axis=1).tolist() == [1, 0, 0]
    equal = probabilities("multiclass", "multinomial", np.zeros((1, 3)))
    assert equal.tolist() == [[1 / 3] * 3]
