"""The pool of products: which monomials there are, how they are cut into shards, and their sums.

Covers: ``ProductsPool``. Candidates are summed as products of a few parents with all single features at once, and never
stored (docs/math.md 7 (F): one product of matrices; Duchi & Singer 2009, section 6). Those that occur in no example
have sums of zero and are no candidates of any rule: they take no memory, and no time but that of looking past them.
Does not cover: the search through the tree of monomials that certifies an infinite class
(``dboost.problem.tree_search``).

The monomials form a tree: a parent f is extended by the features from its last one on, so each monomial has one parent.
With |x| <= 1 every descendant h of f has |h'Theta| <= f'|Theta| (half as much bound with x >= 0, where only one sign of
Theta counts); a subtree whose bound is within the penalty's dual ball holds no candidate.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.sparse import columns
from dboost.hypotheses.base import Array, Block, Chosen, Key, taken
from dboost.hypotheses.capabilities import THETA, with_gradient
from dboost.hypotheses.products import children_loops, product_loops
from dboost.hypotheses.products.monomials import MonomialSet, flattened, words
from dboost.partition import Partition, Sums

# (parent, first): the parent's products with the letters from `first` on.
Shard = tuple[tuple[Key, int], ...]

SUMMED_DEGREE = 2
"""Products up to this degree are summed whatever their number: each has a single feature for a parent, so the work is
that of one product of the matrix of features with itself."""

BLOCK_BYTES = 16_000_000
"""Sums of a shard take at most so much memory, of children that occur: they are held a few times while they are judged,
and what is judged stays in the cache."""
# Bytes of a hypothesis that occurs, beside its sums of Theta or of the branches: place, sum s h**2, sum s h, max |h|.
_ALONGSIDE = 32

OCCURRING = "occurring"
"""Its name among the sums of a pass."""


@dataclass(frozen=True, eq=False)
class Occurring:
    """The hypotheses of a shard that occur in some rows."""

    names: tuple[str, ...]  # What `sums` begins with: "G", or "mu_plus" and "mu_minus".
    places: NDArray[np.int64]  # (c,): Among all hypotheses of the shard, ascending.
    sums: Array  # float64 array, shape (c, len(names) * k + 2). The sums of each name, then "square" and "total".
    peak: Array  # (c,)

    def __add__(self, right: Occurring) -> Occurring:
        """What occurs in the rows of either."""
        if np.array_equal(self.places, right.places):
            return Occurring(self.names, self.places, self.sums + right.sums, np.maximum(self.peak, right.peak))
        mine, other = ((part.places, part.sums, part.peak) for part in (self, right))
        return Occurring(self.names, *children_loops.merged(mine, other))

    def named(self) -> dict[str, Array]:
        """The sums by their names."""
        k = (self.sums.shape[1] - 2) // len(self.names)
        found = {name: np.ascontiguousarray(self.sums[:, k * n : k * (n + 1)]) for n, name in enumerate(self.names)}
        return found | {"square": self.sums[:, -2].copy(), "total": self.sums[:, -1].copy()}


def completed_sums(total: Sums) -> Sums:
    """The sums of the hypotheses that occur, as ``Pool.sums`` describes them, "G" among them."""
    found: Any = total.add[OCCURRING]
    add = found.named()
    if THETA + OCCURRING in total.add:
        add[THETA + "G"] = total.add[THETA + OCCURRING].named()["G"]
    return with_gradient(Sums(add=add, peak={"peak": found.peak}))


class Narrowed(NamedTuple):
    """Some hypotheses of a shard."""

    shard: Shard
    places: NDArray[np.int64]  # Which, ascending.


@dataclass(frozen=True, eq=False)
class ProductsPool:
    """The monomials over one data set."""

    # a large pool travels with every pass, and with every block of it
    sent_once: ClassVar[bool] = True

    letters: NDArray[np.int64]  # (l,): Raw columns that take part, ascending.
    low: Array  # low, width: float64 arrays, shape (l,). Their scale.
    width: Array
    decay: float  # Largest scaled |x|.
    # (l,): Letters with two values, one of them 0: their powers are themselves but for a factor of at
    # most 1.
    two_valued: NDArray[np.bool_]
    nonnegative: bool  # Whether every scaled value is >= 0.
    min_degree: int
    max_degree: float
    max_opened: int
    enumerated: int  # A class of more monomials is searched where their degree is above `SUMMED_DEGREE`.
    # (l,): How many products each letter forms with single letters, counted in every example: at
    # least so many as occur.
    formed: NDArray[np.int64]

    @cached_property
    def size(self) -> float:
        """Number of monomials."""
        if math.isinf(self.max_degree):
            return math.inf if len(self.letters) else 0.0
        # one letter after the other: how many monomials of each degree there are
        counts = [1] + [0] * int(self.max_degree)
        for two_valued in self.two_valued:
            for degree in range(len(counts) - 1, 0, -1) if two_valued else range(1, len(counts)):
                counts[degree] += counts[degree - 1]
        return float(sum(counts[self.min_degree :]))

    @property
    def searched(self) -> bool:
        """Whether the class is too large to be summed whole."""
        return self.max_degree > SUMMED_DEGREE and self.size > self.enumerated

    @cached_property
    def token(self) -> str:
        """Hash of the letters, their scale and the degrees."""
        digest = hashlib.sha256(repr((self.min_degree, self.max_degree)).encode())
        for array in (self.letters, self.low, self.width, self.two_valued):
            digest.update(array.tobytes())
        return digest.hexdigest()[:16]

    # ---- columns ---------------------------------------------------------------------------------------------------

    def columns(self, raw: Block, keys: Sequence[Key]) -> Block:
        """The monomials `keys`; of the raw columns only those that occur are scaled."""
        return self.chosen(keys, None).evaluate(taken(raw, self._inputs(keys)))

    def _inputs(self, keys: Sequence[Key]) -> NDArray[np.int64]:
        return np.array(sorted({j for key in keys for j in key}), dtype=np.int64)

    def chosen(self, keys: Sequence[Key], features: Sequence[str] | None) -> MonomialSet:
        """The monomials `keys` with the scale of the raw columns they use."""
        inputs = self._inputs(keys)
        places = np.searchsorted(self.letters, inputs)
        return MonomialSet(inputs, self.low[places], self.width[places], tuple(keys), tuple(self.names(keys, features)))

    def names(self, keys: Sequence[Key], features: Sequence[str] | None) -> list[str]:
        """Monomials in words."""
        low = {j: low for j, low in zip(self.letters.tolist(), self.low.tolist()) if low != 0.0}
        return [words(key, features, low) for key in keys]

    def follow(self, held: Chosen, keys: Sequence[Key]) -> tuple[NDArray[np.int64], Array]:
        """The monomials of an earlier model that are candidates here, their weights in the scale of these rows.

        A monomial of features that were only divided, as ``scale="max"`` does, then has the same scores. Where they
        were also moved it has the same leading term; the terms of lower degree are for the fit to find.
        """
        before = dict(zip(held.inputs.tolist(), held.arrays()["width"].tolist()))
        now = dict(zip(self.letters.tolist(), self.width.tolist()))
        once = set(self.letters[self.two_valued].tolist())
        places, factors = [], []
        for place, key in enumerate(keys):
            powers_of_two_values = any(a == b and a in once for a, b in zip(key, key[1:], strict=False))
            if not now.keys() >= set(key) or powers_of_two_values:
                continue
            factor = math.prod(now[j] / before[j] for j in key)
            if 0.0 < factor < math.inf:
                places.append(place)
                factors.append(factor)
        return np.array(places, dtype=np.int64), np.array(factors)

    # ---- candidates ------------------------------------------------------------------------------------------------

    def _parents(self) -> Iterator[Key]:
        """Every parent of a candidate, lower degrees first."""
        letters = self.letters.tolist()
        if not letters:
            # Every column is constant: there is nothing to multiply, of however high a degree.
            return
        once = set(self.letters[self.two_valued].tolist())
        for degree in range(self.min_degree - 1, int(self.max_degree)):
            for key in combinations_with_replacement(letters, degree):
                if all(a != b or a not in once for a, b in zip(key, key[1:], strict=False)):
                    yield key

    @cached_property
    def _place(self) -> dict[int, int]:
        """Place of each letter."""
        return {j: place for place, j in enumerate(self.letters.tolist())}

    def _first(self, key: Key) -> int:
        """The first letter that extends a monomial in the tree."""
        if not key:
            return 0
        last = self._place[key[-1]]
        return last + 1 if self.two_valued[last] else last

    def shards(self, active: Sequence[Key], row_bytes: int, shard_bytes: int) -> list[Shard]:
        """All monomials; of a class that is searched, the products of the active ones with every feature.

        A shard has at least one parent, and no more than so many that the children which may occur fill it.
        """
        if self.searched:
            near = [()] + [key for key in active if len(key) < self.max_degree]
            parents = [(key, 0) for key in near if len(key) + 1 >= self.min_degree]
        else:
            parents = [(key, self._first(key)) for key in self._parents()]
        room = max(1, min(shard_bytes, BLOCK_BYTES) // (row_bytes + _ALONGSIDE))
        shards: list[Shard] = []
        current: list[tuple[Key, int]] = []
        filled = 0
        for key, first in parents:
            most = self.most_children(key, first)
            if current and filled + most > room:
                shards.append(tuple(current))
                current, filled = [], 0
            if most:
                current.append((key, first))
                filled += most
        return [*shards, tuple(current)] if current or not shards else shards

    def most_children(self, key: Key, first: int) -> int:
        """How many products of a monomial with the letters from `first` on may occur."""
        return min([len(self.letters) - first, *(int(self.formed[self._place[j]]) for j in key)])

    def keys(self, shard: Shard | Narrowed, places: NDArray[np.int64] | None = None) -> list[Key]:
        """The monomials at some places of a shard's sums; all when `places` is None."""
        parents, wanted = (shard.shard, shard.places) if isinstance(shard, Narrowed) else (shard, None)
        offset = self._offsets(parents)
        if wanted is None:
            wanted = np.arange(offset[-1])
        if places is not None:
            wanted = wanted[places]
        owners = np.searchsorted(offset, wanted, side="right") - 1
        found = []
        for place, owner in zip(wanted.tolist(), owners.tolist(), strict=True):
            key, first = parents[owner]
            letter = first + place - int(offset[owner])
            j = int(self.letters[letter])
            found.append(key if self.two_valued[letter] and j in key else tuple(sorted((*key, j))))
        return found

    def _offsets(self, shard: Shard) -> NDArray[np.int64]:
        """Place of each parent's first child, and the number of children."""
        return np.cumsum([0] + [len(self.letters) - first for _, first in shard])

    def sums(self, partition: Partition, memo: Any, shard: Shard, plus: Array, minus: Array | None) -> Sums:
        """Sums of the children of a shard's parents that occur (docs/math.md 7 (F): one product of matrices)."""

        def build() -> tuple[Any, ...]:
            arrays = (partition.indptr, partition.rows, partition.values, partition.n_rows)
            scaled = product_loops.scaled_columns(*arrays, self.letters, self.low, self.width)
            letters = np.arange(len(self.letters))
            return (*scaled, *columns.cut_rows(*scaled, letters, partition.n_rows))

        held = memo.get("letters", self.token, build)
        scaled, by_row = held[:3], held[3:]
        ends, flat = flattened([key for key, _ in shard], self._place)
        parents = product_loops.monomials(scaled[0], scaled[1], scaled[2], partition.n_rows, ends, flat)
        first = np.array([first for _, first in shard], dtype=np.int64)
        common = (parents, first, self._offsets(shard), by_row, partition.weight)
        if minus is None:
            found = Occurring(("G",), *children_loops.children_gradient(*common, plus))
        else:
            found = Occurring(("mu_plus", "mu_minus"), *children_loops.children_mu(*common, plus, minus))
        return Sums(add={OCCURRING: found})

    def complete(self, shard: Shard, total: Sums) -> Sums:
        """The sums of the monomials that occur."""
        return completed_sums(total)

    def narrowed(self, shard: Shard, total: Sums) -> Narrowed:
        """The monomials that occur."""
        return Narrowed(shard, total.add[OCCURRING].places)

    # ---- the tree --------------------------------------------------------------------------------------------------

    def roots(self) -> list[Key]:
        """Where a search begins."""
        return [()]

    def branch(self, parents: Sequence[Key]) -> Shard:
        """The children of some parents in the tree."""
        return tuple((key, self._first(key)) for key in parents)

    def grows(self, key: Key) -> bool:
        """Whether a monomial has children."""
        return len(key) < self.max_degree and self._first(key) < len(self.letters)

    def counts(self, key: Key) -> bool:
        """Whether a monomial is a candidate itself."""
        return len(key) >= self.min_degree

    def reach(self, plus: Array, minus: Array) -> Array:
        """Bound on |h'Theta| of all descendants h from mu+ and mu- of their ancestor, for Theta's own parts (c, k)."""
        return self.decay * (np.maximum(plus, minus) if self.nonnegative else plus + minus)
