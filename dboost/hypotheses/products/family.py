"""Products of raw features: all monomials up to a degree, or of any degree.

Covers: the family ``Products`` and its pool. Candidates are summed as products of a few parents with all single
features at once, and never stored (docs/math.md 7 (F); Duchi & Singer 2009, section 6).
Does not cover: the search through the tree of monomials that certifies an infinite class
(``dboost.problem.tree_search``).

The monomials form a tree: a parent f is extended by the features from its last one on, so each monomial has one parent.
With |x| <= 1 every descendant h of f has |h'Theta| <= f'|Theta| (half as much bound with x >= 0, where only one sign of
Theta counts); a subtree whose bound is within the penalty's dual ball holds no candidate.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.sparse import columns
from dboost.errors import UsageError
from dboost.files.documents import Document
from dboost.hypotheses import family_from_fields
from dboost.hypotheses.base import Array, Block, Chosen, Context, Key, taken
from dboost.hypotheses.products import product_loops
from dboost.hypotheses.products.monomials import MonomialSet, flattened, restore, words
from dboost.hypotheses.union import Joinable
from dboost.partition import Partition, Sums

ENUMERATED = 10_000_000
"""Monomials that are summed one by one in every round at most, about 1e10 products for a thousand examples. A larger
class is searched."""
_DECAY = 0.9

# (parent, first): the parent's products with the letters from `first` on.
Shard = tuple[tuple[Key, int], ...]


@dataclass(frozen=True)
class Products(Joinable):
    """All monomials of raw features, of bounded or of any degree.

    Features are scaled first, so that |x| <= 1; constant features take no part, and a feature with two values, one of
    them 0 after scaling, is not multiplied by itself. The penalty weighs the scaled monomials. ``coef_``, and what is
    printed, are weights of the raw ones as they are named: ``f1 * f2``, or ``(f1 - 2) * f2`` with ``scale="range"``.

    Parameters
    ----------
    max_degree : int or None, default None
        Largest degree. None is every degree: a countably infinite class, searched with a bound and certified as a
        whole.
    min_degree : int, default 1
        Smallest degree; 2 leaves out the raw features themselves.
    scale : {"max", "range"}, default "max"
        ``"max"`` divides by max |x| and keeps zeros. ``"range"`` maps [min, max] to [0, 1]: the tighter bound, for data
        without many zeros, because a feature whose minimum is not 0 then has a value in every row.
    decay : float in (0, 1], optional
        Scaled features are at most this large, so each further factor makes a monomial that much smaller and lets it
        enter that much later. 1 by default, and 0.9 where `max_degree` is None: without it a feature that is 1 in some
        rows has powers that never become small, and no bound ends the search.
    max_opened : int, default 200,000
        At most so many subtrees are opened in one search. A search that would need more bounds the rest by what it
        knows, and the certified gap says so.

    Examples
    --------
    >>> from dboost import BoostedClassifier, Products
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]] * 5, [0, 1, 1, 0] * 5
    >>> BoostedClassifier(hypotheses=Products(max_degree=2), alpha=0.01).fit(X, y).score(X, y)
    1.0
    """

    max_degree: int | None = None
    min_degree: int = 1
    scale: str = "max"
    decay: float | None = None
    max_opened: int = 200_000

    def __post_init__(self) -> None:
        for name, value, least in (
            ("min_degree", self.min_degree, 1),
            ("max_degree", self.min_degree if self.max_degree is None else self.max_degree, self.min_degree),
            ("max_opened", self.max_opened, 1),
        ):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise UsageError(f"Products: {name}={value!r}", hint=f"expected an integer >= {least}")
        if self.scale not in ("max", "range"):
            raise UsageError(f"Products: scale={self.scale!r}", hint='expected "max" or "range"')
        decay = self.decay
        if decay is not None and (isinstance(decay, bool) or not isinstance(decay, int | float) or not 0 < decay <= 1):
            raise UsageError(f"Products: decay={decay!r}", hint="expected a number in (0, 1], or None")

    def to_json(self) -> dict[str, Any]:
        """Name and parameters."""
        return {"family": "products"} | {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, spec: dict[str, Any]) -> Products:
        """Undo `to_json`."""
        found: Products = family_from_fields(cls, spec)
        return found

    @staticmethod
    def restore(spec: Document, arrays: Mapping[str, NDArray[Any]], n_features: int) -> MonomialSet:
        """The monomials of a saved model."""
        return restore(spec, arrays, n_features)

    def prepare(self, context: Context) -> ProductsPool:
        """Find the scale of every feature; two passes."""
        engine, n = context.engine, context.n_features
        ranges = engine.map_reduce(_ranges, n, name="ranges").peak
        low, high = -ranges["below"], ranges["above"]
        between = engine.map_reduce(_between, low, high, name="between").peak["between"] > 0.0
        letters = np.flatnonzero(high > low)
        low, high, between = low[letters], high[letters], between[letters]
        nonnegative = self.scale == "range" or bool((low >= 0.0).all())
        if self.scale == "range":
            width, two_valued = high - low, ~between
        else:
            width, two_valued = np.maximum(np.abs(low), np.abs(high)), ~between & (low == 0.0)
            low = np.zeros_like(low)
        decay = self.decay
        if decay is None:
            decay = _DECAY if self.max_degree is None else 1.0
        return ProductsPool(
            letters=letters,
            low=low,
            width=width / decay,
            decay=decay,
            two_valued=two_valued,
            nonnegative=nonnegative,
            min_degree=self.min_degree,
            max_degree=math.inf if self.max_degree is None else self.max_degree,
            max_opened=self.max_opened,
            enumerated=ENUMERATED,
        )


def _ranges(partition: Partition, memo: Any, n: int) -> Sums:
    """Least and greatest value of every raw column."""
    low, high = np.empty(n), np.empty(n)
    product_loops.column_ranges(*_live(partition), low, high)
    return Sums(peak={"below": -low, "above": high})


def _between(partition: Partition, memo: Any, low: Array, high: Array) -> Sums:
    """Whether raw columns have more values than their least and greatest."""
    between = np.empty(low.shape[0])
    product_loops.values_between(*_live(partition), low, high, between)
    return Sums(peak={"between": between})


def _live(partition: Partition) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any], Array, int]:
    live = int(np.count_nonzero(partition.weight > 0.0))
    return partition.indptr, partition.rows, partition.values, partition.weight, live


@dataclass(frozen=True, eq=False)
class ProductsPool:
    """The monomials over one data set.

    Parameters
    ----------
    letters : int64 array, shape (l,)
        Raw columns that take part, ascending.
    low, width : float64 arrays, shape (l,)
        Their scale.
    decay : float
        Largest scaled |x|.
    two_valued : bool array, shape (l,)
        Letters with two values, one of them 0: their powers are themselves but for a factor of at most 1.
    nonnegative : bool
        Whether every scaled value is >= 0.
    min_degree : int
    max_degree : int or inf
    max_opened : int
    enumerated : int
        A class of more monomials is searched.
    """

    letters: NDArray[np.int64]
    low: Array
    width: Array
    decay: float
    two_valued: NDArray[np.bool_]
    nonnegative: bool
    min_degree: int
    max_degree: float
    max_opened: int
    enumerated: int

    @property
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
        return self.size > self.enumerated

    @property
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
        once = set(self.letters[self.two_valued].tolist())
        for degree in range(self.min_degree - 1, int(self.max_degree)):
            for key in combinations_with_replacement(letters, degree):
                if all(a != b or a not in once for a, b in zip(key, key[1:], strict=False)):
                    yield key

    def _first(self, key: Key) -> int:
        """The first letter that extends a monomial in the tree."""
        if not key:
            return 0
        last = int(np.searchsorted(self.letters, key[-1]))
        return last + 1 if self.two_valued[last] else last

    def shards(self, active: Sequence[Key], row_bytes: int, shard_bytes: int) -> list[Shard]:
        """All monomials; of a class that is searched, the products of the active ones with every feature."""
        if self.searched:
            near = [()] + [key for key in active if len(key) < self.max_degree]
            parents = [(key, 0) for key in near if len(key) + 1 >= self.min_degree]
        else:
            parents = [(key, self._first(key)) for key in self._parents()]
        room = max(1, shard_bytes // row_bytes)
        shards: list[Shard] = []
        current: list[tuple[Key, int]] = []
        filled = 0
        for key, first in parents:
            width = len(self.letters) - first
            if current and filled + width > room:
                shards.append(tuple(current))
                current, filled = [], 0
            if width:
                current.append((key, first))
                filled += width
        return [*shards, tuple(current)] if current or not shards else shards

    def keys(self, shard: Shard, places: NDArray[np.int64] | None = None) -> list[Key]:
        """The monomials at some places of a shard's sums; all when `places` is None."""
        offset = self._offsets(shard)
        wanted = np.arange(offset[-1]) if places is None else places
        parents = np.searchsorted(offset, wanted, side="right") - 1
        found = []
        for place, parent in zip(wanted.tolist(), parents.tolist(), strict=True):
            key, first = shard[parent]
            letter = first + place - int(offset[parent])
            j = int(self.letters[letter])
            found.append(key if self.two_valued[letter] and j in key else tuple(sorted((*key, j))))
        return found

    def _offsets(self, shard: Shard) -> NDArray[np.int64]:
        """Place of each parent's first child, and the number of children."""
        return np.cumsum([0] + [len(self.letters) - first for _, first in shard])

    def sums(self, partition: Partition, memo: Any, shard: Shard, plus: Array, minus: Array | None) -> Sums:
        """Sums of the children of a shard's parents (docs/math.md 7 (F): one product of matrices)."""

        def build() -> tuple[Any, ...]:
            arrays = (partition.indptr, partition.rows, partition.values, partition.n_rows)
            scaled = product_loops.scaled_columns(*arrays, self.letters, self.low, self.width)
            letters = np.arange(len(self.letters))
            return (*scaled, *columns.cut_rows(*scaled, letters, partition.n_rows))

        held = memo.get("letters", self.token, build)
        scaled, by_row = held[:3], held[3:]
        places = {int(j): c for c, j in enumerate(self.letters)}
        ends, flat = flattened([key for key, _ in shard], places)
        parents = product_loops.monomials(scaled[0], scaled[1], scaled[2], partition.n_rows, ends, flat)
        first = np.array([first for _, first in shard], dtype=np.int64)
        offset = self._offsets(shard)
        count, k = int(offset[-1]), plus.shape[1]
        square, total, peak = (np.zeros(count) for _ in range(3))
        common = (parents, first, offset[:-1], by_row, partition.weight)
        found = Sums(add={"square": square, "total": total}, peak={"peak": peak})
        if minus is None:
            found.add["G"] = np.zeros((count, k))
            product_loops.children_gradient(*common, plus, found.add["G"], square, total, peak)
        else:
            up, down = np.zeros((count, k)), np.zeros((count, k))
            product_loops.children_mu(*common, plus, minus, up, down, square, total, peak)
            found.add |= {"mu_plus": up, "mu_minus": down}
        return found

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
