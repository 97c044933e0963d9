"""ONNX graphs of fitted models and pipelines, run by onnxruntime: the predictions of dboost."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dboost
from dboost import BoostedClassifier, OneVsRestBoostedClassifier, TableFeatures, TextFeatures
from dboost.errors import DboostWarning, UsageError
from dboost.interop.linear import to_sklearn
from dboost.losses import LOSSES
from tests.interop.test_linear import data, fitted

runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
CLOSE = 1e-6
DOCUMENTS = [
    "Das Ärgernis über ÉCOLE und das café",
    "a dog, x² and ½ of naïve straße",
    "the cat sat on a mat; the cat 42",
    "größe und ωmega: the dog",
]


def run(graph, feed):
    session = runtime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feed)


@pytest.mark.filterwarnings("ignore::dboost.ConvergenceWarning")
@pytest.mark.parametrize("loss", LOSSES)
def test_a_graph_predicts_the_same(loss):
    ours, X = fitted(loss)
    found = run(dboost.onnx.to_onnx(ours), {"X": X})
    if LOSSES[loss].task in ("regression", "multitarget"):
        predicted = ours.predict(X)
        np.testing.assert_allclose(found[0].reshape(predicted.shape), predicted, rtol=CLOSE)
        return
    labels, chances = found
    assert np.array_equal(labels, ours.predict(X))
    np.testing.assert_allclose(chances, ours.predict_proba(X), atol=CLOSE)


def test_a_model_without_features():
    X, y = data("multiclass")
    ours = BoostedClassifier(alpha=100.0).fit(X, y)
    assert not ours.model_.n_hypotheses
    labels, chances = run(dboost.onnx.to_onnx(ours), {"X": X[:7]})
    assert labels.tolist() == ours.predict(X[:7]).tolist()
    np.testing.assert_allclose(chances, ours.predict_proba(X[:7]), atol=CLOSE)


def test_in_a_pipeline_with_steps_of_others():
    X, y = data("multiclass")
    ours = make_pipeline(StandardScaler(), BoostedClassifier(alpha=1e-3)).fit(X, y)
    labels, chances = run(dboost.onnx.to_onnx(ours, X), {"X": X})
    assert np.array_equal(labels, ours.predict(X))
    np.testing.assert_allclose(chances, ours.predict_proba(X), atol=CLOSE)


def test_behind_the_features_of_a_table():
    rows = pd.DataFrame(
        {"size": [1.5, 0.0, 2.0, 3.0], "colour": ["red", "blue", "red", "green"], "old": [True, False, False, True]}
    )
    ours = make_pipeline(TableFeatures(), BoostedClassifier(alpha=0.01)).fit(rows, [0, 1, 0, 1])
    feed = {name: rows[[name]].to_numpy() for name in ("size", "old")}
    feed["colour"] = rows[["colour"]].to_numpy().astype(str)
    labels, chances = run(dboost.onnx.to_onnx(ours), feed)
    assert labels.tolist() == ours.predict(rows).tolist()
    np.testing.assert_allclose(chances, ours.predict_proba(rows), atol=CLOSE)
    unseen = feed | {"colour": np.full((4, 1), "violet")}
    expected = ours.predict_proba(rows.assign(colour="violet"))
    np.testing.assert_allclose(run(dboost.onnx.to_onnx(ours), unseen)[1], expected, atol=CLOSE)


@pytest.mark.parametrize(
    "options",
    [{}, {"lowercase": False}, {"stop_words": "english", "norm": "l1"}, {"ngram_range": (1, 2), "use_idf": False}],
)
def test_behind_the_features_of_documents(options):
    documents = DOCUMENTS * 3
    ours = make_pipeline(TextFeatures(**options), BoostedClassifier(alpha=0.01)).fit(documents, [0, 1, 1, 0] * 3)
    labels, chances = run(dboost.onnx.to_onnx(ours), {"X": np.array(documents)[:, None]})
    assert labels.tolist() == ours.predict(documents).tolist()
    np.testing.assert_allclose(chances, ours.predict_proba(documents), atol=CLOSE)


def test_what_has_no_operators_is_refused():
    greek = [*DOCUMENTS[:2], "ΣΟΦΟΣ λόγος", "σοφόσ"]
    for options, documents, said in (
        ({"hashing": 64}, DOCUMENTS, "hashing=64"),
        ({"sublinear_tf": True}, DOCUMENTS, "sublinear_tf=True"),
        ({"stop_words": ["the"], "ngram_range": (1, 2)}, DOCUMENTS, r"stop_words=..., ngram_range=\(1, 2\)"),
        ({"stop_words": "english", "ngram_range": (2, 2)}, DOCUMENTS, r"stop_words=..., ngram_range=\(2, 2\)"),
        ({}, greek, "Greek words that end in sigma"),
        ({}, [*DOCUMENTS[:3], greek[3]], "Greek words that end in sigma"),
    ):
        ours = make_pipeline(TextFeatures(**options), BoostedClassifier(alpha=0.01)).fit(documents, [0, 1, 1, 0])
        with pytest.raises(UsageError, match=said):
            dboost.onnx.to_onnx(ours)
    missing = make_pipeline(TableFeatures(missing="zero"), BoostedClassifier(alpha=0.01))
    missing.fit(pd.DataFrame({"a": [1.0, np.nan]}), [0, 1])
    with pytest.raises(UsageError, match="missing='zero'"):
        dboost.onnx.to_onnx(missing)
    several = OneVsRestBoostedClassifier(BoostedClassifier(alpha=0.01)).fit(np.eye(3), [0, 1, 2])
    with pytest.raises(UsageError, match="a graph of each of its estimators_"):
        dboost.onnx.to_onnx(several)
    with pytest.raises(UsageError, match="no estimator of dboost"):
        dboost.onnx.to_onnx(StandardScaler())


def test_predictions_beyond_all_numbers_are_the_largest_one():
    X = np.array([[0.0], [1.0], [2.0]])
    ours = dboost.BoostedRegressor(loss="poisson", alpha=1e-3).fit(X, [1.0, 2.0, 4.0])
    far = np.array([[1e30], [-1e30]])
    found = run(dboost.onnx.to_onnx(ours), {"X": far})[0].ravel()
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, ours.predict(far), rtol=CLOSE)


def test_thresholds_that_are_not_exported_are_said():
    X, tags = np.eye(2)[[0, 1] * 4], [["a"], ["b"]] * 4
    ours = dboost.MultiTaskBoostedClassifier(penalty="l1/l2", alpha=0.01).fit(X, tags)
    for export in (dboost.onnx.to_onnx, to_sklearn):
        export(ours)
    ours.choose_thresholds(X, tags, top=1)
    for export in (dboost.onnx.to_onnx, to_sklearn):
        with pytest.warns(DboostWarning, match="choose_thresholds chose is not in the exported model"):
            export(ours)
