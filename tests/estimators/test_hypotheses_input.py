"""Prediction with induced hypotheses on every kind of input, and the parameter `hypotheses`."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dboost import BoostedClassifier, ParquetData, UsageError
from dboost.estimators.path import RegularizationPath
from tests.model.pairs import induced

NAMES = [f"f{j}·" for j in range(9)]


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
    frame = pd.DataFrame(X, columns=NAMES).assign(label="a")
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
    assert model.get_feature_names_out(NAMES).tolist() == model.active_features_
    with pytest.raises(UsageError, match="induced"):
        fitted(names=False).get_feature_names_out(NAMES)
    text = repr(model)
    assert "3 of 45 hypotheses held, which read 4 of 9 features" in text
    assert "x2^2" in text
    assert "x4 * x7" in model._repr_html_()
