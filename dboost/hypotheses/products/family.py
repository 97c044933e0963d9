"""Products of raw features: all monomials up to a degree, or of any degree.

A monomial is the sorted tuple of the raw columns it multiplies, with repetition: (4, 4, 7) is x4^2 * x7. Raw features
enter as (x - low) / width, so that |x| <= 1 and products stay bounded (docs/math.md 7 (F)).

Candidates are summed as products of a few parents with all single features at once, and never stored (one product of
matrices; Duchi & Singer 2009, section 6). Those that occur in no example have sums of zero and are no candidates of any
rule: they take no memory, and no time but that of looking past them.

The monomials form a tree: a parent f is extended by the features from its last one on, so each monomial has one parent.
With |x| <= 1 every descendant h of f has |h'Theta| <= f'|Theta| (half as much bound with x >= 0, where only one sign of
Theta counts); a subtree whose bound is within the penalty's dual ball holds no candidate. Does not cover: the search
through the tree that certifies an infinite class (``dboost.problem.tree_search``).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement, groupby
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.sparse import columns
from dboost.errors import ModelFormatError, UsageError
from dboost.files.documents import Document
from dboost.hypotheses.base import (
    THETA,
    Array,
    Block,
    Chosen,
    Context,
    Key,
    NamedSet,
    Pool,
    is_whole,
    saved_arrays,
    taken,
    with_gradient,
)
from dboost.hypotheses.products import children_loops, product_loops
from dboost.hypotheses.union import Joinable
from dboost.partition import Partition, Sums

MAX_DEGREE = 1000


def flattened(keys: Sequence[Key], places: dict[int, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(ends, letters) of some monomials for the compiled loops; `places` maps raw columns to columns of the block."""
    ends = np.zeros(len(keys) + 1, np.int64)
    np.cumsum([len(key) for key in keys], out=ends[1:])
    letters = np.fromiter((places[j] for key in keys for j in key), np.int64, count=int(ends[-1]))
    return ends, letters


def words(key: Key, features: Sequence[str] | None, low: Mapping[int, float] | None = None) -> str:
    """A monomial in words, for example ``lstat^2 * rm``, or ``(lstat - 1.73)^2 * rm`` less `low`."""
    parts = []
    for j, run in groupby(key):
        name = f"x{j}" if features is None else features[j]
        moved = 0.0 if low is None else low.get(j, 0.0)
        if moved:
            name = f"({name} {'-' if moved > 0.0 else '+'} {abs(moved):.4g})"
        power = len(list(run))
        parts.append(name if power == 1 else f"{name}^{power}")
    return " * ".join(parts) if parts else "1"


@dataclass(frozen=True, eq=False)
class MonomialSet(NamedSet):
    """The monomials of a model."""

    inputs: NDArray[np.int64]  # (b,): Raw columns that occur, ascending.
    low: Array  # low, width: float64 arrays, shape (b,). Scale of each.
    width: Array
    keys: tuple[Key, ...]  # The monomials, in raw columns.
    names: tuple[str, ...]  # In words.

    family = "products"

    def named_weights(self, W: Array) -> Array:
        """Weights of the monomials of raw features, moved where the words say so, and not divided."""
        width = dict(zip(self.inputs.tolist(), self.width.tolist()))
        found = np.array(W, dtype=np.float64)
        # one after the other: the product of all may overflow where the weight does not
        for row, key in zip(found, self.keys, strict=True):
            for j in key:
                row /= width[j]
        return found

    def evaluate(self, raw: Block) -> Block:
        letters = np.arange(len(self.inputs))
        scaled = product_loops.scaled_columns(
            raw.indptr, raw.rows, raw.values, raw.n_rows, letters, self.low, self.width
        )
        ends, flat = flattened(self.keys, {int(j): c for c, j in enumerate(self.inputs)})
        indptr, rows, values = product_loops.monomials(*scaled, raw.n_rows, ends, flat)
        return Block(indptr, rows, values, raw.n_rows)

    def to_json(self) -> dict[str, Any]:
        return {"family": "products", "monomials": [list(key) for key in self.keys], "names": list(self.names)}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"inputs": self.inputs, "low": self.low, "width": self.width}


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


class Narrowed(NamedTuple):
    """Some hypotheses of a shard."""

    shard: Shard
    places: NDArray[np.int64]  # Which, ascending.


@dataclass(frozen=True, eq=False)
class ProductsPool(Pool):
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
        return self.max_degree > SUMMED_DEGREE and self.size > self.enumerated

    @cached_property
    def token(self) -> str:
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
        inputs = self._inputs(keys)
        places = np.searchsorted(self.letters, inputs)
        return MonomialSet(inputs, self.low[places], self.width[places], tuple(keys), tuple(self.names(keys, features)))

    def names(self, keys: Sequence[Key], features: Sequence[str] | None) -> list[str]:
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
        """The sums of the hypotheses that occur."""
        found: Any = total.add[OCCURRING]
        add = found.named()
        if THETA + OCCURRING in total.add:
            add[THETA + "G"] = total.add[THETA + OCCURRING].named()["G"]
        return with_gradient(Sums(add=add, peak={"peak": found.peak}))

    def narrowed(self, shard: Shard, total: Sums) -> Narrowed:
        return Narrowed(shard, total.add[OCCURRING].places)

    # ---- the tree --------------------------------------------------------------------------------------------------

    def roots(self) -> list[Key]:
        return [()]

    def branch(self, parents: Sequence[Key]) -> Shard:
        return tuple((key, self._first(key)) for key in parents)

    def grows(self, key: Key) -> bool:
        return len(key) < self.max_degree and self._first(key) < len(self.letters)

    def counts(self, key: Key) -> bool:
        return len(key) >= self.min_degree

    def reach(self, plus: Array, minus: Array) -> Array:
        return self.decay * (np.maximum(plus, minus) if self.nonnegative else plus + minus)


ENUMERATED = 10_000_000
"""Monomials of degree three and more that are summed one by one in every round at most, about 1e10 products for a
thousand examples. A larger class is searched: its parents alone may be too many to visit."""
_DECAY = 0.9


@dataclass(frozen=True)
class Products(Joinable):
    """All monomials of raw features, of bounded or of any degree.

    Features are scaled first, so that |x| <= 1; constant features take no part, and a feature with two values, one of
    them 0 after scaling, is not multiplied by itself. The penalty weighs the scaled monomials. ``coef_``, and what is
    printed, are weights of the raw ones as they are named: ``f1 * f2``, or ``(f1 - 2) * f2`` with ``scale="range"``.

    Parameters
    ----------
    max_degree : int or None, default None
        Largest degree. Up to 2 all products are summed in every round, whatever their number, in blocks of which only
        the best come back: time and memory go by the products that occur, those that are not zero in some example. Of
        a higher degree up to ten million are. None is every degree: a countably infinite class. It, and a larger class
        of degree three and more, is searched with a bound and certified as a whole; a rule that needs the best of it
        in every round refuses it.
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

    name = "products"
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
            if not is_whole(value, least):
                raise UsageError(f"Products: {name}={value!r}", hint=f"expected an integer >= {least}")
        if self.scale not in ("max", "range"):
            raise UsageError(f"Products: scale={self.scale!r}", hint='expected "max" or "range"')
        decay = self.decay
        if decay is not None and (isinstance(decay, bool) or not isinstance(decay, int | float) or not 0 < decay <= 1):
            raise UsageError(f"Products: decay={decay!r}", hint="expected a number in (0, 1], or None")

    @staticmethod
    def restore(spec: Document, arrays: Mapping[str, NDArray[Any]], n_features: int) -> MonomialSet:
        """The set that ``MonomialSet.to_json`` and ``arrays`` describe, trusting nothing."""

        def bad(what: str) -> ModelFormatError:
            return ModelFormatError(f"hypotheses of the family 'products': {what}", file=spec.file)

        expected = {"inputs": (np.int64, 1), "low": (np.float64, 1), "width": (np.float64, 1)}
        inputs, low, width = saved_arrays("products", arrays, expected, spec.file)
        if not len(inputs) == len(low) == len(width):
            raise bad("the scale is not one of each raw column")
        if len(inputs) and (inputs[0] < 0 or inputs[-1] >= n_features or np.any(np.diff(inputs) <= 0)):
            raise bad(f"the raw columns are not ascending within 0..{n_features - 1}")
        if np.any(width <= 0.0):
            raise bad("a width is not positive")
        keys, names, known = spec.integer_lists("monomials"), spec.strings("names"), set(inputs.tolist())
        if names is None or len(keys) != len(names):
            raise bad("'monomials' and 'names' are not lists of one length")
        for key in keys:
            if not 0 < len(key) <= MAX_DEGREE or list(key) != sorted(key) or not known.issuperset(key):
                raise bad(f"monomial {str(key)[:60]} is not a sorted list of raw columns")
        return MonomialSet(inputs, low, width, keys, names)

    def prepare(self, context: Context) -> ProductsPool:
        """Find the scale of every feature; two passes."""
        engine, n = context.engine, context.n_features
        found = engine.map_reduce(_ranges, n, name="ranges")
        low, high = -found.peak["below"], found.peak["above"]
        between = engine.map_reduce(_between, low, high, name="between").peak["between"] > 0.0
        letters = np.flatnonzero(high > low)
        low, high, between = low[letters], high[letters], between[letters]
        nonnegative = self.scale == "range" or bool((low >= 0.0).all())
        if self.scale == "range":
            width, two_valued = high - low, ~between
        else:
            width, two_valued = np.maximum(np.abs(low), np.abs(high)), ~between & (low == 0.0)
            low = np.zeros_like(low)
        # a feature that is moved has a value in every row
        moved = low != 0.0
        more, values = np.count_nonzero(moved), float(found.add["stored"].sum())
        formed = found.add["formed"][letters] + more * found.add["stored"][letters]
        formed[moved] = values + more * context.n_rows
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
            formed=formed.astype(np.int64),
        )


def _ranges(partition: Partition, memo: Any, n: int) -> Sums:
    """Least and greatest value of every raw column, how many values it stores, and how many there are in their rows."""
    low, high = np.empty(n), np.empty(n)
    product_loops.column_ranges(*_live(partition), low, high)
    formed = np.empty(n)
    product_loops.products_formed(partition.indptr, partition.rows, partition.n_rows, formed)
    add = {"stored": np.diff(partition.indptr).astype(np.float64), "formed": formed}
    return Sums(add=add, peak={"below": -low, "above": high})


def _between(partition: Partition, memo: Any, low: Array, high: Array) -> Sums:
    """Whether raw columns have more values than their least and greatest."""
    between = np.empty(low.shape[0])
    product_loops.values_between(*_live(partition), low, high, between)
    return Sums(peak={"between": between})


def _live(partition: Partition) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any], Array, int]:
    live = int(np.count_nonzero(partition.weight > 0.0))
    return partition.indptr, partition.rows, partition.values, partition.weight, live
