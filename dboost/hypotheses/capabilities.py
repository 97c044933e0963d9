"""What a pass may ask of some pools or of some held hypotheses: bins, trees, steps, scores and scales, a Protocol each.

Does not cover: what all have (``base``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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

    def settle(self, nodes: Sequence[Any], total: Sums, k: int) -> tuple[Sequence[Key], Sums, NDArray[np.int64]]:
        """The hypotheses in some groups with their sums, as a shard's, from the total of `inside`; G is (c, k).

        The last of what comes back says where each run of these begins, as ``Pool.runs`` of a shard.
        """
        ...


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


@runtime_checkable
class Stepwise(Pool, Protocol, metaclass=OfTypes):
    """A pool whose hypotheses are steps of single raw columns: many of a column cost a pass no more than one of it.

    A model that has a thousand of them on ten columns is ten functions of these columns, for each output; its margins
    and sums need none of the thousand as a column of its own.
    """

    def arranged(self, keys: Sequence[Key]) -> Any:
        """The hypotheses `keys` of a model as the others take them: made once for all partitions."""
        ...

    def add_margins(self, partition: Partition, memo: Any, arranged: Any, w: Array, f: Array) -> None:
        """f += sum_h w_h h over some hypotheses; float64 arrays, shapes (a,) and (m,)."""
        ...

    def held_sums(
        self, partition: Partition, memo: Any, arranged: Any, plus: Array, minus: Array | None
    ) -> dict[str, Array]:
        """Sums of some hypotheses, named as in ``Pool.sums``: "G", or "mu_plus" and "mu_minus"."""
        ...


def has_tree(pool: Any) -> bool:
    """Whether some hypotheses of a pool are in no shard, and are found by a search of a tree alone."""
    return isinstance(pool, Tree) and pool.searched and bool(pool.roots())


@runtime_checkable
class Summed(Protocol, metaclass=OfTypes):
    """Hypotheses of a model whose scores need none of them as a column."""

    def products(self, raw: Block, W: Array) -> Array:
        """H W (m, k), from a block of the columns ``inputs``; the same bits for a row in any block."""
        ...


@runtime_checkable
class Scaled(Protocol, metaclass=OfTypes):
    """What the hypotheses of a model have beside the rest where their values are scaled, and their names say not."""

    def named_weights(self, W: Array) -> Array:
        """Weights (a, k) of the hypotheses as their names say them, from the weights of the scaled ones."""
        ...


def named_weights(chosen: Chosen, W: Array) -> Array:
    """``Scaled.named_weights`` of any hypotheses: the weights themselves where values are as named."""
    return chosen.named_weights(W) if isinstance(chosen, Scaled) else W
