"""What a word of a document is, and what a term is made of.

Covers: ``WordRule``, and the words of documents that the compiled loops do not cut themselves.
Does not cover: counting them (``text_terms``).

By scikit-learn's default a word is a run of two or more word characters of the lower-cased text,
``(?u)\\b\\w\\w+\\b``. In ASCII text it is found by a compiled loop. What is beyond ASCII has rules of its own for
letters and for lower case (``'İ'.lower()`` is two characters, of which one is no word character; what becomes of a
sigma depends on what follows), which Python and its module ``re`` know: such a document is lower-cased by Python, and
cut by a loop that has asked ``re`` once for every character. Any other rule is followed by Python alone, which is
slower; the words enter the same table.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dboost.compiled.text.counting import NO_FOREIGN, Foreign
from dboost.compiled.text.terms import Terms
from dboost.compiled.text.words import SLACK, not_ascii, words_beyond_ascii
from dboost.data.prepared.text_arrow import Segment
from dboost.errors import DataError, UsageError, type_name

WORDS = r"(?u)\b\w\w+\b"


@dataclass(frozen=True)
class WordRule:
    """How documents become terms."""

    lowercase: bool = True  # Whether the text is lower-cased first.
    # Regular expression of a word; one group in it is taken instead of the whole match. Any but the default is matched
    # by Python, document after document.
    token_pattern: str = WORDS
    ngram_range: tuple[int, int] = (1, 1)  # Fewest and most words of a term.
    stop_words: frozenset[str] = frozenset()  # Words that are left out before terms are formed.
    analyzer: Callable[[str], Any] | None = None  # From a document to its terms, by which everything above is replaced.

    def __post_init__(self) -> None:
        fewest, most = self.ngram_range
        if not 1 <= fewest <= most:
            raise UsageError(
                f"ngram_range={self.ngram_range!r}", hint="give the fewest and the most words of a term, such as (1, 2)"
            )
        try:
            groups = re.compile(self.token_pattern).groups
        except re.error as fault:
            raise UsageError(f"token_pattern={self.token_pattern!r} is no regular expression: {fault}") from None
        if groups > 1:
            raise UsageError(
                f"token_pattern={self.token_pattern!r} has more than one group",
                hint="use at most one; (?:...) groups without capturing",
            )

    @property
    def grams(self) -> tuple[int, int]:
        """Fewest and most words of a term for the compiled loop."""
        return (1, 1) if self.analyzer is not None else self.ngram_range

    @property
    def fast(self) -> bool:
        """Whether ASCII documents are cut by a compiled loop."""
        return self.analyzer is None and self.token_pattern == WORDS

    def stop_table(self) -> Terms | None:
        """The stop words, as the compiled loop looks them up."""
        if not self.stop_words or self.analyzer is not None:
            return None
        return table_of(pa.array(sorted(self.stop_words), pa.large_string()))

    def words(self, text: str) -> list[str]:
        """Words of a document as Python finds them; terms, where there is an analyzer."""
        if self.analyzer is None:
            return re.findall(self.token_pattern, text.lower() if self.lowercase else text)
        return list(self.analyzer(text))

    def foreign(self, segment: Segment) -> Foreign:
        """The words of documents that no compiled loop cuts."""
        flags = np.ones(len(segment), np.bool_)
        if self.fast and not not_ascii(segment.data, segment.offsets, flags):
            return NO_FOREIGN
        places = np.flatnonzero(flags)
        if self.fast:
            return self._beyond_ascii(segment, places)
        found = [self.words(segment.text(place)) for place in places.tolist()]
        which = np.full(len(segment), -1, np.int64)
        which[places] = np.arange(places.shape[0])
        words = np.zeros(places.shape[0] + 1, np.int64)
        np.cumsum([len(one) for one in found], out=words[1:])
        text, offsets = _joined(list(chain.from_iterable(found)))
        return Foreign(which, text, offsets, words)

    def _beyond_ascii(self, segment: Segment, places: NDArray[np.int64]) -> Foreign:
        """The words of some documents by the default rule."""
        texts = (segment.text(place) for place in places.tolist())
        lowered = [(text.lower() if self.lowercase else text).encode() for text in texts]
        begins = np.zeros(len(lowered) + 1, np.int64)
        np.cumsum([len(one) for one in lowered], out=begins[1:])
        data = np.frombuffer(b"".join(lowered), np.uint8)
        which = np.full(len(segment), -1, np.int64)
        which[places] = np.arange(places.shape[0])
        text = np.empty(data.shape[0] + SLACK, np.uint8)
        offsets = np.empty(data.shape[0] // 2 + 2, np.int64)
        words = np.empty_like(begins)
        n_words = words_beyond_ascii(data, begins, word_characters(), text, offsets, words)
        return Foreign(which, text, offsets[: n_words + 1], words)


@cache
def word_characters() -> NDArray[np.bool_]:
    """Whether each code point is a word character to ``re``; surrogates are none."""
    found = np.zeros(0x110000, np.bool_)
    for begin, end in ((0, 0xD800), (0xE000, 0x110000)):
        characters = np.arange(begin, end, dtype="<u4").tobytes().decode("utf-32-le")
        for run in re.finditer(r"\w+", characters):
            found[begin + run.start() : begin + run.end()] = True
    return found


def _joined(words: list[Any]) -> tuple[Any, Any]:
    """Words one after the other, with slack behind them, and where each begins and ends."""
    for word in words if not all(map(str.__instancecheck__, words)) else ():
        if not isinstance(word, str):
            raise DataError(f"the analyzer returned {type_name(word)} among the terms of a document, expected strings")
    try:
        array = pa.array(words, pa.large_string())
    except UnicodeEncodeError:
        raise DataError("the analyzer returned a term with half of a surrogate pair") from None
    return text_and_offsets(array)


def text_and_offsets(array: pa.Array) -> tuple[Any, Any]:
    """The bytes of an array of large strings, with slack behind them, and where each begins and ends, from 0 on."""
    offsets = np.zeros(1, np.int64)
    if len(array):
        offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
    size = int(offsets[-1] - offsets[0])
    text = np.zeros(size + SLACK, np.uint8)
    if size:
        text[:size] = np.frombuffer(array.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    return text, offsets - offsets[0]


def table_of(terms: pa.Array) -> Terms:
    """A table in which each term has the number of its place; they are distinct."""
    text, offsets = text_and_offsets(terms)
    table = Terms(len(terms))
    table.enter(text, offsets)
    return table
