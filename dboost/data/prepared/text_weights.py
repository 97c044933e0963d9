"""Rows of weights from counts: tf-idf in the arithmetic of scikit-learn, bit for bit.

Covers: ``Weights``, the idf, rows for counted documents, hashed terms.
Does not cover: counting (``text_terms``).

scikit-learn divides a row by a norm whose squares it adds in the order in which the row lies in memory: in
``fit_transform`` the order in which the corpus first has the terms, in ``transform`` the order of the features. The
two may differ in the last bit, and both are followed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dboost.compiled.text.counting import Counts
from dboost.compiled.text.murmur import murmur3
from dboost.compiled.text.weighing import L1, L2, NO_NORM, count_kept, rebucket, weigh
from dboost.compiled.vectors.new_arrays import new_arrays
from dboost.data.prepared.mapper import Mapper
from dboost.data.prepared.text_terms import Counted
from dboost.errors import UsageError

NORMS = {"l2": L2, "l1": L1, None: NO_NORM}
# Pairs of term and document that are turned into columns at once: they and their rows stay in the second cache.
_BLOCK_PAIRS = 1 << 17
# ... but at least so many for each column, of which every one is gone through twice.
_PAIRS_A_COLUMN = 2
_MOST_32 = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Weights:
    """What counts become."""

    norm: str | None = "l2"  # What each row is scaled to.
    # use_idf, smooth_idf, sublinear_tf, binary: As in ``sklearn.feature_extraction.text.TfidfVectorizer``.
    use_idf: bool = True
    smooth_idf: bool = True
    sublinear_tf: bool = False
    binary: bool = False
    dtype: Any = np.float64  # float64 or float32.

    def __post_init__(self) -> None:
        if self.norm not in NORMS:
            raise UsageError(f"norm={self.norm!r}", hint="use 'l2', 'l1' or None")
        if np.dtype(self.dtype) not in (np.float64, np.float32):
            raise UsageError(f"dtype={self.dtype!r}", hint="use numpy.float64 or numpy.float32")

    def idf(self, df: NDArray[np.int64], n_documents: int) -> NDArray[Any]:
        """ln(n / df) + 1, with 1 added to n and df when smooth; ones without idf."""
        if not self.use_idf:
            return np.ones(df.shape[0], self.dtype)
        shown = df.astype(self.dtype)
        shown += float(self.smooth_idf)
        idf = np.full_like(shown, n_documents + int(self.smooth_idf))
        idf /= shown
        np.log(idf, out=idf)
        idf += 1.0
        return idf

    def tf(self, largest: int) -> NDArray[Any]:
        """What counts up to `largest` become: a table never larger than 8/3 of the longest document."""
        counts = np.arange(largest + 1, dtype=self.dtype)
        if self.binary:
            counts[1:] = 1
        if self.sublinear_tf:
            # NumPy's own logarithm, of whole arrays, because others differ from it in the last bit.
            counts[1:] = np.log(counts[1:])
            counts[1:] += 1.0
        return counts


@dataclass(frozen=True)
class Columns:
    """Which features the terms of a piece are, and in which order they are added."""

    column: NDArray[np.int32]  # (terms,): Column of each term, or -1.
    # (columns,): Feature of each column; columns are in the order in which squares are added.
    features: NDArray[np.int32]
    order: NDArray[np.int32]  # (columns,): Columns in the order of their features.


def first_seen(chosen: NDArray[np.int64], n_terms: int) -> Columns:
    """Columns in the order in which the corpus first has their terms, of the term of each feature."""
    order_of_terms = np.argsort(chosen, kind="stable")
    column = np.full(n_terms, -1, np.int32)
    column[chosen[order_of_terms]] = np.arange(chosen.shape[0], dtype=np.int32)
    order = column[chosen]
    return Columns(column, order_of_terms.astype(np.int32), order)


def in_order_of_features(feature: NDArray[np.int64], kept: NDArray[np.int64]) -> Columns:
    """Columns in the order of their features, of the feature of each term and the terms that have one, sorted by it."""
    column = np.full(feature.shape[0], -1, np.int32)
    here = np.arange(kept.shape[0], dtype=np.int32)
    column[kept] = here
    return Columns(column, feature[kept].astype(np.int32), here)


def present(counts: Counts, n_features: int) -> tuple[Counts, Columns]:
    """Columns in the order of the features: all of them, or those in a few documents only."""
    if counts.ids.shape[0] >= n_features:
        all_of_them = np.arange(n_features, dtype=np.int32)
        return counts, Columns(all_of_them, all_of_them, all_of_them)
    # what one document costs does not depend on how many features there are
    features, places = np.unique(counts.ids, return_inverse=True)
    here = np.arange(features.shape[0], dtype=np.int32)
    return counts._replace(ids=places.astype(np.int32)), Columns(here, features, here)


def rows(
    parts: Sequence[tuple[Counts, Columns]], weights: Weights, idf: NDArray[Any], mapper: Mapper, dtype: Any = None
) -> sparse.csr_array:
    """Rows of consecutive documents, weighed on the threads of a mapper, as a CSR array, at last rounded to `dtype`."""
    ends = [0, *accumulate(part.indptr.shape[0] - 1 for part, _ in parts)]
    indptr = np.zeros(ends[-1] + 1, np.int64)
    tasks = [(part, indptr[begin : end + 1]) for part, (begin, end) in zip(parts, pairwise(ends), strict=True)]
    mapper.on_driver(_fill_lengths, tasks)
    np.cumsum(indptr, out=indptr)
    total = int(indptr[-1])
    indices, values = new_arrays((total, np.int32), (total, weights.dtype if dtype is None else dtype))
    largest = max((int(np.abs(part.counts).max(initial=1)) for part, _ in parts), default=1)
    tf = weights.tf(largest)
    idf = np.ascontiguousarray(idf, weights.dtype)
    mapper.on_driver(partial(_weigh, tf=tf, idf=idf, norm=NORMS[weights.norm], indices=indices, values=values), tasks)
    # As in SciPy, indices have 64 bits only where 32 do not suffice.
    if total <= _MOST_32:
        indptr = indptr.astype(np.int32)
    else:
        indices = indices.astype(np.int64)
    found = sparse.csr_array((ends[-1], idf.shape[0]), dtype=values.dtype)
    # Its constructor would copy arrays that share one piece of memory, as these do.
    found.data, found.indices, found.indptr = values, indices, indptr
    found.has_sorted_indices = True
    found.has_canonical_format = True
    return found


def _fill_lengths(task: tuple[tuple[Counts, Columns], NDArray[np.int64]]) -> None:
    (counts, columns), at = task
    count_kept(counts.indptr, counts.ids, columns.column, at[1:])


def _weigh(
    task: tuple[tuple[Counts, Columns], NDArray[np.int64]],
    tf: NDArray[Any],
    idf: NDArray[Any],
    norm: int,
    indices: NDArray[np.int32],
    values: NDArray[Any],
) -> None:
    (counts, columns), at = task
    documents = counts.indptr.shape[0] - 1
    pairs = max(_BLOCK_PAIRS, _PAIRS_A_COLUMN * columns.features.shape[0])
    begin = 0
    while begin < documents:
        end = documents
        if counts.indptr[end] - counts.indptr[begin] > pairs:
            end = int(np.searchsorted(counts.indptr, counts.indptr[begin] + pairs, side="right")) - 1
            end = max(end, begin + 1)
        weigh(
            begin, end, counts.indptr, counts.ids, counts.counts, columns.column, columns.features, columns.order,
            tf, idf, norm, at, indices, values,
        )  # fmt: skip
        begin = end


@dataclass(frozen=True)
class Buckets:
    """Terms as the remainder of their hash, as ``sklearn.feature_extraction.text.HashingVectorizer`` has them."""

    n_features: int
    # Whether half of the terms count negatively, so that those that share a bucket cancel on average.
    alternate_sign: bool = False

    def hashed(self, counted: Counted, binary: bool) -> list[tuple[Counts, Columns]]:
        """The counts of a piece by bucket; `df` of each is that of its columns."""
        terms = counted.terms
        hashes = np.empty(terms.number, np.int32)
        murmur3(terms.arena, terms.offsets(), hashes)
        # The absolute value of -2**31 is 2**31 here, which scikit-learn goes a way round for.
        features, inverse = np.unique(np.abs(hashes.astype(np.int64)) % self.n_features, return_inverse=True)
        bucket = inverse.astype(np.int32)
        sign = np.where(hashes < 0, -1 if self.alternate_sign else 1, 1).astype(np.int32)
        here = np.arange(features.shape[0], dtype=np.int32)
        columns = Columns(here, features.astype(np.int32), here)
        return [(by_bucket(part, bucket, sign, here.shape[0], binary), columns) for part in counted.counts]


def by_bucket(
    part: Counts, bucket: NDArray[np.int32], sign: NDArray[np.int32], n_buckets: int, binary: bool = False
) -> Counts:
    """The counts of documents by the bucket of each term, signed; `binary`: once in a document. `df` is by bucket."""
    indptr = np.empty_like(part.indptr)
    ids, counts = np.empty_like(part.ids), np.empty_like(part.counts)
    state = np.zeros(n_buckets, np.int64)
    k = rebucket(part.indptr, part.ids, part.counts, bucket, sign, state, indptr, ids, counts)
    ids, counts = ids[:k], counts[:k]
    if binary:
        counts[:] = 1
    return Counts(indptr, ids, counts, np.bincount(ids, minlength=n_buckets).astype(np.int64))
