"""Documents to rows of tf-idf.

Covers: the tokenisers, counting terms of a chunk of documents, choosing the vocabulary, and the transform.
Does not cover: reading and writing files (``prepare``).

Words are cut, counted and weighed by the compiled loops of ``dboost.data.prepared``; identifiers are cut by Python,
which is slower.

The weights are those of scikit-learn's ``TfidfVectorizer(sublinear_tf=True)``: (1 + ln tf) * idf with
idf = ln((1 + documents) / (1 + document frequency)) + 1, each row scaled to length 1. ``TextRule`` says otherwise.

Tokenisers:

- ``"words"``: lower-cased runs of two or more word characters, the regular expression ``\\w\\w+``.
- ``"identifiers"``: for source text. Runs of letters, cut at underscores, digits and changes of case (``HTTPServer_v2``
  gives ``http`` and ``server``), lower-cased, two letters or more.
"""

from __future__ import annotations

import io
import os
import re
import secrets
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dboost.compiled.text.counting import Counts, add_counts
from dboost.compiled.text.terms import Terms
from dboost.data.features.arrow import one_array
from dboost.data.prepared.mapper import InProcess
from dboost.data.prepared.text_arrow import documents
from dboost.data.prepared.text_terms import Counted, choose, count_piece, names_of
from dboost.data.prepared.text_weights import Weights, by_bucket, in_order_of_features, present, rows
from dboost.data.prepared.text_words import WordRule, table_of, text_and_offsets
from dboost.errors import UsageError
from dboost.files.stores import AnyPath, StorePath, open_input

# Shards that the terms of a corpus are in: 10^9 terms of some 30 bytes are then counted in pieces of 30 MB.
SHARD_BITS = 10
SHARDS = 1 << SHARD_BITS
# An odd constant of Knuth's multiplicative hashing.
_SPREAD = np.uint32(0x9E3779B1)
TOKENISERS = ("words", "identifiers")
_CASE = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[^\W\d_A-Za-z]+")


def identifiers(text: str) -> list[str]:
    """Parts of identifiers, lower-cased, two letters or more."""
    return [part.lower() for part in _CASE.findall(text) if len(part) > 1]


def bucket_name(token: str, buckets: int) -> str:
    """The term a token is hashed to; CRC-32 is the same on every machine and Python."""
    return f"#{zlib.crc32(token.encode('utf-8', 'surrogatepass')) % buckets:0{len(str(buckets - 1))}d}"


@dataclass(frozen=True)
class TextRule:
    """How documents become terms, and what counts become; identifiers are neither joined nor left out (UsageError)."""

    tokenizer: str = "words"  # One of ``TOKENISERS``.
    ngrams: int = 1  # Terms of up to so many words, joined by a blank; words alone by default.
    stop_words: tuple[str, ...] = ()  # Words that are left out before terms are formed.
    sublinear_tf: bool = True  # Whether 1 + ln tf stands for the count tf.
    binary: bool = False  # Whether every count is 1.

    def __post_init__(self) -> None:
        if self.tokenizer not in TOKENISERS:
            raise UsageError(f"tokenizer={self.tokenizer!r}", hint=f"use one of {', '.join(TOKENISERS)}")
        if isinstance(self.ngrams, bool) or not isinstance(self.ngrams, int) or self.ngrams < 1:
            raise UsageError(f"ngrams={self.ngrams!r}", hint="give the most words of a term, such as 2")
        if self.stop_words == ("english",):
            raise UsageError(
                "stop_words names a language", hint="give the words, such as sklearn's ENGLISH_STOP_WORDS as a list"
            )
        for name, given in (("ngrams", self.ngrams != 1), ("stop_words", bool(self.stop_words))):
            if given and self.tokenizer != "words":
                raise UsageError(f"{name} beside tokenizer={self.tokenizer!r}", hint=f"leave {name} out")

    def words(self) -> WordRule:
        """How documents are cut; words by compiled loops, identifiers by Python."""
        if self.tokenizer != "words":
            return WordRule(analyzer=identifiers)
        return WordRule(ngram_range=(1, self.ngrams), stop_words=frozenset(self.stop_words))

    def weights(self) -> Weights:
        """What counts become."""
        return Weights(sublinear_tf=self.sublinear_tf, binary=self.binary)

    def about(self) -> dict[str, Any]:
        """As JSON values, under the names of its parameters."""
        return {**vars(self), "stop_words": list(self.stop_words)}

    @classmethod
    def of(cls, given: str | TextRule) -> TextRule:
        """A rule, or the one of that tokeniser."""
        return given if isinstance(given, TextRule) else cls(given)

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> TextRule:
        """The rule that `about` wrote; what an earlier version did not know is as it was then."""
        known = {name: settings[name] for name in vars(cls()) if name in settings}
        return cls(**known | {"stop_words": tuple(known.get("stop_words", ()))})


@dataclass(frozen=True)
class TermCounts:
    """The terms of some documents, and how often each document has them."""

    terms: pa.Array  # Distinct terms, or buckets of terms.
    # (terms,): To which of ``SHARDS`` shards each term belongs; the same for a term wherever it is
    # met.
    shard: NDArray[np.int64]
    parts: list[Counts]  # Consecutive documents; ids are places in `terms`.

    def __len__(self) -> int:
        return sum(part.indptr.shape[0] - 1 for part in self.parts)

    def _frequencies(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """In how many documents each term is, and how often in all of them."""
        df, tf = np.zeros(len(self.terms), np.int64), np.zeros(len(self.terms), np.int64)
        for part in self.parts:
            df[: part.df.shape[0]] += part.df
            add_counts(part.ids, part.counts, tf)
        return df, tf

    def frequencies(self) -> pa.Table:
        """Document and term frequency of every term, exact, in the columns ``term``, ``df``, ``tf``."""
        return pa.table({"term": self.terms, **dict(zip(("df", "tf"), self._frequencies(), strict=True))})

    def save(self, path: AnyPath, *, documents: bool = True) -> int:
        """Write a file that ``load`` and ``load_shards`` read; it is there as a whole, or not.

        The terms lie in the order of their shards, so that those of some shards are one piece of each column: the
        bounds of the shards in terms and in bytes, then lengths, df and tf of the terms, their text, and the documents.

        `documents`: Whether the counts of every document are written, for ``load``.
        Returns int: Bytes of the terms in the file.
        """
        order = np.argsort(self.shard, kind="stable")
        df, tf = self._frequencies()
        text, offsets = text_and_offsets(self.terms.take(pa.array(order)))
        bounds = np.zeros((2, SHARDS + 1), np.int64)
        np.cumsum(np.bincount(self.shard, minlength=SHARDS), out=bounds[0, 1:])
        bounds[1] = offsets[bounds[0]]
        lengths = np.diff(offsets).astype(np.int32)
        columns = (bounds, lengths, df[order].astype(np.int32), tf[order], text[: offsets[-1]])
        place = np.empty(order.shape[0], np.int32)
        place[order] = np.arange(order.shape[0], dtype=np.int32)

        def dump(stream: IO[bytes]) -> None:
            for array in columns:
                stream.write(array.tobytes())
            for part in self.parts if documents else ():
                narrow = np.uint16 if part.counts.max(initial=0) <= np.iinfo(np.uint16).max else np.int32
                for array in (part.indptr, place[part.ids], part.counts.astype(narrow)):
                    np.save(stream, array)

        if isinstance(path, StorePath):
            whole = io.BytesIO()
            dump(whole)
            path.write_bytes(whole.getvalue())
        else:
            beside = f"{os.fspath(path)}.{secrets.token_hex(6)}"
            with open(beside, "wb") as stream:
                dump(stream)
            os.replace(beside, path)
        return sum(array.nbytes for array in columns)

    @classmethod
    def load(cls, path: AnyPath) -> TermCounts:
        """What ``save`` has written, with an empty `df`."""
        with open_input(str(path)) as stream:
            terms, bounds = _terms_in(stream, 0, SHARDS)[::3]
            parts = []
            while head := stream.read(1):
                stream.seek(-len(head), os.SEEK_CUR)
                indptr, ids, counts = (np.load(stream) for _ in range(3))
                parts.append(Counts(indptr, ids, counts.astype(np.int32), np.zeros(0, np.int64)))
        return cls(terms, np.repeat(np.arange(SHARDS), np.diff(bounds[0])), parts)


def load_shards(path: AnyPath, first: int, end: int) -> pa.Table:
    """The terms of some shards that ``TermCounts.save`` has written, as ``TermCounts.frequencies`` gives them."""
    with open_input(str(path)) as stream:
        terms, df, tf, _ = _terms_in(stream, first, end)
    return pa.table({"term": terms, "df": df.astype(np.int64), "tf": tf})


def _terms_in(stream: Any, first: int, end: int) -> tuple[pa.Array, Any, Any, NDArray[np.int64]]:
    """Terms of some shards, their df and tf, and the bounds of all shards; the stream is then behind their text."""
    bounds = np.frombuffer(stream.read(2 * 8 * (SHARDS + 1)), np.int64).reshape(2, -1)
    (begin, stop), (begin_text, end_text), n_terms = bounds[0, [first, end]], bounds[1, [first, end]], bounds[0, -1]

    def column(dtype: Any, before: int) -> Any:
        """The values of these terms in a column, which has so many bytes of others before it for each term."""
        size = np.dtype(dtype).itemsize
        stream.seek(int(bounds.nbytes + before * n_terms + size * begin))
        return np.frombuffer(stream.read(int(size * (stop - begin))), dtype)

    lengths, df, tf = column(np.int32, 0), column(np.int32, 4), column(np.int64, 8)
    stream.seek(int(bounds.nbytes + 16 * n_terms + begin_text))
    text = stream.read(int(end_text - begin_text))
    offsets = np.zeros(lengths.shape[0] + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.large_string(), lengths.shape[0], buffers), df, tf, bounds


def count_texts(texts: Any, tokenizer: str | TextRule, hashing: int | None) -> TermCounts:
    """Count the terms of documents; with `hashing`, in so many buckets."""
    counted = count_piece(documents(texts), TextRule.of(tokenizer).words())
    if hashing is None:
        return term_counts(counted)
    terms = names_of(counted.terms, np.arange(counted.terms.number))
    number: dict[str, int] = {}
    bucket = np.array(
        [number.setdefault(bucket_name(term, hashing), len(number)) for term in terms.to_pylist()], np.int32
    )
    sign = np.ones(bucket.shape[0], np.int32)
    parts = [by_bucket(part, bucket, sign, len(number)) for part in counted.counts]
    hashes = np.array([zlib.crc32(name.encode()) for name in number], np.uint32)
    return TermCounts(pa.array(list(number), pa.large_string()), _shards(hashes), parts)


def term_counts(counted: Counted) -> TermCounts:
    """The terms of documents that were counted, by name."""
    terms = names_of(counted.terms, np.arange(counted.terms.number))
    return TermCounts(terms, _shards(counted.terms.hashes()), counted.counts)


def _shards(hashes: NDArray[np.uint32]) -> NDArray[np.int64]:
    """The shard of each hash.

    Hashes are multiplied first: the terms of one shard enter a table whose places are bits of the same hashes, and
    would crowd a small part of it if the shard were some of these bits.
    """
    return ((hashes * _SPREAD) >> np.uint32(32 - SHARD_BITS)).astype(np.int64)


def merge_counts(tables: Sequence[pa.Table]) -> pa.Table:
    """Add the counts of several tables; exact, nothing is pruned."""
    terms = Terms(max(table.num_rows for table in tables))
    numbers = [terms.enter(*text_and_offsets(one_array(table.column("term")))) for table in tables]
    total = {name: np.zeros(terms.number, np.int64) for name in ("df", "tf")}
    for table, mine in zip(tables, numbers, strict=True):
        for name, sums in total.items():
            sums[mine] += table.column(name).to_numpy()
    return pa.table({"term": names_of(terms, np.arange(terms.number)), **total})


def within(counts: pa.Table, low: float, high: float) -> pa.Table:
    """The terms that are in at least `low` and at most `high` documents."""
    df = counts.column("df")
    return counts.filter(pc.and_(pc.greater_equal(df, low), pc.less_equal(df, high)))


def most_frequent(counts: pa.Table, number: int) -> pa.Table:
    """The terms of the highest total counts, from the highest on; ties by name."""
    return counts.sort_by([("tf", "descending"), ("term", "ascending")]).slice(0, number)


def choose_vocabulary(
    counts: pa.Table,
    n_documents: int,
    *,
    min_df: int | float,
    max_df: int | float,
    max_features: int | None,
    n_terms: int | None = None,
) -> tuple[list[str], NDArray[np.int64], NDArray[np.float64]]:
    """Terms of ``merge_counts`` (or ``gather``) within the bounds, sorted by name, document frequencies and idf."""
    all_df, n_terms = counts.column("df").to_numpy(), counts.num_rows if n_terms is None else n_terms
    chosen, terms = choose(
        all_df,
        n_documents,
        min_df=min_df,
        max_df=max_df,
        max_features=max_features,
        total=lambda: counts.column("tf").to_numpy(),
        names=lambda these: one_array(counts.column("term").take(pa.array(these))),
        n_terms=n_terms,
    )
    df = all_df[chosen].astype(np.int64)
    return terms.to_pylist(), df, Weights().idf(df, n_documents)


class TextTransform:
    """Documents to rows, with a fixed vocabulary: terms (buckets, with `hashing`) and their idf."""

    def __init__(
        self, tokenizer: str | TextRule, terms: Any, idf: NDArray[np.float64], hashing: int | None = None
    ) -> None:
        self.rule = TextRule.of(tokenizer)
        self.idf = np.asarray(idf, dtype=np.float64)
        self.hashing = hashing
        found = terms if isinstance(terms, pa.Array) else pa.array(terms, pa.large_string())
        self.table = table_of(found.cast(pa.large_string()))

    def transform(self, texts: Any, dtype: Any = np.float64) -> Any:
        """Rows of length 1, or empty, as a CSR array; computed in float64, then rounded to `dtype`."""
        if self.hashing is not None:
            return self.weigh(count_texts(texts, self.rule, self.hashing), dtype)
        counted = count_piece(documents(texts), self.rule.words(), self.table)
        parts = [present(part, self.idf.shape[0]) for part in counted.counts]
        return rows(parts, self.rule.weights(), self.idf, InProcess(), dtype)

    def weigh(self, counted: TermCounts, dtype: Any = np.float64) -> Any:
        """The rows that ``transform`` gives, of documents whose terms are counted already."""
        feature = self.table.look_up(*text_and_offsets(counted.terms)).astype(np.int64)
        kept = np.flatnonzero(feature >= 0)
        columns = in_order_of_features(feature, kept[np.argsort(feature[kept])])
        return rows([(part, columns) for part in counted.parts], self.rule.weights(), self.idf, InProcess(), dtype)
