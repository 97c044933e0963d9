"""Terms of a corpus: counted on threads, numbered in the order in which they are met, limited and sorted.

Covers: cutting documents into pieces, counting them, joining the tables of the pieces, choosing the features.
Does not cover: weights (``text_weights``).

Pieces are joined in their order, so that the number of a term says when the whole corpus first has it, for any cut into
pieces. Counts are whole numbers. So nothing depends on how many threads there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dboost.compiled.text.counting import Counts, add_counts, count_documents
from dboost.compiled.text.terms import Terms
from dboost.data.prepared.mapper import Mapper
from dboost.data.prepared.text_arrow import Segment
from dboost.data.prepared.text_words import WordRule
from dboost.errors import DataError, UsageError

# Bytes below which another thread costs more than it helps.
_PIECE_BYTES = 1 << 18
# Terms that a table has room for at first, per byte of text and at most; it grows where there are more.
_BYTES_A_TERM, _FIRST_ROOM = 256, 1 << 16


@dataclass(frozen=True)
class Counted:
    """Documents of one piece and their counts."""

    counts: list[Counts]  # One for each segment.
    terms: Terms  # What the numbers in the counts mean.
    df: NDArray[np.int64]  # (terms,): In how many documents of the piece each term is; empty of a known table.

    def __len__(self) -> int:
        return sum(one.indptr.shape[0] - 1 for one in self.counts)


def pieces_of(documents: Sequence[Segment], n_pieces: int) -> list[list[Segment]]:
    """Consecutive pieces of about the same number of bytes; at least one, and none without documents but that."""
    size = sum(int(segment.offsets[-1] - segment.offsets[0]) for segment in documents)
    n_pieces = max(1, min(n_pieces, size // _PIECE_BYTES))
    if n_pieces == 1:
        return [list(documents)]
    pieces: list[list[Segment]] = [[] for _ in range(n_pieces)]
    before = 0
    for segment in documents:
        start = int(segment.offsets[0])
        targets = [start - before + size * (i + 1) // n_pieces for i in range(n_pieces)]
        cuts = np.searchsorted(segment.offsets, targets, side="left").clip(0, len(segment))
        cuts[-1] = len(segment)
        begin = 0
        for piece, end in zip(pieces, cuts.tolist(), strict=True):
            if end > begin:
                piece.append(segment.part(begin, end))
                begin = end
        before += int(segment.offsets[-1]) - start
    return [piece for piece in pieces if piece] or [[]]


def count_piece(piece: Sequence[Segment], rule: WordRule, known: Terms | None = None) -> Counted:
    """Count the terms of one piece: all of them, or those of a table that is left as it is."""
    size = sum(int(segment.offsets[-1] - segment.offsets[0]) for segment in piece)
    terms = Terms(min(max(size // _BYTES_A_TERM, 64), _FIRST_ROOM)) if known is None else known
    stop = rule.stop_table()
    found = [
        count_documents(
            segment.data,
            segment.offsets,
            terms,
            foreign=rule.foreign(segment),
            fold=rule.lowercase,
            grams=rule.grams,
            stop=stop,
            adds=known is None,
        )
        for segment in piece
    ]
    df = np.zeros(terms.number if known is None else 0, np.int64)
    for one in found:
        df[: one.df.shape[0]] += one.df
    return Counted(found, terms, df)


def count_pieces(
    pieces: Sequence[Sequence[Segment]], rule: WordRule, mapper: Mapper, known: Terms | None = None
) -> list[Counted]:
    """Count the terms of every piece, on the threads of `mapper`."""
    return mapper.on_driver(partial(count_piece, rule=rule, known=known), pieces)


def join(counted: Sequence[Counted]) -> tuple[Terms, list[NDArray[np.int32]], NDArray[np.int64]]:
    """One table for all pieces (the first's, extended), the numbers of each piece's terms there, and all df."""
    terms = counted[0].terms
    numbers = [np.arange(terms.number, dtype=np.int32)]
    numbers += [terms.enter(one.terms.arena, one.terms.offsets()) for one in counted[1:]]
    df = np.zeros(terms.number, np.int64)
    for one, mine in zip(counted, numbers, strict=True):
        df[mine] += one.df
    return terms, numbers, df


def names_of(terms: Terms, numbers: NDArray[Any]) -> pa.Array:
    """The terms of some numbers, as large strings."""
    offsets = terms.offsets()
    whole = pa.Array.from_buffers(
        pa.large_string(), terms.number, [None, pa.py_buffer(offsets), pa.py_buffer(terms.arena)]
    )
    return whole.take(pa.array(numbers, pa.int64()))


def total_counts(counted: Sequence[Counted], numbers: Sequence[NDArray[np.int32]], n_terms: int) -> NDArray[np.int64]:
    """How often each term is in all documents."""
    total = np.zeros(n_terms, np.int64)
    for one, mine in zip(counted, numbers, strict=True):
        for part in one.counts:
            here = np.zeros(mine.shape[0], np.int64)
            add_counts(part.ids, part.counts, here)
            total[mine] += here
    return total


def count_limits(documents: int, min_df: int | float, max_df: int | float) -> tuple[float, float]:
    """Fewest and most documents that a term may be in, a float being a share; a UsageError where they cross."""
    low = min_df if isinstance(min_df, int | np.integer) else min_df * documents
    high = max_df if isinstance(max_df, int | np.integer) else max_df * documents
    if high < low:
        raise UsageError(f"max_df is {high:g} documents, min_df {low:g}", hint="lower min_df or raise max_df")
    return low, high


def choose(
    df: NDArray[np.int64],
    n_documents: int,
    *,
    min_df: int | float,
    max_df: int | float,
    max_features: int | None,
    total: Any,
    names: Any,
    n_terms: int | None = None,
) -> tuple[NDArray[np.int64], pa.Array]:
    """Numbers and names of the terms within the bounds (ties by name), sorted by name; `n_terms`: with those gone."""
    n_terms = df.shape[0] if n_terms is None else n_terms
    if n_terms == 0:
        raise DataError(
            "empty vocabulary: the documents have no words, or only stop words",
            hint="look at what a document holds, or at token_pattern and stop_words",
        )
    low, high = count_limits(n_documents, min_df, max_df)
    kept = np.flatnonzero((df >= low) & (df <= high))
    if kept.shape[0] == 0:
        raise DataError(
            f"none of the {n_terms} terms is in {low:g} to {high:g} of the {n_documents} documents",
            hint="lower min_df or raise max_df",
        )
    found = names(kept)
    # Arrow compares bytes, and UTF-8 keeps the order of code points, which is that of Python's strings.
    order = pc.sort_indices(found).to_numpy()
    if max_features is not None and max_features < order.shape[0]:
        frequent = total()[kept[order]]
        order = order[np.sort(np.argsort(-frequent, kind="stable")[:max_features])]
    return kept[order], found.take(pa.array(order))
