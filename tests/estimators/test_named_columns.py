"""Labels, weights and folds that are columns of a table: by name for every kind, and left out in predictions."""

from __future__ import annotations

import warnings
from dataclasses import replace

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array

import dboost
from dboost import BoostedClassifier, DataError, OneVsRestBoostedClassifier, UsageError

FEATURES = ["a", "b", "c"]


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    label = np.array(["high", "low", "mid"], dtype=object)[np.digitize(X[:, 0] - X[:, 1], [-0.5, 0.5])]
    weight = rng.integers(0, 3, 150).astype(float)
    # Neither comes last: a model that took columns by place would show it.
    return pd.DataFrame({"label": label, "a": X[:, 0], "w": weight, "b": X[:, 1], "c": X[:, 2]})


def to_polars(frame):
    return pytest.importorskip("polars").from_pandas(frame)


TABLES = {"pandas": lambda frame: frame, "arrow": pa.Table.from_pandas, "polars": to_polars}


@pytest.mark.parametrize("kind", TABLES)
def test_labels_and_weights_are_named_and_are_no_features_in_a_fit_and_in_predictions(frame, kind, tmp_path):
    expected = BoostedClassifier(alpha=0.02).fit(frame[FEATURES], frame["label"], frame["w"])
    table = TABLES[kind](frame)
    model = BoostedClassifier(alpha=0.02).fit(table, "label", sample_weight="w")
    assert model.feature_names_in_.tolist() == FEATURES
    assert np.array_equal(model.coef_, expected.coef_)
    assert model.score(table, "label", "w") == expected.score(frame[FEATURES], frame["label"], frame["w"])
    labels = expected.predict(frame[FEATURES]).tolist()
    model.save(tmp_path / "model")
    for each in (model, dboost.load_model(tmp_path / "model")):
        assert each.predict(table).tolist() == each.predict(frame.drop(columns="label")).tolist() == labels
        assert each.predict_proba(table).shape == (150, 3)
    with pytest.raises(ValueError, match="unseen at fit time:\n- new"):
        model.predict(frame.assign(new=1.0))
    for y, weight, said in (
        ("lable", None, "y='lable' names no column of X; did you mean 'label'"),
        ("label", "weights", "sample_weight='weights' names no column of X; give weights"),
    ):
        with pytest.raises(UsageError, match=said):
            BoostedClassifier(alpha="quick").fit(table, y, weight)


@pytest.mark.parametrize("export", ["to_batches", "to_reader"])
def test_what_exports_arrow_has_names_too(frame, export):
    """By place, the columns of a batch in another order would be taken for one another."""
    table = pa.Table.from_pandas(frame, preserve_index=False)

    def exported(some):
        found = getattr(some, export)()
        return found[0] if isinstance(found, list) else found

    model = BoostedClassifier(alpha=0.02).fit(exported(table), "label", "w")
    expected = model.predict(frame).tolist()
    assert model.feature_names_in_.tolist() == FEATURES and model.predict(exported(table)).tolist() == expected
    assert model.score(exported(table), "label", "w") == model.score(frame, "label", "w")
    with pytest.raises(ValueError, match="must be in the same order"):
        model.predict(exported(table.select(["c", "b", "a"])))
    read = dboost.Features().fit(frame[FEATURES])
    found = read.transform(exported(table.select(["c", "a", "b"])))
    assert np.array_equal(found.toarray(), read.transform(frame[FEATURES]).toarray())


@pytest.mark.parametrize(
    "model", [BoostedClassifier(alpha=0.02), dboost.BoostedClassifier(alpha=0.02, hypotheses=dboost.Stumps())]
)
def test_no_rows_have_no_predictions_in_any_form(frame, model):
    model.fit(frame[FEATURES], frame["label"])
    none = frame[FEATURES].iloc[:0]
    by_place = none.to_numpy()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        for empty in (none, none.astype(object), pa.Table.from_pandas(none), by_place, csr_array(by_place)):
            assert model.predict(empty).shape == (0,) and model.predict_proba(empty).shape == (0, 3)
            with pytest.raises(DataError, match="nothing to score: X has no rows"):
                model.score(empty, [])


def test_a_manifest_without_names_leaves_out_nothing(frame):
    model = BoostedClassifier(alpha=0.02).fit(frame, "label", sample_weight="w")
    for data in (None, 3, {}, {"named": [1]}, {"named": {"y": 3, "w": [None]}}):
        model.model_ = replace(model.model_, manifest={**model.model_.manifest, "data": data})
        assert len(model.predict(frame[FEATURES])) == len(frame)
        with pytest.raises(ValueError, match="unseen at fit time"):
            model.predict(frame)


def test_a_model_of_files_or_a_dask_frame_predicts_the_table_in_memory(frame, tmp_path):
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "rows.parquet", write_page_checksum=True)
    of_files = BoostedClassifier(alpha=0.02).fit(
        dboost.ParquetData(tmp_path / "rows.parquet", label="label", weight="w")
    )
    lazy = dd.from_pandas(frame, npartitions=2)
    of_dask = BoostedClassifier(alpha=0.02).fit(lazy, "label", "w")
    assert of_files.predict(frame).tolist() == of_dask.predict(frame).tolist()
    assert of_dask.score(lazy, "label", "w") == of_dask.score(frame, "label", "w")


def test_every_estimator_leaves_out_what_it_was_given_by_name(frame):
    for estimator in (
        dboost.ShareBoostClassifier(max_rounds=2),
        OneVsRestBoostedClassifier(dboost.ShareBoostClassifier(max_rounds=2, loss="log")),
    ):
        estimator.fit(frame, "label", "w")
        expected = estimator.predict(frame[FEATURES])
        assert estimator.predict(frame).tolist() == expected.tolist()
        assert list(estimator.staged_predict(frame))[-1].tolist() == expected.tolist()


def test_a_name_that_two_columns_or_none_have_is_refused(frame):
    with pytest.raises(UsageError, match="sample_weight='w' names no column of X"):
        BoostedClassifier(alpha="quick").fit(frame[FEATURES].to_numpy(), frame["label"], "w")
    twice = pd.DataFrame(np.ones((4, 3)), columns=["a", "b", "b"])
    with pytest.raises(DataError, match="two columns have the same name; column 'b'"):
        dboost.BoostedClassifier().fit(twice, "b")
    model = BoostedClassifier(alpha="quick").fit(pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": 1.0}), [0, 1, 1])
    with pytest.raises(DataError, match="two columns have the same name; column 'b'"):
        model.predict(twice)


def test_a_polars_query_that_has_not_been_run_is_refused_with_the_repair(frame):
    lazy = to_polars(frame).lazy()
    model = BoostedClassifier(alpha="quick").fit(frame[FEATURES], frame["label"])
    for call in (
        lambda: BoostedClassifier(alpha="quick").fit(lazy, "label"),
        lambda: BoostedClassifier(alpha="quick").fit(lazy, frame["label"]),
        lambda: OneVsRestBoostedClassifier().fit(lazy, "label"),
        lambda: model.predict(lazy),
        lambda: model.score(lazy, "label"),
    ):
        with pytest.raises(UsageError, match=r"polars LazyFrame, which holds no rows yet; use X.collect\(\)"):
            call()


@pytest.mark.parametrize("cast", ["String", "Categorical", "Enum"])
def test_polars_labels_of_every_type_of_text(frame, cast):
    pl = pytest.importorskip("polars")
    kind = pl.Enum(["high", "low", "mid"]) if cast == "Enum" else getattr(pl, cast)
    table = to_polars(frame).with_columns(pl.col("label").cast(kind))
    model = BoostedClassifier(alpha=0.02).fit(table, "label", "w")
    assert model.classes_.tolist() == ["high", "low", "mid"]
    assert model.score(table, "label") > 0.8


@pytest.mark.parametrize("model", [dboost.MultiTaskBoostedClassifier, dboost.MultiTaskBoostedRegressor])
def test_several_labels_are_matched_by_their_names(frame, model, tmp_path):
    signs = pd.DataFrame({"up": (frame["a"] > 0.2) * 1, "down": (frame["b"] > -0.4) * 1, "odd": (frame["c"] > 0) * 1})
    fitted = model(alpha=0.02).fit(frame[FEATURES], signs)
    expected = fitted.score(frame[FEATURES], signs)
    turned = ["odd", "up", "down"]
    pq.write_table(pa.Table.from_pandas(frame[FEATURES].join(signs)), tmp_path / "t.parquet")
    data = dboost.ParquetData(tmp_path / "t.parquet", features=FEATURES, label=turned)
    assert fitted.score(data) == pytest.approx(expected) and data.label == turned
    for held in (*TABLES.values(), lambda frame: dd.from_pandas(frame, npartitions=2)):
        X = held(frame[FEATURES])
        assert fitted.score(X, held(signs[turned])) == pytest.approx(expected)
        with pytest.raises(dboost.DataError, match="given in the place of 'up'.*column 'down'"):
            fitted.score(X, held(signs[turned].set_axis(["down", "other", "up"], axis=1)))
        stop = dboost.EarlyStopping(X, held(signs[turned]), scoring=lambda one, X, y: float(np.asarray(y)[0, 0]))
        stop.after_round({"round": 1}, fitted)
        assert stop.scores_ == [signs["up"][0]]
    # labels of other names, and those of arrays, are taken as they come
    other = signs.set_axis(["x", "y", "z"], axis=1)
    assert fitted.score(frame[FEATURES], other) == fitted.score(frame[FEATURES], signs.to_numpy()) == expected
