"""What a fit refuses: parameters without meaning, bad data; and what a prediction refuses after it."""

from __future__ import annotations

import math
import warnings
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from dboost import BoostedClassifier, ConvergenceWarning, DataError, MultiTaskBoostedClassifier, UsageError
from dboost.estimators import fitting

BAD = {
    "loss": ["hinge", "multitask", 3],
    "penalty": ["l3", "l0", None, 2],
    "alpha": [-1, math.nan, math.inf, "high", None, True, np.array([1.0, 2.0])],
    "update": ["sgd", None],
    "select": ["best", None],
    "hypotheses": ["products", ["columns"]],
    "tol": [-1, math.nan, math.inf, "small", None, True],
    "max_rounds": [0, -1, 1.5, None, True],
    "max_passes": [0, 2.5, True],
    "max_seconds": [0, -1.0, math.inf, math.nan, "1 h"],
    "max_features": [-1, 2.5, "all", False],
    "features_per_round": [0, 2.5, "many", True],
    "fit_intercept": [None, "yes", 1],
    "standardize": ["no"],
    "warm_start": [2],
    "random_state": [-1, "seed", 2.5, True],
    "callbacks": [[3], ["print"]],
    "class_weight": ["unbalanced", {"emu": 2.0}, {"ant": -1}],
    "classes": [[], ["ant", "ant", "bee", "cat"]],
}


@pytest.mark.parametrize("name", BAD)
def test_parameters_without_meaning_are_refused_by_name(multiclass, name):
    for value in BAD[name]:
        with pytest.raises(UsageError, match=name.removesuffix("es").removesuffix("s")):
            BoostedClassifier(**{name: value}).fit(*multiclass)


def test_bad_data_is_refused(multiclass, tasks):
    X, y = multiclass
    spoiled = X.copy()
    spoiled[3, 4] = np.nan
    for data, labels in [
        (spoiled, y),
        (X, np.full(len(y), "ant")),
        (X, y[:-1]),
        (X[:0], y[:0]),
        (X[:, 0], y),
        (X, np.stack([y, y], axis=1)),
        (X, np.linspace(0, 1, len(y))),
        (X.astype(str), y),
    ]:
        with pytest.raises(ValueError, match=r"."):
            BoostedClassifier(alpha="quick").fit(data, labels)
    with pytest.raises(ValueError, match="all sample weights are zero"):
        BoostedClassifier(alpha="quick").fit(X, y, np.zeros(len(y)))
    with pytest.raises(ValueError, match="weight"):
        BoostedClassifier(alpha="quick").fit(X, y, -np.ones(len(y)))
    X, Y = tasks
    for labels in (Y[:, 0], Y + 1, Y + 0.5, np.where(np.isnan(Y), -1, Y)):
        with pytest.raises(DataError):
            MultiTaskBoostedClassifier(alpha="quick").fit(X, labels)
    with pytest.raises(UsageError, match="class_weight"):
        MultiTaskBoostedClassifier(alpha="quick", class_weight="balanced").fit(X, Y)


LABELS = [
    np.resize(np.array(values).astype(dtype), (5, 3))
    for values in ((0, 1), (-1, 1), (1,), (-1, 0), (-1, 0, 1), (0, 1, 2), (0, 0.5), (3, 4), (-2, 1))
    for dtype in (np.int8, np.int64, np.uint8, np.float32, float)
    if np.array_equal(np.array(values).astype(dtype), values)
]


def test_what_labels_of_tasks_may_be_is_what_scikit_learn_says():
    for Y in LABELS:
        refused = any(word in type_of_target(Y) for word in ("continuous", "multiclass"))
        with pytest.raises(DataError) if refused else nullcontext():
            fitting.check_tasks(Y)


def warns_of_many(function):
    """Whether scikit-learn warns that integers are many for labels."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function()
    return any("number of unique classes" in str(one.message) for one in found)


@pytest.mark.parametrize("y", [np.arange(40) // 4 - 3, np.arange(40) % 20, np.arange(40) % 30, np.arange(40) * 10**6])
def test_integers_are_labels_with_scikit_learns_warning(y):
    """What is not shown to scikit-learn, to spare its sorting, it would neither refuse nor warn of."""
    X, theirs = np.random.default_rng(0).normal(size=(40, 3)), warns_of_many(lambda: check_classification_targets(y))
    assert warns_of_many(lambda: BoostedClassifier(alpha=0.1, max_rounds=1, tol=1.0).fit(X, y)) == theirs
    assert not (fitting.few_integers(y) and theirs)


def test_tables_are_checked_at_prediction_as_in_a_fit(multiclass):
    X, y = multiclass
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)])
    model = BoostedClassifier(alpha=0.1).fit(frame, y)
    used = model.active_features_[0]
    idle = next(name for name in frame.columns if name not in model.active_features_)
    infinite, missing = (frame[used].replace(frame[used].iloc[0], value) for value in (np.inf, np.nan))
    for wrong in (frame[used].astype(str), infinite, missing, pd.Series([None] * len(y))):
        spoiled = frame.assign(**{used: wrong})
        with pytest.raises(DataError, match=used):
            model.predict(spoiled)
        with pytest.raises(DataError, match=used):
            model.predict(pa.Table.from_pandas(spoiled))
    harmless = frame.assign(**{idle: "text"})
    assert model.predict_proba(harmless).tobytes() == model.predict_proba(frame).tobytes()
    assert model.predict_proba(pa.Table.from_pandas(frame)).tobytes() == model.predict_proba(frame).tobytes()
    nullable = frame.convert_dtypes()
    assert model.predict_proba(nullable).tobytes() == model.predict_proba(frame).tobytes()
    with pytest.raises(ValueError, match="12 features|12 columns|feature names"):
        model.predict(pa.Table.from_pandas(frame.iloc[:, :5]))
    with pytest.raises(DataError, match="to_frame"):
        model.predict(frame["c0"])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"c3": "other"}))


def test_labels_of_another_type_are_not_scored(multiclass, binary):
    X, y = multiclass
    with pytest.raises(DataError, match="labels of type int, the model predicts str"):
        BoostedClassifier(alpha=0.05).fit(X, y).score(X, np.zeros(len(y), dtype=int))
    X, y = binary
    model = BoostedClassifier(alpha=0.05).fit(X, y)
    assert model.score(X, y.astype(float)) == model.score(X, y[:, None]) == model.score(X, y) > 0.5
    assert model.score(X, np.full(len(y), 7)) == 0.0


@pytest.mark.parametrize("alpha", ["auto", 0.01])
def test_a_limit_under_its_former_name_is_taken_with_a_warning_and_never_beside_its_name(alpha):
    X = np.random.default_rng(0).normal(size=(60, 5))
    y = (X[:, :3].sum(axis=1) > 0).astype(int)
    with pytest.warns(FutureWarning, match="max_active_rows is called max_features now"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = BoostedClassifier(penalty="l1", alpha=alpha, max_active_rows=2).fit(X, y)
        wanted = BoostedClassifier(penalty="l1", alpha=alpha, max_features=2).fit(X, y)
    assert 0 < np.count_nonzero(found.coef_) <= 2
    np.testing.assert_array_equal(found.coef_, wanted.coef_)
    with pytest.raises(UsageError, match="max_features=3 beside max_active_rows=2, its former name"):
        BoostedClassifier(max_active_rows=2, max_features=3).fit(X, y)
