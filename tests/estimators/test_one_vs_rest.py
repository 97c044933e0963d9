"""One class against the others: k binary fits, and the union of their features."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import pytest

from dboost import BoostedClassifier, DataError, OneVsRestBoostedClassifier, ShareBoostClassifier, UsageError

LOG = ShareBoostClassifier(max_rounds=4, loss="log")


def test_it_is_k_binary_fits_and_the_union_of_their_features(multiclass):
    X, y = multiclass
    model = OneVsRestBoostedClassifier(LOG).fit(X, y)
    used, scores = set(), []
    for c, label in enumerate(["ant", "bee", "cat"]):
        alone = ShareBoostClassifier(max_rounds=4, loss="log").fit(X, y == label)
        assert model.estimators_[c].coef_.tobytes() == alone.coef_.tobytes()
        used |= set(alone.active_features_)
        scores.append(alone.decision_function(X))
    assert sorted(model.active_features_) == sorted(used)
    expected = model.classes_[np.argmax(scores, axis=0)]
    assert model.predict(X).tolist() == expected.tolist()
    assert model.score(X, y) == (expected == y).mean()
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1.0)


def test_the_path_counts_the_union_after_every_round(multiclass):
    X, y = multiclass
    model = OneVsRestBoostedClassifier(LOG).fit(X, y)
    staged = list(model.staged_predict(X))
    assert len(staged) == len(model.path_) == 4
    for t in range(1, 5):
        alone = OneVsRestBoostedClassifier(ShareBoostClassifier(max_rounds=t, loss="log")).fit(X, y)
        assert model.path_[t - 1]["features"] == len(alone.active_features_)
        assert staged[t - 1].tolist() == alone.predict(X).tolist()


def test_tables_and_dask_arrays(multiclass):
    X, y = multiclass
    whole = OneVsRestBoostedClassifier(LOG).fit(X, y)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)]).assign(label=y)
    table = OneVsRestBoostedClassifier(LOG).fit(frame, "label")
    assert [name.replace("c", "x") for name in table.active_features_] == whole.active_features_
    code = np.searchsorted(whole.classes_, y)
    lazy = OneVsRestBoostedClassifier(LOG).fit(da.from_array(X, chunks=(60, -1)), da.from_array(code, chunks=60))
    assert lazy.active_features_ == whole.active_features_
    assert lazy.predict(X).tolist() == code[np.arange(len(y))].tolist() or lazy.score(X, code) == whole.score(X, y)


def test_other_binary_classifiers_serve_too(multiclass):
    X, y = multiclass
    model = OneVsRestBoostedClassifier(BoostedClassifier(penalty="l1", alpha=0.05)).fit(X, y)
    assert len(model.path_) == 0 and len(model.active_features_) >= 3
    with pytest.raises(UsageError, match="keeps no models of its rounds"):
        model.staged_predict(X)


@pytest.mark.parametrize(
    "estimator,said",
    [
        (ShareBoostClassifier, "expected a classifier of dboost"),
        (ShareBoostClassifier(checkpoint="x"), "one checkpoint"),
        (ShareBoostClassifier(classes=["a", "b"]), "not those of the binary fits"),
    ],
)
def test_what_has_no_meaning_is_refused(multiclass, estimator, said):
    X, y = multiclass
    with pytest.raises(UsageError, match=said):
        OneVsRestBoostedClassifier(estimator).fit(X, y)
    with pytest.raises(DataError, match="a label is missing"):
        OneVsRestBoostedClassifier().fit(X, np.array([None, *y[1:]], dtype=object))
    with pytest.raises(DataError, match="only one class"):
        OneVsRestBoostedClassifier().fit(X, np.zeros(len(y)))
