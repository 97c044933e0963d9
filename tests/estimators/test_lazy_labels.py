"""Lazy predictions on dask DataFrames, written as Parquet: every type of label, with and without known divisions."""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from dboost import BoostedClassifier, BoostedRegressor, MultiTaskBoostedClassifier

# Dask writes Parquet by a keyword that the newest pandas asks not to be used.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")

WORDS = np.array(["high", "low", "mid"], dtype=object)
# Labels from codes 0, 1, 2, as a user may hold them.
LABELS = {
    "object": lambda codes: pd.Series(WORDS[codes], dtype=object),
    "str": lambda codes: pd.Series(WORDS[codes]),
    "string[pyarrow]": lambda codes: pd.Series(WORDS[codes]).astype("string[pyarrow]"),
    "category": lambda codes: pd.Series(WORDS[codes]).astype("category"),
    "bytes": lambda codes: pd.Series(np.array([b"high", b"low", b"mid"], dtype=object)[codes]),
    "int64": lambda codes: pd.Series(codes.astype(np.int64)),
    "int8": lambda codes: pd.Series(codes.astype(np.int8)),
    "Int64": lambda codes: pd.Series(codes).astype("Int64"),
    "float64": lambda codes: pd.Series(codes.astype(float)),
    "bool": lambda codes: pd.Series(codes > 0),
}


@pytest.fixture
def frame():
    """Rows whose labels of the last partition are all the same, and codes."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 90)
    codes[60:] = 2
    X = rng.normal(size=(90, 4)) * 0.3
    X[np.arange(90), codes] += 2.0
    return pd.DataFrame(X, columns=list("abcd")), codes


def written(lazy, folder):
    """A lazy Series or DataFrame through Parquet and back."""
    (lazy.to_frame() if lazy.ndim == 1 else lazy).to_parquet(folder)
    return dd.read_parquet(folder).compute()


@pytest.mark.parametrize("divisions", ["known", "unknown"])
@pytest.mark.parametrize("kind", LABELS)
def test_lazy_predictions_have_the_type_they_announce_and_are_written(frame, tmp_path, kind, divisions):
    X, codes = frame
    y = LABELS[kind](codes)
    model = BoostedClassifier(alpha=0.02).fit(X, y)
    lazy = dd.from_pandas(X, npartitions=3)
    if divisions == "unknown":
        lazy = lazy.clear_divisions()
    # A partition may hold no rows at all.
    lazy = dd.concat([lazy, lazy.partitions[0].loc[lazy.partitions[0]["a"] > 99.0]])
    for what in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        expected = getattr(model, what)(X)
        found = getattr(model, what)(lazy)
        computed = found.compute()
        types = [found.dtype, computed.dtype] if computed.ndim == 1 else [list(found.dtypes), list(computed.dtypes)]
        assert types[0] == types[1]
        assert np.array_equal(computed.to_numpy(), expected)
        # the other two have the columns of probabilities
        if what in ("predict", "predict_proba"):
            back = written(found, tmp_path / what).to_numpy()
            assert np.array_equal(back.reshape(expected.shape), expected)


def test_lazy_predictions_of_numbers_and_tasks_are_written(frame, tmp_path):
    X, codes = frame
    lazy = dd.from_pandas(X, npartitions=3).clear_divisions()
    number = BoostedRegressor(alpha=0.02).fit(X, codes.astype(float))
    assert np.array_equal(written(number.predict(lazy), tmp_path / "number")["prediction"], number.predict(X))
    tasks = MultiTaskBoostedClassifier(alpha=0.02).fit(X, np.stack([codes == 0, codes == 1], axis=1))
    assert np.array_equal(written(tasks.predict(lazy), tmp_path / "tasks"), tasks.predict(X))


@pytest.mark.parametrize(("kind", "expected"), [("Int64", np.int64), ("int8", np.int8), ("boolean", np.bool_)])
def test_nullable_labels_keep_their_type(frame, kind, expected):
    X, codes = frame
    model = BoostedClassifier(alpha=0.02).fit(X, pd.Series(codes > 0).astype(kind))
    assert model.classes_.dtype == expected
