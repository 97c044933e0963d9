"""What a family of hypotheses is: columns made from raw features where and when they are needed.

Covers: the protocols ``Family`` (what a user asks for), ``Pool`` (that family on one data set: candidates to score, in
any number) and ``Chosen`` (the hypotheses a model holds), and the small values they exchange.
Does not cover: bins and trees, which some pools have beyond that (``capabilities``), the families themselves (one file
each), or which candidates enter a model (``dboost.boosting``).

A hypothesis is named by its *key*, a tuple of integers that the family understands: (j,) for a raw column, the sorted
raw indices of a monomial, the place of a kernel's centre. Raw features stay as they are in their partitions; a
hypothesis becomes a stored column of a partition only while a model holds it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dboost.engine.base import Engine
from dboost.errors import DataError, ModelFormatError, UsageError
from dboost.partition import Partition, Sums

T = TypeVar("T")

Array = NDArray[np.float64]
Key = tuple[int, ...]


class Block(NamedTuple):
    """Columns of some rows, as CSC: the raw features that go in, and the hypotheses that come out.

    indptr is int64 (columns + 1,), rows int32 and ascending within a column, values float32 or float64.
    """

    indptr: NDArray[np.int64]
    rows: NDArray[np.int32]
    values: NDArray[Any]
    n_rows: int


def taken(block: Block, wanted: NDArray[np.int64]) -> Block:
    """Some columns of a block, in that order."""
    spans = [slice(int(block.indptr[j]), int(block.indptr[j + 1])) for j in wanted.tolist()]
    indptr = np.zeros(len(spans) + 1, np.int64)
    np.cumsum([span.stop - span.start for span in spans], out=indptr[1:])
    rows = np.concatenate([block.rows[:0], *[block.rows[span] for span in spans]])
    values = np.concatenate([block.values[:0], *[block.values[span] for span in spans]])
    return Block(indptr, rows, values, block.n_rows)


@dataclass(frozen=True)
class Context:
    """What a family may ask of a data set when it is prepared."""

    engine: Engine  # Its plan is set: ``map_reduce`` runs over the partitions.
    n_rows: int  # n_rows, n_features, n_outputs: Shapes m, n, k.
    n_features: int
    n_outputs: int
    peak: Array  # float64 array, shape (n,). max |x| of each raw column.
    seed: int  # Seed of everything random.
    picks: bool = False  # Whether a fit asks for the best of all alone, so that the others need not be summed.


@runtime_checkable
class Family(Protocol):
    """A family as a user names it: a small frozen value with the parameters of the family."""

    def prepare(self, context: Context) -> Pool:
        """Look at the data (scales, support sets) and return the pool of candidates."""
        ...

    def to_json(self) -> dict[str, Any]:
        """``{"family": name, parameter: value, ...}``, JSON values only."""
        ...


class Pool(Protocol):
    """A family on one data set. Frozen and picklable; its methods are pure, and some run on workers.

    A subclass gives those that have no answer here; the others have the usual one.
    """

    # Whether margins of one output are summed hypothesis by hypothesis, for good: order decides the bits.
    by_column: ClassVar[bool] = False

    @property
    def size(self) -> float:
        """Number of hypotheses; ``math.inf`` where they are countably many."""
        ...

    @property
    def searched(self) -> bool:
        """Whether it is too large to be summed whole: ``shards`` offer a part, and it is a ``Tree`` or ``Binned``."""
        return False

    @property
    def token(self) -> str:
        """Names the pool's contents: equal pools have equal tokens."""
        ...

    def columns(self, raw: Block, keys: Sequence[Key]) -> Block:
        """The hypotheses `keys` as columns, in that order, from all raw columns of some rows."""
        ...

    def shards(self, active: Sequence[Key], row_bytes: int, shard_bytes: int) -> list[Any]:
        """Cut the candidates of a round into shards whose sums, of `row_bytes` each, take about `shard_bytes`.

        All hypotheses, or, where the pool is searched, those next to the `active` ones.
        """
        ...

    def keys(self, shard: Any, places: NDArray[np.int64] | None = None) -> list[Key]:
        """The hypotheses at some places of a shard's sums; all of them, in order, when `places` is None."""
        ...

    def sums(self, partition: Partition, memo: Any, shard: Any, plus: Array, minus: Array | None) -> Sums:
        """Sums of a shard's c hypotheses h over one partition; nothing is kept of their columns.

        `plus`, `minus`: float64 arrays, shape (m, k). With `minus` None, `plus` holds signed residuals Theta. Otherwise
        both are >= 0 and their difference is it.
        Returns Sums: What ``complete`` makes these of, for the c hypotheses of the ``narrowed`` shard. ``add``: "G" =
        h'Theta (c, k), or "mu_plus" = [h]_+'plus + [-h]_+'minus and "mu_minus" with the two exchanged; "square" = sum s
        h**2 and "total" = sum s h, (c,). ``peak``: "peak" = max |h| (c,).
        """
        ...

    def names(self, keys: Sequence[Key], features: Sequence[str] | None) -> list[str]:
        """Names in words; raw features without names are x0, x1, ..."""
        ...

    def chosen(self, keys: Sequence[Key], features: Sequence[str] | None) -> Chosen:
        """The hypotheses `keys` as a model holds them, free of all others."""
        ...

    def complete(self, shard: Any, total: Sums) -> Sums:
        """The sums of a shard as `sums` describes them, "G" among them, from what was added up over the partitions.

        Where partitions need not say all that their sums come to, `sums` gives what must be added, under names of its
        own; beside the sums of the branches of the loss a pass puts those of Theta, each under its name with ``THETA``
        before it.
        """
        return with_gradient(total)

    def narrowed(self, shard: Any, total: Sums) -> Any:
        """The shard of the hypotheses that `complete` sums are of; the others are zero in every example."""
        return shard

    def groups(self, shard: Any, count: int) -> NDArray[np.int64]:
        """Where each group begins among the `count` hypotheses of a shard: ascending, the first 0, as `reduceat` asks.

        A rule that adds by groups takes all of one, say the d + 1 features of one piece of a piecewise linear model
        (ShareBoost, section 3.2). No shard cuts a group, and its hypotheses are next to each other in it.
        """
        return np.arange(count, dtype=np.int64)

    def runs(self, shard: Any, count: int) -> NDArray[np.int64] | None:
        """Where each run begins of hypotheses of a shard, `count` in all, that are nearly the same; None for no runs.

        Of a run only the best one enters a model in a round: the others would say the same.
        """
        return None

    def group(self, key: Key) -> list[Key]:
        """All hypotheses of the group that `key` is in, in the order in which they enter a model."""
        return [key]

    def held(self, partition: Partition, memo: Any, keys: Sequence[Key]) -> Block:
        """`columns` of a partition, with the same bits, from what the pool remembers of it where it does."""
        return self.columns(stored(partition), keys)

    def follow(self, held: Chosen, keys: Sequence[Key]) -> tuple[NDArray[np.int64], Array]:
        """Hypotheses of an earlier model, of other rows of the same features, that are candidates here too.

        `held` and `keys` are those of that model. Returns the places of those that are candidates here, ascending,
        with the same keys, and what their weights are multiplied by to mean the same here.
        """
        raise UsageError("hypotheses of this family depend on the rows")


THETA = "theta "


def with_gradient(total: Sums) -> Sums:
    """Sums with "G" among them, the difference of mu+ and mu- where no pass has summed Theta."""
    add = dict(total.add)
    if THETA + "G" in add:
        add["G"] = add.pop(THETA + "G")
    elif "G" not in add:
        add["G"] = add["mu_plus"] - add["mu_minus"]
    return replace(total, add=add)


class InRanges(Pool):
    """A pool whose hypotheses are numbered, `each` of them to a unit; a shard is a range of units (first, last).

    A subclass gives `units`, and says which hypotheses some numbers are where that is not (number,).
    """

    each = 1
    step = 1  # The units of a shard are a multiple of this, but for those of the last one.

    @property
    def units(self) -> int:
        """How many units there are."""
        raise NotImplementedError

    @property
    def size(self) -> float:
        """Number of hypotheses; the last unit may have fewer than `each`."""
        return self.units * self.each

    def numbered(self, numbers: NDArray[np.int64]) -> list[Key]:
        """The hypotheses of some numbers."""
        return [(number,) for number in numbers.tolist()]

    def shards(self, active: Sequence[Key], row_bytes: int, shard_bytes: int) -> list[tuple[int, int]]:
        """All units as ranges, whatever is active."""
        fitting = shard_bytes // max(1, row_bytes * self.each)
        width = max(1, fitting // self.step) * self.step
        return [(first, min(first + width, self.units)) for first in range(0, self.units, width)]

    def keys(self, shard: tuple[int, int], places: NDArray[np.int64] | None = None) -> list[Key]:
        """The hypotheses at some places of a range, or all of them."""
        first, end = shard[0] * self.each, min(shard[1] * self.each, int(self.size))
        return self.numbered(np.arange(first, end) if places is None else first + np.asarray(places, np.int64))


def tiles(
    memo: Any, what: str, token: str, numbers: Iterable[int], build: Callable[[int], T], keeps: Callable[[int], bool]
) -> Iterator[tuple[int, T]]:
    """Some tiles of a partition's hypotheses, each made when it is asked for, and remembered where `keeps` says so.

    Tiles that do not fit together would push each other out, and decoded partitions with them.
    """
    for number in numbers:
        made = partial(build, number)
        yield number, memo.get(f"{what}-{number}", token, made) if keeps(number) else made()


def is_whole(value: Any, least: int = 1) -> bool:
    """Whether a parameter is an integer of at least so much."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= least)


def is_positive(value: Any) -> bool:
    """Whether a parameter is a finite number above zero."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return bool(number and 0.0 < value < math.inf)


def stored(partition: Partition) -> Block:
    """The raw features of a partition."""
    return Block(partition.indptr, partition.rows, partition.values, partition.n_rows)


def sums_of_columns(block: Block, columns: range, weight: Array, plus: Array, minus: Array | None) -> Sums:
    """As ``Pool.sums``, of columns of a block that lie beside each other."""
    # Not at the top: a model that predicts with raw columns needs no compiled kernel.
    from dboost.compiled.sparse import columns as kernels

    count, chosen = len(columns), np.arange(columns.start, columns.stop)
    parts = block.indptr, block.rows, block.values
    total, absolute, square, peak = (np.zeros(count) for _ in range(4))
    mine = block.indptr[columns.start : columns.stop + 1]
    kernels.column_statistics(mine, block.rows, block.values, weight, peak, total, absolute, square)
    names = ("G",) if minus is None else ("mu_plus", "mu_minus")
    found = {name: np.empty((count, plus.shape[1])) for name in names}
    if minus is None:
        kernels.column_gradient(*parts, plus, chosen, found["G"])
    else:
        kernels.column_mu(*parts, plus, minus, chosen, found["mu_plus"], found["mu_minus"])
    return Sums(add={**found, "square": square, "total": total}, peak={"peak": peak})


def side_by_side(parts: Sequence[Sums]) -> Sums:
    """Sums of some hypotheses, then those of others, and so on, as those of all of them."""
    add = {name: np.concatenate([sums.add[name] for sums in parts]) for name in parts[0].add}
    peak = {name: np.concatenate([sums.peak[name] for sums in parts]) for name in parts[0].peak}
    return Sums(add=add, peak=peak)


class Chosen(Protocol):
    """The hypotheses of a model, from raw rows. Frozen and picklable; equal where ``to_json`` and ``arrays`` are.

    A subclass gives those that have no answer here.
    """

    @property
    def family(self) -> str:
        """Name of the family, as in ``to_json``."""
        ...

    @property
    def inputs(self) -> NDArray[np.int64]:
        """Raw columns needed, ascending, shape (b,)."""
        ...

    @property
    def n_hypotheses(self) -> int:
        """How many hypotheses there are."""
        return len(self.words())

    def words(self) -> list[str]:
        """Their names for a reader."""
        ...

    def evaluate(self, raw: Block) -> Block:
        """The hypotheses as columns, from a block of the columns ``inputs``; same bits for a row in any block."""
        ...

    def to_json(self) -> dict[str, Any]:
        """``{"family": name, ...}``, JSON values only; with `arrays` all there is to know."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Numeric arrays saved beside the JSON; their names are unique within the family."""
        return {}


class NamedSet:
    """Hypotheses of a model that have their names with them, and by default no arrays."""

    names: tuple[str, ...]

    @property
    def n_hypotheses(self) -> int:
        """How many there are."""
        return len(self.names)

    def words(self) -> list[str]:
        """Their names."""
        return list(self.names)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """None: the JSON says all."""
        return {}


def saved_arrays(
    family: str, arrays: Mapping[str, NDArray[Any]], expected: Mapping[str, tuple[Any, int]], file: str
) -> list[NDArray[Any]]:
    """The arrays of saved hypotheses: those expected and no others, of these types and axes, floats finite."""
    odd = sorted(set(arrays) - set(expected))
    if odd:
        raise ModelFormatError(f"hypotheses of family {family!r} with an array {odd[0]!r}", file=file)
    for name, (kinds, axes) in expected.items():
        value, known = arrays.get(name), [np.dtype(kind) for kind in (kinds if isinstance(kinds, tuple) else (kinds,))]
        if value is None or value.dtype not in known or value.ndim != axes:
            found = "nothing" if value is None else f"{value.dtype} with {value.ndim}"
            raise ModelFormatError(f"array {name!r}: expected {known[-1]} with {axes} axes, found {found}", file=file)
        if value.dtype.kind == "f" and not np.all(np.isfinite(value)):
            raise ModelFormatError(f"array {name!r} holds NaN or infinity", file=file)
    return [arrays[name] for name in expected]


def block_of_columns(batch: Any) -> Block:
    """A sparse batch by column."""
    columns = batch.tocsc()
    indptr, rows = columns.indptr.astype(np.int64, copy=False), columns.indices.astype(np.int32, copy=False)
    return Block(indptr, rows, columns.data, batch.shape[0])


def evaluate_rows(hypotheses: Chosen, batch: Any) -> Any:
    """The hypotheses (m, a) of some rows (m, b) of their inputs, as CSR; a DataError where one overflows."""
    from scipy.sparse import csc_array

    m = batch.shape[0]
    made = hypotheses.evaluate(block_of_columns(batch))
    finite = np.isfinite(made.values)
    if not np.all(finite):
        column = int(np.searchsorted(made.indptr, np.argmin(finite), side="right")) - 1
        raise DataError(f"hypothesis {hypotheses.words()[column]!r} overflows on the values of the batch")
    values = made.values.astype(np.float64, copy=False)
    return csc_array((values, made.rows, made.indptr), shape=(m, len(made.indptr) - 1)).tocsr()
