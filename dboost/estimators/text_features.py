"""Documents to rows of tf-idf: ``TextFeatures``, and ``DocumentFeatures``, what ``dboost prepare`` made of a folder.

Covers: the parameters, fitting, transforming, what is known after fitting, the form that is saved.
Does not cover: the loops and what they are given (``dboost.data.prepared``), the files (``transform_files``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dboost.data.features.arrow import arrow_of, documents_of
from dboost.data.manifest import Manifest, read_vocabulary
from dboost.data.named_columns import as_named, refuse_unread
from dboost.data.named_columns import names_of as column_names
from dboost.data.prepared.text import TOKENISERS, TextRule, TextTransform, choose_vocabulary, term_counts
from dboost.data.prepared.text_arrow import documents
from dboost.data.prepared.text_terms import (
    choose,
    count_piece,
    count_pieces,
    join,
    names_of,
    pieces_of,
    total_counts,
)
from dboost.data.prepared.text_weights import Buckets, Columns, Weights, first_seen, present, rows
from dboost.data.prepared.text_words import WORDS, WordRule, table_of
from dboost.engine.local import LocalEngine
from dboost.errors import DataError, ModelFormatError, UsageError, type_name
from dboost.estimators.counted_parts import Part, counted_parts, merged_terms
from dboost.estimators.params import parameters
from dboost.estimators.transformed_rows import Behind, is_lazy, rows_of_parts, with_names
from dboost.files.documents import Document, decode_names, encode_names, expect_array
from dboost.hypotheses.base import is_whole

SCHEMA = 1
# It says where the work is done, and is no part of what is done.
_OF_THE_PROCESS = "n_threads"
ANALYZERS = ("word", "char", "char_wb")


@parameters
class TextFeatures(TransformerMixin, BaseEstimator):
    r"""Documents to rows of tf-idf, with the terms, weights and values of scikit-learn's ``TfidfVectorizer``.

    Words are cut, counted and weighed by compiled loops over Arrow's string buffers, on all cores; documents with
    characters beyond ASCII are lower-cased by Python. With another `token_pattern` than the default, or another
    `analyzer` than ``"word"``, all documents are cut by Python, which is slower.

    Terms, document frequencies, idf and values equal those of ``TfidfVectorizer`` with the same parameters bit for bit,
    ``fit_transform`` those of its ``fit_transform`` and ``transform`` those of its ``transform``, on any number of
    threads. (The two may differ in the last bit, because the squares of a row are added in another order.) Two things
    are settled here that scikit-learn leaves open: which terms `max_features` keeps of equally frequent ones, the first
    by name; and the entries of a row, which are always sorted by feature.

    Parameters
    ----------
    column : str, optional
        The column of documents, when tables are given; a table of one column needs none.
    lowercase : bool, default True
        Whether documents are lower-cased first.
    token_pattern : str, default ``r"(?u)\b\w\w+\b"``
        Regular expression of a word. A word is what its one group matches, if it has one.
    ngram_range : (int, int), default (1, 1)
        Fewest and most words of a term; of characters for the analyzers of characters.
    stop_words : {"english"} or iterable of str, optional
        Words that are left out before terms are formed. ``"english"`` is the list of scikit-learn.
    analyzer : {"word", "char", "char_wb"} or callable, default "word"
        ``"char"`` and ``"char_wb"`` are those of ``TfidfVectorizer``. A callable gives the terms of a document, and
        takes the place of all parameters above but `column`.
    min_df, max_df : int or float, default 1 and 1.0
        A term is kept when it is in at least `min_df` and at most `max_df` documents: a number of documents, or as a
        float a share of them.
    max_features : int, optional
        Keep the most frequent of these terms.
    hashing : int, optional
        Number of features, when terms are to be hashed instead of listed: a term is then the remainder of its hash, as
        in ``HashingVectorizer``. Memory does not grow with the number of terms; names are lost, and `min_df`, `max_df`
        and `max_features` have no meaning.
    alternate_sign : bool, default False
        With `hashing`, whether half of the terms count negatively, so that terms that share a feature cancel on
        average. It needs ``use_idf=False`` and ``sublinear_tf=False``, which are not defined for negative counts.
    binary : bool, default False
        Whether a term counts once in a document that has it.
    norm : {"l2", "l1", None}, default "l2"
        What each row is scaled to: length 1, absolute sum 1, or nothing.
    use_idf : bool, default True
        Whether counts are multiplied by ln(n / df) + 1, with n documents, of which df have the term.
    smooth_idf : bool, default True
        Whether 1 is added to n and df.
    sublinear_tf : bool, default False
        Whether a count tf becomes 1 + ln(tf).
    dtype : {numpy.float64, numpy.float32}, default numpy.float64
        Type of the weights and of all arithmetic but the sums of a row, which are float64.
    n_threads : int, optional
        Threads; by default the cores that this process may use. The result does not depend on it.

    Attributes
    ----------
    vocabulary_ : dict of str to int
        Feature of each term, made when it is asked for; not there with `hashing`.
    idf_ : array, shape (n_features,)
        Not there with ``use_idf=False``.
    document_frequency_ : int64 array, shape (n_features,)
        Number of the documents it was fitted on that have the term.
    n_documents_ : int
        Number of the documents it was fitted on.

    Raises
    ------
    UsageError
        A parameter, or a combination of them, has no meaning.
    DataError
        Missing documents, something that is not text, or no term that is left.

    Examples
    --------
    >>> from dboost import TextFeatures
    >>> texts = ["the cat sat", "the dog sat", "a dog, a cat"]
    >>> features = TextFeatures(min_df=2)
    >>> X = features.fit_transform(texts)
    >>> X.shape
    (3, 4)
    >>> features.get_feature_names_out().tolist()
    ['cat', 'dog', 'sat', 'the']
    >>> features.document_frequency_.tolist()
    [2, 2, 2, 2]
    >>> features.transform(["the bird"]).toarray().tolist()
    [[0.0, 0.0, 0.0, 1.0]]
    """

    column: str | None = None
    lowercase: bool = True
    token_pattern: str = WORDS
    ngram_range: tuple[int, int] = (1, 1)
    stop_words: Any = None
    analyzer: Any = "word"
    min_df: int | float = 1
    max_df: int | float = 1.0
    max_features: int | None = None
    hashing: int | None = None
    alternate_sign: bool = False
    binary: bool = False
    norm: str | None = "l2"
    use_idf: bool = True
    smooth_idf: bool = True
    sublinear_tf: bool = False
    dtype: Any = np.float64
    n_threads: int | None = None

    # Both are made from the terms when they are asked for, and again after a pickle.
    _numbers = _found_table = cast(Any, None)

    def fit(self, X: Any, y: Any = None) -> TextFeatures:
        """Learn the terms and their document frequencies.

        Parameters
        ----------
        X : iterable of str, array, Series or table
            Documents: a list, a NumPy array, a pandas or polars Series, an Arrow array, or a table with `column`. The
            parts of a dask Series or DataFrame are counted on its workers.
        y : object, optional
            Not used; there for pipelines.

        Returns
        -------
        TextFeatures
            Itself.
        """
        if is_lazy(X):
            self._check()
            counted, n_terms = counted_parts(
                self._lazy(X), partial(_of_one_text, self), _merged_texts, {"": self.limits}
            )
            return self.settle(counted[1][""], n_terms[""])
        self._learn(X, transforms=False)
        return self

    def _lazy(self, X: Any) -> Any:
        """A dask Series of documents, or the one column of a dask DataFrame."""
        if hasattr(X, "map_partitions") and hasattr(X, "columns") and X.ndim == 2:
            column = self.column if self.column is not None or len(X.columns) != 1 else X.columns[0]
            if column not in list(X.columns):
                raise DataError("no such column", column=str(column), hint=f"there are {list(X.columns)[:10]}")
            return X[[column]]
        if not hasattr(X, "map_partitions"):
            raise UsageError(f"X is a dask {type(X).__name__}", hint="give a dask Series, or a DataFrame and column=")
        return X

    def count_terms(self, X: Any) -> tuple[int, Any]:
        """How many documents there are, and their terms (``TermCounts``); in how many each bucket is, where hashed."""
        buckets = self._buckets()
        counted = count_piece(documents(X, self.column), self._rule())
        if buckets is None:
            if self.binary:
                # so that a term is as frequent as its documents are many
                counted = replace(
                    counted, counts=[one._replace(counts=np.ones_like(one.counts)) for one in counted.counts]
                )
            return len(counted), term_counts(counted)
        df = np.zeros(buckets.n_features, np.int64)
        for counts, columns in buckets.hashed(counted, self.binary):
            df[columns.features] += counts.df
        return len(counted), df

    def count(self, X: Any) -> tuple[int, Any]:
        """What some documents say: how many they are, and in how many each term is. Parts of a corpus add up."""
        number, terms = self.count_terms(X)
        if isinstance(terms, np.ndarray):
            return number, terms
        return number, terms.frequencies().append_column("shard", pa.array(terms.shard.astype(np.int16)))

    @property
    def limits(self) -> dict[str, Any]:
        """``min_df``, ``max_df`` and ``max_features``."""
        return {name: getattr(self, name) for name in ("min_df", "max_df", "max_features")}

    def settle(self, counted: tuple[int, Any], n_terms: int | None = None) -> TextFeatures:
        """Take the terms from merged counts of all documents; `n_terms` counts those that are no more among them."""
        self._check()
        n_documents, counts = counted
        terms, df = None, counts
        if self.hashing is None:
            names, df, _ = choose_vocabulary(counts, n_documents, n_terms=n_terms, **self.limits)
            terms = pa.array(names, pa.large_string())
        return self._adopt(df, n_documents, terms, self._weights().idf(df, n_documents))

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> sparse.csr_array:
        """Learn the terms, and give the rows of the same documents, which are read once.

        Parameters
        ----------
        X : iterable of str, array, Series or table
            As in ``fit``.
        y : object, optional
            Not used; there for pipelines.

        Returns
        -------
        scipy.sparse.csr_array, shape (documents, n_features)
        """
        if fit_params:
            raise UsageError(f"fit_transform takes no {sorted(fit_params)[0]!r}", hint="leave it out")
        if is_lazy(X):
            return self.fit(X).transform(X)
        return self._learn(X, transforms=True)

    def transform(self, X: Any) -> sparse.csr_array:
        """Rows of documents; terms that are no feature are passed over.

        Parameters
        ----------
        X : iterable of str, array, Series or table
            As in ``fit``.

        Returns
        -------
        scipy.sparse.csr_array, shape (documents, n_features); on Dask a lazy dask array of such chunks
        """
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)
        if is_lazy(X):
            return rows_of_parts(
                self._lazy(X), self, self._terms, len(self.document_frequency_), np.dtype(self.dtype), X
            )
        rule, weights, buckets = self._rule(), self._weights(), self._buckets()
        with LocalEngine(self.n_threads) as engine:
            pieces = pieces_of(documents(X, self.column), engine.n_threads)
            counted = count_pieces(pieces, rule, engine, None if buckets is not None else self._table())
            if buckets is not None:
                parts = [part for one in counted for part in buckets.hashed(one, self.binary)]
            else:
                n_features = self.document_frequency_.shape[0]
                parts = [present(part, n_features) for one in counted for part in one.counts]
            return with_names(rows(parts, weights, self._idf, engine), self._terms, _behind(X, self))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The term of each feature; with `hashing` the number of its bucket, as ``#0042``.

        Parameters
        ----------
        input_features : object, optional
            Not used; there for pipelines.

        Returns
        -------
        array of str, shape (n_features,)
        """
        check_is_fitted(self)
        if self._terms is not None:
            return np.array(self._terms.to_pylist(), dtype=object)
        n_features = self.document_frequency_.shape[0]
        width = len(str(n_features - 1))
        return np.array([f"#{bucket:0{width}d}" for bucket in range(n_features)], dtype=object)

    @property
    def vocabulary_(self) -> dict[str, int]:
        """Feature of each term."""
        if getattr(self, "_terms", None) is None:
            raise AttributeError("vocabulary_ is there after fitting without hashing")
        if self._numbers is None:
            self._numbers = {term: j for j, term in enumerate(self._terms.to_pylist())}
        numbers: dict[str, int] = self._numbers
        return numbers

    @property
    def idf_(self) -> NDArray[Any]:
        """Inverse document frequency of each feature."""
        if not hasattr(self, "_idf") or not self.use_idf:
            raise AttributeError("idf_ is there after fitting with use_idf=True")
        return self._idf

    def _learn(self, X: Any, transforms: bool) -> Any:
        rule, weights, buckets = self._rule(), self._weights(), self._buckets()
        self._check_limits()
        with LocalEngine(self.n_threads) as engine:
            pieces = pieces_of(documents(X, self.column), engine.n_threads)
            counted = count_pieces(pieces, rule, engine)
            n_documents = sum(len(one) for one in counted)
            terms: pa.Array | None = None
            if buckets is not None:
                parts = [part for one in counted for part in buckets.hashed(one, self.binary)]
                df = np.zeros(buckets.n_features, np.int64)
                for counts, columns in parts:
                    df[columns.features] += counts.df
            else:
                table, numbers, all_df = join(counted)
                chosen, terms = choose(
                    all_df,
                    n_documents,
                    **self.limits,
                    total=lambda: all_df if self.binary else total_counts(counted, numbers, all_df.shape[0]),
                    names=lambda these: names_of(table, these),
                )
                df = all_df[chosen]
                whole = first_seen(chosen, all_df.shape[0])
                parts = [
                    (part, Columns(whole.column[mine], whole.features, whole.order))
                    for one, mine in zip(counted, numbers, strict=True)
                    for part in one.counts
                ]
            idf = weights.idf(df, n_documents)
            found = rows(parts, weights, idf, engine) if transforms else None
        self._adopt(df, n_documents, terms, idf)
        return None if found is None else with_names(found, terms, _behind(X, self))

    def _table(self) -> Any:
        """The features as the compiled loops look them up."""
        if self._found_table is None:
            self._found_table = table_of(self._terms)
        return self._found_table

    def _rule(self) -> WordRule:
        stop: frozenset[str] = frozenset()
        if isinstance(self.stop_words, str):
            if self.stop_words != "english":
                raise UsageError(f"stop_words={self.stop_words!r}", hint="use 'english', or a list of words")
            from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

            stop = ENGLISH_STOP_WORDS
        elif self.stop_words is not None:
            stop = _word_set(self.stop_words)
        analyzer = self.analyzer
        if isinstance(analyzer, str):
            if analyzer not in ANALYZERS:
                raise UsageError(f"analyzer={analyzer!r}", hint=f"use one of {', '.join(ANALYZERS)}, or a function")
            analyzer = None if analyzer == "word" else self._characters()
        grams = tuple(self.ngram_range) if isinstance(self.ngram_range, tuple | list) else ()
        if len(grams) != 2 or any(isinstance(size, bool) or not isinstance(size, int | np.integer) for size in grams):
            raise UsageError(f"ngram_range={self.ngram_range!r}", hint="give two numbers, such as (1, 2)")
        return WordRule(self.lowercase, self.token_pattern, (int(grams[0]), int(grams[1])), stop, analyzer)

    def _characters(self) -> Any:
        """scikit-learn's own analyzer of characters."""
        from sklearn.feature_extraction.text import CountVectorizer

        vectorizer = CountVectorizer(analyzer=self.analyzer, lowercase=self.lowercase, ngram_range=self.ngram_range)
        return vectorizer.build_analyzer()

    def _weights(self) -> Weights:
        return Weights(**{item.name: getattr(self, item.name) for item in fields(Weights)})

    def _buckets(self) -> Buckets | None:
        if self.hashing is None:
            if self.alternate_sign:
                raise UsageError("alternate_sign=True without hashing", hint="set hashing to the number of features")
            return None
        if not is_whole(self.hashing) or self.hashing > np.iinfo(np.int32).max:
            raise UsageError(f"hashing={self.hashing!r}", hint="give the number of features, for example 2**18")
        if (self.min_df, self.max_df, self.max_features) != (1, 1.0, None):
            raise UsageError(
                "min_df, max_df and max_features have no meaning with hashing", hint="leave them out, or hashing"
            )
        if self.alternate_sign and (self.use_idf or self.sublinear_tf):
            raise UsageError(
                "alternate_sign=True gives negative counts, for which idf and logarithm are not defined",
                hint="set use_idf=False and sublinear_tf=False",
            )
        if self.use_idf and not self.smooth_idf:
            raise UsageError(
                "without smoothing, the idf of a hashed feature that no document has is infinite",
                hint="set smooth_idf=True",
            )
        return Buckets(int(self.hashing), self.alternate_sign)

    def _check(self) -> None:
        """Refuse parameters without meaning."""
        self._rule(), self._weights(), self._buckets()
        self._check_limits()

    def _check_limits(self) -> None:
        for name in ("min_df", "max_df"):
            value = getattr(self, name)
            share = isinstance(value, float | np.floating)
            if not (share and 0 <= value <= 1) and not is_whole(value, 1 if name == "max_df" else 0):
                raise UsageError(f"{name}={value!r}", hint="give a number of documents, or a share between 0.0 and 1.0")
        if self.max_features is not None and not is_whole(self.max_features):
            raise UsageError(f"max_features={self.max_features!r}", hint="give a number of at least 1, or leave it out")

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {name: None for name in ("_found_table", "_numbers") if name in vars(self)}

    def _adopt(self, df: NDArray[np.int64], n_documents: int, terms: Any, idf: NDArray[Any]) -> TextFeatures:
        """Take what was learned; `terms` is an Arrow array, None where terms are hashed."""
        self.document_frequency_, self.n_documents_ = df, n_documents
        self._terms, self._idf = terms, idf
        self._numbers = self._found_table = None
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "document_frequency_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    # ---- as files --------------------------------------------------------------------------------------------------

    def parameters(self) -> dict[str, Any]:
        """The parameters as JSON values, but for what is of the process.

        Raises
        ------
        UsageError
            A function that cuts documents would be code in the folder of a model.
        """
        if callable(self.analyzer):
            raise UsageError(
                "TextFeatures with a function as its analyzer cannot be saved: the folder would hold code",
                hint="use 'word', 'char' or 'char_wb'",
            )
        plain = {name: value for name, value in self.get_params(deep=False).items() if name != _OF_THE_PROCESS}
        plain["dtype"] = np.dtype(self.dtype).name
        plain["ngram_range"] = [int(size) for size in self.ngram_range]
        if self.stop_words is not None and not isinstance(self.stop_words, str):
            plain["stop_words"] = sorted(self.stop_words)
        return plain

    @classmethod
    def of_parameters(cls, given: Any) -> TextFeatures:
        """An unfitted transform of ``parameters``; nothing in them is trusted."""
        known = set(cls().get_params(deep=False)) - {_OF_THE_PROCESS}
        if set(given) != known or given["dtype"] not in ("float64", "float32"):
            raise UsageError("expected those of TextFeatures")
        dtype = np.dtype(given["dtype"]).type
        made = cls(**{**given, "dtype": dtype, "ngram_range": tuple(given["ngram_range"])})
        made._check()
        return made

    def to_document(self) -> dict[str, Any]:
        """All but the terms, as JSON values."""
        check_is_fitted(self)
        return {"schema": SCHEMA, "n_documents": self.n_documents_, "parameters": self.parameters()}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What was learned."""
        found: dict[str, NDArray[Any]] = {"document_frequency": self.document_frequency_, "idf": self._idf}
        if self._terms is not None:
            found["terms"], found["term_ends"] = encode_names(self._terms.to_pylist())
        return found

    @classmethod
    def from_files(cls, document: Document, arrays: Mapping[str, NDArray[Any]]) -> TextFeatures:
        """The transform that was saved; nothing in the files is trusted."""
        document.expect_schema(SCHEMA)
        file, given = document.file, dict(document.mapping("parameters"))
        try:
            made = cls.of_parameters(given)
        except (UsageError, DataError, TypeError, ValueError) as error:
            raise ModelFormatError(f"field parameters: {error}", file=file) from error
        df = arrays.get("document_frequency", np.zeros(0, np.int64))
        n_features = df.shape[0] if df.ndim == 1 else 0
        df = expect_array(arrays, "document_frequency", np.int64, (n_features,), file)
        idf = expect_array(arrays, "idf", np.dtype(given["dtype"]), (n_features,), file)
        terms = decode_names(arrays.get("terms"), arrays.get("term_ends"), n_features, file)
        hashed = made.hashing is not None
        if n_features < 1 or hashed != (terms is None) or (hashed and n_features != made.hashing):
            raise ModelFormatError("the terms are not those of the parameters", file=file)
        if terms is not None and len(set(terms)) < n_features:
            raise ModelFormatError("two features have the same term", file=file)
        found = None if terms is None else pa.array(terms, pa.large_string())
        return made._adopt(df, document.count("n_documents"), found, idf)


def _behind(X: Any, features: TextFeatures) -> Behind | None:
    """What the rows were made from, where it is a table, whose other columns may be asked for."""
    return Behind(X, features) if column_names(X) else None


def _word_set(words: Iterable[Any]) -> frozenset[str]:
    found = frozenset(words)
    for word in found:
        if not isinstance(word, str):
            raise DataError(f"stop_words holds {type_name(word)}, expected strings")
    return found


def _of_one_text(features: TextFeatures, part: Any) -> Part:
    """What the documents of a part say. Runs on workers."""
    return {}, {"": features.count(part)}, 0


def _merged_texts(parts: Sequence[Part]) -> Part:
    return {}, merged_terms([part[1] for part in parts]), 0


class DocumentFeatures(TransformerMixin, BaseEstimator):
    """Documents to the features that a model was trained on, with the vocabulary of its prepared folder.

    `text`: Text columns; several are joined by a newline.
    `tokenizer`: How documents are cut into terms, and what counts become, as in ``dboost prepare``.
    `hashing`: Number of buckets, where terms are hashed.
    `idf`: float64 array, shape (number of terms,).

    Examples
    --------
    >>> features = DocumentFeatures(("text",), "words", None, ["cat", "dog"], np.array([1.0, 1.0]))
    >>> features.transform(["a cat", "no dog, a dog"]).toarray().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def __init__(self, text: Any, tokenizer: str | TextRule, hashing: int | None, terms: Any, idf: Any) -> None:
        self.text = text
        self.tokenizer = tokenizer
        self.hashing = hashing
        self.terms = terms
        self.idf = idf

    @classmethod
    def of_prepared(cls, manifest: Manifest) -> DocumentFeatures | None:
        """The transform of a prepared folder; None where its features came from no documents."""
        settings, vocabulary = manifest.settings, manifest.vocabulary
        if vocabulary is None or "tokenizer" not in settings:
            return None
        terms, _, idf = read_vocabulary(manifest.root, vocabulary)
        rule = TextRule.from_settings(settings)
        return cls(tuple(settings["text"]), rule, settings["hashing"], tuple(terms), idf)

    def fit(self, X: Any, y: Any = None) -> DocumentFeatures:
        """Refused (UsageError): the vocabulary is that of the prepared folder."""
        raise UsageError("the vocabulary of a prepared folder is not learned again", hint="use dboost.TextFeatures")

    def transform(self, X: Any) -> sparse.csr_array:
        """Rows of documents, or of a table with the text columns, with the float32 values of ``dboost prepare``."""
        # buckets of hashed terms have no names
        names = self.terms if self.hashing is None else None
        return with_names(self._made().transform(self.documents(X), np.float32), names)

    def documents(self, X: Any) -> Any:
        """The documents of a table as one Arrow array of texts; others as they are."""
        refuse_unread(X)
        X = as_named(X)
        if not hasattr(X, "columns"):
            return X
        names = [str(name) for name in column_names(X)]
        parts = []
        for name in self.text:
            if name not in names:
                raise DataError("the text column of the model is not there", column=name, hint=f"there are {names[:8]}")
            parts.append(documents_of(name, arrow_of(name, X[name]), "refuse"))
        if len(parts) == 1:
            return parts[0]
        return pc.binary_join_element_wise(*parts, pa.scalar("\n", pa.large_string()))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The term of each feature; `input_features` is there for pipelines."""
        return np.array(list(self.terms), dtype=object)

    @property
    def rule(self) -> TextRule:
        """How documents are cut into terms, and what their counts become."""
        return TextRule.of(self.tokenizer)

    def _made(self) -> TextTransform:
        found: TextTransform | None = self.__dict__.get("_transform")
        if found is None:
            found = self._transform = TextTransform(self.tokenizer, list(self.terms), self.idf, self.hashing)
        return found

    def __getstate__(self) -> dict[str, Any]:
        # The table of terms is made again where it is needed.
        return {name: value for name, value in super().__getstate__().items() if name != "_transform"}

    def __sklearn_is_fitted__(self) -> bool:
        return True

    # ---- as files --------------------------------------------------------------------------------------------------

    def to_document(self) -> dict[str, Any]:
        """All but the terms, as JSON values."""
        about = {"text": list(self.text), "hashing": self.hashing, **self.rule.about()}
        return {"schema": SCHEMA, **about}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The terms and their weights."""
        names, ends = encode_names(list(self.terms))
        return {"terms": names, "term_ends": ends, "idf": np.asarray(self.idf, np.float64)}

    @classmethod
    def from_files(cls, document: Document, arrays: dict[str, NDArray[Any]]) -> DocumentFeatures:
        """The transform that was saved; nothing in the files is trusted."""
        document.expect_schema(SCHEMA)
        text = document.strings("text") or ()
        if not text or len(set(text)) < len(text):
            raise ModelFormatError("field text: expected distinct names, at least one", file=document.file)
        hashing = None if document.fields.get("hashing") is None else document.count("hashing")
        idf = arrays.get("idf", np.zeros(0))
        terms = decode_names(arrays.get("terms"), arrays.get("term_ends"), idf.shape[0], document.file)
        if terms is None or not terms or len(set(terms)) < len(terms):
            raise ModelFormatError("the terms are missing, or some are there twice", file=document.file)
        idf = expect_array(arrays, "idf", np.float64, (len(terms),), document.file)
        document.choice("tokenizer", tuple(TOKENISERS))
        try:
            rule = TextRule.from_settings(document.fields)
        except (UsageError, TypeError) as error:
            raise ModelFormatError(f"how documents are read has no meaning: {error}", file=document.file) from error
        return cls(tuple(text), rule, hashing, terms, idf)
