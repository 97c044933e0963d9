"""What outlives a fit: pickles, clones, saved folders, local copies, warm starts, checkpoints."""

from __future__ import annotations

import copy
import json
import os
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dboost import (
    BoostedClassifier,
    ModelFormatError,
    MultiTaskBoostedClassifier,
    StorageError,
    UsageError,
    load_model,
)
from dboost.penalties import SparseGroup
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


@pytest.mark.parametrize("penalty", ["l1/linf", SparseGroup(l1_ratio=0.25)], ids=["name", "object"])
def test_save_and_load_keep_every_bit(multiclass, tmp_path, penalty):
    X, y = multiclass
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)])
    model = BoostedClassifier(penalty=penalty, alpha=0.05, class_weight={"ant": 2.0}, tol=1e-5).fit(frame, y)
    model.save(tmp_path / "model")
    back = load_model(tmp_path / "model")
    assert type(back) is BoostedClassifier
    expected = model.get_params() | {"class_weight": {"ant": 2.0, "bee": 1.0, "cat": 1.0}}
    assert back.get_params() == expected
    for method in ("predict_proba", "decision_function"):
        assert getattr(back, method)(frame).tobytes() == getattr(model, method)(frame).tobytes()
    assert back.predict(frame).tolist() == model.predict(frame).tolist()
    assert back.coef_.tobytes() == model.coef_.tobytes()
    for name in ("active_features_", "duality_gap_", "stop_reason_", "n_iter_", "alpha_", "history_", "n_features_in_"):
        assert getattr(back, name) == getattr(model, name), name
    assert back.feature_names_in_.tolist() == list(frame.columns)
    assert repr(back).splitlines()[1:] == repr(model).splitlines()[1:]
    assert back.model_.manifest["data"]["rows"] == len(y)
    assert set(back.model_.manifest["versions"]) >= {"dboost", "numpy", "python"}
    back.fit(frame, y)
    assert back.coef_.tobytes() == model.coef_.tobytes()


def test_save_and_load_of_tasks(tasks, tmp_path):
    X, Y = tasks
    model = MultiTaskBoostedClassifier(alpha=0.02, classes=["a", "b", "c"]).fit(X, Y)
    model.save(tmp_path / "model")
    back = load_model(tmp_path / "model")
    assert type(back) is MultiTaskBoostedClassifier
    assert back.classes_.tolist() == back.classes == ["a", "b", "c"]
    assert back.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert back.score(X, Y) == model.score(X, Y)


def test_saving_over_a_folder_needs_force(multiclass, tmp_path):
    model = BoostedClassifier(alpha=0.05).fit(*multiclass)
    model.save(tmp_path / "m")
    with pytest.raises(UsageError, match="folder exists"):
        model.save(tmp_path / "m")
    model.save(tmp_path / "m", force=True)
    with pytest.raises(StorageError):
        model.save("/proc/nowhere/m")


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


class Killed(BaseException):
    """As SIGINT: nothing in a fit may catch it."""


def killer(after):
    def callback(record):
        if record["round"] == after:
            raise Killed

    return callback


@pytest.mark.parametrize(("update", "after"), [("newton", 1), ("newton", 3), ("gradboost", 2)])
def test_a_killed_fit_goes_on_with_the_same_bits(multiclass, tmp_path, update, after):
    X, y = multiclass
    params = {"alpha": 0.02, "tol": 1e-5, "update": update}
    if update == "gradboost":
        params |= {"alpha": 0.1, "tol": 1e-3, "rows_per_round": 2}  # one round would otherwise do it all
    whole = BoostedClassifier(**params).fit(X, y)
    assert whole.n_iter_ > after
    path = tmp_path / "state"
    with pytest.raises(Killed):
        BoostedClassifier(**params, checkpoint=path, callbacks=[killer(after)]).fit(X, y)
    rounds = []
    resumed = BoostedClassifier(**params, checkpoint=path, callbacks=[lambda r: rounds.append(r["round"])]).fit(X, y)
    assert rounds[0] == after + 1
    assert resumed.coef_.tobytes() == whole.coef_.tobytes()
    assert resumed.intercept_.tobytes() == whole.intercept_.tobytes()
    assert resumed.duality_gap_ == whole.duality_gap_
    assert resumed.n_iter_ == whole.n_iter_
    assert sorted(os.listdir(tmp_path)) == ["state", "state.previous"]
    again = BoostedClassifier(**params, checkpoint=path).fit(X, y)
    assert again.n_iter_ == whole.n_iter_
    assert again.coef_.tobytes() == whole.coef_.tobytes()


def test_a_checkpoint_of_another_fit_is_refused(multiclass, tmp_path):
    X, y = multiclass
    path = tmp_path / "state"
    BoostedClassifier(alpha=0.02, checkpoint=path).fit(X, y)
    before = path.read_bytes()
    with pytest.raises(UsageError, match="other data"):
        BoostedClassifier(alpha=0.02, checkpoint=path).fit(X + 1.0, y)
    with pytest.raises(UsageError, match="other data"):
        BoostedClassifier(alpha=0.02, checkpoint=path).fit(X, y, np.linspace(1, 2, len(y)))
    for change in ({"alpha": 0.03}, {"penalty": "l1"}, {"random_state": 1}, {"fit_intercept": False}):
        with pytest.raises(UsageError, match=f"other settings of {next(iter(change))}"):
            BoostedClassifier(**{"alpha": 0.02, "checkpoint": path} | change).fit(X, y)
    assert path.read_bytes() == before
