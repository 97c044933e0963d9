"""Best-first search of a tree of hypotheses with a bound on what lies below each (docs/math.md 7 (F)).

The size of a dual point over the whole tree, the largest ||h'Theta||_* of all hypotheses h, is found exactly while
only the subtrees are opened whose bound exceeds both the strength asked for and the largest size seen.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dboost.hypotheses.base import Array, Key
from dboost.hypotheses.capabilities import Tree
from dboost.partition import Sums

# Subtrees opened at once: a pass costs a turn through a scheduler, a subtree opened too early only arithmetic.
_BATCH = 512
_BATCH_BYTES = 64_000_000


@dataclass(frozen=True)
class Found:
    """What a search found."""

    # Upper bound on max_h ||h'Theta||_*, never below the strength asked for; exact above it, unless the budget ran out.
    size: float
    best: list[Key]  # Hypotheses whose own size exceeds the strength, largest first.
    opened: int  # Subtrees opened.
    complete: bool  # Whether the budget was enough.


Opened = tuple[list[Key], list[float], list[float]]
"""Children of some parents: their names, ||h'Theta||_*, and the bound on it for all hypotheses below them."""


def worth(
    total: Sums, shard: Any, tree: Tree, dual_norm: Callable[[Array], Array], wanted: float, seen: float
) -> Opened:
    """A shard's hypotheses that may be chosen or opened; the others need no names.

    `total`: mu+ and mu- of the parts of Theta. `dual_norm`: the penalty's, over rows. `wanted`: hypotheses of a larger
    size are wanted themselves; infinite where none is. `seen`: the strength asked for, or the largest size seen if that
    is more: what is no larger, and has nothing larger below it, changes neither the size of the class nor what is
    opened.
    """
    plus, minus = total.add["mu_plus"], total.add["mu_minus"]
    norms, reach = dual_norm(plus - minus), dual_norm(tree.reach(plus, minus))
    some = np.flatnonzero((norms > min(wanted, seen)) | (reach > seen))
    return tree.keys(shard, some), norms[some].tolist(), reach[some].tolist()


def search(
    tree: Tree,
    open_subtrees: Callable[[Sequence[Key], float], Opened],
    width: int,
    strength: float,
    take: int,
) -> Found:
    """Search the whole tree.

    `open_subtrees`: given parents of one member and a number, those of their children that `worth` names. `width`:
    bytes of the sums of one parent's children. `strength`: subtrees below it are not opened. `take`: at most so many
    hypotheses are returned.
    """
    batch = int(max(1, min(_BATCH, _BATCH_BYTES // max(width, 1))))
    heap: list[tuple[float, Key]] = [(-np.inf, key) for key in tree.roots() if tree.grows(key)]
    heapq.heapify(heap)
    largest, opened = 0.0, 0
    found: list[tuple[float, Key]] = []
    while heap and -heap[0][0] > max(strength, largest) and opened < tree.max_opened:
        parents = [heapq.heappop(heap)[1]]
        # the first batches stay small: what they find raises the bar for all that follow
        while heap and len(parents) < min(batch, opened + 1) and -heap[0][0] > max(strength, largest):
            if heap[0][1][:1] != parents[0][:1] and len(tree.roots()) > 1:
                break
            parents.append(heapq.heappop(heap)[1])
        opened += len(parents)
        children = open_subtrees(parents, max(strength, largest))
        for key, norm, bound in zip(*children, strict=True):
            if tree.counts(key):
                largest = max(largest, norm)
                if take and norm > strength:
                    found.append((-norm, key))
            if bound > max(strength, largest) and tree.grows(key):
                heapq.heappush(heap, (-bound, key))
    rest = -heap[0][0] if heap else 0.0
    found.sort()
    complete = rest <= max(strength, largest)
    return Found(max(largest, strength, rest), [key for _, key in found[:take]], opened, complete)
