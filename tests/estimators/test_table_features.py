"""Rows of a table as named features: kinds of columns, missing and unseen values, kinds of tables, refusals."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer

import dboost
from dboost import DataError, TableFeatures, UsageError

COLUMNS = {
    "size": [1.5, 0.0, -2.0],
    "colour": ["red", "blue", "red"],
    "new": [True, False, True],
}
NAMES = ["size", "colour=blue", "colour=red", "new=false", "new=true"]
ROWS = [[1.5, 0, 1, 0, 1], [0, 1, 0, 1, 0], [-2, 0, 1, 0, 1]]


def _dask(columns):
    return pytest.importorskip("dask.dataframe").from_pandas(pd.DataFrame(columns), npartitions=2)


@pytest.mark.parametrize("table", [pa.table, pd.DataFrame, pl.DataFrame, _dask])
def test_every_kind_of_table_gives_the_same_rows(table):
    features = TableFeatures()
    found = features.fit_transform(table(COLUMNS))
    found = found.compute() if table is _dask else found
    assert found.format == "csr"
    assert found.dtype == np.float64
    assert found.toarray().tolist() == ROWS
    assert features.get_feature_names_out().tolist() == NAMES
    assert features.feature_names_in_.tolist() == list(COLUMNS)


def test_an_array_has_columns_by_place():
    features = TableFeatures().fit(np.array([[1.0, 2.0], [0.0, 3.0]]))
    assert features.get_feature_names_out().tolist() == ["x0", "x1"]
    assert not hasattr(features, "feature_names_in_")
    assert features.transform(np.array([[5.0, 0.0]])).toarray().tolist() == [[5.0, 0.0]]
    with pytest.raises(DataError, match="X has 3 features"):
        features.transform(np.ones((1, 3)))


def test_an_array_of_objects_keeps_the_kind_of_each_column():
    features = TableFeatures().fit(np.array([[1.0, "a"], [0.0, "b"]], dtype=object))
    assert features.get_feature_names_out().tolist() == ["x0", "x1=a", "x1=b"]


def test_columns_are_found_by_name_in_any_order_among_others():
    features = TableFeatures().fit(pa.table(COLUMNS))
    other = {"id": [9, 8, 7], **dict(reversed(COLUMNS.items()))}
    assert features.transform(pa.table(other)).toarray().tolist() == ROWS


def test_a_column_of_another_kind_is_refused():
    features = TableFeatures().fit(pa.table(COLUMNS))
    with pytest.raises(DataError, match="string; expected numbers; column 'size'"):
        features.transform(pa.table({**COLUMNS, "size": ["1", "2", "3"]}))


@pytest.mark.parametrize(
    "frame,words",
    [
        (pa.table({"u": [datetime.time(5, 0)]}), "time64.*no kind of feature.*column 'u'.*drop"),
        (pd.DataFrame({"u": pd.cut([1.0, 2.0, 3.0], 2)}), "interval.*no kind of feature.*as numbers or texts"),
        (pd.DataFrame({"u": [2**70, 1, 2]}), "beyond 64 bits.*column 'u'.*identifier"),
        (pl.DataFrame({"u": pl.Series([2**70, 1, 2], dtype=pl.Int128)}), "none that Arrow knows.*column 'u'"),
    ],
    ids=["hours", "intervals", "integers", "wide integers"],
)
def test_values_of_no_kind_are_refused_with_advice(frame, words):
    with pytest.raises(DataError, match=words):
        TableFeatures().fit(frame)


def test_categories_of_pandas_are_categories():
    frame = pd.DataFrame({"size": pd.Categorical([3, 1, 3])})
    features = TableFeatures()
    assert features.fit_transform(frame).toarray().tolist() == [[0, 1], [1, 0], [0, 1]]
    assert features.get_feature_names_out().tolist() == ["size=1", "size=3"]


def test_infinity_is_refused():
    with pytest.raises(DataError, match="infinity.*'a'"):
        TableFeatures().fit(pa.table({"a": [np.inf]}))


def test_an_unknown_policy_is_refused():
    with pytest.raises(UsageError, match="missing='drop'.*refuse, zero, indicator"):
        TableFeatures(missing="drop").fit(pa.table(COLUMNS))


def test_a_clone_is_unfitted_and_names_go_through_a_column_transformer():
    features = TableFeatures(missing="zero").fit(pa.table(COLUMNS))
    assert clone(features).missing == "zero"
    both = ColumnTransformer([("t", features, list(COLUMNS))]).fit(pd.DataFrame(COLUMNS))
    assert both.get_feature_names_out().tolist() == [f"t__{name}" for name in NAMES]


def test_integers_that_a_float_cannot_hold_are_refused():
    with pytest.raises(DataError, match=r"beyond 2\*\*53.*column 'key'|column 'key'.*beyond 2\*\*53"):
        dboost.TableFeatures().fit(pd.DataFrame({"key": [2**53 + 1, 3], "x": [1.0, 2.0]}))
