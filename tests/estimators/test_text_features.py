"""``TextFeatures`` against ``TfidfVectorizer`` and ``HashingVectorizer``: terms, idf and values bit for bit."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

import dboost
from dboost.errors import DataError, UsageError
from tests.data.unicode_documents import random_documents

DOCUMENTS = [
    "The cat sat on the mat, the CAT!",
    "A dog; a cat. Two dogs",
    "",
    "naïve Ökonomie — 3.14 über_all İstanbul ΟΔΟΣ",
    "mat mat mat mat on on x",
    "\tline\nbreaks  and spaces ",
    "internationalisation_of_a_very_long_word internationalisation_of_a_very_long_work",
    "a b c d e",
]


def assert_same(found, expected):
    assert isinstance(found, sparse.csr_array) and found.has_sorted_indices
    expected = expected.copy()
    expected.sort_indices()
    assert found.shape == expected.shape and found.dtype == expected.dtype
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.data, expected.data)


def assert_equals_scikit_learn(texts, others=(), n_threads=None, **options):
    ours, peer = dboost.TextFeatures(n_threads=n_threads, **options), TfidfVectorizer(**options)
    assert_same(ours.fit_transform(texts), peer.fit_transform(texts))
    assert ours.get_feature_names_out().tolist() == peer.get_feature_names_out().tolist()
    assert ours.vocabulary_ == peer.vocabulary_
    if options.get("use_idf", True):
        np.testing.assert_array_equal(ours.idf_, peer.idf_)
        assert ours.idf_.dtype == peer.idf_.dtype
    assert_same(ours.transform([*others, *texts]), peer.transform([*others, *texts]))
    return ours


OPTIONS = [
    {},
    {"ngram_range": (1, 2)},
    {"ngram_range": (2, 3), "min_df": 1},
    {"stop_words": "english"},
    {"stop_words": ["the", "über_all", "mat"], "ngram_range": (1, 3)},
    {"sublinear_tf": True},
    {"binary": True},
    {"min_df": 2},
    {"max_df": 0.2},
    {"min_df": 0.2, "max_df": 3},
    {"use_idf": False},
    {"smooth_idf": False},
    {"norm": "l1"},
    {"norm": None},
    {"lowercase": False},
    {"dtype": np.float32},
    {"dtype": np.float32, "sublinear_tf": True, "norm": "l1"},
    {"dtype": np.float32, "norm": None},
    {"token_pattern": r"(?u)\b\w+\b"},
    {"token_pattern": r"(\w)\w"},
    {"analyzer": "char", "ngram_range": (1, 3)},
    {"analyzer": "char_wb", "ngram_range": (2, 2)},
    {"analyzer": str.split},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options_are_those_of_scikit_learn(options):
    others = ["a bird on the mat", "ΟΔΟΣ unseen words", ""]
    ours = assert_equals_scikit_learn(DOCUMENTS, others, **options)
    assert ours.n_documents_ == len(DOCUMENTS)
    if "binary" not in options and options.get("norm", "l2") is None:
        present = ours.transform(DOCUMENTS).toarray() != 0
        assert ours.document_frequency_.tolist() == present.sum(axis=0).tolist()


@pytest.mark.parametrize("seed", range(6))
def test_random_unicode_documents_are_those_of_scikit_learn(seed):
    options = [
        {}, {"ngram_range": (1, 2), "min_df": 2}, {"lowercase": False}, {"sublinear_tf": True},
        {"stop_words": ["the", "straße", "οδος"]}, {"dtype": np.float32, "norm": "l1"},
    ][seed]  # fmt: skip
    assert_equals_scikit_learn(random_documents(100, seed), random_documents(10, 1000 + seed), **options)


def test_any_number_of_threads_gives_the_same_bits():
    rng = np.random.default_rng(3)
    # More than a megabyte, which is cut into several pieces, in chunks that do not end where pieces do.
    words = np.array([f"w{i}" if i % 7 else f"wört{i}" for i in range(3000)])
    texts = [" ".join(words[(rng.random(60) ** 3 * 3000).astype(int)]) for _ in range(6000)]
    chunked = pa.chunked_array([texts[:1], texts[1:2500], [], texts[2500:]], pa.string())
    options = {"min_df": 3, "max_features": 1500}
    whole = dboost.TextFeatures(n_threads=1, **options)
    learned, expected = whole.fit_transform(texts), whole.transform(texts)
    for n_threads in (1, 2, 3, 7):
        parts = dboost.TextFeatures(n_threads=n_threads, **options)
        assert_same(parts.fit_transform(chunked), learned)
        assert parts.vocabulary_ == whole.vocabulary_ and len(whole.vocabulary_) == 1500
        assert_same(parts.transform(chunked), expected)
    assert_equals_scikit_learn(texts, min_df=3, n_threads=7)


def test_the_most_frequent_terms_and_of_equal_ones_the_first_by_name():
    texts = ["bb bb bb aa aa cc", "dd dd bb", "ee cc"]
    for count, expected in [(1, ["bb"]), (2, ["aa", "bb"]), (4, ["aa", "bb", "cc", "dd"]), (9, list("abcde"))]:
        ours = dboost.TextFeatures(max_features=count).fit(texts)
        assert [name[0] for name in ours.get_feature_names_out()] == [name[0] for name in expected]
    # Frequencies in documents are what counts when terms count once.
    assert list(dboost.TextFeatures(max_features=2, binary=True).fit(texts).vocabulary_) == ["bb", "cc"]


@pytest.mark.parametrize("options", [{}, {"ngram_range": (1, 2)}, {"binary": True}, {"norm": "l1"}, {"norm": None}])
@pytest.mark.parametrize("sign", [True, False])
def test_hashing_is_that_of_scikit_learn(options, sign):
    texts = DOCUMENTS + random_documents(20, 8)
    ours = dboost.TextFeatures(hashing=29, alternate_sign=sign, use_idf=False, **options)
    peer = HashingVectorizer(n_features=29, alternate_sign=sign, **options)
    assert_same(ours.fit_transform(texts), peer.fit_transform(texts))
    assert_same(ours.transform(texts[:3]), peer.transform(texts[:3]))
    assert ours.get_feature_names_out()[[0, 28]].tolist() == ["#00", "#28"]
    assert not hasattr(ours, "vocabulary_") and not hasattr(ours, "idf_")


def test_hashed_terms_have_an_idf():
    ours = dboost.TextFeatures(hashing=2**10, sublinear_tf=True)
    peer = make_pipeline(
        HashingVectorizer(n_features=2**10, alternate_sign=False, norm=None), TfidfTransformer(sublinear_tf=True)
    )
    assert_same(ours.fit_transform(DOCUMENTS), peer.fit_transform(DOCUMENTS))
    np.testing.assert_array_equal(ours.idf_, peer[1].idf_)
    assert_same(ours.transform(["the cat"]), peer.transform(["the cat"]))


ARROW = pa.array(["skipped", *DOCUMENTS], pa.string())
FORMS = {
    "tuple": tuple(DOCUMENTS),
    "generator": lambda: (text for text in DOCUMENTS),
    "bytes": [text.encode() for text in DOCUMENTS],
    "objects": np.array(DOCUMENTS, dtype=object),
    "fixed width": np.array(DOCUMENTS),
    "pandas": pd.Series(DOCUMENTS, index=range(5, 5 + len(DOCUMENTS))),
    "pandas objects": pd.Series(DOCUMENTS, dtype=object),
    "pandas categories": pd.Series(DOCUMENTS, dtype="category"),
    "pandas strings": pd.Series(DOCUMENTS, dtype="string"),
    "polars": pl.Series(DOCUMENTS),
    "arrow": ARROW.slice(1),
    "arrow large": ARROW.cast(pa.large_string()).slice(1),
    "arrow view": ARROW.cast(pa.string_view()).slice(1),
    "arrow dictionary": ARROW.dictionary_encode().slice(1),
    "arrow chunks": pa.chunked_array([DOCUMENTS[:3], [], DOCUMENTS[3:]]),
    "arrow bytes": ARROW.cast(pa.binary()).slice(1),
    "one column": pa.table({"text": ARROW}).slice(1),
    "pandas frame": pd.DataFrame({"text": DOCUMENTS}),
    "polars frame": pl.DataFrame({"text": DOCUMENTS}),
    "record batch": pa.RecordBatch.from_pydict({"text": DOCUMENTS}),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_documents(form):
    values = FORMS[form]
    expected = TfidfVectorizer().fit_transform(DOCUMENTS)
    assert_same(dboost.TextFeatures().fit_transform(values() if callable(values) else values), expected)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_one_column_of_a_table(make):
    table = make({"id": list(range(len(DOCUMENTS))), "text": DOCUMENTS})
    ours = dboost.TextFeatures(column="text")
    assert_same(ours.fit_transform(table), TfidfVectorizer().fit_transform(DOCUMENTS))
    with pytest.raises(UsageError, match="a table of 2 columns, and none is named; set column; there are 'id', 'text'"):
        dboost.TextFeatures().fit(table)
    with pytest.raises(DataError, match="no such column; column 'body'; there are 'id', 'text'"):
        dboost.TextFeatures(column="body").fit(table)
    with pytest.raises(DataError, match="documents of type int64, expected text"):
        dboost.TextFeatures(column="id").fit(table)


BAD_INPUT = [
    ("one text", UsageError, "a single string"),
    (["a text", None], DataError, r"1 documents are missing \(null or NaN\), the first is document 1"),
    (np.array(["a text", np.nan], dtype=object), DataError, "the first is document 1"),
    (pd.Series(["a text", None, None]), DataError, "2 documents are missing"),
    (["a text", 3], DataError, "document 1 is an int, expected text"),
    ([3.5, "a text"], DataError, "document 0 is a float, expected text"),
    (np.array([["a"], ["b"]]), UsageError, "2 dimensions, expected 1"),
    (np.arange(3), DataError, "type int64, expected text"),
    (7, UsageError, "the documents are an int"),
    (["half \ud800 pair"], DataError, "half of a surrogate pair"),
    ([b"\xff\xfe"], DataError, "not UTF-8"),
    ([], DataError, "empty vocabulary"),
    (["", "a b"], DataError, "empty vocabulary"),
]


@pytest.mark.parametrize("values, error, message", BAD_INPUT, ids=[bad[2] for bad in BAD_INPUT])
def test_what_is_no_document_is_refused(values, error, message):
    with pytest.raises(error, match=message):
        dboost.TextFeatures().fit(values)


def test_bytes_that_claim_to_be_text_are_refused():
    raw = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(np.array([0, 2, 6], np.int32)), pa.py_buffer(b"okab\xff!")]
    )
    with pytest.raises(DataError, match="document 1 is not UTF-8: invalid start byte at its byte 2"):
        dboost.TextFeatures().fit(raw)


def test_a_document_that_is_too_long_is_refused():
    offsets = np.array([0, 3, 4 + (1 << 30)])
    # Memory that nobody touches takes no room.
    text = pa.py_buffer(np.empty(offsets[-1], np.uint8))
    claimed = pa.Array.from_buffers(pa.large_string(), 2, [None, pa.py_buffer(offsets), text])
    with pytest.raises(DataError, match="document 1 has more than 1024 MiB"):
        dboost.TextFeatures().fit(claimed)


BAD_PARAMETERS = [
    ({"min_df": 1.5}, "min_df=1.5"),
    ({"max_df": 0}, "max_df=0"),
    ({"max_df": True}, "max_df=True"),
    ({"min_df": 3, "max_df": 2}, "max_df is 2 documents, min_df 3"),
    ({"max_features": 0}, "max_features=0"),
    ({"ngram_range": (2, 1)}, r"ngram_range=\(2, 1\)"),
    ({"ngram_range": 2}, "ngram_range=2; give two numbers"),
    ({"stop_words": "german"}, "stop_words='german'"),
    ({"analyzer": "letters"}, "use one of word, char, char_wb"),
    ({"norm": "l3"}, "norm='l3'"),
    ({"dtype": np.int32}, "dtype="),
    ({"token_pattern": "(a)(b)"}, "more than one group"),
    ({"alternate_sign": True}, "without hashing"),
    ({"hashing": 0}, "hashing=0"),
    ({"hashing": 8, "min_df": 2}, "no meaning with hashing"),
    ({"hashing": 8, "alternate_sign": True}, "negative counts"),
    ({"hashing": 8, "smooth_idf": False}, "infinite"),
]


@pytest.mark.parametrize("parameters, message", BAD_PARAMETERS, ids=[bad[1] for bad in BAD_PARAMETERS])
def test_parameters_without_meaning_are_refused(parameters, message):
    with pytest.raises(UsageError, match=message):
        dboost.TextFeatures(**parameters).fit(DOCUMENTS)


def test_an_analyzer_that_does_not_give_strings():
    with pytest.raises(DataError, match="the analyzer returned an int"):
        dboost.TextFeatures(analyzer=lambda text: [1]).fit(DOCUMENTS)
    ours = dboost.TextFeatures(analyzer=lambda text: ["", text]).fit(["a b", "c"])
    assert list(ours.vocabulary_) == ["", "a b", "c"]


def test_copies_pickles_and_parameters():
    ours = dboost.TextFeatures(min_df=2, stop_words=["the"]).fit(DOCUMENTS)
    expected = ours.transform(DOCUMENTS)
    assert ours.vocabulary_ == {"cat": 0, "mat": 1, "on": 2}
    again = pickle.loads(pickle.dumps(ours))
    assert_same(again.transform(DOCUMENTS), expected)
    assert again.vocabulary_ == ours.vocabulary_
    fresh = clone(ours)
    assert fresh.get_params() == ours.get_params() and not hasattr(fresh, "vocabulary_")
    with pytest.raises(ValueError, match="not fitted"):
        fresh.transform(DOCUMENTS)
    # Fitted anew, nothing of the former terms is left.
    assert ours.set_params(min_df=1).fit(["dog"]).vocabulary_ == {"dog": 0}
    assert ours.transform(["dog cat"]).toarray().tolist() == [[1.0]]


# scikit-learn gives its checks numbers, which documents are not: its battery skips transformers of text, its own too.
# These are about the object itself.
CHECKS = [
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_get_params_invariance",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
]


@pytest.mark.parametrize("check", CHECKS)
def test_scikit_learn_check(check):
    getattr(estimator_checks, check)("TextFeatures", dboost.TextFeatures())


def test_the_longest_words_and_many_terms():
    rng = np.random.default_rng(0)
    stems = ["".join(rng.choice(list("abcdefgh"), length)) for length in range(1, 40)]
    texts = [" ".join(f"{stem}{i % 50}" for stem in stems) for i in range(200)]
    texts.append("x" * 100_000 + " " + "x" * 99_999 + "y")
    ours = assert_equals_scikit_learn(texts)
    assert len(ours.vocabulary_) > 1500
    assert re.fullmatch("x{99999}y", max(ours.vocabulary_))
