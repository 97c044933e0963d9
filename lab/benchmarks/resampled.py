"""The arXiv texts drawn again with replacement: as many documents as a benchmark wants.

Covers: titles (172 categories) and abstracts (37 archives) as tf-idf, rows drawn from them in memory, and as Parquet in
the form that ``dboost prepare`` writes.
Does not cover: measuring anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.datasets import arxiv
from lab.datasets.base import tfidf

GROUP_ROWS = 40_000
FILE_ROWS = 5 * GROUP_ROWS


@dataclass(frozen=True)
class Corpus:
    """Documents in memory.

    Parameters
    ----------
    X : csr_matrix of float32, shape (m, n)
        Rows of length 1.
    y : int32 array, shape (m,)
        Class codes, the largest class first.
    """

    X: Any
    y: NDArray[np.int32]

    @property
    def stored(self) -> int:
        """Bytes of the rows in memory: values, columns, offsets, labels."""
        return int(self.X.data.nbytes + self.X.indices.nbytes + self.X.indptr.nbytes + self.y.nbytes)

    def drawn(self, rows: int, seed: int = 0) -> Corpus:
        """That many documents: the first ones of a random order, or drawn with replacement where there are fewer."""
        m = self.X.shape[0]
        if rows > m:
            return self.again(rows, seed)
        chosen = np.sort(np.random.default_rng(seed).permutation(m)[:rows])
        return Corpus(self.X[chosen], self.y[chosen])

    def again(self, rows: int, seed: int) -> Corpus:
        """That many documents, drawn with replacement."""
        chosen = np.random.default_rng(seed).integers(0, self.X.shape[0], rows)
        return Corpus(self.X[chosen], self.y[chosen])

    def with_classes(self, count: int) -> Corpus:
        """The same documents with at most that many classes: the smaller ones are put together as the last."""
        return Corpus(self.X, np.minimum(self.y, count - 1).astype(np.int32))

    def with_features(self, count: int) -> Corpus:
        """The same documents with about that many features: the most frequent terms, or hashed pairs beside all."""
        n = self.X.shape[1]
        if count <= n:
            frequent = np.argsort(-np.bincount(self.X.indices, minlength=n), kind="stable")[:count]
            return Corpus(self.X[:, np.sort(frequent)].tocsr(), self.y)
        return Corpus(_with_pairs(self.X, count), self.y)


def _with_pairs(X: Any, count: int) -> Any:
    """The rows of X beside pairs of terms that are neighbours in the vocabulary's order, hashed into new columns."""
    from scipy import sparse

    n = X.shape[1]
    indptr, indices = X.indptr, X.indices.astype(np.int64)
    inside = np.ones(indices.shape[0], dtype=bool)
    inside[indptr[1:][np.diff(indptr) > 0] - 1] = False
    first = np.flatnonzero(inside)
    pairs = n + (indices[first] * 1_000_003 + indices[first + 1]) % (count - n)
    of_row = np.repeat(np.arange(X.shape[0]), np.diff(indptr))[first]
    shape = (X.shape[0], count)
    extra = sparse.csr_matrix((X.data[first], (of_row, pairs)), shape=shape, dtype=np.float32)
    wide = sparse.csr_matrix((X.data, X.indices, X.indptr), shape=shape)
    return (wide + extra).tocsr().astype(np.float32)


def load(what: str, limit: int | None = None) -> Corpus:
    """Read titles or abstracts.

    Parameters
    ----------
    what : {"titles", "abstracts"}
    limit : int, optional
        Only so many documents, the first of the file.

    Raises
    ------
    DataError
        When the files are not there.
    """
    if what == "titles":
        texts, labels = arxiv.titles()
        texts, labels = texts[:limit], labels[:limit]
        X = tfidf(texts, [], min_df=5)[0]
    else:
        data = arxiv.load(n_documents=60_000 if limit is None else limit, n_test=0)
        X, labels = data.X, np.asarray(data.y)
    names, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    place = np.empty(names.shape[0], np.int32)
    place[np.argsort(-counts, kind="stable")] = np.arange(names.shape[0], dtype=np.int32)
    X = X.astype(np.float32)
    X.indices = X.indices.astype(np.int32)
    return Corpus(X, place[codes])


def write(corpus: Corpus, folder: Path, rows: int, seed: int = 0) -> int:
    """Write that many documents, drawn with replacement, as Parquet files; return their stored values."""
    stored = 0
    for number, start in enumerate(range(0, rows, FILE_ROWS)):
        part = corpus.again(min(FILE_ROWS, rows - start), seed + number)
        stored += int(part.X.nnz)
        _write_file(part, folder, number)
    return stored


def write_all(corpus: Corpus, folder: Path) -> None:
    """Write the documents as they are, as Parquet files."""
    for number, start in enumerate(range(0, corpus.X.shape[0], FILE_ROWS)):
        rows = slice(start, start + FILE_ROWS)
        _write_file(Corpus(corpus.X[rows], corpus.y[rows]), folder, number)


def _write_file(part: Corpus, folder: Path, number: int) -> None:
    """One file as ``dboost prepare`` writes it: two list columns and the label, page checksums, zstd."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    offsets = pa.array(part.X.indptr.astype(np.int32))
    columns = {
        "indices": pa.ListArray.from_arrays(offsets, pa.array(part.X.indices)),
        "values": pa.ListArray.from_arrays(offsets, pa.array(part.X.data)),
        "label": pa.array(part.y),
    }
    pq.write_table(
        pa.table(columns),
        folder / f"part-{number:05d}.parquet",
        row_group_size=GROUP_ROWS,
        compression="zstd",
        use_dictionary=["label"],
        write_page_checksum=True,
    )
