"""Small data sets and ways to write them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from dboost.data import ParquetData, build_plan
from dboost.data.prepared.mapper import InProcess


@pytest.fixture
def small():
    """60 rows, 7 features (one without values), three string classes, weights with zeros."""
    rng = np.random.default_rng(3)
    X = sparse.random(60, 7, density=0.4, random_state=3, format="csr")
    X = sparse.csr_matrix(X.multiply(np.array([1, 1, 1, 0, 1, 1, 1.0])))
    X.eliminate_zeros()
    y = np.array(["ant", "bee", "cat"], dtype=object)[rng.integers(0, 3, 60)]
    weight = rng.random(60)
    weight[[4, 31, 32]] = 0
    return SimpleNamespace(X=X, y=y, weight=weight)


def plan(X, y=None, sample_weight=None, *, task="classification", **options):
    """build_plan in this process."""
    return build_plan(X, y, sample_weight, task=task, engine=InProcess(), **options)


def same(left, right):
    """Assert that two plans decode to the same bits."""
    assert left.rows == right.rows
    for a, b in zip(left.items, right.items, strict=True):
        same_arrays(a.load(), b.load())


def same_arrays(one, two):
    """Assert that two partitions hold the same bits."""
    for name in ("indptr", "rows", "values", "y", "weight"):
        x, z = getattr(one, name), getattr(two, name)
        assert x.dtype == z.dtype, name
        np.testing.assert_array_equal(x, z, err_msg=name)


def lists(X, labels=None, *, large=False, value_type=None, **columns):
    """A table with the two list columns of a CSR matrix."""
    kind = pa.LargeListArray if large else pa.ListArray
    offsets = pa.array(X.indptr, pa.int64() if large else pa.int32())
    data = {
        "indices": kind.from_arrays(offsets, pa.array(X.indices, pa.int32())),
        "values": kind.from_arrays(offsets, pa.array(X.data, value_type)),
    }
    if labels is not None:
        data["label"] = labels if isinstance(labels, pa.Array) else pa.array(labels)
    return pa.table({**data, **columns})


def listed(path, **options):
    """Files of `lists`, by default of as many columns as `small` has."""
    return ParquetData(path, **{"features": ("indices", "values"), "label": "label", "n_features": 7, **options})


def write(folder: Path, *tables: pa.Table, rows: int = 20, checksum: bool = True, **options) -> Path:
    """Write tables as files of a folder; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, table in enumerate(tables):
        path = folder / f"f{number}.parquet"
        pq.write_table(table, path, row_group_size=rows, write_page_checksum=checksum, **options)
    return folder


def replace(table, name, values):
    """The table with other values in one column."""
    return table.set_column(table.column_names.index(name), name, values)
