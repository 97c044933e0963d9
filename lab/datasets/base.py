"""What every data set of the benchmarks has in common.

Covers: the value a loader returns, where files are looked for, how a compressed file is opened, tables of numbers,
and tf-idf of text.
Does not cover: the format of any one set (one file each beside this one), nor Parquet data sets made by ``prepare``.
"""

from __future__ import annotations

import gzip
import lzma
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from dboost.errors import DataError
from dboost.files.paths import local_path

HOME_VARIABLE = "DBOOST_DATA_HOME"


@dataclass(frozen=True)
class Dataset:
    """A data set in memory, in the split of its source."""

    name: str
    X: Any
    # Binary: int8 (m,) of -1 and +1. Multiclass: labels (m,), integers or strings. Multitask: int8 (m, k), +1 where the
    # label applies and -1 where it does not. Regression: float64 (m,).
    y: NDArray[Any]
    X_test: Any
    y_test: NDArray[Any]
    feature_names: NDArray[np.str_]
    # ``"binary"``, ``"multiclass"``, ``"multitask"`` or ``"regression"``.
    task: str
    # Names of the tasks of a multitask set.
    label_names: NDArray[np.str_] | None = None


def data_home(home: str | Path | None = None) -> Path:
    """Return the folder of the public data sets.

    `home`: the folder; without it the environment variable ``DBOOST_DATA_HOME`` is read.
    """
    found = str(home) if home is not None else os.environ.get(HOME_VARIABLE, "")
    hint = f"set {HOME_VARIABLE} to the folder that holds the public data sets"
    if not found:
        raise DataError(f"no folder of data sets: {HOME_VARIABLE} is not set", hint=hint)
    folder = local_path(found, HOME_VARIABLE if home is None else "home")
    if not folder.is_dir():
        raise DataError(f"no folder of data sets at {found}", hint=hint)
    return folder


def data_file(*parts: str, home: str | Path | None = None) -> Path:
    """Return the path of one file below the data home.

    A file may be there as named, or compressed with the ending ``.xz`` or ``.gz``.
    """
    plain = data_home(home).joinpath(*parts)
    for candidate in (plain, plain.with_name(plain.name + ".xz"), plain.with_name(plain.name + ".gz")):
        if candidate.is_file():
            return candidate
    raise DataError(
        "data file not found, plain or with .xz or .gz",
        file=str(plain),
        hint=f"check that {HOME_VARIABLE} names the folder that holds '{parts[0]}'",
    )


def read_bytes(path: Path) -> bytes:
    """Return the content of a file, unpacked when its name ends in ``.xz`` or ``.gz``."""
    try:
        if path.suffix == ".xz":
            return lzma.decompress(path.read_bytes())
        if path.suffix == ".gz":
            return gzip.decompress(path.read_bytes())
    except (lzma.LZMAError, EOFError, OSError) as error:
        raise DataError(f"cannot unpack: {error}", file=str(path), hint="fetch the file again") from error
    return path.read_bytes()


def open_text(path: Path, encoding: str = "utf-8") -> TextIO:
    """Open a text file for reading, unpacked on the fly."""
    if path.suffix == ".xz":
        return cast(TextIO, lzma.open(path, "rt", encoding=encoding))
    if path.suffix == ".gz":
        return cast(TextIO, gzip.open(path, "rt", encoding=encoding))
    return path.open(encoding=encoding)


def numeric_table(
    path: Path, n_features: int, *, target: str = "label", place: int = -1, delimiter: str | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the columns of a text file of numbers: the features, and the target.

    `n_features`: columns beside the target. `target`: what the target is, for the message. `place`: its column, -1 for
    the last one. `delimiter`: what stands between two numbers; without it white space.
    """
    with open_text(path) as file:
        try:
            table: NDArray[Any] = np.loadtxt(file, dtype=np.float64, delimiter=delimiter, ndmin=2)
        except ValueError as error:
            raise DataError(f"not a table of numbers: {error}", file=str(path)) from error
    if table.shape[1] != n_features + 1:
        raise DataError(f"{table.shape[1]} columns, expected {n_features} and the {target}", file=str(path))
    return np.ascontiguousarray(np.delete(table, place, axis=1)), table[:, place].copy()


def tfidf(
    train: Sequence[str], test: Sequence[str], *, min_df: int = 5, max_features: int | None = None
) -> tuple[Any, Any, NDArray[np.str_]]:
    """Return unit-length tf-idf rows of two lists of documents, with the vocabulary of the first.

    `min_df`: A term is kept when it occurs in this many training documents. `max_features`: keep the most frequent
    terms only.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=min_df, max_features=max_features, dtype=np.float64)
    X = vectorizer.fit_transform(train).tocsr()
    # no test documents are a set of none, which the vectoriser refuses
    X_test = vectorizer.transform(test).tocsr() if len(test) else X[:0]
    return X, X_test, np.asarray(vectorizer.get_feature_names_out(), dtype=np.str_)


def synthetic_documents(seed: int, n_documents: int, topics: Sequence[str]) -> tuple[list[str], NDArray[np.str_]]:
    """Return documents of made-up words and their topics.

    Words follow Zipf's law; each topic has eight words of its own that it uses three times as often as chance.

    Every topic occurs.
    """
    rng = np.random.default_rng(seed)
    n_words = 60 + 8 * len(topics)
    words = np.array([f"w{i:03d}x" for i in range(n_words)])
    base = 1.0 / np.arange(1, n_words + 1)
    codes = np.concatenate([np.arange(len(topics)), rng.integers(0, len(topics), n_documents - len(topics))])
    documents = []
    for code in codes:
        share = base.copy()
        share[60 + 8 * code : 68 + 8 * code] *= 12.0
        drawn = rng.choice(words, size=int(rng.integers(15, 40)), p=share / share.sum())
        documents.append(" ".join(drawn))
    return documents, np.asarray(topics, dtype=np.str_)[codes]
