"""Several families as one: ``Columns() | Products(max_degree=2)``.

A key of the union is the place of the member, followed by the member's own key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dboost.errors import ModelFormatError, UsageError
from dboost.files.documents import Document, plain
from dboost.hypotheses import family_from_fields, family_from_json, restore_chosen
from dboost.hypotheses.base import Array, Block, Chosen, Context, Family, Key, Pool, side_by_side, taken
from dboost.hypotheses.capabilities import (
    Binned,
    Gaps,
    Tree,
    named_weights,
)
from dboost.partition import Partition, Sums

# (place of the member, one of its shards)
Shard = tuple[int, Any]


class Joinable:
    """Gives a family, a dataclass, its JSON, comparison by it, and the operator ``|``."""

    name: ClassVar[str]
    """Name of the family in JSON, and in ``dboost.hypotheses.FAMILIES``."""

    shown = staticmethod(plain)
    """A parameter in JSON's own types."""

    def __eq__(self, other: object) -> bool:
        # of a family whose parameters may be arrays; that of others is made of their fields
        return type(other) is type(self) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(repr(self.to_json()))

    def to_json(self) -> dict[str, Any]:
        """Name and parameters."""
        given = {one.name: self.shown(getattr(self, one.name)) for one in fields(self)}  # type: ignore[arg-type]
        return {"family": self.name, **given}

    @classmethod
    def from_json(cls, spec: dict[str, Any]) -> Self:
        """Undo `to_json`."""
        found: Self = family_from_fields(cls, spec)
        return found

    def __or__(self, other: Any) -> Union:
        if not isinstance(other, Family):
            raise UsageError(f"{other!r} is no family of hypotheses", hint="join families: Columns() | Products()")
        members: list[Any] = []
        for family in (self, other):
            members.extend(family.members if isinstance(family, Union) else [family])
        return Union(tuple(members))


@dataclass(frozen=True)
class Union(Joinable):
    """The hypotheses of several families.

    Examples
    --------
    >>> from dboost import Columns, Products
    >>> len((Columns() | Products(min_degree=2, max_degree=2)).members)
    2
    """

    name = "union"
    # At least one. A hypothesis that two members offer, such as a raw column, is offered twice.
    members: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.members or not all(isinstance(member, Family) for member in self.members):
            raise UsageError(f"a union of {self.members!r}", hint="give at least one family of hypotheses")

    def to_json(self) -> dict[str, Any]:
        return {"family": "union", "members": [member.to_json() for member in self.members]}

    @classmethod
    def from_json(cls, spec: dict[str, Any]) -> Union:
        members = spec.get("members")
        if set(spec) != {"family", "members"} or not isinstance(members, list):
            raise UsageError("hypotheses of family 'union' have members, a list of families")
        if any(isinstance(member, dict) and member.get("family") == "union" for member in members):
            raise UsageError("a union within a union of hypotheses")
        return cls(tuple(family_from_json(member) for member in members))

    @staticmethod
    def restore(spec: Document, arrays: Mapping[str, NDArray[Any]], n_features: int) -> UnionSet:
        """The hypotheses of a saved model."""
        parts, owner = [], spec.integers("owner")
        for place, part in enumerate(spec.children("parts")):
            if part.fields.get("family") == "union":
                raise ModelFormatError("a union within a union of hypotheses", file=spec.file)
            parts.append(restore_chosen(part, _under(place, arrays), n_features))
        if not parts or np.any((owner < 0) | (owner >= len(parts))):
            raise ModelFormatError(f"field {spec.where}owner: expected places of {len(parts)} parts", file=spec.file)
        if np.bincount(owner, minlength=len(parts)).tolist() != [part.n_hypotheses for part in parts]:
            raise ModelFormatError("the owners of the hypotheses disagree with the parts", file=spec.file)
        return UnionSet(tuple(parts), owner)

    def prepare(self, context: Context) -> UnionPool:
        return UnionPool(tuple(member.prepare(context) for member in self.members))


@dataclass(frozen=True, eq=False)
class UnionPool(Pool):
    """The pools of the members."""

    pools: tuple[Any, ...]

    @property
    def size(self) -> float:
        found: float = sum(pool.size for pool in self.pools)
        return found

    @property
    def searched(self) -> bool:
        return any(pool.searched for pool in self.pools)

    @property
    def token(self) -> str:
        return hashlib.sha256(repr([pool.token for pool in self.pools]).encode()).hexdigest()[:16]

    def _trees(self) -> list[tuple[int, Any]]:
        return [(place, pool) for place, pool in enumerate(self.pools) if pool.searched and isinstance(pool, Tree)]

    @property
    def max_opened(self) -> int:
        """Budget of a search: the largest of the members that are searched."""
        return max((pool.max_opened for _, pool in self._trees()), default=0)

    def _mine(self, keys: Sequence[Key], member: int) -> list[Key]:
        return [key[1:] for key in keys if key[0] == member]

    def columns(self, raw: Block, keys: Sequence[Key]) -> Block:
        made = [pool.columns(raw, self._mine(keys, place)) for place, pool in enumerate(self.pools)]
        return _in_order(made, [key[0] for key in keys], raw.n_rows)

    def held(self, partition: Partition, memo: Any, keys: Sequence[Key]) -> Block:
        made = [pool.held(partition, memo, self._mine(keys, place)) for place, pool in enumerate(self.pools)]
        return _in_order(made, [key[0] for key in keys], partition.n_rows)

    def shards(self, active: Sequence[Key], row_bytes: int, shard_bytes: int) -> list[Shard]:
        return [
            (place, shard)
            for place, pool in enumerate(self.pools)
            for shard in pool.shards(self._mine(active, place), row_bytes, shard_bytes)
        ]

    def keys(self, shard: Shard, places: NDArray[np.int64] | None = None) -> list[Key]:
        return [(shard[0], *key) for key in self.pools[shard[0]].keys(shard[1], places)]

    def sums(self, partition: Partition, memo: Any, shard: Shard, plus: Array, minus: Array | None) -> Sums:
        found: Sums = self.pools[shard[0]].sums(partition, memo, shard[1], plus, minus)
        return found

    def complete(self, shard: Shard, total: Sums) -> Sums:
        found: Sums = self.pools[shard[0]].complete(shard[1], total)
        return found

    def narrowed(self, shard: Shard, total: Sums) -> Shard:
        return shard[0], self.pools[shard[0]].narrowed(shard[1], total)

    def names(self, keys: Sequence[Key], features: Sequence[str] | None) -> list[str]:
        return [self.pools[key[0]].names([key[1:]], features)[0] for key in keys]

    def chosen(self, keys: Sequence[Key], features: Sequence[str] | None) -> UnionSet:
        parts = [pool.chosen(self._mine(keys, place), features) for place, pool in enumerate(self.pools)]
        return UnionSet(tuple(parts), np.array([key[0] for key in keys], dtype=np.int64))

    def follow(self, held: Chosen, keys: Sequence[Key]) -> tuple[NDArray[np.int64], Array]:
        owner = np.array([key[0] for key in keys], dtype=np.int64)
        stays, factors = np.zeros(len(keys), dtype=bool), np.ones(len(keys))
        for place, pool in enumerate(self.pools):
            mine = np.flatnonzero(owner == place)
            if not mine.size:
                continue
            assert isinstance(held, UnionSet)
            places, mult = pool.follow(held.parts[place], self._mine(keys, place))
            stays[mine[places]], factors[mine[places]] = True, mult
        return np.flatnonzero(stays), factors[stays]

    def groups(self, shard: Shard, count: int) -> NDArray[np.int64]:
        """Where each group begins in a member's shard, by the member."""
        found: NDArray[np.int64] = self.pools[shard[0]].groups(shard[1], count)
        return found

    def runs(self, shard: Shard, count: int) -> NDArray[np.int64] | None:
        found: NDArray[np.int64] | None = self.pools[shard[0]].runs(shard[1], count)
        return found

    def group(self, key: Key) -> list[Key]:
        return [(key[0], *other) for other in self.pools[key[0]].group(key[1:])]

    # ---- the trees of the members that are searched ---------------------------------------------------------------

    def roots(self) -> list[Key]:
        return [(place, *key) for place, pool in self._trees() for key in pool.roots()]

    def branch(self, parents: Sequence[Key]) -> Shard:
        """The children of some parents, all of the first one's member."""
        place = parents[0][0]
        return place, self.pools[place].branch([key[1:] for key in parents])

    def grows(self, key: Key) -> bool:
        return bool(self.pools[key[0]].grows(key[1:]))

    def counts(self, key: Key) -> bool:
        return bool(self.pools[key[0]].counts(key[1:]))

    def reach(self, plus: Array, minus: Array) -> Array:
        found: Array = np.maximum.reduce([pool.reach(plus, minus) for _, pool in self._trees()])
        return found

    # ---- the members with hypotheses between those that are summed -------------------------------------------------

    def gaps(self, shard: Shard, total: Sums) -> Gaps:
        """The groups of a member's shard; none where nothing lies between its hypotheses."""
        pool = self.pools[shard[0]]
        if isinstance(pool, Binned):
            return pool.gaps(shard[1], total)
        none, nothing = np.zeros(0, np.int64), np.zeros((0, total.add["G"].shape[1]))
        return Gaps(none, nothing, np.zeros(0), nothing, nothing, none)

    def nodes(self, shard: Shard, total: Sums, places: NDArray[np.int64]) -> list[Any]:
        return [(shard[0], node) for node in self.pools[shard[0]].nodes(shard[1], total, places)]

    def inside(self, partition: Partition, memo: Any, nodes: Sequence[Any], U: Array) -> Sums:
        found = Sums()
        for place, mine in _by_member(nodes):
            part = self.pools[place].inside(partition, memo, mine, U)
            found.add |= {f"{place}.{name}": value for name, value in part.add.items()}
            found.parts |= {f"{place}.{name}": value for name, value in part.parts.items()}
        return found

    def settle(self, nodes: Sequence[Any], total: Sums, k: int) -> tuple[list[Key], Sums, NDArray[np.int64]]:
        keys: list[Key] = []
        every: list[Sums] = []
        begins: list[NDArray[np.int64]] = []
        for place, mine in _by_member(nodes):
            add, parts = (_under(place, values) for values in (total.add, total.parts))
            found, sums, runs = self.pools[place].settle(mine, Sums(add=add, parts=parts), k)
            begins.append(len(keys) + runs)
            keys.extend((place, *key) for key in found)
            every.append(sums)
        return keys, side_by_side(every), np.concatenate(begins)


def _by_member(nodes: Sequence[Any]) -> list[tuple[int, list[Any]]]:
    """Places of the members that some groups belong to, ascending, each with its own groups."""
    return [(place, [node for owner, node in nodes if owner == place]) for place in sorted({p for p, _ in nodes})]


def _under(place: int, values: Mapping[str, Any]) -> dict[str, Any]:
    prefix = f"{place}."
    return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}


@dataclass(frozen=True, eq=False)
class UnionSet(Chosen):
    """The hypotheses of a model that are of several families."""

    parts: tuple[Chosen, ...]  # What is held of each member.
    # (number of hypotheses,): Place of the member that each hypothesis belongs to, in the order of
    # the rows of W.
    owner: NDArray[np.int64]

    family = "union"

    @property
    def inputs(self) -> NDArray[np.int64]:
        return np.unique(np.concatenate([np.zeros(0, np.int64), *[part.inputs for part in self.parts]]))

    def words(self) -> list[str]:
        left = [iter(part.words()) for part in self.parts]
        return [next(left[place]) for place in self.owner.tolist()]

    def named_weights(self, W: Array) -> Array:
        found = np.array(W, dtype=np.float64)
        for place, part in enumerate(self.parts):
            found[self.owner == place] = named_weights(part, found[self.owner == place])
        return found

    def evaluate(self, raw: Block) -> Block:
        mine = self.inputs
        made = [part.evaluate(taken(raw, np.searchsorted(mine, part.inputs))) for part in self.parts]
        return _in_order(made, self.owner.tolist(), raw.n_rows)

    def to_json(self) -> dict[str, Any]:
        return {"family": "union", "parts": [part.to_json() for part in self.parts], "owner": self.owner.tolist()}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            f"{place}.{name}": value for place, part in enumerate(self.parts) for name, value in part.arrays().items()
        }


def _in_order(made: Sequence[Block], owner: Sequence[int], n_rows: int) -> Block:
    """Columns of several blocks as one, each owner's columns in their order."""
    indptr = np.concatenate([[0], *[np.diff(block.indptr) for block in made]]).cumsum().astype(np.int64)
    rows = np.concatenate([np.zeros(0, np.int32), *[block.rows for block in made]])
    values = np.concatenate([np.zeros(0), *[block.values for block in made]])
    order = np.argsort(np.argsort(np.array(owner, np.int64), kind="stable"))
    return taken(Block(indptr, rows.astype(np.int32), values, n_rows), order)
