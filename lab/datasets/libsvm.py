"""Sparse binary sets in the formats of LIBSVM and Vowpal Wabbit: a9a, w8a, ijcnn1, reuters, rcv1.

Covers: ``load`` by name, both text formats, the synthetic twin. Does not cover: multiclass LIBSVM files.

Sources: J. Platt 1998 (a9a from UCI Adult, w8a); D. Prokhorov, IJCNN 2001 challenge (ijcnn1); Bordes, Ertekin, Weston,
Bottou, JMLR 6, 2005 (reuters, the task money-fx); Lewis, Yang, Rose, Li, JMLR 5, 2004 (rcv1, a short extract).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import DataError, UsageError
from lab.datasets.base import Dataset, data_file, open_text


@dataclass(frozen=True)
class Source:
    """Where a set lies and how it is written."""

    folder: str
    train: str
    # Without a test file every fifth row, in order, is held out.
    test: str | None
    n_features: int
    # 0 or 1, the index of the first column.
    first_index: int


SOURCES = {
    "a9a": Source("a9a", "adult.trn", "adult.tst", 123, 0),
    "w8a": Source("w8a", "w8a", None, 300, 1),
    "ijcnn1": Source("ijcnn1", "ijcnn1.trn", "ijcnn1.tst", 22, 1),
    "reuters_lasvm": Source("reuters_lasvm", "reuters.trn", "reuters.tst", 8315, 1),
    "rcv1_vw_small": Source("rcv1_vw_small", "rcv1_small.dat", "rcv1_small_test.data", 47_152, 0),
}


def parse_sparse(lines: Iterable[str], n_features: int, first_index: int, file: str) -> tuple[Any, NDArray[np.int8]]:
    """Read ``label index:value ...`` lines, with or without the ``|f`` of Vowpal Wabbit.

    `first_index`: index of the first column in the file. `file`: named in errors.
    """
    from scipy.sparse import csr_matrix

    indptr, indices, values, labels = [0], [], [], []
    for number, line in enumerate(lines, start=1):
        tokens = line.replace("|f", " ").split()
        if not tokens:
            continue
        try:
            labels.append(int(float(tokens[0])))
            for token in tokens[1:]:
                index, value = token.split(":")
                indices.append(int(index) - first_index)
                values.append(float(value))
        except ValueError as error:
            raise DataError(f"line {number} is not 'label index:value ...': {error}", file=file) from error
        if labels[-1] not in (-1, 1):
            raise DataError(f"line {number} has the label {tokens[0]}, expected -1 or 1", file=file)
        indptr.append(len(indices))
    columns = np.asarray(indices, dtype=np.int64)
    if columns.size and (columns.min() < 0 or columns.max() >= n_features):
        found = (int(columns.min()) + first_index, int(columns.max()) + first_index)
        raise DataError(
            f"indices {found[0]} to {found[1]}, expected {first_index} to {n_features - 1 + first_index}", file=file
        )
    X = csr_matrix((np.asarray(values), columns, np.asarray(indptr)), shape=(len(labels), n_features))
    X.sort_indices()
    return X, np.asarray(labels, dtype=np.int8)


def load(name: str = "a9a") -> Dataset:
    """Load one of the sets in `SOURCES`."""
    if name not in SOURCES:
        raise UsageError(f"unknown set {name!r}; expected one of {', '.join(sorted(SOURCES))}")
    source = SOURCES[name]

    def read(file: str) -> tuple[Any, NDArray[np.int8]]:
        path = data_file(source.folder, file)
        with open_text(path) as lines:
            return parse_sparse(lines, source.n_features, source.first_index, str(path))

    X, y = read(source.train)
    if source.test is None:
        held_out = np.arange(X.shape[0]) % 5 == 4
        X, y, X_test, y_test = X[~held_out], y[~held_out], X[held_out], y[held_out]
    else:
        X_test, y_test = read(source.test)
    names = np.asarray([f"column {j + source.first_index}" for j in range(source.n_features)], dtype=np.str_)
    return Dataset(name, X, y, X_test, y_test, names, "binary")


def synthetic(seed: int = 0) -> Dataset:
    """Return a tiny twin: 250 + 100 rows of 40 zero-one columns, five of which matter."""
    from scipy.sparse import csr_matrix

    rng = np.random.default_rng(seed)
    X = csr_matrix((rng.random((350, 40)) < 0.15).astype(np.float64))
    w = np.zeros(40)
    w[[1, 5, 9, 20, 33]] = (2.0, -2.0, 1.5, -1.5, 1.0)
    y = np.where(X @ w + 0.5 * rng.standard_normal(350) > 0, 1, -1).astype(np.int8)
    names = np.asarray([f"column {j}" for j in range(40)], dtype=np.str_)
    return Dataset("libsvm-synthetic", X[:250], y[:250], X[250:], y[250:], names, "binary")
