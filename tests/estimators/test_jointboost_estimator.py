"""``JointBoostClassifier``: inputs and engines, weights, files, checkpoints, callbacks, refusals.

Its rounds are compared with the formulas in tests/boosting/test_jointboost.py.
"""

from __future__ import annotations

import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from dboost import JointBoostClassifier, ParquetData, Stumps, UsageError, load_model
from tests.estimators.test_persistence import Killed, killer

NAMES = ["lstat", "rm", "age", "tax"]


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return np.round(rng.normal(size=(150, 4)) * (rng.random((150, 4)) < 0.8), 2)


@pytest.fixture(params=[2, 3], ids=["two classes", "three"])
def y(request, X):
    score = 2.0 * X[:, 0] - X[:, 1] + 0.4 * np.random.default_rng(1).normal(size=len(X))
    return np.array(["no", "maybe", "yes"])[np.digitize(score, [0.3, 1.5][: request.param - 1])]


MODEL = JointBoostClassifier(max_rounds=8)


@pytest.mark.parametrize("search", ["greedy", "exhaustive"])
@pytest.mark.parametrize("cluster", [False, True], ids=["in-process", "cluster"])
def test_every_input_on_both_engines(X, y, client, tmp_path, cluster, search):
    expected = clone(MODEL).set_params(search=search).fit(X, y)
    model = clone(expected).set_params(client=client if cluster else None)

    def check(fitted, inputs):
        assert fitted.objective_ == pytest.approx(expected.objective_, rel=1e-9)
        found = [np.asarray(fitted.decision_function(given)) for given in inputs]
        assert all(other.tobytes() == found[0].tobytes() for other in found)
        np.testing.assert_allclose(found[0], expected.decision_function(X), atol=1e-9)

    lazy = da.from_array(X, chunks=(60, 4))
    both = lazy, da.from_array(y, chunks=60)
    fitted = clone(model).fit(*both)
    check(fitted, [X, lazy, sp.csr_array(X)])
    if cluster:
        assert fitted.coef_.tobytes() == clone(model).set_params(client=None).fit(*both).coef_.tobytes()
    frame = pd.DataFrame(X, columns=NAMES)
    whole = frame.assign(label=y)
    whole[:80].to_parquet(tmp_path / "a.parquet", index=False)
    whole[80:].to_parquet(tmp_path / "b.parquet", index=False)
    stored = ParquetData(tmp_path, features=NAMES, label="label")
    check(clone(model).fit(stored), [frame, stored, dd.from_pandas(whole, npartitions=3)])


def test_weights_are_repetitions(X, y):
    counts = np.random.default_rng(2).integers(0, 3, len(y))
    weighted = clone(MODEL).fit(X, y, counts)
    repeated = clone(MODEL).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert weighted.active_features_ == repeated.active_features_
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-9)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, atol=1e-9)


def test_files_keep_every_bit(X, y, tmp_path):
    model = clone(MODEL).set_params(hypotheses=Stumps(bins=16)).fit(X, y)
    model.save(tmp_path / "model")
    for again in (load_model(tmp_path / "model"), pickle.loads(pickle.dumps(model)), model.to_local()):
        assert type(again) is JointBoostClassifier
        assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
        assert again.history_ == model.history_ and again.active_features_ == model.active_features_
        assert again.hypotheses == Stumps(bins=16) and repr(again) == repr(model)


def test_scores_are_against_the_rest_and_probabilities_follow(X, y):
    model = clone(MODEL).fit(X, y)
    F, P = model.decision_function(X), model.predict_proba(X)
    z = np.where(y[:, None] == model.classes_, 1, -1) if F.ndim == 2 else np.where(y == model.classes_[1], 1, -1)
    assert np.exp(-z * F).sum() / len(y) == pytest.approx(model.objective_, rel=1e-9)
    if F.ndim == 2:
        np.testing.assert_allclose(P, np.exp(2 * F) / np.exp(2 * F).sum(axis=1, keepdims=True), rtol=1e-9)
    else:
        np.testing.assert_allclose(P[:, 1], 1 / (1 + np.exp(-2 * F)), rtol=1e-9)
    assert all("<" in name for name in model.active_features_)
    assert np.isnan(model.duality_gap_) and model.stop_reason_ == "max_rounds"


def test_a_class_without_examples_is_never_predicted(X, y):
    model = clone(MODEL).set_params(classes=[*sorted(set(y)), "zebra"]).fit(X, y)
    assert set(model.predict(X)) <= set(y) and model.predict_proba(X)[:, -1].max() < 1e-9


def test_a_killed_fit_goes_on_with_the_same_bits(X, y, tmp_path):
    whole = clone(MODEL).fit(X, y)
    path = tmp_path / "checkpoint"
    with pytest.raises(Killed):
        clone(MODEL).set_params(checkpoint=path, callbacks=[killer(4)]).fit(X, y)
    resumed = clone(MODEL).set_params(checkpoint=path).fit(X, y)
    assert resumed.coef_.tobytes() == whole.coef_.tobytes() and resumed.n_iter_ == whole.n_iter_
    with pytest.raises(UsageError, match="other settings of hypotheses"):
        clone(MODEL).set_params(checkpoint=path, hypotheses=Stumps(bins=4)).fit(X, y)


def test_a_callback_ends_the_fit(X, y):
    model = clone(MODEL).set_params(callbacks=[lambda record: record["round"] == 3]).fit(X, y)
    assert (model.stop_reason_, model.n_iter_, len(model.history_)) == ("callback", 3, 3)


def test_refusals(X, y):
    for params, match in (
        ({"hypotheses": Stumps(signed=True)}, "JointBoost: hypotheses="),
        ({"max_rounds": 0}, "max_rounds"),
        ({"tol": -1.0}, "tol=-1.0"),
    ):
        with pytest.raises(UsageError, match=match):
            clone(MODEL).set_params(**params).fit(X, y)
