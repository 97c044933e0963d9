"""AdaBoost+L1 and leveraging as estimators: inputs and engines, weights, files, checkpoints, callbacks, refusals.

Their rounds are compared with the formulas in tests/boosting/test_adaboost_l1.py and test_leveraging.py.
"""

from __future__ import annotations

import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import RegressorMixin, clone

from dboost import (
    AdaBoostL1Classifier,
    AdaBoostL1Regressor,
    BoostedClassifier,
    BoostedRegressor,
    Columns,
    LeveragingClassifier,
    LeveragingRegressor,
    ParquetData,
    Products,
    Stumps,
    UsageError,
    load_model,
)
from tests.estimators.test_persistence import Killed, killer

NAMES = ["lstat", "rm", "age", "tax", "dis"]
PAIRS = Columns() | Products(min_degree=2, max_degree=2)
KINDS = {
    "adaboost_l1": AdaBoostL1Classifier(hypotheses=Columns(), nu=0.7, max_rounds=8),
    "keep_zeros": AdaBoostL1Classifier(hypotheses=Columns(), keep_zeros=True, max_rounds=8),
    "logistic": AdaBoostL1Classifier(hypotheses=Columns(), loss="log", max_rounds=8),
    "lasso of a budget": AdaBoostL1Regressor(hypotheses=Columns(), loss="huber", max_rounds=8),
    "adaboost": LeveragingClassifier(hypotheses=Columns(), max_rounds=8),
    "epsilon": LeveragingClassifier(hypotheses=Columns(), step=0.05, max_rounds=8),
    "steepest": LeveragingClassifier(hypotheses=Columns(), norm="l2", max_rounds=8),
    "box": LeveragingClassifier(hypotheses=Columns(), bounds=(0.0, 0.5), max_rounds=8),
    "penalised": LeveragingClassifier(hypotheses=Columns(), loss="log", alpha="auto", max_rounds=8),
    "ls-boost": LeveragingRegressor(hypotheses=Columns(), learner="nearest", max_rounds=8),
    "lasso": LeveragingRegressor(hypotheses=Columns(), alpha=0.01, max_rounds=8),
}


@pytest.fixture(params=KINDS)
def model(request):
    """One of each."""
    return clone(KINDS[request.param])


@pytest.fixture
def family(model):
    """Products for one of each kind; raw columns for its sibling."""
    induced = isinstance(model, (AdaBoostL1Classifier, AdaBoostL1Regressor)) or model.alpha != 0.0
    return PAIRS if induced else None


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(150, 5)) * (rng.random((150, 5)) < 0.8)


def target(model, X):
    score = 2.0 * X[:, 0] - X[:, 1] * X[:, 2] + 0.4 * np.random.default_rng(1).normal(size=len(X))
    return score if isinstance(model, RegressorMixin) else np.where(score > 0.3, "yes", "no")


def shown(model, X):
    return np.asarray(model.predict(X) if isinstance(model, RegressorMixin) else model.decision_function(X))


@pytest.mark.parametrize("cluster", [False, True], ids=["in-process", "cluster"])
def test_every_input_on_both_engines(model, family, X, client, tmp_path, cluster):
    y = target(model, X)
    model.set_params(hypotheses=family)
    expected = clone(model).fit(X, y)
    model.set_params(client=client if cluster else None)

    def check(fitted, inputs):
        assert fitted.stop_reason_ == expected.stop_reason_ and fitted.n_iter_ == expected.n_iter_
        assert fitted.objective_ == pytest.approx(expected.objective_, rel=1e-9)
        found = [shown(fitted, given) for given in inputs]
        assert all(other.tobytes() == found[0].tobytes() for other in found)
        np.testing.assert_allclose(found[0], shown(expected, X), atol=1e-7)

    lazy = da.from_array(X, chunks=(60, 5))
    both = lazy, da.from_array(y, chunks=60)
    fitted = clone(model).fit(*both)
    check(fitted, [X, lazy, sp.csr_array(X)])
    if cluster:
        here = clone(model).set_params(client=None).fit(*both)
        assert fitted.coef_.tobytes() == here.coef_.tobytes()
        assert fitted.intercept_.tobytes() == here.intercept_.tobytes()
    frame = pd.DataFrame(X, columns=NAMES)
    whole = frame.assign(label=y)
    whole[:80].to_parquet(tmp_path / "a.parquet", index=False)
    whole[80:].to_parquet(tmp_path / "b.parquet", index=False)
    stored = ParquetData(tmp_path, features=NAMES, label="label")
    check(clone(model).fit(stored), [frame, stored, dd.from_pandas(whole, npartitions=3)])


def test_weights_are_repetitions(model, X):
    y = target(model, X)
    counts = np.random.default_rng(2).integers(0, 3, len(y))
    weighted = clone(model).fit(X, y, counts)
    repeated = clone(model).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)


def test_files_keep_every_bit(model, family, X, tmp_path):
    y = target(model, X)
    model.set_params(hypotheses=family).fit(X, y)
    model.save(tmp_path / "model")
    for again in (load_model(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert type(again) is type(model)
        assert shown(again, X).tobytes() == shown(model, X).tobytes()
        assert again.history_ == model.history_ and again.active_features_ == model.active_features_
        assert repr(again.get_params()) == repr(model.get_params())
        if isinstance(model, AdaBoostL1Classifier):
            for name in ("margin_", "margin_gap_", "budget_"):
                assert getattr(again, name) == getattr(model, name)


def test_a_killed_fit_goes_on_with_the_same_bits(model, family, X, tmp_path):
    y = target(model, X)
    model.set_params(hypotheses=family)
    whole = clone(model).fit(X, y)
    path = tmp_path / "checkpoint"
    with pytest.raises(Killed):
        clone(model).set_params(checkpoint=path, callbacks=[killer(4)]).fit(X, y)
    resumed = clone(model).set_params(checkpoint=path).fit(X, y)
    assert shown(resumed, X).tobytes() == shown(whole, X).tobytes()
    assert resumed.n_iter_ == whole.n_iter_ and resumed.duality_gap_ == pytest.approx(whole.duality_gap_, nan_ok=True)
    # a finished fit ends again where it ended
    again = clone(model).set_params(checkpoint=path).fit(X, y)
    assert shown(again, X).tobytes() == shown(whole, X).tobytes() and again.n_iter_ == whole.n_iter_


def test_a_checkpoint_of_other_parameters_is_refused(X, tmp_path):
    path = tmp_path / "checkpoint"
    y = target(KINDS["adaboost_l1"], X)
    AdaBoostL1Classifier(hypotheses=Columns(), max_rounds=3, checkpoint=path).fit(X, y)
    with pytest.raises(UsageError, match="other settings of system"):
        AdaBoostL1Classifier(hypotheses=Columns(), nu=0.5, max_rounds=3, checkpoint=path).fit(X, y)
    with pytest.raises(UsageError, match="other settings of"):
        LeveragingClassifier(hypotheses=Columns(), checkpoint=path).fit(X, y)


def test_a_callback_ends_the_fit(model, X):
    model.set_params(callbacks=[lambda record: record["round"] == 4]).fit(X, target(model, X))
    assert (model.stop_reason_, model.n_iter_, len(model.history_)) == ("callback", 4, 4)


@pytest.mark.parametrize("kind", ["adaboost_l1", "adaboost", "penalised", "lasso"])
def test_stumps_are_their_columns(X, kind):
    """Listed one by one or looked into bin by bin: the fit is that of all stumps as columns."""
    X = np.round(X, 1)
    model = clone(KINDS[kind]).set_params(max_rounds=15)
    y = target(model, X)
    cuts = [np.unique(column) for column in X.T]
    columns = [np.where(X[:, [j]] < (v[1:] + v[:-1]) / 2, 1.0, -1.0) for j, v in enumerate(cuts)]
    expected = clone(model).fit(np.hstack(columns), y)
    for family in (Stumps(signed=True), Stumps(signed=True, bins=4, max_listed=0)):
        fitted = clone(model).set_params(hypotheses=family).fit(X, y)
        np.testing.assert_allclose(shown(fitted, X), shown(expected, np.hstack(columns)), atol=1e-7)
        assert len(fitted.active_features_) == len(expected.active_features_)


def test_margins_of_the_training_data(X):
    y = np.where(X[:, 0] + 0.2 * X[:, 1] > 0, 1, 0)
    model = AdaBoostL1Classifier(hypotheses=Columns(), max_rounds=60).fit(X, y)
    peaks = np.abs(X).max(axis=0)
    norm = (np.abs(model.coef_[0]) * peaks).sum() + abs(model.intercept_[0])
    least = (np.where(y == 1, 1, -1) * model.decision_function(X)).min() / norm
    assert model.margin_ == pytest.approx(least, abs=1e-12) and model.budget_ == pytest.approx(norm)
    assert model.margin_gap_ > 0


@pytest.mark.parametrize("kind", ["penalised", "lasso"])
@pytest.mark.parametrize("family", [Columns(), PAIRS], ids=["columns", "products"])
def test_algorithm_2_is_the_l1_problem(X, kind, family):
    model = clone(KINDS[kind]).set_params(max_rounds=3000, tol=1e-7, hypotheses=family, alpha=0.03)
    model.fit(X, target(model, X))
    other = BoostedRegressor if kind == "lasso" else BoostedClassifier
    best = other(standardize=False, penalty="l1", alpha=0.03, tol=1e-9, hypotheses=family).fit(X, target(model, X))
    assert model.stop_reason_ == "tol" and model.objective_ == pytest.approx(best.objective_, rel=2e-7)
    assert model.active_features_ == best.active_features_
    assert model.alpha_max_ == pytest.approx(best.alpha_max_)


def test_a_warm_start_goes_on(X):
    y = target(KINDS["adaboost"], X)
    whole = LeveragingClassifier(hypotheses=Columns(), max_rounds=20).fit(X, y)
    model = LeveragingClassifier(hypotheses=Columns(), max_rounds=10, warm_start=True).fit(X, y)
    model.fit(X, y)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-12)


def test_refusals(X):
    y = target(KINDS["adaboost"], X)
    with pytest.raises(UsageError, match="infinite class"):
        LeveragingClassifier(hypotheses=Products(max_degree=None)).fit(X, y)
    with pytest.raises(UsageError, match="nu=0"):
        AdaBoostL1Classifier(hypotheses=Columns(), nu=0).fit(X, y)
    with pytest.raises(UsageError, match="step='half'"):
        LeveragingClassifier(hypotheses=Columns(), step="half").fit(X, y)
    with pytest.raises(UsageError, match="learner='best'"):
        LeveragingRegressor(hypotheses=Columns(), learner="best").fit(X, y == "yes")
    with pytest.raises(UsageError, match="loss='squared'"):
        LeveragingClassifier(hypotheses=Columns(), loss="squared").fit(X, y)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        AdaBoostL1Classifier(hypotheses=Columns()).fit(X, np.arange(len(X)) % 3)
