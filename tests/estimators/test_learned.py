"""scikit-learn estimators as base learners of leveraging, against the same rounds written out."""

from __future__ import annotations

import pickle

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from dboost import (
    AdaBoostL1Classifier,
    BoostedClassifier,
    Learned,
    LeveragingClassifier,
    LeveragingRegressor,
    UsageError,
)

STUMP = DecisionTreeClassifier(max_depth=1, random_state=0)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    return X, X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=120), rng.uniform(0.5, 2.0, 120)


def test_adaboost_of_stumps_is_its_closed_form(data):
    X, score, s = data
    y = np.where(score > 0, 1, -1)
    model = LeveragingClassifier(hypotheses=Learned(STUMP), max_rounds=15, fit_intercept=False).fit(X, y, s)
    F = np.zeros(len(y))
    held, weights = [], []
    for _ in range(15):
        d = s * np.exp(-y * F)
        tree = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, y, sample_weight=d / d.mean())
        held.append(tree.predict(X).astype(float))
        weights.append(0.0)
        # what was learned competes with what is held
        edges = np.array([(d * y) @ h / d.sum() for h in held])
        j = int(np.argmax(np.abs(edges)))
        step = np.arctanh(edges[j])
        weights[j] += step
        F += step * held[j]
    np.testing.assert_allclose(model.decision_function(X), F, atol=1e-9)
    assert model.active_features_[0] == "DecisionTreeClassifier 1"


def test_ls_boost_of_trees(data):
    X, y, s = data
    tree = DecisionTreeRegressor(max_depth=2, random_state=0)
    model = LeveragingRegressor(hypotheses=Learned(tree), max_rounds=10).fit(X, y, s)
    F, held = np.full(len(y), s @ y / s.sum()), [np.ones(len(y))]
    for _ in range(10):
        held.append(DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, y - F, sample_weight=s).predict(X))
        gains = [(s * (y - F) @ h) ** 2 / (s @ h**2) for h in held]
        h = held[int(np.argmax(gains))]
        F = F + (s * (y - F)) @ h / (s @ h**2) * h
    np.testing.assert_allclose(model.predict(X), F, atol=1e-9)


def test_the_penalised_form_pays_for_every_weight(data):
    X, score, _ = data
    y = np.where(score > 0, 1, -1)
    model = LeveragingClassifier(loss="log", alpha=0.02, hypotheses=Learned(STUMP), max_rounds=150, tol=0.03).fit(X, y)
    assert np.isnan(model.duality_gap_) and np.isnan(model.alpha_max_) and model.stop_reason_ == "gradient"
    # no weight that is held could be better on its own
    base = model.decision_function(X)
    rest = np.abs(model.coef_[0]).sum()
    for h, w in zip(model.model_.hypotheses.estimators, model.coef_[0], strict=True):
        column = h.predict(X)

        def value(t, column=column, w=w):
            return np.logaddexp(0, -y * (base + t * column)).mean() + 0.02 * (rest - abs(w) + abs(w + t))

        assert abs(minimize_scalar(value).x) < 0.05


def test_the_engines_agree_bit_for_bit_on_a_sample(data, client):
    X, score, _ = data
    y = np.where(score > 0, "a", "b")
    lazy = da.from_array(X, chunks=(50, 4)), da.from_array(y, chunks=50)
    for most in (1000, 60):
        model = LeveragingClassifier(hypotheses=Learned(DecisionTreeClassifier(max_depth=2), most), max_rounds=5)
        here, there = (model.set_params(client=one).fit(*lazy).decision_function(X) for one in (None, client))
        assert here.tobytes() == there.tobytes()
    assert model.predict(lazy[0]).compute().tolist() == model.predict(X).tolist()


def test_sparse_rows_reach_the_estimator_as_asked(data):
    X, score, _ = data
    X = np.where(X > 0.5, X, 0.0)
    fits = [
        LeveragingClassifier(hypotheses=Learned(STUMP, sparse=sparse), max_rounds=6).fit(given, score > 0)
        for sparse in (False, True)
        for given in (X, sp.csr_array(X))
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(other.decision_function(X), fits[0].decision_function(X))


def test_what_cannot_be_kept_is_refused(data, tmp_path):
    X, score, _ = data
    y = score > 0
    model = LeveragingClassifier(hypotheses=Learned(STUMP), max_rounds=3).fit(X, y)
    with pytest.raises(UsageError, match="3 fitted scikit-learn estimators cannot be saved"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    again = pickle.loads(pickle.dumps(model))
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    for given in ({"checkpoint": tmp_path / "state"}, {"warm_start": True}):
        with pytest.raises(UsageError, match="neither a checkpoint nor a warm start"):
            LeveragingClassifier(hypotheses=Learned(STUMP), **given).fit(X, y)
    for kind in (BoostedClassifier, AdaBoostL1Classifier):
        with pytest.raises(UsageError, match="LeveragingClassifier"):
            kind(hypotheses=Learned(STUMP)).fit(X, y)
    with pytest.raises(UsageError, match="give a number"):
        LeveragingClassifier(hypotheses=Learned(STUMP), alpha="auto").fit(X, y)
    with pytest.raises(UsageError, match="sample_weight"):
        Learned(KNeighborsClassifier())
    with pytest.raises(UsageError, match="max_samples=0"):
        Learned(LinearRegression(), max_samples=0)
