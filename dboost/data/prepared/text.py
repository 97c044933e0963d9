"""Documents to rows of tf-idf.

Covers: the tokenisers, counting terms of a chunk of documents, choosing the vocabulary, and the transform.
Does not cover: reading and writing files (``prepare``).

The weights are those of scikit-learn's ``TfidfVectorizer(sublinear_tf=True)``: (1 + ln tf) * idf with
idf = ln((1 + documents) / (1 + document frequency)) + 1, each row scaled to length 1.

Tokenisers:

- ``"words"``: lower-cased runs of two or more word characters, the regular expression ``\\w\\w+``.
- ``"identifiers"``: for source text. Runs of letters, cut at underscores, digits and changes of case (``HTTPServer_v2``
  gives ``http`` and ``server``), lower-cased, two letters or more.
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse

from dboost.errors import DataError, UsageError

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


def _flat(texts: Sequence[str], tokeniser: Callable[[str], list[str]]) -> tuple[list[str], NDArray[np.int64]]:
    """All tokens in a row, and the document of each."""
    tokens = [tokeniser(text) for text in texts]
    lengths = np.fromiter(map(len, tokens), dtype=np.int64, count=len(tokens))
    return list(chain.from_iterable(tokens)), np.repeat(np.arange(len(tokens), dtype=np.int64), lengths)


def _distinct(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct keys in order and their counts; faster than np.unique where most keys are distinct."""
    ordered = np.sort(keys)
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    return ordered[starts], np.diff(starts, append=ordered.shape[0])


def count_terms(texts: Sequence[str], tokenizer: str, hashing: int | None) -> pa.Table:
    """Document and term frequency of every term of some documents, exact.

    Returns
    -------
    pyarrow.Table
        Columns ``term``, ``df``, ``tf``.
    """
    tokens, documents = _flat(texts, get_tokeniser(tokenizer))
    number: defaultdict[str, int] = defaultdict()
    number.default_factory = number.__len__
    ids = np.fromiter(map(number.__getitem__, tokens), dtype=np.int64, count=len(tokens))
    terms = list(number)
    if hashing is not None:
        buckets: defaultdict[str, int] = defaultdict()
        buckets.default_factory = buckets.__len__
        ids = np.array([buckets[bucket_name(term, hashing)] for term in terms], dtype=np.int64)[ids]
        terms = list(buckets)
    keys, _ = _distinct(documents * max(len(terms), 1) + ids)
    df = np.bincount(keys % max(len(terms), 1), minlength=len(terms)).astype(np.int64)
    tf = np.bincount(ids, minlength=len(terms)).astype(np.int64)
    return pa.table({"term": pa.array(terms, pa.large_string()), "df": df[: len(terms)], "tf": tf[: len(terms)]})


def merge_counts(tables: Sequence[pa.Table]) -> pa.Table:
    """Add the counts of several tables; exact, nothing is pruned."""
    # Tables that came over a network may lie at odd addresses, of which Arrow's grouping and sorting warn. Joining two
    # or more chunks copies them to even ones.
    joined = pa.concat_tables([*tables, tables[0].slice(0, 0)]).combine_chunks()
    total = joined.group_by("term").aggregate([("df", "sum"), ("tf", "sum")])
    return pa.table({"term": total.column("term"), "df": total.column("df_sum"), "tf": total.column("tf_sum")})


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


class _Hashed(dict[str, int]):
    """Token to feature number through buckets, remembered."""

    def __init__(self, terms: Sequence[str], buckets: int) -> None:
        super().__init__()
        self.numbers = {term: j for j, term in enumerate(terms)}
        self.buckets = buckets

    def __missing__(self, token: str) -> int:
        found = self.numbers.get(bucket_name(token, self.buckets), -1)
        self[token] = found
        return found


class _Listed(dict[str, int]):
    """Token to feature number, -1 for tokens outside the vocabulary (which are not remembered)."""

    def __missing__(self, token: str) -> int:
        return -1


class TextTransform:
    """Documents to rows, with a fixed vocabulary.

    Parameters
    ----------
    tokenizer : str
        A key of ``TOKENISERS``.
    terms : sequence of str
        Term of each feature.
    idf : float64 array, shape (number of terms,)
    hashing : int, optional
        Number of buckets, where terms are buckets.
    """

    def __init__(
        self, tokenizer: str, terms: Sequence[str], idf: NDArray[np.float64], hashing: int | None = None
    ) -> None:
        self.tokenise = get_tokeniser(tokenizer)
        self.idf = np.asarray(idf, dtype=np.float64)
        numbers: dict[str, int]
        if hashing is None:
            numbers = _Listed((term, j) for j, term in enumerate(terms))
        else:
            numbers = _Hashed(terms, hashing)
        self._lookup = numbers.__getitem__

    def transform(self, texts: Sequence[str]) -> Any:
        """Rows of length 1, or empty, as a ``scipy.sparse.csr_array`` of float64 (documents, terms)."""
        tokens, documents = _flat(texts, self.tokenise)
        ids = np.fromiter(map(self._lookup, tokens), dtype=np.int64, count=len(tokens))
        known = ids >= 0
        width = self.idf.shape[0]
        keys, tf = _distinct(documents[known] * width + ids[known])
        rows, columns = np.divmod(keys, width)
        values = (1.0 + np.log(tf)) * self.idf[columns]
        norms = np.sqrt(np.bincount(rows, weights=values * values, minlength=len(texts)))
        values /= norms[rows]
        indptr = np.zeros(len(texts) + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows, minlength=len(texts)), out=indptr[1:])
        return sparse.csr_array((values, columns.astype(np.int32), indptr), shape=(len(texts), width))
