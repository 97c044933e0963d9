"""Random documents from all of Unicode, with what is special about case and word characters more often than chance."""

from __future__ import annotations

import unicodedata

import numpy as np

# Two characters when lower-cased, no letter when lower-cased, final sigma, sharp s, dotless i, digraphs, digits and
# numerals of other scripts, joiners, combining marks, underscores, halfwidth and mathematical letters.
_SPECIAL = (
    "İıßẞΣσςſKÅǅ½²Ⅷ٣३๓𝟘_‿‍‌́̇̈־ªº·'’-Ａａ𝐀𝓏ﬁŉǰᾳﬀ\u1e9e\u0345𐐀𐐨ꙮ中文字ไทยअआ한글אבعرب🙂👩‍👩‍👧\x00\x1c\x85\u2028\ufeff\ufffd"
)
_ASCII = "abcXYZ019__ ,.;-'\t\n"
_PLAIN = "the of and graph learning Σίσυφος straße İstanbul naïve GROẞ ΟΔΟΣ x_1 a1 zz Z".split()


def random_document(rng: np.random.Generator) -> str:
    """One document, of 0 to about 60 characters and words."""
    pieces = []
    for _ in range(int(rng.integers(0, 30))):
        kind = rng.integers(0, 8)
        if kind < 2:
            pieces.append(str(rng.choice(_PLAIN)))
        elif kind < 4:
            pieces.append("".join(rng.choice(list(_ASCII), int(rng.integers(1, 6)))))
        elif kind < 6:
            pieces.append("".join(rng.choice(list(_SPECIAL), int(rng.integers(1, 5)))))
        elif kind < 7:
            # A few characters of one block: a word of a script.
            start = int(rng.integers(0, 0x3000 if rng.random() < 0.7 else 0x20000))
            pieces.append("".join(map(_any, start + rng.integers(0, 40, int(rng.integers(1, 7))))))
        else:
            pieces.append("".join(map(_any, rng.integers(0, 0x110000, int(rng.integers(1, 4))))))
        if rng.random() < 0.6:
            pieces.append(str(rng.choice([" ", " ", "\n", "\u00a0", "\u3000", "-"])))
    return "".join(pieces)


def _any(point: int) -> str:
    character = chr(int(point))
    return " " if unicodedata.category(character) == "Cs" else character


def random_documents(count: int, seed: int) -> list[str]:
    """Documents, of which about a third is ASCII."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        text = random_document(rng)
        found.append(text.encode("ascii", "ignore").decode() if rng.random() < 0.3 else text)
    return found
