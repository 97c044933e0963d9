"""Which members of a grid of tests `make test` takes; the others are for `make test-all` only.

Covers: the choice among the items of one test function. Does not cover: items that a test marks `full` itself.

A grid of every loss with every penalty on every engine asks the same question several hundred times. A fault is nearly
always one of a single member (this loss, that engine), or of a pair that other functions meet as well, so the short
lane takes the fewest items in which each word of their names occurs, six of a crossed grid at most. Ties are decided by
a hash, so that each function takes other pairs. A list of cases that are not crossed, such as texts that are refused,
has words of its own in each name and is taken whole.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

MOST = 6
"""Members of a crossed grid that are taken at most; other functions over the same grid take others."""

_NUMBERED = re.compile(r"[a-z_]{2,}\d+")
_BETWEEN = re.compile(r"[-\s]+")


def words(name: str) -> frozenset[str]:
    """Words of the brackets of an item's name; none where it has no brackets.

    What pytest calls values that have no name ("pair7") counts only where no other word tells items apart.
    """
    inside = name.partition("[")[2].removesuffix("]")
    found = frozenset(_BETWEEN.split(inside)) - {""}
    return frozenset(word for word in found if not _NUMBERED.fullmatch(word)) or found


def covering(names: Sequence[str]) -> set[str]:
    """The fewest of `names` in which each of their words occurs, as far as a greedy choice finds them.

    Examples
    --------
    >>> sorted(words("test_fit[log-l1]"))
    ['l1', 'log']
    >>> grid = [f"test_fit[{loss}-{penalty}]" for loss in ("log", "exp", "squared") for penalty in ("l1", "l2")]
    >>> len(covering(grid))
    3
    """
    chosen = _greedy(names)
    crossed = len(set(names)) >= 2 * len(chosen)
    return set(chosen[:MOST] if crossed else chosen)


def _greedy(names: Sequence[str]) -> list[str]:
    left = sorted(set(names), key=lambda name: hashlib.sha256(name.encode()).digest())
    unseen = set().union(*map(words, left))
    chosen: list[str] = []
    while left and (unseen or not chosen):
        best = max(left, key=lambda name: len(words(name) & unseen))
        left.remove(best)
        unseen -= words(best)
        chosen.append(best)
    return chosen


def for_all_only(names: Iterable[str]) -> set[str]:
    """Names of items, those of a function together, that `make test` leaves out."""
    functions: dict[str, list[str]] = {}
    for name in names:
        functions.setdefault(name.partition("[")[0], []).append(name)
    return {name for group in functions.values() if len(group) > 1 for name in set(group) - covering(group)}
