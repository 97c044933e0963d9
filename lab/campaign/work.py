"""The fit that is disturbed: its data, and the bits of its result.

Covers: data that every trial reads, one fit, its digest. Does not cover: clusters and faults.
"""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS, COLUMNS, CLASSES, ROW_GROUP = 60_000, 80, 5, 6_000
"""A fit of some seconds on two cores in ten partitions, most of which are passes over the data."""

DATA = "rows.parquet"


def write(path: Path) -> None:
    """Write the data of all trials, the same in every run: numbers of which the first ten columns tell the class."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, COLUMNS))
    signal = X[:, :10] @ rng.standard_normal((10, CLASSES))
    y = np.argmax(signal + 2.0 * rng.standard_normal((ROWS, CLASSES)), axis=1)
    table = pa.table({**{f"f{i}": X[:, i] for i in range(COLUMNS)}, "label": y})
    pq.write_table(table, path, row_group_size=ROW_GROUP, write_page_checksum=True)


def fit(path: Path, client: Any, began: threading.Event) -> str:
    """Fit to a tight tolerance on a client, or on threads without one; return the digest of the weights.

    `began`: is set after the first round.
    """
    import dboost

    model = dboost.BoostedClassifier(
        standardize=False, penalty="l1/l2", alpha=1e-4, tol=1e-10, client=client, callbacks=[lambda record: began.set()]
    )
    return weights_digest(model.fit(dboost.ParquetData(str(path), label="label")))


def weights_digest(model: Any) -> str:
    """The digest of all weights of a linear model, zeros among them."""
    weights = np.ascontiguousarray(model.coef_), np.ascontiguousarray(model.intercept_)
    return hashlib.sha256(b"".join(part.tobytes() for part in weights)).hexdigest()
