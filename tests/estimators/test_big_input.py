"""Dask collections and Parquet: fits on a cluster, lazy predictions that keep their type, columns that are not read."""

from __future__ import annotations

import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dboost import BoostedClassifier, DataError, MultiTaskBoostedClassifier, ParquetData, UsageError
from dboost.data.plan import build_plan
from dboost.engine.local import LocalEngine
from dboost.engine.memo import MemoStore
from dboost.errors import DboostWarning

NAMES = [f"c{j}" for j in range(12)]


@pytest.fixture
def fitted(multiclass):
    X, y = multiclass
    frame = pd.DataFrame(X, columns=NAMES)
    return BoostedClassifier(alpha=0.05).fit(frame, y), frame, y


def same(a, b):
    return np.asarray(a).tobytes() == np.asarray(b).tobytes()


# ---- prediction ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [(50, 12), (64, 5), (150, 1)])
@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_dask_arrays_in_lazy_dask_arrays_out(multiclass, chunks, method):
    X, y = multiclass
    model = BoostedClassifier(alpha=0.05).fit(X, y)
    lazy = da.from_array(X, chunks=chunks)
    found = getattr(model, method)(lazy)
    expected = getattr(model, method)(X)
    assert isinstance(found, da.Array)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert found.chunks[0] == lazy.chunks[0]
    assert same(found.compute(scheduler="sync"), expected)


def test_nothing_is_computed_before_it_is_asked_for(multiclass):
    X, y = multiclass
    model = BoostedClassifier(alpha=0.05).fit(X, y)

    def explode(block):
        raise AssertionError("computed")

    lazy = da.map_blocks(explode, da.from_array(X, chunks=(50, 12)), dtype=float, meta=np.empty((0, 0)))
    for method in ("predict", "predict_proba", "decision_function"):
        getattr(model, method)(lazy)
    with pytest.raises(AssertionError, match="computed"):
        model.predict(lazy).compute(scheduler="sync")


def test_columns_the_model_does_not_use_are_not_computed(multiclass):
    X, y = multiclass
    model = BoostedClassifier(alpha=0.1).fit(X, y)
    used = set(model.model_.active.tolist())
    assert 0 < len(used) < 12
    touched = set()

    def note(block, block_info=None):
        touched.add(block_info[0]["chunk-location"][1])
        return block

    lazy = da.map_blocks(note, da.from_array(X, chunks=(150, 1)), dtype=float, meta=np.empty((0, 0)))
    assert same(model.predict_proba(lazy).compute(scheduler="sync"), model.predict_proba(X))
    assert touched == used


def test_unknown_chunk_sizes_and_empty_chunks(multiclass):
    X, y = multiclass
    model = BoostedClassifier(alpha=0.05).fit(X, y)
    lazy = da.from_array(X, chunks=((0, 100, 0, 50), (12,)))
    assert same(model.predict_proba(lazy).compute(scheduler="sync"), model.predict_proba(X))
    unknown = dd.from_pandas(pd.DataFrame(X), npartitions=3).to_dask_array()
    assert np.isnan(model.predict(unknown).shape[0])
    assert same(model.predict_proba(unknown).compute(scheduler="sync"), model.predict_proba(X))


def test_dask_frames_in_lazy_series_and_frames_out(fitted):
    model, frame, y = fitted
    frame.index = np.arange(len(frame)) * 3 + 7
    lazy = dd.from_pandas(frame.assign(label=y), npartitions=4)
    labels = model.predict(lazy)
    assert isinstance(labels, dd.Series)
    found = labels.compute(scheduler="sync")
    assert found.index.tolist() == frame.index.tolist()
    assert found.tolist() == model.predict(frame).tolist()
    for method in ("predict_proba", "decision_function"):
        lazy_found = getattr(model, method)(lazy)
        assert isinstance(lazy_found, dd.DataFrame)
        table = lazy_found.compute(scheduler="sync")
        assert list(lazy_found.columns) == list(table.columns) == ["ant", "bee", "cat"]
        assert same(table.to_numpy(), getattr(model, method)(frame))
    scores = BoostedClassifier(alpha=0.05).fit(frame, y == "ant").decision_function(lazy)
    assert isinstance(scores, dd.Series) and scores.compute(scheduler="sync").shape == (150,)


def test_frames_need_the_models_columns_only(fitted):
    model, frame, _ = fitted
    assert len(model.active_features_) < 12
    lazy = dd.from_pandas(frame[model.active_features_[::-1]], npartitions=2)
    assert same(model.predict_proba(lazy).compute(scheduler="sync"), model.predict_proba(frame))
    short = dd.from_pandas(frame.drop(columns=model.active_features_[:2]), npartitions=2)
    with pytest.raises(DataError, match=f"lacks 2 of the .*{model.active_features_[0]}"):
        model.predict(short)
    with pytest.raises(DataError, match="fitted on 12 features"):
        model.predict(da.zeros((5, 11)))


def test_lazy_predictions_of_tasks_and_of_an_empty_model(tasks, fitted):
    X, Y = tasks
    model = MultiTaskBoostedClassifier(alpha=0.02).fit(X, Y)
    lazy = da.from_array(X, chunks=(40, 12))
    for method in ("predict", "predict_proba", "decision_function"):
        assert same(getattr(model, method)(lazy).compute(scheduler="sync"), getattr(model, method)(X))
    assert model.score(lazy, da.from_array(Y, chunks=(40, 3))) == model.score(X, Y)
    _, frame, y = fitted
    empty = BoostedClassifier(alpha=10.0).fit(frame, y)
    found = empty.predict_proba(dd.from_pandas(frame, npartitions=2)).compute(scheduler="sync")
    assert same(found.to_numpy(), empty.predict_proba(frame))
    assert same(empty.predict_proba(da.from_array(frame.to_numpy(), chunks=50)).compute(), empty.predict_proba(frame))


def test_score_of_collections(fitted):
    model, frame, y = fitted
    weight = np.linspace(0.5, 2, len(y))
    expected = model.score(frame, y, weight)
    array = da.from_array(frame.to_numpy(), chunks=50)
    assert model.score(array, da.from_array(y, chunks=50), da.from_array(weight, chunks=50)) == expected
    assert model.score(dd.from_pandas(frame.assign(label=y), npartitions=3), "label") == model.score(frame, y)


def test_predictions_pickle_small(multiclass):
    """One task holds the model: a graph of many chunks does not repeat it."""
    X, y = multiclass
    model = BoostedClassifier(alpha=0.05).fit(X, y)
    few, many = (
        len(pickle.dumps(dict(model.predict(da.zeros((10_000, 12), chunks=(c, 12))).__dask_graph__())))
        for c in (10_000, 10)
    )
    assert many < few + 1000 * 2000
    assert len(pickle.dumps(model.model_)) * 1000 > 2 * many


# ---- Parquet -------------------------------------------------------------------------------------------------------


def test_parquet_predictions_read_the_models_columns_only(fitted, tmp_path):
    model, frame, _ = fitted
    assert len(model.active_features_) < 12
    narrow = frame[model.active_features_].assign(note="text")
    narrow.to_parquet(tmp_path / "narrow.parquet", index=False)
    assert same(model.predict_proba(ParquetData(tmp_path / "narrow.parquet")), model.predict_proba(frame))


def test_sparse_rows_in_parquet(multiclass, tmp_path):
    X, y = multiclass
    rows = [np.flatnonzero(row).astype(np.int32) for row in X]
    table = pa.table(
        {
            "indices": pa.array([r.tolist() for r in rows], pa.list_(pa.int32())),
            "values": pa.array([X[i, r].tolist() for i, r in enumerate(rows)], pa.list_(pa.float64())),
            "label": y.tolist(),
        }
    )
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=64, write_page_checksum=True)
    data = ParquetData(tmp_path, features=["indices", "values"], label="label", n_features=12)
    model = BoostedClassifier(standardize=False, alpha=0.05).fit(data)
    local = BoostedClassifier(standardize=False, alpha=0.05).fit(X, y)
    np.testing.assert_allclose(model.coef_, local.coef_, atol=1e-4)
    for method in ("predict", "predict_proba"):
        found = getattr(model, method)(data)
        assert isinstance(found, np.ndarray) and np.array_equal(found, getattr(model, method)(X))
    assert model.score(data) == model.score(X, y)
    with pytest.raises(UsageError, match="beside ParquetData"):
        model.score(data, y)


# ---- fits on a cluster ---------------------------------------------------------------------------------------------


def test_data_above_the_budget_streams_with_the_same_bits_and_says_so(tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80_000, 30)).astype(np.float32)
    names = [f"x{j}" for j in range(30)]
    table = pd.DataFrame(X, columns=names).assign(label=X[:, 0] + rng.normal(size=80_000) > 0.0)
    for part in range(2):
        table[40_000 * part : 40_000 * (part + 1)].to_parquet(tmp_path / f"part-{part}.parquet", index=False)
    data = ParquetData(tmp_path, features=names, label="label")
    with LocalEngine(1) as engine:
        plan = build_plan(data, task="classification", engine=engine)
    largest = max(item.nbytes_estimate for item in plan.items)
    assert largest < plan.nbytes_estimate
    held = BoostedClassifier(alpha="quick").fit(data)
    small = LocalEngine(1, memo=MemoStore(largest))
    assert small.memory_budget == largest
    monkeypatch.setattr("dboost.estimators.fitting.open_engine", lambda *args, **kwargs: small)
    with pytest.warns(DboostWarning, match=r"read again in every pass"):
        streamed = BoostedClassifier(alpha="quick").fit(data)
    assert same(streamed.coef_, held.coef_) and same(streamed.intercept_, held.intercept_)
