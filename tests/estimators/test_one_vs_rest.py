"""One class against the others: k binary fits, and the union of their features."""

from __future__ import annotations

import hashlib
import json
import shutil

import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

from dboost import (
    BoostedClassifier,
    DataError,
    DboostWarning,
    ModelFormatError,
    OneVsRestBoostedClassifier,
    ParquetData,
    ShareBoostClassifier,
    UsageError,
    load_model,
)
from tests.estimators.conftest import blobs
from tests.model.models import write_sealed, write_unsealed

LOG = ShareBoostClassifier(max_rounds=4, loss="log")


@pytest.fixture(scope="module")
def fitted():
    """Rows, their labels, and the classifiers of one class each that most tests read."""
    X, y = blobs()
    y = np.array(["ant", "bee", "cat"])[y]
    return X, y, OneVsRestBoostedClassifier(LOG).fit(X, y)


def test_it_is_k_binary_fits_and_the_union_of_their_features(fitted):
    X, y, model = fitted
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


def test_the_path_counts_the_union_after_every_round(fitted):
    X, y, model = fitted
    staged = list(model.staged_predict(X))
    assert len(staged) == len(model.path_) == 4
    for t in range(1, 4):
        alone = OneVsRestBoostedClassifier(ShareBoostClassifier(max_rounds=t, loss="log")).fit(X, y)
        assert model.path_[t - 1]["features"] == len(alone.active_features_)
        assert staged[t - 1].tolist() == alone.predict(X).tolist()
    assert model.path_[-1]["features"] == len(model.active_features_)
    assert staged[-1].tolist() == model.predict(X).tolist()


def test_tables_and_dask_arrays(fitted):
    X, y, whole = fitted
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)]).assign(label=y)
    table = OneVsRestBoostedClassifier(LOG).fit(frame, "label")
    assert [name.replace("c", "x") for name in table.active_features_] == whole.active_features_
    code = np.searchsorted(whole.classes_, y)
    lazy = OneVsRestBoostedClassifier(LOG).fit(da.from_array(X, chunks=(60, -1)), da.from_array(code, chunks=60))
    assert lazy.active_features_ == whole.active_features_
    assert lazy.score(X, code) == whole.score(X, y)


@pytest.fixture
def stored(multiclass, tmp_path):
    """The rows as two Parquet files with weights, and as a table."""
    X, y = multiclass
    weight = np.random.default_rng(3).integers(0, 3, len(y)).astype(float)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)]).assign(label=y, w=weight)
    for name, rows in (("a", slice(0, 70)), ("b", slice(70, None))):
        table = pa.Table.from_pandas(frame.iloc[rows], preserve_index=False)
        pq.write_table(table, tmp_path / f"{name}.parquet", write_page_checksum=True)
    return ParquetData(tmp_path, label="label", weight="w"), frame


@pytest.mark.parametrize("cluster", [False, True], ids=["in-process", "cluster"])
@pytest.mark.parametrize(
    "inner", [LOG, BoostedClassifier(penalty="l1", alpha=0.05, class_weight="balanced")], ids=["shareboost", "l1"]
)
def test_parquet_is_read_where_the_fits_run(stored, client, cluster, inner):
    data, frame = stored
    inner = clone(inner).set_params(client=client if cluster else None)
    expected = OneVsRestBoostedClassifier(clone(inner).set_params(client=None)).fit(frame, "label", "w")
    model = OneVsRestBoostedClassifier(inner).fit(data)
    assert model.classes_.tolist() == expected.classes_.tolist() and len(model.estimators_) == 3
    assert model.active_features_ == expected.active_features_
    for mine, theirs in zip(model.estimators_, expected.estimators_, strict=True):
        assert mine.classes_.tolist() == theirs.classes_.tolist() == [False, True]
        np.testing.assert_allclose(mine.coef_, theirs.coef_, atol=2e-6)
    assert model.predict(frame).tolist() == expected.predict(frame).tolist()
    assert np.asarray(model.predict(data)).tolist() == model.predict(frame).tolist()
    assert model.score(data) == pytest.approx(expected.score(frame, "label", "w"))


def test_parquet_of_two_classes_and_of_one(stored, tmp_path):
    data, frame = stored
    kept = frame[frame.label != "cat"]
    table = pa.Table.from_pandas(kept, preserve_index=False)
    pq.write_table(table, tmp_path / "two.pq", write_page_checksum=True)
    two = ParquetData(tmp_path / "two.pq", label="label", weight="w")
    model = OneVsRestBoostedClassifier(LOG).fit(two)
    assert len(model.estimators_) == 1 and model.predict(kept).tolist() != []
    assert np.asarray(model.decision_function(kept)).shape == (len(kept),)
    model.save(tmp_path / "model")
    assert load_model(tmp_path / "model").predict(kept).tolist() == model.predict(kept).tolist()
    pq.write_table(pa.Table.from_pandas(frame[frame.label == "ant"]), tmp_path / "one.pq", write_page_checksum=True)
    with pytest.raises(DataError, match="only one class"):
        OneVsRestBoostedClassifier(LOG).fit(ParquetData(tmp_path / "one.pq", features=["c0"], label="label"))
    with pytest.raises(UsageError, match="given beside ParquetData"):
        OneVsRestBoostedClassifier(LOG).fit(data, frame.label)


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


@pytest.mark.parametrize("estimator", [None, LOG, BoostedClassifier(penalty="l1", alpha=0.05)])
def test_a_saved_classifier_is_the_same(multiclass, tmp_path, estimator):
    X, y = multiclass
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)])
    if estimator is None:
        frame, y = frame.iloc[:60], y[:60]
    model = OneVsRestBoostedClassifier(estimator).fit(frame, y)
    model.save(tmp_path / "model")
    read = load_model(tmp_path / "model")
    assert read.decision_function(frame).tobytes() == model.decision_function(frame).tobytes()
    assert read.predict(frame).tolist() == model.predict(frame).tolist()
    assert read.active_features_ == model.active_features_ and read.path_ == model.path_
    assert read.feature_names_in_.tolist() == frame.columns.tolist()
    assert (read.estimator is None) == (estimator is None)
    if estimator is not None:
        assert read.estimator.get_params() == estimator.get_params()
    with pytest.raises(UsageError, match="exists"):
        model.save(tmp_path / "model")
    model.save(tmp_path / "model", force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


def _swap(folder):
    (folder / "class-0").rename(folder / "other")
    (folder / "class-1").rename(folder / "class-0")
    (folder / "other").rename(folder / "class-1")


def _of_more_classes(folder):
    X, y = blobs()
    shutil.rmtree(folder / "class-0")
    ShareBoostClassifier(max_rounds=2).fit(X, np.array(["ant", "bee", "cat"])[y]).save(folder / "class-0")
    digest = hashlib.sha256((folder / "class-0" / "model.json").read_bytes()).hexdigest()
    _edited(models=[digest, *json.loads((folder / "one_vs_rest.json").read_text())["models"][1:]])(folder)


def _link(folder):
    (folder / "class-0").rename(folder.parent / "outside")
    (folder / "class-0").symlink_to(folder.parent / "outside")


def _replace(folder, old, new):
    file = folder / "one_vs_rest.json"
    file.write_text(file.read_text().replace(old, new))


def _edited(**fields):
    def edit(folder):
        file = folder / "one_vs_rest.json"
        write_sealed(file, json.loads(file.read_text()) | fields)

    return edit


@pytest.mark.parametrize(
    "damage,said",
    [
        (_of_more_classes, "no classifier of one class against the others"),
        (_swap, "is not the model that was saved here"),
        (_link, "links are not followed"),
        (lambda folder: shutil.rmtree(folder / "class-2"), "cannot be opened"),
        (_edited(models=[]), "0 models for the classes"),
        (_edited(models="x"), "field models: expected a list"),
        (_edited(given=1), "field given"),
        (_edited(version=3), "format version 3"),
        (_edited(format="other"), "is not a dboost one-vs-rest document"),
        (_edited(classes={"dtype": "<U3", "values": ["ant", "ant", "cat"]}), "'ant' occurs twice"),
        (lambda folder: _replace(folder, '"bee"', '"bef"'), "does not match its SHA-256"),
    ],
)
def test_a_damaged_folder_is_refused(fitted, tmp_path, damage, said):
    fitted[2].save(tmp_path / "model")
    damage(tmp_path / "model")
    with pytest.raises(ModelFormatError, match=said):
        load_model(tmp_path / "model")


def test_a_folder_without_a_digest_is_read_with_a_warning(fitted, tmp_path):
    X, _, model = fitted
    model.save(tmp_path / "model")
    file = tmp_path / "model" / "one_vs_rest.json"
    write_unsealed(file, json.loads(file.read_text()) | {"version": 1})
    with pytest.warns(DboostWarning, match="version 1 has no digest"):
        read = load_model(tmp_path / "model")
    assert read.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
