"""A pipeline of a transform and an estimator as one folder: the same predictions, and damage that is refused."""

import shutil

import numpy as np
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dboost import BoostedClassifier, ModelFormatError, TableFeatures, UsageError, load_model, save_model

COLOURS = np.array(["red", "blue", "green"])


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 80)
    table = pa.table({"size": rng.normal(size=80), "colour": COLOURS[codes]})
    pipeline = make_pipeline(TableFeatures(), BoostedClassifier(alpha=1e-2))
    return pipeline.fit(table, COLOURS[(codes + 1) % 3]), table


def test_a_pipeline_is_saved_and_loaded_as_one_folder(fitted, tmp_path):
    pipeline, table = fitted
    save_model(pipeline, tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert list(again.named_steps) == list(pipeline.named_steps)
    assert np.array_equal(again.predict_proba(table), pipeline.predict_proba(table))
    assert again.predict(table).tolist() == pipeline.predict(table).tolist()
    names = ["size", "colour=blue", "colour=green", "colour=red"]
    assert again[:-1].get_feature_names_out().tolist() == names


def test_an_estimator_alone_is_saved_as_its_own_method_does(fitted, tmp_path):
    pipeline, table = fitted
    save_model(pipeline[1], tmp_path / "m")
    X = pipeline[0].transform(table)
    assert np.array_equal(load_model(tmp_path / "m").predict_proba(X), pipeline[1].predict_proba(X))


def test_other_steps_are_refused(tmp_path):
    with pytest.raises(UsageError, match="a Pipeline of StandardScaler, BoostedClassifier cannot be saved"):
        save_model(make_pipeline(StandardScaler(), BoostedClassifier()), tmp_path / "m")


def test_an_unfitted_pipeline_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        save_model(make_pipeline(TableFeatures(), BoostedClassifier()), tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_another_model_beside_the_transform_is_refused(fitted, tmp_path):
    pipeline, table = fitted
    save_model(pipeline, tmp_path / "m")
    other = BoostedClassifier(alpha=5e-2).fit(pipeline[0].transform(table), pipeline.predict(table))
    shutil.rmtree(tmp_path / "m" / "model")
    other.save(tmp_path / "m" / "model")
    with pytest.raises(ModelFormatError, match="not the model that was saved with this transform"):
        load_model(tmp_path / "m")


def test_a_model_that_is_a_link_is_refused(fitted, tmp_path):
    save_model(fitted[0], tmp_path / "m")
    (tmp_path / "m" / "model").rename(tmp_path / "away")
    (tmp_path / "m" / "model").symlink_to(tmp_path / "away")
    with pytest.raises(ModelFormatError, match="links are not followed"):
        load_model(tmp_path / "m")
