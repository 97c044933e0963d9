"""Fits over induced hypotheses through the estimators: every task, input and engine, and what outlives the fit."""

from __future__ import annotations

import json

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dboost import (
    BoostedClassifier,
    BoostedRegressor,
    Columns,
    ConvergenceWarning,
    Kernels,
    ModelFormatError,
    ParquetData,
    Products,
    UsageError,
    load_model,
    regularization_path,
)
from dboost.estimators.path import RegularizationPath
from tests.estimators.test_callbacks import Hooks, needs_protocol
from tests.model.models import write_sealed
from tests.model.pairs import induced

PAIRS = Products(max_degree=2)
JOINED = Columns() | Products(min_degree=2, max_degree=2)
NAMES = ["lstat", "rm", "age", "tax", "dis"]


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(150, 5)) * (rng.random((150, 5)) < 0.8)


def labels(X, task):
    noise = np.random.default_rng(1).normal(size=(3, len(X)))
    scores = np.stack([X[:, 0] * X[:, 1], X[:, 2] ** 2 - 1.0, X[:, 3]]) * 2.0 + 0.5 * noise
    if task == "regression":
        return scores.sum(axis=0) + 3.0
    if task == "multitask":
        return (scores.T > 0).astype(float)
    if task == "multitarget":
        return np.where(np.random.default_rng(2).random(scores.T.shape) < 0.1, np.nan, scores.T)
    return np.array(["a", "b", "c"])[scores.argmax(axis=0)] if task == "multiclass" else scores[0] + scores[1] > 0


def test_names_and_order_of_the_hypotheses_are_those_of_the_keys(X):
    model = BoostedRegressor(hypotheses=PAIRS, alpha=0.02).fit(pd.DataFrame(X, columns=NAMES), labels(X, "regression"))
    assert {"lstat * rm", "age^2", "tax"} <= set(model.active_features_)
    keys = list(model.model_.origin.keys)
    assert keys == sorted(keys)
    assert dict(zip(model.active_features_, model.coef_[0], strict=True))["tax"] > 0
    assert "lstat * rm" in repr(model)
    assert "age^2" in model._repr_html_()
    assert model.get_feature_names_out(NAMES).tolist() == model.active_features_
    again = BoostedRegressor(hypotheses=PAIRS, alpha=0.02, update="gradboost", features_per_round=1)
    again.fit(pd.DataFrame(X, columns=NAMES), labels(X, "regression"))
    assert [word for word in again.active_features_ if word in model.active_features_] == model.active_features_


def test_changed_folders_are_refused(X, tmp_path):
    BoostedClassifier(hypotheses=JOINED, alpha=0.02).fit(X, labels(X, "binary")).save(tmp_path / "m")
    text = (tmp_path / "m" / "model.json").read_text()

    def monomials(document):
        return document["hypotheses"]["parts"][1]

    changes = [
        lambda d: d["hypotheses"].update(owner=[0]),
        lambda d: d["hypotheses"].update(owner=[7] * len(d["hypotheses"]["owner"])),
        lambda d: d["hypotheses"].update(owner=d["hypotheses"]["owner"][::-1] + [0]),
        lambda d: d["hypotheses"].update(parts=[]),
        lambda d: d["hypotheses"].update(parts=[dict(d["hypotheses"])]),
        lambda d: d["hypotheses"].update(parts="products"),
        lambda d: monomials(d).update(monomials=[[99, 99]] * len(monomials(d)["monomials"])),
        lambda d: monomials(d).update(monomials=[[]] * len(monomials(d)["monomials"])),
        lambda d: monomials(d).update(names=None),
        lambda d: monomials(d)["monomials"].append([0, 1]),
        lambda d: d["manifest"]["estimator"]["params"]["hypotheses"].update(members=[{"family": "union"}]),
        lambda d: d["manifest"]["estimator"]["params"]["hypotheses"].update(members=[]),
        lambda d: d["manifest"]["estimator"]["params"]["hypotheses"]["members"][1].update(max_degree=0),
        lambda d: d["manifest"]["estimator"]["params"]["hypotheses"]["members"][1].update(depth=2),
    ]
    for change in changes:
        document = json.loads(text)
        change(document)
        write_sealed(tmp_path / "m" / "model.json", document)
        with pytest.raises(ModelFormatError):
            load_model(tmp_path / "m")


def test_warm_start_goes_on_from_the_hypotheses_held(X):
    y = labels(X, "regression")
    model = BoostedRegressor(hypotheses=PAIRS, alpha=0.02, tol=1e-7, warm_start=True).fit(X, y)
    cold, held = model.model_.certificate.passes, model.active_features_
    model.fit(X, y)
    assert model.model_.certificate.passes < cold / 2
    assert model.active_features_ == held
    assert model.induction_stop_ == 0
    with pytest.raises(UsageError, match="hypotheses differ"):
        model.set_params(hypotheses=None).fit(X, y)
    with pytest.raises(UsageError, match="hypotheses differ"):
        model.set_params(hypotheses=Products(max_degree=3)).fit(X, y)


@pytest.mark.parametrize("family", [PAIRS, JOINED, Products(), Products(max_degree=2, scale="range")], ids=str)
def test_products_of_new_rows_start_from_those_of_the_old(X, family):
    """Their scales differ, as the largest values of the rows do; the monomials are the same."""
    y = labels(X, "regression")
    old, new = X[:90], np.vstack([X[90:], 3.0 * X[:2]])
    # a column that is constant over the new rows is in no candidate any more
    new[:, 3] = 1.0
    target = np.append(y[90:], y[:2])
    params = {"hypotheses": family, "alpha": 0.02, "tol": 1e-7}
    cold = BoostedRegressor(**params).fit(new, target)
    warm = BoostedRegressor(**params, warm_start=True).fit(old, y[:90])
    assert any("x3" in name for name in warm.active_features_)
    warm.fit(new, target)
    assert warm.duality_gap_ <= 1e-7
    assert warm.objective_ == pytest.approx(cold.objective_, rel=1e-6)
    assert warm.active_features_ == cold.active_features_


def test_kernels_of_new_rows_are_refused_as_a_start(X):
    y = labels(X, "regression")
    for family in (Kernels(support=10), Columns() | Kernels(support=10)):
        model = BoostedRegressor(hypotheses=family, alpha=0.001, warm_start=True).fit(X, y)
        with pytest.raises(UsageError, match="candidate hypotheses differ"):
            model.fit(X * 3.0, y)


def test_columns_alone_are_the_default(X):
    y = labels(X, "binary")
    model = BoostedClassifier(hypotheses=Columns(), alpha=0.01).fit(X, y)
    plain = BoostedClassifier(alpha=0.01).fit(X, y)
    assert model.coef_.shape == (1, 5)
    assert model.coef_.tobytes() == plain.coef_.tobytes()
    assert model.model_.plain


def test_a_path_over_products(X):
    path = regularization_path(
        X, labels(X, "regression"), n_alphas=4, eps=0.05, estimator=BoostedRegressor(hypotheses=PAIRS)
    )
    assert path.n_active_features.tolist() == sorted(path.n_active_features.tolist())
    assert path.n_active_features[0] == 0
    with pytest.raises(UsageError, match="no columns"):
        _ = path.coefs
    assert path.estimator(3).predict(X).shape == (150,)
    assert "lstat" not in path.entering


@needs_protocol
def test_callbacks_see_models_of_hypotheses(X):
    hooks = Hooks()
    with pytest.warns(ConvergenceWarning):
        model = BoostedRegressor(hypotheses=PAIRS, alpha=0.01, max_rounds=2, tol=1e-12, callbacks=[hooks])
        model.fit(X, labels(X, "regression"))
    assert model.stop_reason_ == "max_rounds"
    assert hooks.models[-1].active_features_ == model.active_features_
    assert hooks.models[0].predict(X).shape == (150,)


@pytest.mark.parametrize("scale", ["max", "range"])
def test_scores_follow_from_names_and_weights(X, scale):
    """Each name, read as a formula of the raw columns, times its weight."""
    y = labels(X, "multiclass")
    model = BoostedClassifier(hypotheses=Products(max_degree=2, scale=scale), alpha=0.005).fit(X, y)
    columns = {f"x{j}": X[:, j] for j in range(5)}
    made = [eval(name.replace("^", "**"), {"__builtins__": {}}, columns) for name in model.active_features_]
    scores = np.column_stack(made) @ model.coef_.T + model.intercept_
    # names show four digits of what is taken from a column
    np.testing.assert_allclose(scores, model.decision_function(X), atol=1e-9 if scale == "max" else 1e-2)
    assert any("(" in name for name in model.active_features_) == (scale == "range")


# ---- a model as it is, predicting every kind of input ----------------------------------------------------------------

WIDE_NAMES = [f"f{j}·" for j in range(9)]


def estimator_of(model):
    return RegularizationPath((model,), BoostedClassifier()).estimator(0)


def fitted(task="multiclass", names=True):
    return estimator_of(induced(task, names=names))


def rows(m=23, seed=5):
    X = np.random.default_rng(seed).normal(size=(m, 9))
    X[np.random.default_rng(seed + 1).random(X.shape) < 0.4] = 0.0
    return X


@pytest.mark.parametrize("task", ["multiclass", "binary"])
def test_dask_and_parquet_read_only_the_inputs(tmp_path, task):
    X = rows()
    expected = fitted(task, names=False).predict_proba(X).tobytes()
    lazy = fitted(task, names=False).predict_proba(da.from_array(X, chunks=(7, 4)))
    assert lazy.compute(scheduler="synchronous").tobytes() == expected
    frame = pd.DataFrame(X, columns=WIDE_NAMES).assign(label="a")
    few = frame[["label", "f7·", "f4·", "f2·", "f1·"]]
    for table in (frame, few):
        found = fitted(task).predict_proba(dd.from_pandas(table, npartitions=3))
        assert found.compute(scheduler="synchronous").to_numpy().tobytes() == expected
    pq.write_table(pa.Table.from_pandas(few), tmp_path / "few.parquet")
    assert fitted(task).predict_proba(ParquetData(tmp_path / "few.parquet")).tobytes() == expected


def test_weights_names_and_map_are_of_the_hypotheses():
    model = fitted()
    assert model.coef_.shape == (3, 3)
    assert model.coef_.tobytes() == np.ascontiguousarray(model.model_.W.T).tobytes()
    assert model.active_features_ == ["x1 * x4", "x2^2", "x4 * x7"]
    assert model.get_feature_names_out().tolist() == model.active_features_
    assert model.get_feature_names_out(WIDE_NAMES).tolist() == model.active_features_
    with pytest.raises(UsageError, match="induced"):
        fitted(names=False).get_feature_names_out(WIDE_NAMES)
    text = repr(model)
    assert "3 of 45 hypotheses held, which read 4 of 9 features" in text
    assert "x2^2" in text
    assert "x4 * x7" in model._repr_html_()
