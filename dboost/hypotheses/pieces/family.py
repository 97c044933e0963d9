"""Pieces of a piecewise linear model as hypotheses: 1[||x - c|| < r] (x, 1) for centres c and radii r.

Source: Shalev-Shwartz, Wexler & Shashua 2011 (ShareBoost), sections 4.2 and 7.5; docs/math.md 7 (J). Does not cover:
k-means (``clusters``).

The d + 1 features of a centre and a radius are a group. All radii of a centre are summed from one histogram over the
distances to it and its cumulative sums, so that 35 radii cost no more than one.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import DataError, ModelFormatError, UsageError
from dboost.files.documents import Document
from dboost.hypotheses.base import Array, Block, Chosen, Context, InRanges, Key, Pool, is_whole, saved_arrays, tiles
from dboost.hypotheses.centres import Centres, RowBlock, by_row, distances, draw, squares_of
from dboost.hypotheses.clusters import centres_of
from dboost.hypotheses.kernels.kernel_loops import TILE
from dboost.hypotheses.pieces import piece_loops as loops
from dboost.hypotheses.union import Joinable
from dboost.partition import Partition, Sums

FAMILY = "piecewise_linear"
MOST_RADII = 255
Bins = NDArray[np.uint8]


@dataclass(frozen=True)
class Balls:
    """Centres with the radii they are offered with."""

    # Hundreds of kilobytes that every pass refers to: an engine sends them to a worker once
    # (``engine.dask.wire_format``).
    sent_once = True

    centres: Array  # (c, d)
    radii: Array  # (r,): Ascending, positive, at most 255 of them.

    def __len__(self) -> int:
        return len(self.centres)

    @property
    def d(self) -> int:
        """Number of raw columns."""
        return int(self.centres.shape[1])

    @cached_property
    def token(self) -> str:
        """Digest of centres and radii."""
        digest = hashlib.sha256(repr((FAMILY, self.centres.shape)).encode())
        for array in (self.centres, self.radii):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def rows_of(self, chosen: NDArray[np.int64]) -> Centres:
        """Some centres, by row."""
        part = np.ascontiguousarray(self.centres[chosen])
        pointer = np.arange(0, part.size + 1, self.d, dtype=np.int64)
        slots = np.tile(np.arange(self.d, dtype=np.int32), len(part))
        return Centres(pointer, slots, part.reshape(-1), np.asarray(chosen, np.int64))

    def bins(self, rows: RowBlock, squares: Array, chosen: NDArray[np.int64]) -> Bins:
        """Index of the least radius that each row lies strictly within, about some centres: (chosen, m).

        The number of radii for a row that lies beyond all of them. Same bits for a row in any block.
        """
        out = np.empty((len(chosen), rows.n_rows), np.uint8)
        for first, part in distances(rows, squares, self.rows_of(chosen), cosine=False):
            out[first : first + len(part)] = np.searchsorted(self.radii * self.radii, part, side="right")
        return out


def piece_columns(balls: Balls, raw: Block, keys: Sequence[tuple[int, ...]]) -> Block:
    """Features (centre, radius, a) of a block: x_a within the ball and 0 without; a = d is the constant one."""
    used, place = np.unique([centre for centre, _, _ in keys], return_inverse=True)
    rows = by_row(raw)
    bins = balls.bins(rows, squares_of(rows), used.astype(np.int64)) if len(keys) else np.empty((0, 0), np.uint8)
    every = np.arange(raw.n_rows, dtype=np.int32)
    indptr, found, values = np.zeros(len(keys) + 1, np.int64), [every[:0]], [np.zeros(0)]
    for number, (_, radius, a) in enumerate(keys):
        within = bins[place[number]] <= radius
        if a == balls.d:
            found.append(every[within])
            values.append(np.ones(len(found[-1])))
        else:
            span = slice(int(raw.indptr[a]), int(raw.indptr[a + 1]))
            inside = within[raw.rows[span]]
            found.append(raw.rows[span][inside])
            values.append(raw.values[span][inside].astype(np.float64))
        indptr[number + 1] = indptr[number] + len(found[-1])
    return Block(indptr, np.concatenate(found), np.concatenate(values), raw.n_rows)


@dataclass(frozen=True, eq=False)
class PieceSet(Chosen):
    """The features of pieces that a model holds."""

    balls: Balls  # The centres that are used, each once, and all radii.
    numbers: NDArray[np.int64]  # (centres,): Their numbers among the candidates.
    # (a, 3): Centre (in `balls`), radius and raw column of every hypothesis; column d is the
    # constant.
    keys: NDArray[np.int64]
    features: tuple[str, ...] | None = None  # Names of the raw columns.

    family = FAMILY

    @property
    def inputs(self) -> NDArray[np.int64]:
        """All raw columns: each one is part of the distance."""
        return np.arange(self.balls.d, dtype=np.int64)

    def words(self) -> list[str]:
        """``rm near 17 within 0.5``, and ``1 near 17 within 0.5`` for the constant."""
        keys = [(int(self.numbers[centre]), radius, a) for centre, radius, a in self.keys.tolist()]
        return words_of(keys, self.balls, self.features)

    def evaluate(self, raw: Block) -> Block:
        """The features as columns."""
        if len(raw.indptr) - 1 != self.balls.d:
            raise DataError(f"a block of {len(raw.indptr) - 1} columns; the pieces need {self.balls.d}")
        return piece_columns(self.balls, raw, [tuple(key) for key in self.keys.tolist()])

    def to_json(self) -> dict[str, Any]:
        return {"family": FAMILY, "names": None if self.features is None else list(self.features)}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "piece_centres": self.balls.centres,
            "piece_radii": self.balls.radii,
            "piece_numbers": self.numbers,
            "piece_keys": self.keys,
        }


def words_of(keys: Sequence[tuple[int, ...]], balls: Balls, features: Sequence[str] | None) -> list[str]:
    """Names of features of pieces, the centres by their numbers among the candidates."""
    own = [f"x{a}" for a in range(balls.d)] if features is None else list(features)
    named = [*own, "1"]
    return [f"{named[a]} within {balls.radii[radius]:.4g} of centre {centre}" for centre, radius, a in keys]


# Rows that k-means sees, and rows whose distances to the centres tell the radii.
_SAMPLE = 50_000
_MEASURED = 1_000


@dataclass(frozen=True, eq=False)
class PiecewiseLinear(Joinable):
    """The features (x, 1) of the rows within a radius of a centre, as hypotheses; predictions sum all active pieces.

    Parameters
    ----------
    centres : int or array of shape (c, n_features)
        How many centres k-means finds (on at most 50,000 rows at random), or the centres, say those of
        ``dask_ml.cluster.KMeans`` on all rows (``dboost.data.daskml.cluster_centres``).
    radii : int or sequence of float
        How many radii, or the radii: at most 255, positive and ascending. A number r takes the quantiles 1/r, 2/r, ...,
        1 of the distances between 1,000 rows at random and the centres. The same radii are offered for every centre.

    Raises
    ------
    UsageError
        When a parameter has no meaning.

    Examples
    --------
    >>> PiecewiseLinear(centres=20, radii=5).to_json()
    {'family': 'piecewise_linear', 'centres': 20, 'radii': 5}
    """

    name = FAMILY
    centres: Any = 100
    radii: Any = 10

    def __post_init__(self) -> None:
        if isinstance(self.centres, int | np.integer):
            if not is_whole(self.centres):
                raise UsageError(f"centres={self.centres}", hint="expected at least one centre")
        else:
            object.__setattr__(self, "centres", _given(self.centres, "centres", 2))
        if isinstance(self.radii, int | np.integer):
            if not is_whole(self.radii) or self.radii > MOST_RADII:
                raise UsageError(f"radii={self.radii}", hint=f"expected 1 to {MOST_RADII} radii")
        else:
            found = _given(self.radii, "radii", 1)
            if len(found) > MOST_RADII or not found[0] > 0.0 or np.any(np.diff(found) <= 0.0):
                raise UsageError("radii are not positive and ascending", hint=f"expected at most {MOST_RADII} of them")
            object.__setattr__(self, "radii", found)

    @staticmethod
    def restore(spec: Document, arrays: Mapping[str, NDArray[Any]], n_features: int) -> PieceSet:
        """The hypotheses of a saved model, trusting nothing in it."""
        floats: dict[str, tuple[Any, int]] = {"piece_centres": (np.float64, 2), "piece_radii": (np.float64, 1)}
        expected = {**floats, "piece_numbers": (np.int64, 1), "piece_keys": (np.int64, 2)}
        centres, radii, numbers, keys = saved_arrays(FAMILY, arrays, expected, spec.file)
        names = spec.strings("names")
        sound = (
            centres.shape == (len(numbers), n_features)
            and keys.shape[1] == 3
            and 0 < len(radii) <= MOST_RADII
            and bool(radii[0] > 0.0)
            and bool(np.all(np.diff(radii) > 0.0) and np.all(numbers >= 0) and np.all(keys >= 0))
            and bool(np.all(keys < [len(centres), len(radii), n_features + 1]))
            and (names is None or len(names) == n_features)
        )
        if not sound:
            raise ModelFormatError("the pieces of the model are damaged", file=spec.file)
        return PieceSet(Balls(centres, radii), numbers, keys, names)

    def prepare(self, context: Context) -> Pool:
        """Find centres and radii.

        Raises
        ------
        DataError
            When there are no rows, fewer than centres, other columns than given centres have, or no distances.
        """
        d = context.n_features
        if context.n_rows < 1:
            raise DataError("pieces are found among rows, and the data has none")
        if isinstance(self.centres, np.ndarray):
            if self.centres.shape[1] != d:
                raise DataError(f"the centres have {self.centres.shape[1]} features, the data has {d}")
            centres = self.centres
        else:
            centres = centres_of(_drawn(context, _SAMPLE, 5), int(self.centres), context.seed, "centres")
        radii = self.radii if isinstance(self.radii, np.ndarray) else _quantiles(context, centres, int(self.radii))
        return PiecePool(Balls(centres, radii), -(-context.n_rows // max(1, context.engine.n_workers)))


def _given(value: Any, name: str, axes: int) -> Array:
    try:
        found = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as fault:
        raise UsageError(f"{name}={value!r}", hint="expected an integer, or an array of numbers") from fault
    if found.ndim != axes or not found.size or not np.all(np.isfinite(found)):
        raise UsageError(f"{name} of shape {found.shape}", hint=f"expected finite numbers with {axes} axes, not empty")
    return found


def _drawn(context: Context, most: int, purpose: int) -> Array:
    """Rows at random, dense."""
    rows = draw(context, min(most, context.n_rows), purpose)
    out = np.zeros((len(rows), context.n_features))
    out[np.repeat(np.arange(len(rows)), np.diff(rows.pointer)), rows.slots] = rows.values
    return out


def _quantiles(context: Context, centres: Array, count: int) -> Array:
    """Quantiles of distances between rows at random and the centres, without repetitions and zeros."""
    rows = _drawn(context, _MEASURED, 6)
    # row by row, so that the sums are in one order
    found = np.concatenate([np.sqrt(((centres - row) ** 2).sum(axis=1)) for row in rows])
    radii = np.unique(np.quantile(found, np.arange(1, count + 1) / count))
    radii = radii[radii > 0.0]
    if not len(radii) or not math.isfinite(radii[-1]):
        raise DataError("the distances of the rows to the centres are all zero, or not finite")
    return np.ascontiguousarray(radii)


@dataclass(frozen=True, eq=False)
class PiecePool(InRanges):
    """Pieces on one data set. Key (j, q, a) is raw column a (d: the constant) within radius q of centre j.

    A shard is a range of centres; the sums of a centre come by radius, then by column.
    """

    balls: Balls
    rows_per_worker: int  # Decides whether bins are remembered, and nothing else.

    @property
    def units(self) -> int:
        return len(self.balls)

    @property
    def each(self) -> int:  # type: ignore[override]
        """Features of a centre."""
        return len(self.balls.radii) * (self.balls.d + 1)

    @cached_property
    def token(self) -> str:
        return self.balls.token

    def columns(self, raw: Block, keys: Sequence[Key]) -> Block:
        return piece_columns(self.balls, raw, keys)

    def numbered(self, numbers: NDArray[np.int64]) -> list[Key]:
        centres, rest = np.divmod(numbers, self.each)
        radii, columns = np.divmod(rest, self.balls.d + 1)
        return list(zip(centres.tolist(), radii.tolist(), columns.tolist(), strict=True))

    def groups(self, shard: tuple[int, int], count: int) -> NDArray[np.int64]:
        """A group is the d + 1 features of a centre and a radius."""
        return np.arange(0, count, self.balls.d + 1, dtype=np.int64)

    def group(self, key: Key) -> list[Key]:
        return [(key[0], key[1], a) for a in range(self.balls.d + 1)]

    def sums(self, partition: Partition, memo: Any, shard: tuple[int, int], plus: Array, minus: Array | None) -> Sums:
        first, last = shard
        shape = (last - first, len(self.balls.radii), self.balls.d + 1)
        X = _with_one(partition)
        if minus is None:
            pairs = {"G": (plus, -plus)}
        else:
            pairs = {"mu_plus": (plus, minus), "mu_minus": (minus, plus)}
        found = {name: np.empty((*shape[:2], shape[2] * plus.shape[1])) for name in pairs}
        total, square, peak = (np.empty(shape) for _ in range(3))
        one = partition.weight[:, None]
        for start, bins in self._bins(partition, memo, first, last):
            mine = slice(start - first, start - first + len(bins))
            for name, (left, right) in pairs.items():
                loops.histograms(bins, X, left, right, found[name][mine])
            loops.histograms(bins, X, one, -one, total[mine])
            loops.histograms(bins, X * X, one, one, square[mine])
            loops.peaks(bins, X, partition.weight, peak[mine])
        add: dict[str, Array] = {name: value.reshape(-1, plus.shape[1]) for name, value in found.items()}
        add |= {"square": square.reshape(-1), "total": total.reshape(-1)}
        return Sums(add=add, peak={"peak": peak.reshape(-1)})

    def _bins(self, partition: Partition, memo: Any, first: int, last: int) -> Iterator[tuple[int, Bins]]:
        """Bins of a partition, a tile of centres at a time: the first centre wanted, and an array (centres, m)."""
        keeps = self.rows_per_worker * len(self.balls) <= memo.budget // 2
        lines = cache(lambda: by_row(partition))
        squares = cache(lambda: squares_of(lines()))

        def build(start: int) -> Bins:
            chosen = np.arange(start, min(start + TILE, len(self.balls)))
            return self.balls.bins(lines(), squares(), chosen)

        starts = range(first - first % TILE, last, TILE)
        for start, bins in tiles(memo, "pieces", self.token, starts, build, lambda start: keeps):
            low, high = max(start, first), min(start + TILE, last)
            yield low, bins[low - start : high - start]

    def names(self, keys: Sequence[Key], features: Sequence[str] | None) -> list[str]:
        return words_of(keys, self.balls, features)

    def chosen(self, keys: Sequence[Key], features: Sequence[str] | None) -> Chosen:
        triples = np.array(keys, dtype=np.int64).reshape(len(keys), 3)
        used, place = np.unique(triples[:, 0], return_inverse=True)
        triples = np.column_stack([place, triples[:, 1:]]).astype(np.int64)
        balls = Balls(np.ascontiguousarray(self.balls.centres[used]), self.balls.radii)
        return PieceSet(balls, used, triples, None if features is None else tuple(features))


def _with_one(partition: Partition) -> Array:
    """The rows of a partition, dense, with a one at the end."""
    out = np.zeros((partition.n_rows, partition.n_features + 1))
    out[partition.rows, np.repeat(np.arange(partition.n_features), np.diff(partition.indptr))] = partition.values
    out[:, -1] = 1.0
    return out
