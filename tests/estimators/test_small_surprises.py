"""What users of scikit-learn's linear models take for granted, and what is said where it is not so."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

import dboost
from dboost.errors import DataError, DboostWarning, UsageError

RNG = np.random.RandomState(0)
X = RNG.randn(60, 4)
Y = np.argmax(X[:, :3] + 0.5 * RNG.randn(60, 3), axis=1)
FLAT = np.full(60, 5.0)


def test_weights_and_intercept_are_those_that_the_certificate_is_about():
    fitted = dboost.BoostedClassifier(alpha=0.05).fit(X, Y > 0)
    before = fitted.decision_function(X)
    for name in ("coef_", "intercept_"):
        with pytest.raises(AttributeError, match=f"{name}.*no setter"):
            setattr(fitted, name, getattr(fitted, name) + 100.0)
        getattr(fitted, name)[:] = 100.0
    assert np.array_equal(fitted.decision_function(X), before)
    with pytest.raises(AttributeError, match="no attribute 'intercept_' before it is fitted"):
        getattr(dboost.BoostedRegressor(), "intercept_")  # noqa: B009


def test_tasks_are_predicted_as_their_labels_are_called(tmp_path):
    known = np.column_stack([Y == 0, X[:, 3] > 0])
    for negative in (0, -1):
        signs = np.where(known, 1, negative)
        fitted = dboost.MultiTaskBoostedClassifier(alpha=0.02).fit(X, signs)
        fitted.save(tmp_path / f"of{negative}")
        for model in (fitted, dboost.load_model(tmp_path / f"of{negative}")):
            assert np.unique(model.predict(X)).tolist() == [negative, 1]
            assert (model.predict(X) == signs).mean() == model.score(X, signs) > 0.8
        # scikit-learn's own measures take -1 for a label, so a search among strengths asks them about 0 and 1
        judged = dboost.MultiTaskBoostedClassifierCV(cv=3, n_alphas=4, eps=1e-3, scoring="f1_macro").fit(X, signs)
        assert 0.5 < max(row["mean_test_score"] for row in judged.cv_results_) < 1.0
        assert np.unique(judged.predict(X)).tolist() == [negative, 1]


def test_a_target_that_does_not_vary_is_predicted():
    for fitted in (
        dboost.BoostedRegressor(),
        dboost.BoostedRegressorCV(cv=3),
        dboost.AdaBoostL1Regressor(hypotheses=dboost.Columns()),
    ):
        fitted.fit(X, FLAT)
        np.testing.assert_allclose(fitted.predict(X), FLAT, rtol=1e-12)
        assert fitted.objective_ == 0.0 and not fitted.coef_.any()
        assert fitted.duality_gap_ == 0.0, type(fitted).__name__
    several = dboost.MultiTaskBoostedRegressorCV(cv=3).fit(X, np.column_stack([FLAT, 2 * FLAT]))
    np.testing.assert_allclose(several.predict(X[:1]), [[5.0, 10.0]], rtol=1e-12)
    path = dboost.regularization_path(X, FLAT, estimator=dboost.BoostedRegressor())
    assert path.alphas.tolist() == [0.0]
    signed = dboost.regularization_path(X, FLAT, estimator=dboost.BoostedRegressor(positive=True))
    assert signed.alphas.tolist() == [0.0]


@pytest.mark.full
def test_means_that_are_rounded_leave_a_target_that_does_not_vary_nothing_to_explain():
    rng = np.random.default_rng(0)
    features, weights = rng.normal(size=(60, 4)), rng.uniform(0.5, 2.0, 60)
    for value in (0.1, -1e6):
        y = np.full((60, 1), value) * [1.0, 2.0]
        several = dboost.MultiTaskBoostedRegressorCV(cv=3).fit(features, y, sample_weight=weights)
        np.testing.assert_allclose(several.predict(features[:1]), y[:1], rtol=1e-12)
        assert not several.coef_.any() and several.duality_gap_ <= 1e-4


def test_weights_that_nothing_ties_sum_to_zero_over_the_classes():
    ours = dboost.BoostedClassifier(penalty="none", alpha=0.0, tol=1e-5).fit(X, Y)
    theirs = LogisticRegression(C=np.inf, tol=1e-8).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-2)
    np.testing.assert_allclose(ours.coef_.sum(axis=0), 0.0, atol=1e-12)
    free = dboost.BoostedClassifier(penalty="l1", alpha=0.05, penalty_factors=[0.0, 1.0, 1.0, 1.0]).fit(X, Y)
    assert abs(free.coef_[:, 0].sum()) < 1e-12 and free.coef_[:, 0].any()


def test_numbers_of_any_type_are_numbers():
    plain = dboost.BoostedClassifier(standardize=False, alpha=0.05).fit(X, Y)
    mixed = pd.DataFrame({"a": X[:, 0], "b": pd.Series(X[:, 1], dtype=object), "c": X[:, 2], "d": X[:, 3]})
    long = X.astype(np.longdouble)
    for same in (long, sp.csr_array(long), X.astype(object), mixed, mixed.astype(object)):
        fitted = dboost.BoostedClassifier(standardize=False, alpha=0.05).fit(same, Y)
        assert fitted.coef_.tobytes() == plain.coef_.tobytes()
        assert np.array_equal(fitted.predict(same), plain.predict(X))
    for wrong in ("1.5", None, 1j):
        with pytest.raises(DataError, match="'b'"):
            dboost.BoostedClassifier(standardize=False, alpha="quick").fit(
                mixed.assign(b=pd.Series([wrong, *X[1:, 1]], dtype=object)), Y
            )


def test_arrays_of_another_library_are_read_as_those_of_numpy(monkeypatch):
    strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    # scikit-learn asks for this before it dispatches
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    y = (X[:, 0] > 0).astype(np.int64)
    made = strict.asarray(X), strict.asarray(y)
    for estimator in (
        dboost.BoostedClassifier(alpha=0.05),
        dboost.BoostedRegressor(alpha=0.05),
        dboost.OneVsRestBoostedClassifier(dboost.BoostedClassifier(alpha=0.05)),
    ):
        expected = estimator.fit(X, y).predict(X)
        for dispatch in (False, True):
            with sklearn.config_context(array_api_dispatch=dispatch):
                for given in (made, (made[0], y), (X, y)):
                    fitted = estimator.fit(*given)
                    assert np.array_equal(fitted.predict(given[0]), expected)
                    assert fitted.score(*given) > 0.6


def test_classes_are_of_the_type_that_pandas_holds_them_in():
    # numbers that float64 does not tell apart
    large = np.where(Y > 0, 2**53, 2**53 + 1)
    for y, kind in (
        (pd.array(large, dtype="Int64"), "int64"),
        (pd.DataFrame({"y": pd.Series(large, dtype="Int64")})["y"], "int64"),
        (pd.array(Y > 0, dtype="boolean"), "bool"),
        (pd.Series(pd.Categorical(Y > 0)), "bool"),
    ):
        flat = np.asarray(y)
        fitted = dboost.BoostedClassifier(alpha=0.05).fit(X, y)
        assert fitted.classes_.dtype == kind
        assert fitted.classes_.tolist() == sorted(set(flat.tolist()))
        assert fitted.score(X, flat.astype(kind)) > 0.7


def test_a_table_of_one_column_is_one_label_in_each_row():
    large = pd.DataFrame({"y": pd.Series(np.where(Y > 0, 2**53, 2**53 + 1), dtype="Int64")})
    with pytest.warns(Warning, match="A column-vector y was passed"):
        fitted = dboost.BoostedClassifier(alpha=0.05).fit(X, large)
    assert fitted.classes_.tolist() == [2**53, 2**53 + 1]


def test_lists_of_several_lengths_are_no_labels():
    for estimator in (dboost.BoostedClassifier(), dboost.MultiTaskBoostedClassifier()):
        with pytest.raises(DataError, match="y holds lists of several lengths.*lists of tags, which are texts"):
            estimator.fit(X, [[1], [1, 2]] * 30)
    for estimator in (dboost.MultiTaskBoostedClassifier(), dboost.MultiTaskBoostedRegressor()):
        with pytest.raises(DataError, match=r"have shape \(60, 0\), expected \(m, k\)"):
            estimator.fit(X, np.zeros((60, 0)))


def test_a_task_of_one_class_is_told_by_its_name():
    with pytest.raises(DataError, match="only one class in 1 of 1 tasks, which are called 0; drop these tasks"):
        dboost.MultiTaskBoostedClassifier(alpha="quick").fit(X, np.ones((60, 1), int))


def test_a_wrong_parameter_is_told_by_the_class_that_was_called():
    kinds = [kind for kind in (getattr(dboost, name) for name in dboost.__all__)
             if inspect.isclass(kind) and issubclass(kind, BaseEstimator)]  # fmt: skip
    assert len(kinds) >= 15
    for kind in kinds:
        with pytest.raises(TypeError, match=rf"^{kind.__name__}\.__init__\(\) got an unexpected keyword argument 'C'"):
            kind(C=1.0)
        assert "C" not in inspect.signature(kind).parameters


def test_losses_of_counts_say_that_targets_are_positive():
    def tagged(kind, loss):
        return kind(loss=loss).__sklearn_tags__().target_tags.positive_only

    for kind in (dboost.BoostedRegressor, dboost.BoostedRegressorCV):
        assert tagged(kind, "poisson") and not tagged(kind, "squared") and not tagged(kind, "no such loss")
    several = dboost.MultiTaskBoostedRegressor
    assert tagged(several, ["poisson", "poisson"]) and not tagged(several, ["poisson", "log"])


@pytest.mark.filterwarnings("ignore:the fit stopped:dboost.errors.ConvergenceWarning")
def test_a_fit_that_ends_before_its_first_feature_says_what_ended_it():
    y = X[:, 0] > 0
    for limit, said in (
        ({"max_passes": 1}, "ended by 'max_passes' before the first feature; raise this limit"),
        ({"tol": 2.0}, "ended by 'tol' before the first feature; give a smaller tol"),
    ):
        with pytest.warns(DboostWarning, match=said):
            dboost.BoostedClassifier(alpha=1e-3, **limit).fit(X, y)
    with pytest.raises(UsageError, match=r"callbacks is .* expected a list; give callbacks=\[it\]"):
        dboost.BoostedClassifier(alpha=0.1, callbacks=print).fit(X, y)


def test_what_scikit_learn_says_of_types_is_whole_and_of_values_is_not_said():
    y = X[:, 0] > 0
    with pytest.raises(ValueError, match=r"a value too large for dtype\(float64\)"):
        dboost.BoostedRegressor(alpha=0.1).fit(X, np.where(y, 1.0, np.inf))
    with pytest.raises(ValueError, match=r"Complex data not supported\(a value\)$"):
        dboost.BoostedClassifier(alpha=0.1).fit(X + 1j, y)
