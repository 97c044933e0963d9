"""Tokens, vocabulary and tf-idf, against scikit-learn on the same tokens."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from dboost.data.prepared.text import (
    TermCounts,
    TextTransform,
    bucket_name,
    choose_vocabulary,
    count_texts,
    identifiers,
    merge_counts,
)
from dboost.errors import DataError, UsageError

DOCUMENTS = [
    "The cat sat on the mat, the CAT!",
    "A dog; a cat. Two dogs",
    "",
    "naïve Ökonomie — 3.14 über_all",
    "mat mat mat mat on on x",
    "\tline\nbreaks  and spaces ",
]


def count_terms(texts, hashing=None):
    return count_texts(texts, "words", hashing).frequencies()


def test_identifiers_are_cut():
    for text, parts in [
        ("HTTPServer_v2", ["http", "server"]),
        ("parse_args(self, argv)", ["parse", "args", "self", "argv"]),
        ("getURLFromXMLNode", ["get", "url", "from", "xml", "node"]),
        ("i = x1 + MAX_VALUE", ["max", "value"]),
        ("größeÄndern", ["gr", "öß", "ndern"]),
    ]:
        if "ß" in text:
            # Case is only followed through ASCII letters; what is beyond stays in runs of its own.
            assert "".join(identifiers(text)) and all(part == part.lower() for part in identifiers(text))
        else:
            assert identifiers(text) == parts


def test_no_term_is_left():
    counts = merge_counts([count_terms(DOCUMENTS)])
    with pytest.raises(DataError, match="none of the .* terms is in 6 to 6 of the 6 documents"):
        choose_vocabulary(counts, 6, min_df=6, max_df=1.0, max_features=None)
    with pytest.raises(UsageError, match="max_df is 6 documents, min_df 50"):
        choose_vocabulary(counts, 6, min_df=50, max_df=1.0, max_features=None)
    with pytest.raises(DataError, match="empty vocabulary"):
        choose_vocabulary(count_terms([""]), 1, min_df=1, max_df=1.0, max_features=None)


def test_hashing_adds_what_collides():
    counts = merge_counts([count_terms(DOCUMENTS[:3], 3), count_terms(DOCUMENTS[3:], 3)])
    terms, df, idf = choose_vocabulary(counts, 6, min_df=1, max_df=1.0, max_features=None)
    assert terms == ["#0", "#1", "#2"]
    cut = TfidfVectorizer().build_analyzer()
    buckets = [[bucket_name(word, 3) for word in cut(text)] for text in DOCUMENTS]
    peer = TfidfVectorizer(analyzer=lambda tokens: tokens, sublinear_tf=True)
    expected = peer.fit_transform(buckets).toarray()
    assert peer.get_feature_names_out().tolist() == terms
    found = TextTransform("words", terms, idf, hashing=3).transform(DOCUMENTS)
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-14)
    assert bucket_name("cat", 1000) == f"#{0x9E5E43A8 % 1000}" == "#832"


def test_counts_merge_in_any_order():
    tables = [count_terms([text]) for text in DOCUMENTS]
    one = merge_counts(tables).sort_by("term")
    two = merge_counts([merge_counts(tables[3:]), merge_counts(tables[:3][::-1])]).sort_by("term")
    assert one.equals(two) and one.schema.field("term").type == pa.large_string()


def test_counts_at_odd_addresses_are_moved(capfd):
    table = count_terms(DOCUMENTS)
    raw = bytes(1) + table["df"].to_numpy().tobytes()
    odd = pa.Array.from_buffers(pa.int64(), table.num_rows, [None, pa.py_buffer(raw).slice(1)])
    moved = merge_counts([table.set_column(1, "df", odd)])
    choose_vocabulary(moved, len(DOCUMENTS), min_df=1, max_df=1.0, max_features=3)
    assert moved.sort_by("term").equals(table.sort_by("term"))
    assert "poorly aligned" not in capfd.readouterr().err


@pytest.mark.parametrize("hashing", [None, 29])
@pytest.mark.parametrize("tokenizer", ["words", "identifiers"])
def test_counts_that_were_kept_give_the_rows_of_the_documents(tmp_path, tokenizer, hashing):
    counted = count_texts(DOCUMENTS, tokenizer, hashing)
    terms, _, idf = choose_vocabulary(
        merge_counts([counted.frequencies()]), len(DOCUMENTS), min_df=1, max_df=0.4, max_features=None
    )
    transform = TextTransform(tokenizer, terms, idf, hashing)
    expected = transform.transform(DOCUMENTS)
    counted.save(tmp_path / "counts")
    assert [path.name for path in tmp_path.iterdir()] == ["counts"]
    found = transform.weigh(TermCounts.load(tmp_path / "counts"))
    assert len(counted) == len(DOCUMENTS) and expected.nnz > 5
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    half = transform.transform(DOCUMENTS, np.float32)
    np.testing.assert_array_equal(half.data, expected.data.astype(np.float32))


def test_counts_beyond_16_bits_are_kept(tmp_path):
    count_texts(["many " * 70_000, "few"], "words", None).save(tmp_path / "counts")
    assert TermCounts.load(tmp_path / "counts").parts[0].counts.tolist() == [70_000, 1]
