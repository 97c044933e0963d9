"""Small data sets and ways to write them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from dboost.data import build_plan
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


@pytest.fixture
def plan():
    """build_plan in this process."""

    def make(X, y=None, sample_weight=None, *, task="classification", **options):
        return build_plan(X, y, sample_weight, task=task, engine=InProcess(), **options)

    return make


def same_partitions(left, right):
    """Assert that two plans decode to the same bits."""
    assert left.rows == right.rows
    for a, b in zip(left.items, right.items, strict=True):
        one, two = a.load(), b.load()
        for name in ("indptr", "rows", "values", "y", "weight"):
            x, z = getattr(one, name), getattr(two, name)
            assert x.dtype == z.dtype, name
            np.testing.assert_array_equal(x, z, err_msg=name)


@pytest.fixture
def same():
    return same_partitions


def list_table(X, labels=None, *, large=False, value_type=None, **columns):
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


@pytest.fixture
def lists():
    return list_table


@pytest.fixture
def write():
    """Write tables as files of a folder; returns the folder."""

    def make(folder: Path, *tables: pa.Table, rows: int = 20, checksum: bool = True, **options) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for number, table in enumerate(tables):
            path = folder / f"f{number}.parquet"
            pq.write_table(table, path, row_group_size=rows, write_page_checksum=checksum, **options)
        return folder

    return make


def replace(table, name, values):
    """The table with other values in one column."""
    return table.set_column(table.column_names.index(name), name, values)


LISTS = {"features": ("indices", "values"), "label": "label"}


@pytest.fixture
def as_lists():
    """Keyword arguments of ParquetData for `lists`."""
    return dict(LISTS)
