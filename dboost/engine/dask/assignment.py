"""Which worker sums which part of the tree.

Covers: cutting the tree into bundles, one for each worker, and keeping bundles where they were.
Does not cover: submitting anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dboost.engine.tree import Node, coalesce, cumulate, frontier


@dataclass(frozen=True)
class Bundle:
    """A run of neighbouring partitions, for one worker."""

    lo: int  # First partition, and one past the last.
    hi: int
    nodes: tuple[Node, ...]  # The complete subtrees it consists of, in order.
    address: str  # The worker that should do it; another one may.


def keep_order(previous: Sequence[str], present: Sequence[str]) -> list[str]:
    """Return the present workers so that those who stayed keep their place.

    A new worker takes the place of one that left. Bundles go by place, so a worker that stayed finds the partitions
    it has already decoded.
    """
    arrived = sorted(set(present) - set(previous))
    order: list[str] = []
    for address in previous:
        if address in present:
            order.append(address)
        elif arrived:
            order.append(arrived.pop(0))
    return order + arrived


def assign(rows: Sequence[int], workers: Sequence[tuple[str, int]]) -> list[Bundle]:
    """Cut the tree into bundles of neighbouring partitions, in proportion to the threads of the workers.

    `rows`: rows of each partition. `workers`: in the order in which they get their bundles. In the order of the
    partitions, at most one for each worker.

    Notes
    -----
    With a power of two of equal workers each gets one node, so only one set of sums leaves a worker. Otherwise the
    tree is cut into twice as many nodes as there are workers, which a worker may get several of.
    """
    count = len(workers)
    equal = len({threads for _, threads in workers}) == 1
    nodes = frontier(rows, count if equal and count & (count - 1) == 0 else 2 * count)
    cumulated = cumulate([r + 1 for r in rows])  # one more each: empty partitions are some work as well
    capacity = cumulate([threads for _, threads in workers])
    groups: dict[int, list[Node]] = {}
    place = 0
    for i, (lo, hi) in enumerate(nodes):
        if len(nodes) <= count:
            place = i
        else:
            # Twice the middle of the node and of the total, to stay in integers.
            middle = (cumulated[lo] + cumulated[hi]) * capacity[-1]
            while place + 1 < count and middle >= 2 * cumulated[-1] * capacity[place + 1]:
                place += 1
        groups.setdefault(place, []).append((lo, hi))
    bundles = []
    for place, group in groups.items():
        whole = tuple(coalesce(rows, group))
        bundles.append(Bundle(whole[0][0], whole[-1][1], whole, workers[place][0]))
    return bundles
