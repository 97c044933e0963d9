"""What outlives a fit: pickles, clones, damaged folders, warm starts; what comes back is in test_every_kind.py."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dboost import (
    BoostedClassifier,
    ModelFormatError,
    UsageError,
    load_model,
)
from tests.model.models import write_sealed


class Unpicklable:
    """Stands for a client: neither copies nor pickles."""

    def __reduce__(self):
        raise TypeError("a client belongs to one process")


def test_pickle_and_deepcopy_keep_the_model_and_drop_the_client(multiclass):
    X, y = multiclass
    model = BoostedClassifier(alpha=0.05).fit(X, y)
    model.set_params(client=Unpicklable())
    for back in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert back.client is None
        assert back.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
        assert back.history_ == model.history_
    assert isinstance(model.client, Unpicklable)


def test_clone_keeps_client_and_callbacks_by_reference(multiclass):
    client, callbacks = Unpicklable(), [lambda record: False]
    model = BoostedClassifier(alpha=0.05, client=client, callbacks=callbacks)
    new = clone(model)
    assert new is not model
    assert new.client is client
    assert new.callbacks is callbacks
    assert new.alpha == 0.05
    assert not hasattr(new, "coef_")


def test_before_a_fit_there_is_nothing(multiclass, tmp_path):
    model = BoostedClassifier(alpha="quick")
    assert not hasattr(model, "coef_")
    for call in (
        lambda: model.predict(multiclass[0]),
        lambda: model.save(tmp_path / "m"),
        model.to_local,
        model.get_feature_names_out,
    ):
        with pytest.raises(NotFittedError):
            call()


def test_folders_that_name_something_else_are_refused(multiclass, tmp_path):
    BoostedClassifier(alpha=0.05).fit(*multiclass).save(tmp_path / "m")
    document = json.loads((tmp_path / "m" / "model.json").read_text())
    changes = [
        ("class", "MultiTaskBoostedClassifier"),
        ("class", "Popen"),
        ("params", {"shell": True}),
        ("params", {"client": "tcp://elsewhere"}),
        ("params", {"penalty": {"name": "l9"}}),
        ("params", {"penalty": {"name": "l1/l2+l1", "l1_ratio": 7}}),
        ("params", {"penalty": "l1"}),
        ("params", {"loss": {"name": "epsilon_insensitive", "epsilon": -1.0}}),
        ("params", {"hypotheses": {"family": "everything"}}),
        ("params", {"hypotheses": "columns"}),
        ("params", {"class_weight": [1.0]}),
        ("params", []),
    ]
    for key, value in changes:
        changed = copy.deepcopy(document)
        changed["manifest"]["estimator"][key] = value
        write_sealed(tmp_path / "m" / "model.json", changed)
        with pytest.raises(ModelFormatError):
            load_model(tmp_path / "m")


def test_warm_start_saves_work(multiclass):
    X, y = multiclass
    cold = BoostedClassifier(alpha=0.02, tol=1e-6).fit(X, y)
    warm = BoostedClassifier(alpha=0.02, tol=1e-6, warm_start=True).fit(X, y)
    assert warm.model_.certificate.passes == cold.model_.certificate.passes
    warm.fit(X, y)
    # statistics, null model, intercept, scores, dual value
    assert warm.model_.certificate.passes <= 5 < cold.model_.certificate.passes
    assert warm.duality_gap_ <= 1e-6
    warm.set_params(alpha=0.015).fit(X, y)
    fresh = BoostedClassifier(alpha=0.015, tol=1e-6).fit(X, y)
    assert warm.model_.certificate.passes < fresh.model_.certificate.passes
    assert warm.objective_ == pytest.approx(fresh.objective_, rel=2e-6)


def test_warm_start_refuses_other_classes_and_features(multiclass, binary):
    X, y = multiclass
    model = BoostedClassifier(alpha="quick", warm_start=True).fit(X, y)
    with pytest.raises(UsageError, match="12 features, this one has 11"):
        model.fit(X[:, :11], y)
    with pytest.raises(UsageError, match="other names"):
        model.fit(pd.DataFrame(X, columns=[f"c{j}" for j in range(12)]), y)
    with pytest.raises(UsageError, match="classes differ"):
        model.fit(*binary)


def test_warm_start_goes_by_names_of_columns_and_labels(multiclass):
    X, y = multiclass
    names = [f"c{j}" for j in range(12)]
    rng = np.random.default_rng(0)
    order = rng.permutation(12)
    moved = pd.DataFrame(X, columns=names)[[names[j] for j in order]].assign(new=rng.normal(size=len(X)))
    y_more = np.where(np.arange(len(y)) % 10 == 0, "emu", y)
    for rows, labels in ((moved, y), (moved.drop(columns="c3"), y_more)):
        model = BoostedClassifier(alpha=0.02, tol=1e-6, warm_start=True).fit(pd.DataFrame(X, columns=names), y)
        warm = model.fit(rows, labels)
        cold = BoostedClassifier(alpha=0.02, tol=1e-6).fit(rows, labels)
        assert warm.objective_ == pytest.approx(cold.objective_, rel=2e-6) and warm.duality_gap_ <= 1e-6
        if labels is y:
            assert warm.model_.certificate.passes < cold.model_.certificate.passes
    with pytest.raises(UsageError, match="classes differ"):
        BoostedClassifier(alpha="quick", warm_start=True).fit(X, y).fit(X, np.char.add("other ", y.astype(str)))
