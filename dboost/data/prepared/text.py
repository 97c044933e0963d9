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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dboost.compiled.text.counting import Counts, add_counts
from dboost.compiled.text.terms import Terms
from dboost.data.prepared.mapper import InProcess
from dboost.data.prepared.text_arrow import documents
from dboost.data.prepared.text_terms import count_piece, names_of
from dboost.data.prepared.text_weights import Weights, by_bucket, in_order_of_features, present, rows
from dboost.data.prepared.text_words import WordRule, table_of, text_and_offsets
from dboost.errors import DataError, UsageError
from dboost.files.stores import AnyPath, StorePath

_WORDS = re.compile(r"\w\w+")
_CASE = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[^\W\d_A-Za-z]+")


def words(text: str) -> list[str]:
    """Lower-cased runs of two or more word characters."""
    return _WORDS.findall(text.lower())


def identifiers(text: str) -> list[str]:
    """Parts of identifiers, lower-cased, two letters or more."""
    return [part.lower() for part in _CASE.findall(text) if len(part) > 1]


TOKENISERS: dict[str, Callable[[str], list[str]]] = {"words": words, "identifiers": identifiers}


def get_tokeniser(name: str) -> Callable[[str], list[str]]:
    """The tokeniser of that name."""
    if name not in TOKENISERS:
        raise UsageError(f"tokenizer={name!r}", hint=f"use one of {', '.join(TOKENISERS)}")
    return TOKENISERS[name]


def bucket_name(token: str, buckets: int) -> str:
    """The term a token is hashed to; CRC-32 is the same on every machine and Python."""
    return f"#{zlib.crc32(token.encode('utf-8', 'surrogatepass')) % buckets:0{len(str(buckets - 1))}d}"


@dataclass(frozen=True)
class TextRule:
    """How documents become terms, and what their counts become.

    Parameters
    ----------
    tokenizer : str
        A key of ``TOKENISERS``.
    ngrams : int
        Terms of up to so many words, joined by a blank; words alone by default.
    stop_words : tuple of str
        Words that are left out before terms are formed.
    sublinear_tf : bool
        Whether 1 + ln tf stands for the count tf.
    binary : bool
        Whether every count is 1.

    Raises
    ------
    UsageError
        For an unknown tokeniser, and for identifiers that are to be joined or left out: these are cut by Python, and
        nothing is done to them afterwards.
    """

    tokenizer: str = "words"
    ngrams: int = 1
    stop_words: tuple[str, ...] = ()
    sublinear_tf: bool = True
    binary: bool = False

    def __post_init__(self) -> None:
        get_tokeniser(self.tokenizer)
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
            return WordRule(analyzer=get_tokeniser(self.tokenizer))
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
    """The terms of some documents, and how often each document has them.

    Parameters
    ----------
    terms : pyarrow.LargeStringArray
        Distinct terms, or buckets of terms.
    parts : list of Counts
        Consecutive documents; ids are places in `terms`.
    """

    terms: pa.Array
    parts: list[Counts]

    def __len__(self) -> int:
        return sum(part.indptr.shape[0] - 1 for part in self.parts)

    def frequencies(self) -> pa.Table:
        """Document and term frequency of every term, exact, in the columns ``term``, ``df``, ``tf``."""
        df, tf = np.zeros(len(self.terms), np.int64), np.zeros(len(self.terms), np.int64)
        for part in self.parts:
            df[: part.df.shape[0]] += part.df
            add_counts(part.ids, part.counts, tf)
        return pa.table({"term": self.terms, "df": df, "tf": tf})

    def save(self, path: AnyPath) -> None:
        """Write everything but `df` into a file that ``load`` reads; it is there as a whole, or not."""
        if isinstance(path, StorePath):
            whole = io.BytesIO()
            self._dump(whole)
            path.write_bytes(whole.getvalue())
            return
        beside = f"{os.fspath(path)}.{secrets.token_hex(6)}"
        with open(beside, "wb") as stream:
            self._dump(stream)
        os.replace(beside, path)

    def _dump(self, stream: IO[bytes]) -> None:
        for array in (*text_and_offsets(self.terms), np.array([len(self.parts)])):
            np.save(stream, array)
        for part in self.parts:
            narrow = np.uint16 if part.counts.max(initial=0) <= np.iinfo(np.uint16).max else np.int32
            for array in (part.indptr, part.ids, part.counts.astype(narrow)):
                np.save(stream, array)

    @classmethod
    def load(cls, path: AnyPath) -> TermCounts:
        """What ``save`` has written, with an empty `df`."""
        with io.BytesIO(path.read_bytes()) if isinstance(path, StorePath) else open(path, "rb") as stream:
            text, offsets, [n_parts] = (np.load(stream) for _ in range(3))
            terms = pa.Array.from_buffers(
                pa.large_string(), offsets.shape[0] - 1, [None, pa.py_buffer(offsets), pa.py_buffer(text)]
            )
            parts = []
            for _ in range(n_parts):
                indptr, ids, counts = (np.load(stream) for _ in range(3))
                parts.append(Counts(indptr, ids, counts.astype(np.int32), np.zeros(0, np.int64)))
        return cls(terms, parts)


def count_texts(texts: Any, tokenizer: str | TextRule, hashing: int | None) -> TermCounts:
    """Count the terms of documents.

    Parameters
    ----------
    texts : list of str or Arrow array of strings
    tokenizer : str or TextRule
    hashing : int or None
        Number of buckets, where terms are hashed.
    """
    counted = count_piece(documents(texts), TextRule.of(tokenizer).words())
    terms = names_of(counted.terms, np.arange(counted.terms.number))
    if hashing is None:
        return TermCounts(terms, counted.counts)
    number: dict[str, int] = {}
    bucket = np.array(
        [number.setdefault(bucket_name(term, hashing), len(number)) for term in terms.to_pylist()], np.int32
    )
    sign = np.ones(bucket.shape[0], np.int32)
    parts = [by_bucket(part, bucket, sign, len(number)) for part in counted.counts]
    return TermCounts(pa.array(list(number), pa.large_string()), parts)


def count_terms(texts: Any, tokenizer: str | TextRule, hashing: int | None) -> pa.Table:
    """Document and term frequency of every term of some documents; see ``count_texts``.

    Returns
    -------
    pyarrow.Table
        Columns ``term``, ``df``, ``tf``.
    """
    return count_texts(texts, tokenizer, hashing).frequencies()


def merge_counts(tables: Sequence[pa.Table]) -> pa.Table:
    """Add the counts of several tables; exact, nothing is pruned."""
    terms = Terms(max(table.num_rows for table in tables))
    numbers = [terms.enter(*text_and_offsets(_one_array(table.column("term")))) for table in tables]
    total = {name: np.zeros(terms.number, np.int64) for name in ("df", "tf")}
    for table, mine in zip(tables, numbers, strict=True):
        for name, sums in total.items():
            sums[mine] += table.column(name).to_numpy()
    return pa.table({"term": names_of(terms, np.arange(terms.number)), **total})


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks != 1 else column.chunk(0)


def choose_vocabulary(
    counts: pa.Table,
    n_documents: int,
    *,
    min_df: int | float,
    max_df: int | float,
    max_features: int | None,
) -> tuple[list[str], NDArray[np.int64], NDArray[np.float64]]:
    """Terms sorted by name, their document frequencies and idf.

    Parameters
    ----------
    counts : pyarrow.Table
        Of ``merge_counts``.
    n_documents : int
    min_df, max_df : int or float
        Bounds on the document frequency: a number of documents, or as a float a share of them.
    max_features : int, optional
        Keep the most frequent terms (by total count, ties by name).

    Raises
    ------
    DataError
        No term is left.
    """
    low = min_df if isinstance(min_df, int) else min_df * n_documents
    high = max_df if isinstance(max_df, int) else max_df * n_documents
    kept = counts.filter(pc.and_(pc.greater_equal(counts.column("df"), low), pc.less_equal(counts.column("df"), high)))
    if max_features is not None:
        kept = kept.sort_by([("tf", "descending"), ("term", "ascending")]).slice(0, max_features)
    if kept.num_rows == 0:
        raise DataError(
            f"none of the {counts.num_rows} terms is in {low:g} to {high:g} of the {n_documents} documents",
            hint="lower min_df or raise max_df",
        )
    kept = kept.sort_by("term")
    df = kept.column("df").to_numpy().astype(np.int64)
    return kept.column("term").to_pylist(), df, np.log((1.0 + n_documents) / (1.0 + df)) + 1.0


class TextTransform:
    """Documents to rows, with a fixed vocabulary.

    Parameters
    ----------
    tokenizer : str or TextRule
        A key of ``TOKENISERS``, or all of what is done to documents.
    terms : sequence of str
        Term of each feature.
    idf : float64 array, shape (number of terms,)
    hashing : int, optional
        Number of buckets, where terms are buckets.
    """

    def __init__(
        self, tokenizer: str | TextRule, terms: Sequence[str], idf: NDArray[np.float64], hashing: int | None = None
    ) -> None:
        self.rule = TextRule.of(tokenizer)
        self.idf = np.asarray(idf, dtype=np.float64)
        self.hashing = hashing
        self.table = table_of(pa.array(terms, pa.large_string()))

    def transform(self, texts: Any, dtype: Any = np.float64) -> Any:
        """Rows of length 1, or empty, as a ``scipy.sparse.csr_array`` (documents, terms).

        Parameters
        ----------
        texts : list of str or Arrow array of strings
        dtype : numpy.dtype
            What the values are rounded to, which are computed in float64.
        """
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
