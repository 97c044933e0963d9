"""Sparse rows are known by the names of their columns, indices and values, where nothing says what the features are."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from dboost import BoostedClassifier, DataError, ParquetData
from dboost.errors import DboostWarning
from pipelines.cli import main

X = sparse.random(120, 10, 0.4, random_state=0, format="csr")
LABEL = np.where(X.toarray()[:, 0] > 0.1, "yes", "no")


def table(index="int32", value="float32", **more):
    pointer = pa.array(X.indptr.astype(np.int32))
    columns = {
        "indices": pa.ListArray.from_arrays(pointer, pa.array(X.indices).cast(index)),
        "values": pa.ListArray.from_arrays(pointer, pa.array(X.data).cast(value, safe=False)),
        "label": pa.array(LABEL),
    }
    return pa.table(columns | more)


def fit(folder, rows, **options):
    pq.write_table(rows, folder / "t.parquet", write_page_checksum=True)
    return BoostedClassifier(alpha=0.01).fit(ParquetData(folder / "t.parquet", label="label", **options))


@pytest.mark.parametrize("order", [["indices", "values", "label"], ["values", "label", "indices"]], ids="-".join)
def test_sparse_rows_need_no_features(order, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fit(tmp_path, table().select(order))
    assert found.coef_.tobytes() == fit(tmp_path, table(), features=("indices", "values")).coef_.tobytes()


def test_columns_beside_sparse_rows_are_named_as_unused(tmp_path):
    rows = table(price=pa.array(np.ones(120)), id=pa.array(range(120)))
    with pytest.warns(DboostWarning, match="'price', 'id' beside the sparse rows .* not used"):
        found = fit(tmp_path, rows)
    assert found.n_features_in_ == 10


@pytest.mark.parametrize("kinds", [{"index": "float32"}, {"value": "string"}], ids=str)
def test_lists_of_other_kinds_are_not_taken_for_sparse_rows(kinds, tmp_path):
    with pytest.raises(DataError, match="expected"):
        fit(tmp_path, table(**kinds))


def test_every_command_reads_sparse_rows_without_a_flag(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(table(), "t.parquet", write_page_checksum=True)
    local = ["--workers", "0"]
    assert main(["train", "t.parquet", "--label", "label", "--alpha", "0.01", "--out", "m", *local]) == 0
    assert main(["evaluate", "m", "t.parquet", "--label", "label", *local]) == 0
    # The label is still there, and nobody is asked to say that it is no feature.
    assert main(["predict", "m", "t.parquet", "--out", "p", *local]) == 0
    predicted = np.array(pq.read_table("p")["prediction"].to_pylist())
    assert np.mean(predicted == LABEL) > 0.9
