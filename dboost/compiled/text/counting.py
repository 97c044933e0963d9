"""Terms of documents and how often each document has them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.kept import njit
from dboost.compiled.text.terms import RECORD, Terms, add_term, find, term_hash, term_words
from dboost.compiled.text.words import SLACK, word_edges
from dboost.compiled.vectors.new_arrays import new_arrays

_HALF = np.int64(32)
_ONE = np.uint64(1)
_LOWER = np.uint64(0xFFFFFFFF)
_NO_WORDS, _NO_BYTES = np.zeros(0, np.uint64), np.zeros(0, np.uint8)
# Bytes of text for one distinct term of a document: room is made for so many at first. English titles have 8 of them,
# abstracts 11.
_PAIR_BYTES = 7


@njit(nogil=True, cache=True)
def _join(low, edges, words, shortest, stop, joined, spans):
    """Words that are no stop words side by side, a space between them; how many there are.

    A run of n of them is then one stretch of bytes.
    """
    slots, records, arena = stop
    kept = 0
    at = np.int64(0)
    for t in range(words):
        begin = np.int64(edges[2 * t])
        length = np.int64(edges[2 * t + 1]) - begin
        if length < shortest:
            continue
        if slots.shape[0] > 0:
            first, second = term_words(low, begin, length)
            h = term_hash(low, begin, length, first, second)
            if find(slots, records, arena, low, begin, length, first, second, h) >= 0:
                continue
        for i in range(length):
            joined[at + i] = low[begin + i]
        joined[at + length] = 32
        spans[2 * kept] = at
        spans[2 * kept + 1] = at + length
        at += length + 1
        kept += 1
    return kept


@njit(nogil=True, cache=True)
def _foreign_words(index, text, offsets, words, low, places):
    """Copy the words of a document that were found elsewhere; how many there are."""
    begin, end = words[index], words[index + 1]
    origin = offsets[begin]
    for i in range(end - begin):
        places[2 * i] = offsets[begin + i] - origin
        places[2 * i + 1] = offsets[begin + i + 1] - origin
    for i in range(offsets[end] - origin):
        low[i] = text[origin + i]
    return end - begin


@njit(nogil=True, cache=True)
def _lacks_room(slots, records, arena, state, ids, k, number, used, terms, width, adds):
    """Whether so many more terms, of so many bytes, may not fit."""
    if k + terms > ids.shape[0]:
        return True
    return adds and (
        2 * (number + terms) > min(slots.shape[0], state.shape[0])
        or RECORD * (number + terms) > records.shape[0]
        or used + width + SLACK > arena.shape[0]
    )


@njit(nogil=True, cache=True)
def _count_terms(
    text, places, words, shortest, fewest, most, slots, records, arena, number, used, adds, state, mark, ids, counts, k
):
    """Count the terms of one document, for which there is room; terms, bytes of the arena and pairs so far."""
    # Unsigned numbers are indices that are not looked at for their sign.
    at_last, base, document = np.uint64(k), np.uint64(k), np.uint64(mark)
    for size in range(fewest, most + 1):
        for t in range(words - size + 1):
            begin = np.int64(places[np.uint64(2 * t)])
            length = np.int64(places[np.uint64(2 * (t + size) - 1)]) - begin
            if length < shortest:
                continue
            first, second = term_words(text, begin, length)
            h = term_hash(text, begin, length, first, second)
            found = find(slots, records, arena, text, begin, length, first, second, h)
            if found < 0:
                if not adds:
                    continue
                add_term(slots, records, arena, number, used, text, begin, length, first, second, h, -1 - found)
                found = number
                number += 1
                used += length
            # Without a branch, because whether a document repeats a term cannot be predicted.
            where = np.uint64(2 * found)
            before = state[where]
            new = before < document
            at = at_last if new else base + (before & _LOWER)
            state[where] = document | (at - base)
            state[where + _ONE] += np.uint64(new)
            ids[at] = found
            counts[at] = np.int32(1) if new else counts[at] + np.int32(1)
            at_last += np.uint64(new)
    return number, used, np.int64(at_last)


@njit(nogil=True, cache=True)
def _count_run(
    data, offsets, d, which, foreign_text, foreign_offsets, foreign_words, fold, fewest, most, stop,
    slots, records, arena, number, used, adds, state, ids, counts, indptr, low, edges, joined, spans,
):  # fmt: skip
    """Count documents from number `d` on until one may not fit; see ``count_documents``.

    Arrays that are replaced inside a loop are counted by reference in each of its turns, which costs more than what is
    done here in a turn: so this loop replaces none.

    Returns the document that does not fit, or their number; terms and bytes of the arena so far; terms and bytes that
    document needs at most.
    """
    k = indptr[d]
    joins = joined.shape[0] > 0
    # Each word is in so many terms, and its bytes are in as many.
    shares = (fewest + most) * (most - fewest + 1) // 2
    while d < offsets.shape[0] - 1:
        index = which[d] if which.shape[0] > 0 else np.int64(-1)
        shortest = np.int64(2 if index < 0 else 0)
        if index < 0:
            words = word_edges(data, offsets[d], offsets[d + 1], fold, low, edges) // 2
        else:
            words = _foreign_words(index, foreign_text, foreign_offsets, foreign_words, low, edges)
        if joins:
            words = _join(low, edges, words, shortest, stop, joined, spans)
        terms = words * (most - fewest + 1)
        width = np.int64(0)
        if words > 0:
            width = np.int64(spans[2 * words - 1] if joins else edges[2 * words - 1]) * shares
        if _lacks_room(slots, records, arena, state, ids, k, number, used, terms, width, adds):
            return d, number, used, terms, width
        mark = np.int64(d + 1) << _HALF
        if joins:
            number, used, k = _count_terms(
                joined, spans, words, np.int64(0), fewest, most, slots, records, arena, number, used, adds,
                state, mark, ids, counts, k,
            )  # fmt: skip
        else:
            number, used, k = _count_terms(
                low, edges, words, shortest, fewest, most, slots, records, arena, number, used, adds,
                state, mark, ids, counts, k,
            )  # fmt: skip
        d += 1
        indptr[d] = k
    return d, number, used, np.int64(0), np.int64(0)


@njit(nogil=True, cache=True)
def _longest(offsets, foreign_offsets, foreign_words):
    """Bytes that the words of a document take at most, one more for each word."""
    longest = np.int64(0)
    for d in range(offsets.shape[0] - 1):
        longest = max(longest, offsets[d + 1] - offsets[d] + 1)
    for i in range(foreign_words.shape[0] - 1):
        begin, end = foreign_words[i], foreign_words[i + 1]
        longest = max(longest, foreign_offsets[end] - foreign_offsets[begin] + end - begin)
    return longest


class Counts(NamedTuple):
    """Terms of documents."""

    indptr: NDArray[np.int64]  # (documents + 1,)
    # ids, counts: Number and count of the distinct terms of each document, in the order in which it has them.
    ids: NDArray[np.int32]
    counts: NDArray[np.int32]
    # (terms,): In how many of these documents each term is; empty where terms were only looked up, as few documents
    # would else pay for the whole vocabulary.
    df: NDArray[np.int64]


class Foreign(NamedTuple):
    """Words of documents that were found elsewhere."""

    # (documents,) or (0,): An index for each such document, else -1; empty where there is none.
    which: NDArray[np.int64]
    text: NDArray[np.uint8]  # Words one after the other.
    offsets: NDArray[np.int64]  # (words + 1,): Where each begins and ends.
    words: NDArray[np.int64]  # Where the words of an index begin, counted in words, and their number at the end.


NO_FOREIGN = Foreign(np.zeros(0, np.int64), np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64))


def count_documents(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    terms: Terms,
    *,
    foreign: Foreign = NO_FOREIGN,
    fold: bool = True,
    grams: tuple[int, int] = (1, 1),
    stop: Terms | None = None,
    adds: bool = True,
) -> Counts:
    """Number the terms of documents and count them in each.

    `data`: text of ASCII documents.
    `offsets`, (documents + 1,): where each begins and ends.
    `terms`: new terms are entered here, or it is left as it is.
    `foreign`: documents that are not to be read from `data`.
    `fold`: whether letters become lower-case.
    `grams`: fewest and most words of a term.
    `stop`: words that are left out.
    `adds`: whether new terms are entered; otherwise they are passed over.
    """
    fewest, most = grams
    documents = offsets.shape[0] - 1
    size = int(offsets[-1] - offsets[0]) + foreign.text.shape[0]
    longest = _longest(offsets, foreign.offsets, foreign.words)
    low, edges = np.empty(longest + 2 * SLACK, np.uint8), np.empty(2 * longest + 2, np.int32)
    joins = most > 1 or stop is not None
    joined = np.empty(longest + 2 * SLACK if joins else 0, np.uint8)
    spans = np.empty(2 * longest + 2 if joins else 0, np.int32)
    stops = (stop.slots, stop.records, stop.arena) if stop is not None else (_NO_WORDS, _NO_WORDS, _NO_BYTES)
    indptr = np.zeros(documents + 1, np.int64)
    room = size * (most - fewest + 1) // _PAIR_BYTES + 64
    ids, counts = new_arrays((room, np.int32), (room, np.int32), passing=True)
    # Per term: the last document that has it and the place of its count there, and how many have it.
    state = np.zeros(2 * terms.records.shape[0] // RECORD, np.uint64)
    d = 0
    while True:
        d, terms.number, terms.used, new, width = _count_run(
            data, offsets, d, *foreign, fold, fewest, most, stops,
            terms.slots, terms.records, terms.arena, terms.number, terms.used, adds,
            state, ids, counts, indptr, low, edges, joined, spans,
        )  # fmt: skip
        k = indptr[d]
        if d == documents:
            break
        if adds:
            terms.make_room(new, width)
            if terms.records.shape[0] // RECORD > state.shape[0] // 2:
                (grown,) = new_arrays((terms.records.shape[0] // RECORD * 2, np.uint64))
                grown[: state.shape[0]] = state
                grown[state.shape[0] :] = 0
                state = grown
        if k + new > ids.shape[0]:
            old = ids, counts
            room = max(k + new, 2 * ids.shape[0])
            ids, counts = new_arrays((room, np.int32), (room, np.int32), passing=True)
            ids[:k], counts[:k] = old[0][:k], old[1][:k]
    df = state[1 : 2 * terms.number : 2].astype(np.int64) if adds else np.zeros(0, np.int64)
    return Counts(indptr, ids[:k], counts[:k], df)


@njit(nogil=True, cache=True)
def add_counts(ids, counts, total):
    """Add the count of each pair to total[its term]."""
    for p in range(ids.shape[0]):
        total[np.uint64(ids[p])] += counts[p]
