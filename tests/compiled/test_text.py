"""Words, the table of terms and hashes, against Python's regular expressions, dictionaries and scikit-learn."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from sklearn.utils import murmurhash3_32

from dboost.compiled.text.counting import count_documents
from dboost.compiled.text.murmur import murmur3
from dboost.compiled.text.terms import Terms
from dboost.compiled.text.words import SLACK, word_edges, words_beyond_ascii
from dboost.data.prepared.text_words import word_characters
from tests.data.unicode_documents import random_documents


def laid_out(texts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Texts side by side and their offsets, with nothing behind them, as Arrow may have them."""
    data = np.frombuffer(b"".join(texts) or b"\0", np.uint8).copy()
    return data, np.cumsum([0, *map(len, texts)]).astype(np.int64)


def term_list(terms: Terms) -> list[bytes]:
    offsets = terms.offsets()
    return [terms.arena[a:b].tobytes() for a, b in zip(offsets[:-1], offsets[1:], strict=True)]


@pytest.mark.parametrize("fold", [True, False])
def test_words_are_the_runs_of_word_characters(fold):
    rng = np.random.default_rng(0)
    texts = [rng.integers(0, 128, n, dtype=np.uint8) for n in [*range(0, 140), 1000]]
    texts += [rng.choice(np.frombuffer(b"aZ_9 ", np.uint8), n) for n in range(0, 200, 3)]
    texts += [np.full(n, ord("Q"), np.uint8) for n in (1, 63, 64, 65, 128)]
    for text in texts:
        low, edges = np.zeros(text.shape[0] + SLACK, np.uint8), np.zeros(text.shape[0] + 2, np.int32)
        count = word_edges(text, 0, text.shape[0], fold, low, edges)
        plain = text.tobytes().decode()
        expected = [match.span() for match in re.finditer(r"\w+", plain)]
        assert edges[:count].reshape(-1, 2).tolist() == [list(span) for span in expected]
        assert low[: text.shape[0]].tobytes().decode() == (plain.lower() if fold else plain)


def test_words_of_any_script_are_the_runs_of_word_characters():
    texts = [text.lower() for text in random_documents(300, 11)] + [
        "",
        "é",
        "éa",
        "a\U0010ffff",
        "\U0001d41a\U0001d41b",
    ]
    data, begins = laid_out([text.encode() for text in texts])
    text = np.empty(data.shape[0], np.uint8)
    offsets, words = np.empty(data.shape[0] // 2 + 2, np.int64), np.empty_like(begins)
    count = words_beyond_ascii(data, begins, word_characters(), text, offsets, words)
    found = [text[a:b].tobytes().decode() for a, b in zip(offsets[:count], offsets[1 : count + 1], strict=True)]
    assert words[-1] == count > 500
    for a, b, plain in zip(words[:-1], words[1:], texts, strict=True):
        assert found[a:b] == re.findall(r"(?u)\b\w\w+\b", plain)


@pytest.mark.full
def test_terms_whose_hashes_agree_are_told_apart():
    rng = np.random.default_rng(1)
    # Of so many terms some share the half of the hash that a slot holds.
    found = {rng.integers(0, 256, length, dtype=np.uint8).tobytes() for length in rng.integers(3, 24, 300_000)}
    # These differ in what lies behind the 16 bytes of the record, or in their length alone.
    found |= {b"0123456789abcdef" + bytes([i]) for i in range(256)} | {b"z\0" * i for i in range(12)} | {b"", b"z"}
    texts = sorted(found)
    rng.shuffle(texts)
    text, offsets = laid_out(texts)
    terms = Terms(1)
    numbers = terms.enter(np.concatenate([text, np.zeros(SLACK, np.uint8)]), offsets)
    assert numbers.tolist() == list(range(len(texts))) and terms.number == len(texts)
    halves = terms.slots[terms.slots != 0] >> np.uint64(32)
    assert np.unique(halves).shape[0] < halves.shape[0]
    assert term_list(terms) == texts
    again = terms.enter(np.concatenate([text, np.zeros(SLACK, np.uint8)]), offsets)
    assert again.tolist() == numbers.tolist() and terms.number == len(texts)


@pytest.mark.parametrize("grams", [(1, 1), (1, 2), (2, 3)])
def test_a_table_grows_while_it_is_filled(grams):
    rng = np.random.default_rng(2)
    texts = [" ".join(f"w{i}" for i in rng.integers(0, 5000, rng.integers(0, 60))) for _ in range(300)]
    texts[150] = " ".join(f"only{i}" for i in range(20_000))
    data, offsets = laid_out([text.encode() for text in texts])
    terms = Terms(1)
    counts = count_documents(data, offsets, terms, grams=grams)
    names = [name.decode() for name in term_list(terms)]
    seen: dict[str, None] = {}
    for d, text in enumerate(texts):
        words = text.split()
        expected: Counter[str] = Counter()
        for size in range(grams[0], grams[1] + 1):
            expected.update(" ".join(words[i : i + size]) for i in range(len(words) - size + 1))
        seen |= dict.fromkeys(expected)
        mine = slice(counts.indptr[d], counts.indptr[d + 1])
        assert [names[i] for i in counts.ids[mine]] == list(expected)
        assert counts.counts[mine].tolist() == list(expected.values())
    assert names == list(seen)
    assert counts.df.tolist() == np.bincount(counts.ids, minlength=len(names)).tolist()
    # A table that may not grow passes over what it does not hold, and stays as it is.
    before = terms.number
    other = count_documents(*laid_out([b"w1 unheard w1"]), terms, grams=grams, adds=False)
    assert terms.number == before and (grams != (1, 1) or other.counts.tolist() == [2])


def test_hashes_are_those_of_scikit_learn():
    rng = np.random.default_rng(3)
    texts = [rng.integers(0, 256, length, dtype=np.uint8).tobytes() for length in [*range(20)] * 20]
    out = np.empty(len(texts), np.int32)
    murmur3(*laid_out(texts), out)
    assert out.tolist() == [murmurhash3_32(text) for text in texts]
