"""Counts of terms to rows of weights.

The sums of a row run in a stated order of the terms, and its entries leave in the order of the features. Neither needs
sorting: a block of documents is turned into columns, and the columns are gone through in either order.
"""

from __future__ import annotations

import numpy as np

from dboost.compiled.kept import njit

_HALF, _ONE = np.uint64(32), np.uint64(1)
# Codes of the norms.
NO_NORM, L1, L2 = 0, 1, 2


@njit(nogil=True, cache=True)
def count_kept(indptr, ids, column, lengths):
    """Fill lengths[d] with the number of terms of document d that are kept; see ``weigh``."""
    for d in range(indptr.shape[0] - 1):
        kept = 0
        for p in range(indptr[d], indptr[d + 1]):
            kept += column[ids[p]] >= 0
        lengths[d] = kept


@njit(nogil=True, cache=True, inline="always")
def _term_frequency(tf, entry):
    """What the count in the lower half of an entry becomes; the count may be negative."""
    count = np.int32(np.uint32(entry))
    return tf[np.uint32(count)] if count >= 0 else -tf[np.uint32(-count)]


@njit(nogil=True, cache=True)
def weigh(begin, end, indptr, ids, counts, column, features, order, tf, idf, norm, at, indices, values):
    """Rows of a block of documents.

    `begin`, `end`: the documents of the block.
    `indptr`, `ids`, `counts`: see ``counting.Counts``; a count may be negative.
    `column`: column of each term, in the order in which squares are added, or -1 for a term that is left out.
    `features`, (columns,): feature of each column.
    `order`, (columns,): the columns in the order of their features.
    `tf`: what a count becomes.
    `idf`: (features,).
    `norm`: what each row is divided by: 0 nothing, 1 the sum of absolute values, 2 the root of the sum of squares.
    `at`, (documents + 1,): where each row begins.
    `values`: filled.
    """
    columns = features.shape[0]
    starts = np.zeros(columns + 1, np.uint64)
    for p in range(indptr[begin], indptr[end]):
        c = column[ids[p]]
        if c >= 0:
            starts[c + 1] += _ONE
    for c in range(columns):
        starts[c + 1] += starts[c]
    # An entry is the place of its document in the block and its count, side by side.
    entries = np.empty(starts[columns], np.uint64)
    for d in range(begin, end):
        row = np.uint64(d - begin) << _HALF
        for p in range(indptr[d], indptr[d + 1]):
            c = column[ids[p]]
            if c >= 0:
                entries[starts[c]] = row | np.uint64(np.uint32(counts[p]))
                starts[c] += _ONE
    # Now starts[c] is where column c ends, which is where the next one begins.
    sums = np.zeros(end - begin, np.float64)
    if norm != NO_NORM:
        first = np.uint64(0)
        for c in range(columns):
            weight = idf[features[c]]
            last = starts[c]
            for p in range(first, last):
                entry = entries[p]
                value = _term_frequency(tf, entry) * weight
                # The product of two float32 is rounded to float32, as scikit-learn rounds it, and added in float64.
                sums[entry >> _HALF] += value * value if norm == L2 else abs(value)
            first = last
    for i in range(end - begin):
        if norm == L2:
            sums[i] = np.sqrt(sums[i])
        if sums[i] == 0.0:
            sums[i] = 1.0
    places = at[begin:end].astype(np.uint64)
    for c in order:
        feature = features[c]
        weight = idf[feature]
        first = starts[c - 1] if c > 0 else np.uint64(0)
        for p in range(first, starts[c]):
            entry = entries[p]
            i = entry >> _HALF
            place = places[i]
            indices[place] = feature
            values[place] = (_term_frequency(tf, entry) * weight) / sums[i]
            places[i] = place + _ONE


@njit(nogil=True, cache=True)
def rebucket(indptr, ids, counts, bucket, sign, state, out_indptr, out_ids, out_counts):
    """Add the counts of terms that share a bucket, document by document; how many pairs are left.

    `indptr`, `ids`, `counts`: see ``counting.Counts``.
    `bucket`: (terms,).
    `sign`, (terms,): what the count of a term is multiplied by.
    `state`, (buckets,): zeros.
    `out_indptr`, `out_ids`, `out_counts`: filled; the order of a document's buckets is that in which it has them.
    """
    k = 0
    out_indptr[0] = 0
    for d in range(indptr.shape[0] - 1):
        base = k
        for p in range(indptr[d], indptr[d + 1]):
            b = bucket[ids[p]]
            place = state[b] - 1
            if place < base:
                place = k
                state[b] = k + 1
                out_ids[k] = b
                out_counts[k] = 0
                k += 1
            out_counts[place] += counts[p] * sign[ids[p]]
        out_indptr[d + 1] = k
    return k
