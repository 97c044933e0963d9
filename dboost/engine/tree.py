"""The fixed summation tree over partition numbers.

Covers: where a node splits, the nodes a pass is cut into, and folding values along the tree, by one thread or many.
Does not cover: what is summed (``dboost.passes``) or which worker gets which node (``dboost.engine.dask.engine``).

Floating-point addition is not associative, so the shape of the sum is part of the result. The tree depends on the
number of rows of each partition and on nothing else: node ``[a, b)`` splits where the cumulated rows are nearest to
half, both sides non-empty. A subtree needs only its own rows to know its own shape, so a worker that is handed the
rows of a node folds it exactly as the whole tree would.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, wait
from functools import lru_cache
from itertools import accumulate
from threading import Lock
from typing import TypeVar

from dboost import interruption

V = TypeVar("V")
Node = tuple[int, int]


def cumulate(rows: Sequence[int]) -> list[int]:
    """Return the cumulated rows, starting with 0; length ``len(rows) + 1``."""
    return list(accumulate(rows, initial=0))


def split(cumulated: Sequence[int], lo: int, hi: int) -> int:
    """Return where node ``[lo, hi)`` splits: ``lo < split < hi``.

    The cut is the one whose cumulated rows are nearest to half. Empty partitions leave a run of equal cuts; the one
    nearest to the middle of the node is taken (then the lower one), so that a thousand empty partitions make a
    shallow tree and not a chain.
    """
    if hi - lo < 2:
        raise ValueError(f"node [{lo}, {hi}) has no split; a node splits when it holds two partitions or more")
    total = cumulated[lo] + cumulated[hi]
    above = bisect_left(cumulated, total, lo + 1, hi - 1, key=lambda c: 2 * c)
    best = above
    if above > lo + 1 and total - 2 * cumulated[above - 1] <= abs(2 * cumulated[above] - total):
        best = above - 1
    level = cumulated[best]
    first = bisect_left(cumulated, level, lo + 1, hi)
    last = bisect_right(cumulated, level, lo + 1, hi) - 1
    return min(max((lo + hi) // 2, first), last)


def frontier(rows: Sequence[int], count: int) -> list[Node]:
    """Return at least `count` nodes that cover the partitions in order, as balanced in rows as the tree allows.

    The node with the most rows is split until there are enough; with fewer partitions than `count`, every partition
    is a node.
    """
    if not rows:
        return []
    cumulated = cumulate(rows)
    nodes: list[Node] = [(0, len(rows))]
    while len(nodes) < count:
        divisible = [i for i, (lo, hi) in enumerate(nodes) if hi - lo > 1]
        if not divisible:
            break
        i = max(divisible, key=lambda i: (cumulated[nodes[i][1]] - cumulated[nodes[i][0]], nodes[i][1] - nodes[i][0]))
        lo, hi = nodes[i]
        middle = split(cumulated, lo, hi)
        nodes[i : i + 1] = [(lo, middle), (middle, hi)]
    return nodes


def coalesce(rows: Sequence[int], nodes: Sequence[Node]) -> list[Node]:
    """Replace siblings in a run of neighbouring nodes by their parent, as often as possible."""
    ranges = {(lo, hi) for lo, hi in nodes}
    first, last = nodes[0][0], nodes[-1][1]
    cumulated = cumulate(rows)
    result: list[Node] = []
    stack: list[Node] = [(0, len(rows))]
    while stack:
        lo, hi = stack.pop()
        if hi <= first or lo >= last:
            continue
        if (first <= lo and hi <= last) or (lo, hi) in ranges:
            result.append((lo, hi))
            continue
        middle = split(cumulated, lo, hi)
        stack += [(middle, hi), (lo, middle)]
    return result


def combine(
    rows: Sequence[int],
    nodes: Sequence[Node],
    values: Sequence[V],
    merge: Callable[[V, V], V],
    root: Node | None = None,
) -> V:
    """Merge the values of nodes that cover a node of the tree, in order, up to that node (default: the root).

    Raises ValueError: the nodes are not a cut through the tree.
    """
    known = dict(zip(nodes, values, strict=True))
    cumulated = cumulate(rows)

    def value(a: int, b: int) -> V:
        if (a, b) in known:
            return known.pop((a, b))
        if b - a < 2:
            raise ValueError(f"nodes {list(nodes)} do not cover partition {a}")
        middle = split(cumulated, a, b)
        left = value(a, middle)
        return merge(left, value(middle, b))

    total = value(*(root or (0, len(rows))))
    if known:
        raise ValueError(f"nodes {list(known)} do not belong to the tree of {len(rows)} partitions")
    return total


@lru_cache(maxsize=64)
def _ascent(rows: tuple[int, ...], lo: int, hi: int) -> dict[Node, tuple[Node, Node, bool]]:
    """Parent, sibling and "am I the left one" of every node below ``[lo, hi)``."""
    cumulated = cumulate(rows)
    up: dict[Node, tuple[Node, Node, bool]] = {}
    stack: list[Node] = [(lo, hi)]
    while stack:
        a, b = parent = stack.pop()
        if b - a < 2:
            continue
        middle = split(cumulated, a, b)
        left, right = (a, middle), (middle, b)
        up[left] = (parent, right, True)
        up[right] = (parent, left, False)
        stack += [left, right]
    return up


# Seconds after which who waits for helpers looks for an interrupt.
_HEEDED = 0.2


class Abandoned(RuntimeError):
    """The fold was told to stop; its value is no longer wanted."""


def fold_many(
    rows: tuple[int, ...],
    jobs: Sequence[Node],
    leaf: Callable[[int, int], V],
    merge: Callable[[V, V], V],
    done: Callable[[int, V], None],
    threads: int = 1,
    helpers: Executor | None = None,
    stop: Callable[[], bool] | None = None,
) -> None:
    """Fold several nodes with several threads; every value is merged along the tree, whoever merges it.

    Each thread takes the next leaf in order. When its value has a finished sibling it merges the two and climbs;
    otherwise it leaves the value for whoever finishes the sibling. Values waiting for a sibling are therefore whole
    subtrees, and few, even behind one very slow leaf.

    `rows`: rows of every partition.
    `jobs`: the nodes to fold, worked off in this order; the same node may occur more than once.
    `leaf`: ``leaf(job, i)`` gives the value of partition i for job number `job`; called from any thread. The value
    belongs to the fold, which may change it in place.
    `merge`: ``merge(left, right)`` gives the value of their parent.
    `done`: ``done(job, value)`` receives the value of a job; called from the thread that finished it.
    `threads`: threads in all; the calling thread is one of them.
    `helpers`: runs the other ``threads - 1``.
    `stop`: asked before each leaf; when it answers True, `Abandoned` is raised.
    Raises Exception: what `leaf`, `merge` or `done` raised: of the errors seen, the one of the lowest partition.
    """
    units: Iterator[tuple[int, int]] = ((job, i) for job, (lo, hi) in enumerate(jobs) for i in range(lo, hi))
    ascents = [_ascent(rows, lo, hi) if hi - lo > 1 else {} for lo, hi in jobs]
    waiting: dict[tuple[int, Node], V] = {}
    failures: list[tuple[tuple[int, int], BaseException]] = []
    lock = Lock()

    def climb(job: int, i: int) -> None:
        value = leaf(job, i)
        node = (i, i + 1)
        while node != jobs[job]:
            parent, sibling, is_left = ascents[job][node]
            with lock:
                if (job, sibling) not in waiting:
                    waiting[job, node] = value
                    return
                other = waiting.pop((job, sibling))
            value = merge(value, other) if is_left else merge(other, value)
            node = parent
        done(job, value)

    def work() -> None:
        while True:
            with lock:
                unit = None if failures else next(units, None)
            if unit is None:
                return
            try:
                if stop is not None and stop():
                    raise Abandoned("the fold was told to stop")
                climb(*unit)
            except BaseException as error:
                with lock:
                    failures.append((unit, error))
                return

    count = sum(hi - lo for lo, hi in jobs)
    others: list[Future[None]] = []
    try:
        if helpers is not None and min(threads, count) > 1:
            with interruption.deferred():
                for _ in range(min(threads, count) - 1):
                    others.append(helpers.submit(work))
        work()
        _ended(others)
    except BaseException as error:
        # An interrupt that arrives between leaves, or while helpers are started: let them end their current leaf, then
        # hand it on.
        with lock:
            failures.append(((-1, -1), error))
        _ended(others)
    if failures:
        raise min(failures, key=lambda failure: (isinstance(failure[1], Exception), failure[0]))[1]


def _ended(others: Sequence[Future[None]]) -> None:
    """Wait for helpers that are at work; one that has not begun, as it does something else, is not needed any more."""
    left = set(others)
    while left:
        # an interrupt is heeded between two waits: what a helper reads may never come
        with interruption.deferred():
            left = wait([other for other in left if not other.cancel()], _HEEDED).not_done
