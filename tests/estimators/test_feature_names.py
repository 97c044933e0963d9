"""Names of features that rows do not have by themselves: given to ``fit``, or carried from a transform.

Covers: one fit, several and one of stumps, paths; pipelines, saved and read; refusals; what picking rows keeps.
Does not cover: names of tables (test_named_columns.py).
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import dboost
from dboost import UsageError
from dboost.estimators.transformed_rows import NamedRows

RNG = np.random.default_rng(0)
X = sparse.csr_array(RNG.normal(size=(60, 4)) * (RNG.random((60, 4)) < 0.7))
Y = (X.toarray()[:, 0] - X.toarray()[:, 2] > 0).astype(int)
NAMES = ["size", "age", "price", "ümlaut"]
FITS: dict[str, Any] = {
    "boosted": (dboost.BoostedClassifier(alpha=0.02), Y),
    "cv": (dboost.BoostedClassifierCV(cv=3, n_alphas=4, eps=0.1), Y),
    "stumps": (dboost.AdaBoostL1Classifier(hypotheses=dboost.Stumps(signed=True), max_rounds=3), Y),
    "one-vs-rest": (dboost.OneVsRestBoostedClassifier(), Y + (X.toarray()[:, 1] > 0)),
}


@pytest.mark.parametrize("name", FITS)
@pytest.mark.filterwarnings("ignore::dboost.ConvergenceWarning", "ignore::dboost.DboostWarning")
def test_names_are_given_to_a_fit(name: str) -> None:
    estimator, y = FITS[name]
    model = estimator.fit(X, y, feature_names=NAMES)
    assert list(model.feature_names_in_) == NAMES
    assert model.active_features_ and all(any(known in str(used) for known in NAMES) for used in model.active_features_)


def test_names_do_not_change_the_fit_and_do_not_make_predictions_warn() -> None:
    plain = dboost.BoostedClassifier(alpha=0.02).fit(X, Y)
    model = dboost.BoostedClassifier(alpha=0.02).fit(X, Y, feature_names=np.array(NAMES))
    assert model.coef_.tobytes() == plain.coef_.tobytes()
    assert model.predict(X).tolist() == plain.predict(X).tolist()
    assert plain.active_features_[0].startswith("x")


@pytest.mark.filterwarnings("ignore::dboost.DboostWarning")
def test_paths_and_cross_validations_take_names() -> None:
    path = dboost.regularization_path(X, Y, n_alphas=4, eps=0.1, feature_names=NAMES)
    assert set(path.entering) <= set(NAMES)
    found = dboost.cross_validated(
        X, Y, estimator=dboost.BoostedClassifier(), cv=3, n_alphas=3, eps=0.2, feature_names=NAMES
    )
    assert set(found.active_features_) <= set(NAMES)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (NAMES[:3], "has 3 names, and the data 4 features"),
        (["a", "b", "a", "c"], "holds 'a' twice"),
        (["a", "b", 3, "c"], "holds 3, an int"),
        ("abcd", "is one text"),
    ],
)
def test_names_without_meaning_are_refused(given: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        dboost.BoostedClassifier(alpha="quick").fit(X, Y, feature_names=given)


def test_data_with_names_keeps_its_own() -> None:
    table = pa.table({name: X.toarray()[:, j] for j, name in enumerate(NAMES)})
    with pytest.raises(UsageError, match="names of its own"):
        dboost.BoostedClassifier(alpha="quick").fit(table, Y, feature_names=NAMES)


TEXTS = ["waves and sand", "clouds and wind", "waves and salt", "wind and rain"] * 6
TOPICS = ["sea", "sky", "sea", "sky"] * 6
TABLE = pa.table({"colour": ["red", "blue"] * 12, "size": np.arange(24.0)})


@pytest.mark.parametrize(
    ("transform", "rows"),
    [(dboost.TextFeatures(min_df=2), TEXTS), (dboost.TableFeatures(), TABLE)],
    ids=["text", "table"],
)
def test_names_reach_the_end_of_a_pipeline_and_its_folder(transform: Any, rows: Any, tmp_path: Path) -> None:
    model = make_pipeline(transform, dboost.BoostedClassifier(alpha=0.01)).fit(rows, TOPICS)
    known = set(transform.get_feature_names_out())
    assert set(model[-1].active_features_) <= known and list(model[-1].feature_names_in_) == list(
        transform.get_feature_names_out()
    )
    assert set(model[-1].get_feature_names_out()) <= known
    assert any(name in repr(model[-1]) for name in known)
    said = model.predict_proba(rows)
    dboost.save_model(model, tmp_path / "model")
    again = dboost.load_pipeline(tmp_path / "model")
    assert np.array_equal(again.predict_proba(rows), said)
    assert cross_val_score(model, TEXTS if rows is TEXTS else TABLE.to_pandas(), TOPICS, cv=2).min() > 0.4
    assert set(again[-1].active_features_) == set(model[-1].active_features_)
    assert dboost.explain(model, rows[:1] if rows is TEXTS else TABLE.slice(0, 1)).words[0] in known


def test_picked_rows_keep_their_names_and_changed_columns_lose_them() -> None:
    rows = dboost.TextFeatures(min_df=2).fit_transform(TEXTS)
    assert isinstance(rows, NamedRows)
    for same in (rows[:3], rows[[0, 2]], rows[np.arange(24) < 5], pickle.loads(pickle.dumps(rows))):
        assert same.feature_names is not None and same.shape[1] == rows.shape[1]
    for other in (rows[:, :2], rows @ rows.T, sparse.hstack([rows, rows]), rows.T):
        assert getattr(other, "feature_names", None) is None
    assert dboost.TextFeatures(hashing=64).fit_transform(TEXTS).__class__ is sparse.csr_array
