"""What a pass may ask of a pool or of held hypotheses beyond the least that all have: capabilities, a Protocol each.

Covers: bins, sums that are completed or narrowed, trees, groups, earlier models, kept columns, order of margins and
scales, and a function for each that answers for pools without it. Does not cover: the least (``base``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dboost.capability import OfTypes
from dboost.hypotheses.base import Array, Block, Chosen, Key, Pool
from dboost.partition import Partition, Sums


@dataclass(frozen=True)
class Gaps:
    """Hypotheses that a shard's sums leave out: groups of them, with what bounds the sums of every member."""

    places: NDArray[np.int64]  # (g,): Names the groups, with the shard.
    reach: Array  # (g, k): At least |h'Theta|, entry by entry.
    square: Array  # (g,): At most sum s h**2.
    # larger, smaller: float64 arrays, shape (g, k). At least the larger and at most the smaller of mu+ and mu-.
    larger: Array
    smaller: Array
    # (g,): About how many examples must be looked at to sum a group's members.
    rows: NDArray[np.int64]


@runtime_checkable
class Binned(Pool, Protocol, metaclass=OfTypes):
    """A pool of ordered hypotheses whose shards sum some of them; the others lie between and are bounded by these.

    All have max |h| = 1.

    The sums of a shard then hold more: "between" (c + 1, 2 k), what `gaps` and `nodes` need of the positive and of the
    negative part, for its hypotheses and last for all examples, and the "weight" of all examples. A pass whose mu+ and
    mu- are of other parts than Theta's puts those before Theta's, (c + 1, 4 k).
    """

    def gaps(self, shard: Any, total: Sums) -> Gaps:
        """The groups of hypotheses between those of a shard."""
        ...

    def nodes(self, shard: Any, total: Sums, places: NDArray[np.int64]) -> list[Any]:
        """Some of these groups, each with the sums below it: small and picklable."""
        ...

    def inside(self, partition: Partition, memo: Any, nodes: Sequence[Any], U: Array) -> Sums:
        """What one partition contributes to the hypotheses in some groups; the columns of U are those of "between"."""
        ...

    def settle(self, nodes: Sequence[Any], total: Sums, k: int) -> tuple[Sequence[Key], Sums]:
        """The hypotheses in some groups with their sums, as a shard's, from the total of `inside`; G is (c, k)."""
        ...


@runtime_checkable
class Completing(Protocol, metaclass=OfTypes):
    """What a pool has beside the rest where partitions need not say all that their sums come to.

    Its ``Pool.sums`` then gives what must be added over the partitions, under names of its own; beside the sums of the
    branches of the loss a pass puts those of Theta, each under its name with ``THETA`` before it.
    """

    def complete(self, shard: Any, total: Sums) -> Sums:
        """The sums of a shard as ``Pool.sums`` describes them, with "G" beside mu+ and mu-, from what was added up."""
        ...


THETA = "theta "


def completed(pool: Any, shard: Any, total: Sums) -> Sums:
    """What the sums of a shard come to when those of all partitions are added; "G" is always there."""
    return pool.complete(shard, total) if isinstance(pool, Completing) else with_gradient(total)


def with_gradient(total: Sums) -> Sums:
    """Sums with "G" among them, the difference of mu+ and mu- where no pass has summed Theta."""
    add = dict(total.add)
    if THETA + "G" in add:
        add["G"] = add.pop(THETA + "G")
    elif "G" not in add:
        add["G"] = add["mu_plus"] - add["mu_minus"]
    return replace(total, add=add)


@runtime_checkable
class Narrowing(Protocol, metaclass=OfTypes):
    """What a pool has beside the rest where `completed` sums are of some hypotheses of a shard only.

    The others are zero in every example.
    """

    def narrowed(self, shard: Any, total: Sums) -> Any:
        """The shard of those hypotheses alone; ``Pool.keys`` takes it."""
        ...


def narrowed(pool: Any, shard: Any, total: Sums) -> Any:
    """The shard of the hypotheses that `completed` sums of a shard are of."""
    return pool.narrowed(shard, total) if isinstance(pool, Narrowing) else shard


@runtime_checkable
class Tree(Pool, Protocol, metaclass=OfTypes):
    """A pool that is searched: a tree of hypotheses with a bound on what lies below each."""

    @property
    def max_opened(self) -> int:
        """At most so many subtrees are opened in one search."""
        ...

    def roots(self) -> list[Key]:
        """Where a search begins."""
        ...

    def branch(self, parents: Sequence[Key]) -> Any:
        """The shard of the children of some parents."""
        ...

    def grows(self, key: Key) -> bool:
        """Whether a hypothesis has children."""
        ...

    def counts(self, key: Key) -> bool:
        """Whether a hypothesis is a candidate itself, and not only on the way to others."""
        ...

    def reach(self, plus: Array, minus: Array) -> Array:
        """Bound on |h'Theta| (c, k) of every descendant h, from its ancestor's mu+ and mu- of Theta's own parts."""
        ...


def has_tree(pool: Any) -> bool:
    """Whether some hypotheses of a pool are in no shard, and are found by a search of a tree alone."""
    return isinstance(pool, Tree) and pool.searched and bool(pool.roots())


@runtime_checkable
class Grouped(Protocol, metaclass=OfTypes):
    """What a pool has beside the rest where its hypotheses come in groups: a rule that adds by groups takes all of one.

    A group is, say, the d + 1 features of one piece of a piecewise linear model (ShareBoost, section 3.2). No shard
    cuts a group, and the hypotheses of a group are next to each other in it. A pool without these methods, and every
    stored column, is one group per hypothesis; ``groups_of`` and ``group_of`` answer for any pool.
    """

    def groups(self, shard: Any) -> NDArray[np.int64]:
        """Where each group begins among the hypotheses of a shard: ascending, the first 0; shape (groups,).

        ``np.add.reduceat(values, starts)`` sums per-hypothesis values over the groups.
        """
        ...

    def group(self, key: Key) -> list[Key]:
        """All hypotheses of the group that `key` is in, in the order in which they enter a model."""
        ...


def groups_of(pool: Pool, shard: Any, count: int) -> NDArray[np.int64]:
    """``Grouped.groups`` of a shard of `count` hypotheses; each is its own group where the pool has no groups."""
    return pool.groups(shard) if isinstance(pool, Grouped) else np.arange(count, dtype=np.int64)


def group_of(pool: Pool, key: Key) -> list[Key]:
    """``Grouped.group`` of a hypothesis; itself alone where the pool has no groups."""
    return pool.group(key) if isinstance(pool, Grouped) else [key]


@runtime_checkable
class Following(Protocol, metaclass=OfTypes):
    """What a pool has beside the rest where its hypotheses mean the same over other rows, but for their scale."""

    def follow(self, held: Chosen, keys: Sequence[Key]) -> tuple[NDArray[np.int64], Array]:
        """Hypotheses of an earlier model, of other rows of the same features, that are candidates here too.

        `held`: The hypotheses of that model.
        `keys`: What the pool of that model called them, in the same order.
        Returns places, int64 array, shape (c,): Those that are candidates here, ascending; they have the same keys.
        Returns factors, float64 array, shape (c,): What their weights are multiplied by to mean the same here.
        Raises UsageError: When some are of a kind whose candidates depend on the rows themselves.
        """
        ...


@runtime_checkable
class Keeping(Protocol, metaclass=OfTypes):
    """What a pool has beside the rest where it remembers its hypotheses of a partition from pass to pass."""

    def held(self, partition: Partition, memo: Any, keys: Sequence[Key]) -> Block:
        """``Pool.columns`` of a partition, with the same bits, from what is remembered of it."""
        ...


def made_of(pool: Any, partition: Partition, memo: Any, keys: Sequence[Key]) -> Block:
    """The hypotheses `keys` of a partition as columns, from what the pool remembers where it does."""
    if isinstance(pool, Keeping):
        return pool.held(partition, memo, keys)
    made: Block = pool.columns(Block(partition.indptr, partition.rows, partition.values, partition.n_rows), keys)
    return made


@runtime_checkable
class ColumnWise(Protocol, metaclass=OfTypes):
    """A pool whose margins of one output are summed hypothesis by hypothesis, for good: order decides the bits."""

    @property
    def by_column(self) -> bool:
        """Whether they are."""
        ...


def is_column_wise(pool: Any) -> bool:
    """``ColumnWise.by_column``; False where a pool does not say."""
    return isinstance(pool, ColumnWise) and pool.by_column


@runtime_checkable
class Scaled(Protocol, metaclass=OfTypes):
    """What the hypotheses of a model have beside the rest where their values are scaled, and their names say not."""

    def named_weights(self, W: Array) -> Array:
        """Weights (a, k) of the hypotheses as their names say them, from the weights of the scaled ones."""
        ...


def named_weights(chosen: Chosen, W: Array) -> Array:
    """``Scaled.named_weights`` of any hypotheses: the weights themselves where values are as named."""
    return chosen.named_weights(W) if isinstance(chosen, Scaled) else W
