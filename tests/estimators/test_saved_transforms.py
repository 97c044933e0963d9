"""Transforms and models in one folder: what comes back is what was saved, and nothing that was changed comes back."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dboost
from dboost import BoostedClassifier, TextFeatures
from dboost.errors import DataError, ModelFormatError, UsageError
from dboost.estimators.text_features import DocumentFeatures
from dboost.estimators.transform_files import read_beside, write_beside
from dboost.files.documents import to_json

DOCUMENTS = ["The cat sat, on the mat", "a dog sat here", "cats and dogs: x9 ok", "the dog and the cat é ß"] * 3
LABELS = [0, 1, 0, 1] * 3


def fitted(**options):
    return make_pipeline(TextFeatures(**options), BoostedClassifier(alpha=1e-2)).fit(DOCUMENTS, LABELS)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"hashing": 64, "binary": True},
        {"ngram_range": (1, 2), "stop_words": ["the"], "dtype": np.float32, "norm": None},
        {"analyzer": "char", "use_idf": False, "max_features": 9},
        {"stop_words": "english", "sublinear_tf": True, "min_df": 2, "lowercase": False},
    ],
)
def test_a_pipeline_of_documents_comes_back(options, tmp_path):
    ours = fitted(**options)
    dboost.save_model(ours, tmp_path / "m")
    for back in (dboost.load_model(tmp_path / "m"), dboost.load_pipeline(tmp_path / "m")):
        assert np.array_equal(back.predict_proba(DOCUMENTS), ours.predict_proba(DOCUMENTS))
        assert back[0].get_feature_names_out().tolist() == ours[0].get_feature_names_out().tolist()
        assert repr(back[0]) == repr(ours[0]) and back[0].n_documents_ == 12
        assert list(back.named_steps) == list(ours.named_steps)


def test_an_estimator_alone_is_saved_as_its_own_method_does(tmp_path):
    features, model = fitted()
    X = features.transform(DOCUMENTS)
    dboost.save_model(model, tmp_path / "m")
    assert np.array_equal(dboost.load_model(tmp_path / "m").predict_proba(X), model.predict_proba(X))


def test_what_cannot_be_saved_leaves_nothing(tmp_path):
    for pipeline, error, said in (
        (fitted(analyzer=str.split), UsageError, "would hold code"),
        (make_pipeline(StandardScaler(), BoostedClassifier()), UsageError, "StandardScaler, BoostedClassifier cannot"),
        (make_pipeline(TextFeatures(), BoostedClassifier()), NotFittedError, "not fitted"),
    ):
        with pytest.raises(error, match=said):
            dboost.save_model(pipeline, tmp_path / "m")
    assert not os.listdir(tmp_path)


def test_another_model_beside_the_transform_or_a_link_to_one_is_refused(tmp_path):
    dboost.save_model(fitted(), tmp_path / "m")
    (tmp_path / "m" / "model").rename(tmp_path / "away")
    (tmp_path / "m" / "model").symlink_to(tmp_path / "away")
    with pytest.raises(ModelFormatError, match="links are not followed"):
        dboost.load_model(tmp_path / "m")
    (tmp_path / "m" / "model").unlink()
    BoostedClassifier(alpha=5e-2).fit(TextFeatures().fit_transform(DOCUMENTS), LABELS).save(tmp_path / "m" / "model")
    with pytest.raises(ModelFormatError, match="not the model that was saved with this transform"):
        dboost.load_model(tmp_path / "m")


def test_whatever_is_changed_is_refused(tmp_path):
    dboost.save_model(fitted(), tmp_path / "m")
    document = json.loads((tmp_path / "m" / "pipeline.json").read_text())

    def refused(change, said):
        shutil.rmtree(tmp_path / "n", ignore_errors=True)
        shutil.copytree(tmp_path / "m", tmp_path / "n")
        changed = json.loads(json.dumps(document))
        change(changed["transform"], tmp_path / "n")
        changed.pop("sha256", None)
        (tmp_path / "n" / "pipeline.json").write_bytes(to_json(changed))
        with pytest.raises(ModelFormatError, match=said):
            dboost.load_model(tmp_path / "n")

    refused(lambda spec, _: spec.update(kind="code"), "kind")
    refused(lambda spec, _: spec["parameters"].update(analyzer="os.system"), "parameters")
    refused(lambda spec, _: spec["parameters"].update(hashing=8, min_df=1), "terms are not those")
    refused(lambda spec, _: spec["parameters"].pop("norm"), "parameters")
    refused(lambda spec, _: spec["arrays"].update(file="../model.safetensors"), "expected transform.safetensors")
    refused(lambda _, folder: os.truncate(folder / "transform.safetensors", 40), "transform.safetensors")


def test_the_transform_beside_a_model(tmp_path):
    X = TextFeatures().fit_transform(DOCUMENTS)
    names = TextFeatures().fit(DOCUMENTS).get_feature_names_out().tolist()
    model = BoostedClassifier(alpha=1e-2).fit(X, LABELS)
    model.save(tmp_path / "m")
    assert read_beside(tmp_path / "m") is None
    with pytest.raises(DataError, match="holds no transform"):
        dboost.load_pipeline(tmp_path / "m")
    features = DocumentFeatures(("text", "title"), "words", None, names, np.ones(len(names)))
    write_beside(features, tmp_path / "m")
    back = read_beside(tmp_path / "m")
    assert back.text == ("text", "title") and list(back.terms) == names
    table = pd.DataFrame({"title": ["a cat", "dogs"], "text": ["sat", "on"], "other": [1, 2]})
    rows = back.transform(table)
    assert np.array_equal(rows.toarray(), features.transform(["sat\na cat", "on\ndogs"]).toarray())
    assert dboost.load_pipeline(tmp_path / "m").predict(table).shape == (2,)
    with pytest.raises(DataError, match="column 'title'"):
        back.transform(pd.DataFrame({"text": ["a"]}))
    with pytest.raises(DataError, match="expected text"):
        back.transform(pd.DataFrame({"text": ["a"], "title": [1.5]}))
    with pytest.raises(UsageError, match="not learned again"):
        back.fit(DOCUMENTS)
    # a transform that was put beside another model
    model.set_params(alpha=0.5).fit(X, LABELS).save(tmp_path / "other")
    for name in ("transform.json", "transform.safetensors"):
        shutil.copy(tmp_path / "m" / name, tmp_path / "other" / name)
    with pytest.raises(ModelFormatError, match="of another model"):
        dboost.load_pipeline(tmp_path / "other")
