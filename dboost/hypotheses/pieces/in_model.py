"""Pieces of a piecewise linear model: which rows lie within which radius, and the pieces that a model holds.

Covers: ``Balls`` (centres and radii), ``PieceSet`` and ``restore``.
Does not cover: how centres and radii are found, or candidates (``piecewise``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import DataError, ModelFormatError
from dboost.files.documents import Document
from dboost.hypotheses.base import Array, Block
from dboost.hypotheses.kernels.centres import Centres, RowBlock, by_row, distances, squares_of
from dboost.hypotheses.pieces import piece_loops as loops

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
            loops.bins_of(part, self.radii, out[first : first + len(part)])
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
class PieceSet:
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

    @property
    def n_hypotheses(self) -> int:
        """How many features there are."""
        return len(self.keys)

    def words(self) -> list[str]:
        """``rm near 17 within 0.5``, and ``1 near 17 within 0.5`` for the constant."""
        keys = [(int(self.numbers[centre]), radius, a) for centre, radius, a in self.keys.tolist()]
        return words_of(keys, self.balls, self.features)

    def evaluate(self, raw: Block) -> Block:
        """The features as columns.

        Raises DataError: When the block has another number of columns.
        """
        if len(raw.indptr) - 1 != self.balls.d:
            raise DataError(f"a block of {len(raw.indptr) - 1} columns; the pieces need {self.balls.d}")
        return piece_columns(self.balls, raw, [tuple(key) for key in self.keys.tolist()])

    def to_json(self) -> dict[str, Any]:
        """Names of the columns."""
        return {"family": FAMILY, "names": None if self.features is None else list(self.features)}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Centres, radii, and the features."""
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


def restore(spec: Document, arrays: Mapping[str, NDArray[Any]], n_features: int) -> PieceSet:
    """Read a `PieceSet` back, trusting nothing.

    Raises ModelFormatError.
    """
    floats: dict[str, tuple[Any, int]] = {"piece_centres": (np.float64, 2), "piece_radii": (np.float64, 1)}
    expected = {**floats, "piece_numbers": (np.int64, 1), "piece_keys": (np.int64, 2)}
    odd = sorted(set(arrays) ^ set(expected))
    if odd:
        raise ModelFormatError(f"hypotheses of family {FAMILY!r}: array {odd[0]!r} is odd or missing", file=spec.file)
    centres, radii, numbers, keys = (arrays[name] for name in expected)
    names = spec.strings("names")
    sound = (
        all(arrays[name].dtype == kind and arrays[name].ndim == axes for name, (kind, axes) in expected.items())
        and centres.shape == (len(numbers), n_features)
        and keys.shape[1] == 3
        and 0 < len(radii) <= MOST_RADII
        and bool(np.all(np.isfinite(centres)) and np.all(np.isfinite(radii)) and radii[0] > 0.0)
        and bool(np.all(np.diff(radii) > 0.0) and np.all(numbers >= 0) and np.all(keys >= 0))
        and bool(np.all(keys < [len(centres), len(radii), n_features + 1]))
        and (names is None or len(names) == n_features)
    )
    if not sound:
        raise ModelFormatError("the pieces of the model are damaged", file=spec.file)
    return PieceSet(Balls(centres, radii), numbers, keys, names)
