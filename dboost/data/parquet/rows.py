"""Rows of Parquet files for a prediction: some of their features, block by block.

Covers: ``scan_features``, which reads no more columns than are asked for.
Does not cover: scores and classes (``dboost.model.fitted``), training (``parquet_plan``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dboost.data.manifest import Manifest
from dboost.data.parquet.input import ParquetData
from dboost.data.parquet.plan import plan_blocks
from dboost.data.parquet.read import Layout, inspect_file
from dboost.errors import DataError


def scan_features(
    data: ParquetData,
    *,
    active: NDArray[np.int64],
    n_features: int,
    names: Sequence[str] | None = None,
    dense: bool = False,
) -> Iterator[Any]:
    """Yield the rows of a data set, in order, as CSR matrices of some of the features.

    `data`: Label and weight columns need not be there.
    `active`: int64 array, shape (a,). Features wanted, ascending.
    `n_features`: Features of the model. Rows in lists must not reach beyond; a fixed-size list has that width.
    `names`: Sequence of str, shape (a,). Names of the features wanted. Numeric columns are chosen by them (without
    them, by position), and the vocabulary of a manifest must agree.
    `dense`: numeric columns come as arrays, by column.
    Yields ``scipy.sparse.csr_array`` of float64, shape (rows of a block, a).
    Raises DataError: A column is missing, of another type or width, the vocabulary is another one, or the values are
    not finite.
    """
    data, wanted = data.opened(), np.asarray(active, dtype=np.int64)

    def select(layout: Layout, manifest: Manifest | None) -> Layout:
        if layout.kind == "columns":
            if names is not None:
                columns = tuple(names)
            else:
                _check_width(layout.n_features, n_features, data)
                columns = tuple(layout.columns[j] for j in wanted.tolist())
            return replace(layout, columns=columns, n_features=len(columns))
        if layout.kind == "fixed" or manifest is not None:
            _check_width(layout.n_features, n_features, data)
        if manifest is not None and names is not None:
            _check_vocabulary(manifest, wanted, names)
        return replace(layout, n_features=n_features)

    if wanted.size == 0:
        # A model without features still predicts every row.
        for path, name in data.files():
            yield sparse.csr_array((sum(inspect_file((path, name)).rows), 0), dtype=np.float64)
        return
    given = data
    if names is not None and data.features is None and data.resolve()[1] is None:
        # Other columns, text for example, are then nobody's business.
        given = ParquetData(data.path, features=list(names))
    blocks, _, _ = plan_blocks(given, engine=None, n_features=None, select=select)
    for block in blocks:
        read, width = block.read(dense=dense), block.layout.n_features
        if block.layout.kind == "columns":
            yield read.batch(width, block.layout.names)
        else:
            yield read.csc(width)[:, wanted].tocsr()


def _check_width(found: int, expected: int, data: ParquetData) -> None:
    if found != expected:
        raise DataError(f"{data!r} has {found} features, the model was fitted on {expected}")


def _check_vocabulary(manifest: Manifest, active: NDArray[np.int64], names: Sequence[str]) -> None:
    """The features of the model mean the same in the manifest."""
    terms = manifest.feature_names()
    if terms is None:
        return
    for j, name in zip(active.tolist(), names, strict=True):
        if terms[j] != name:
            raise DataError(
                f"feature {j} is another term than the one that the model was fitted on",
                file=manifest.root,
                hint="prepare the data with the vocabulary of the model, as another split of its folder",
            )
