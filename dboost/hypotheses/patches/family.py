"""Patches of images as hypotheses: the largest response of a template over an image, weighted by a mask.

Source: Shalev-Shwartz, Wexler & Shashua 2011 (ShareBoost), section 7.4; docs/math.md 7 (J). Does not cover: k-means
(``clusters``).

16,000 features of 60,000 images are 10^9 numbers and 10^12 multiplications. A partition makes them of its images once,
a tile of 128 templates under all masks at a time, and remembers them as bytes; tiles that do not fit what the process
may remember are made again in every pass.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import DataError, ModelFormatError, UsageError
from dboost.files.documents import Document
from dboost.hypotheses.base import (
    Array,
    Block,
    Chosen,
    Context,
    InRanges,
    Key,
    Pool,
    is_positive,
    is_whole,
    saved_arrays,
    stored,
    tiles,
)
from dboost.hypotheses.centres import draw
from dboost.hypotheses.clusters import centres_of
from dboost.hypotheses.patches import patch_loops as loops
from dboost.hypotheses.patches.patch_loops import LEVELS, STEP, TILE
from dboost.hypotheses.union import Joinable
from dboost.partition import Partition, Sums

FAMILY = "patches"
REACH = 3.0
"""A mask is a Gaussian cut to zero beyond so many of its standard deviations."""
MOST_MASKS = 64
"""Masks on a side of the lattice."""

Bytes = NDArray[np.uint8]
# Images that are spread out at a time where columns are made of them.
_CHUNK = 512


@dataclass(frozen=True)
class Lattice:
    """Masks of one width: side x side Gaussians over the positions of a template's corner."""

    side: int
    spread: float  # Standard deviation of a mask, in spacings of the lattice.

    def gains(self, positions: tuple[int, int]) -> NDArray[np.float64]:
        """Value of every mask at every position, shape (masks, positions)."""
        across = [self._bumps(count) for count in positions]
        squares = across[0][:, None, :, None] + across[1][None, :, None, :]
        found = np.where(squares <= REACH**2, np.exp(-0.5 * squares), 0.0)
        return found.reshape(self.side**2, -1)

    def _bumps(self, count: int) -> NDArray[np.float64]:
        """Squared distance, in standard deviations, of positions 0 .. count - 1 to the centres of one axis."""
        spacing = count / self.side
        centres = spacing * (np.arange(self.side) + 0.5) - 0.5
        return ((np.arange(count) - centres[:, None]) / (self.spread * spacing)) ** 2


@dataclass(frozen=True)
class Bank:
    """Templates, and what their responses are taken of.

    The feature of template w and mask g in an image I is q / 256 with q = min(255, round(max over positions of 256 (I *
    w)(p) g(p) / s(p), 0)), rounded half up: a byte, so that all features of a data set can be kept. With a floor, s(p)
    is the contrast of the patch, the norm of its pixels less their mean, or the floor where that is more; else 1.
    """

    # Hundreds of kilobytes that every pass refers to: an engine sends them to a worker once
    # (``engine.dask.wire_format``).
    sent_once = True

    templates: NDArray[np.float32]  # (t, size**2): In the units of a feature's levels.
    shape: tuple[int, int]  # Rows and columns of an image; pixel (i, j) is raw column i * columns + j.
    size: int  # Side of a template.
    lattices: tuple[Lattice, ...]  # The masks: those of the first lattice, of the second, ...
    # Least contrast that responses are divided by, in the units of a pixel; 0 where they are not divided.
    floor: float = 0.0

    def __len__(self) -> int:
        return len(self.templates)

    @property
    def n_masks(self) -> int:
        """Masks of every template."""
        return sum(lattice.side**2 for lattice in self.lattices)

    @property
    def n_pixels(self) -> int:
        """Pixels of an image."""
        return self.shape[0] * self.shape[1]

    @cached_property
    def token(self) -> str:
        """Digest of templates and geometry."""
        digest = hashlib.sha256(repr((FAMILY, self.shape, self.size, self.lattices, self.floor)).encode())
        digest.update(np.ascontiguousarray(self.templates).data)
        return digest.hexdigest()

    def take(self, chosen: NDArray[np.int64]) -> Bank:
        """Some of the templates."""
        return replace(self, templates=np.ascontiguousarray(self.templates[chosen]))

    # ---- geometry --------------------------------------------------------------------------------------------------

    @property
    def positions(self) -> tuple[int, int]:
        """Rows and columns of positions at which a template lies within the image."""
        return self.shape[0] - self.size + 1, self.shape[1] - self.size + 1

    @cached_property
    def taps(self) -> NDArray[np.int64]:
        """Offsets of a patch's pixels from its corner, filled up with the corner itself."""
        inside = np.arange(self.size)
        offsets = (inside[:, None] * self.shape[1] + inside).reshape(-1)
        return np.append(offsets, np.zeros(-len(offsets) % STEP, np.int64)).astype(np.int64)

    @cached_property
    def corners(self) -> NDArray[np.int64]:
        """Pixel of the corner at every position."""
        rows, columns = self.positions
        return (np.arange(rows)[:, None] * self.shape[1] + np.arange(columns)).reshape(-1).astype(np.int64)

    @cached_property
    def gains(self) -> NDArray[np.float32]:
        """Value of every mask at every position, shape (masks, positions)."""
        found = np.concatenate([lattice.gains(self.positions) for lattice in self.lattices])
        return np.ascontiguousarray(found.astype(np.float32))

    @cached_property
    def _seen(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
        """The masks that see a position: pointer by position, masks, gains."""
        position, mask = np.nonzero(self.gains.T)
        pointer = np.searchsorted(position, np.arange(len(self.corners) + 1)).astype(np.int64)
        return pointer, mask.astype(np.int64), np.ascontiguousarray(self.gains[mask, position])

    @cached_property
    def _tiles(self) -> NDArray[np.float32]:
        count = -(-len(self) // TILE)
        filled = np.zeros((count * TILE, len(self.taps)), np.float32)
        filled[: len(self), : self.size**2] = self.templates
        return np.ascontiguousarray(filled.reshape(count, TILE, -1).transpose(0, 2, 1))

    def pixels_seen(self, masks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Pixels that templates under some masks depend on, ascending."""
        corners = self.corners[np.any(self.gains[masks] > 0.0, axis=0)]
        return np.unique(corners[:, None] + self.taps)

    # ---- features --------------------------------------------------------------------------------------------------

    @property
    def n_tiles(self) -> int:
        """Tiles of templates; the features of a tile are made and kept together."""
        return -(-len(self) // TILE)

    def width(self, tile: int) -> int:
        """Templates in a tile."""
        return min(TILE, len(self) - tile * TILE)

    def images(self, raw: Block, pixels: NDArray[np.int64] | None = None) -> NDArray[np.float32]:
        """The rows of a block as images (m, all pixels); its columns are the pixels `pixels`, or all of them."""
        out = np.zeros((raw.n_rows, self.n_pixels), np.float32)
        places = np.arange(self.n_pixels) if pixels is None else pixels
        out[raw.rows, np.repeat(places, np.diff(raw.indptr))] = raw.values
        return out

    def features(self, images: NDArray[np.float32], tile: int) -> Bytes:
        """Features of a tile, (m, masks * templates of the tile): all templates under mask 0, under mask 1, ..."""
        count = self.width(tile)
        out = np.empty((len(images), self.n_masks * count), np.uint8)
        frame = (self.taps, self.corners, self._tiles, tile, *self._seen)
        loops.features(images, *frame, self.n_masks, count, self.size**2, self.floor, out)
        return out


def columns_of(parts: Sequence[Bytes], n_rows: int) -> Block:
    """Columns of bytes as a block without zeros, in their order."""
    indptr, rows, values = np.zeros(len(parts) + 1, np.int64), [], []
    for place, column in enumerate(parts):
        found = np.flatnonzero(column)
        indptr[place + 1] = indptr[place] + len(found)
        rows.append(found.astype(np.int32))
        values.append(column[found].astype(np.float32) / np.float32(LEVELS))
    none = np.zeros(0, np.int32)
    return Block(indptr, np.concatenate([none, *rows]), np.concatenate([none.astype(np.float32), *values]), n_rows)


def made_columns(bank: Bank, slots: NDArray[np.int64], masks: NDArray[np.int64], images: NDArray[np.float32]) -> Block:
    """The features of templates `slots` of a bank under `masks`, as columns in that order."""
    found = np.empty((len(slots), len(images)), np.uint8)
    for tile in range(bank.n_tiles):
        mine = np.flatnonzero(slots // TILE == tile)
        if not len(mine):
            continue
        places = masks[mine] * bank.width(tile) + slots[mine] - tile * TILE
        for start in range(0, len(images), _CHUNK):
            part = bank.features(images[start : start + _CHUNK], tile)
            found[mine, start : start + _CHUNK] = part[:, places].T
    return columns_of(list(found), len(images))


@dataclass(frozen=True, eq=False)
class PatchSet(Chosen):
    """The patches that a model holds."""

    bank: Bank  # The templates that are used, each once.
    numbers: NDArray[np.int64]  # (templates,): Their numbers among the candidates.
    # slots, masks: int64 arrays, shape (a,). Template (in `bank`) and mask of every hypothesis.
    slots: NDArray[np.int64]
    masks: NDArray[np.int64]

    family = FAMILY

    @property
    def inputs(self) -> NDArray[np.int64]:
        return self.bank.pixels_seen(np.unique(self.masks)) if len(self.masks) else np.zeros(0, np.int64)

    def words(self) -> list[str]:
        """``patch 17 at 2,3``: the template's number, row and column of the mask; see ``words_of``."""
        return words_of(self.numbers[self.slots], self.masks, self.bank.lattices)

    def evaluate(self, raw: Block) -> Block:
        return made_columns(self.bank, self.slots, self.masks, self.bank.images(raw, self.inputs))

    def to_json(self) -> dict[str, Any]:
        bank = self.bank
        lattices = [{"side": lattice.side, "spread": lattice.spread} for lattice in bank.lattices]
        frame = {"shape": list(bank.shape), "size": bank.size, "lattices": lattices, "floor": bank.floor}
        return {"family": FAMILY, **frame}

    def arrays(self) -> dict[str, NDArray[Any]]:
        found = {"numbers": self.numbers, "slots": self.slots, "masks": self.masks}
        return {"patch_templates": self.bank.templates, **{f"patch_{name}": value for name, value in found.items()}}


def words_of(numbers: NDArray[np.int64], masks: NDArray[np.int64], lattices: Sequence[Lattice]) -> list[str]:
    """Names of templates under masks: ``patch 17 at 2,3``; with several lattices ``patch 17 at 2,3 of 4x4 (0.5)``."""
    places = []
    for lattice in lattices:
        which = f" of {lattice.side}x{lattice.side} ({lattice.spread:g})" if len(lattices) > 1 else ""
        places += [f"{row},{column}{which}" for row in range(lattice.side) for column in range(lattice.side)]
    return [f"patch {number} at {places[mask]}" for number, mask in zip(numbers.tolist(), masks.tolist(), strict=True)]


# Bytes of features beside everything else that a process remembers.
_SHARE = 0.7


@dataclass(frozen=True, eq=False)
class PatchPool(InRanges):
    """Templates under masks on one data set. Key (f, c) is template f under mask c; a shard is a range of tiles."""

    bank: Bank
    rows_per_worker: int  # Decides how much is remembered, and nothing else.

    @property
    def units(self) -> int:
        return self.bank.n_tiles

    @property
    def each(self) -> int:  # type: ignore[override]
        return TILE * self.bank.n_masks

    @property
    def size(self) -> float:
        return len(self.bank) * self.bank.n_masks

    @cached_property
    def token(self) -> str:
        return self.bank.token

    def columns(self, raw: Block, keys: Sequence[Key]) -> Block:
        bank, slots, masks = self._part(keys)
        return made_columns(bank, slots, masks, self.bank.images(raw))

    def held(self, partition: Partition, memo: Any, keys: Sequence[Key]) -> Block:
        """``columns`` of a partition, from the features that are remembered where all of them are."""
        if self._kept(memo) < self.bank.n_tiles:
            return self.columns(stored(partition), keys)
        parts: list[Any] = [None] * len(keys)
        owner = np.array([template // TILE for template, _ in keys], dtype=np.int64)
        for tile, H in self._tiles(partition, memo, np.unique(owner).tolist()):
            width = self.bank.width(tile)
            for place in np.flatnonzero(owner == tile).tolist():
                template, mask = keys[place]
                parts[place] = H[:, mask * width + template - tile * TILE]
        return columns_of(parts, partition.n_rows)

    def numbered(self, numbers: NDArray[np.int64]) -> list[Key]:
        """The patches of some numbers, by tile, mask, template."""
        found: list[Key] = []
        for tile, place in zip(*(part.tolist() for part in np.divmod(numbers, self.each))):
            mask, template = divmod(place, self.bank.width(tile))
            found.append((tile * TILE + template, mask))
        return found

    def sums(self, partition: Partition, memo: Any, shard: tuple[int, int], plus: Array, minus: Array | None) -> Sums:
        """Sums of a shard's patches; see ``Pool.sums``. A patch is never negative, so mu+ = h'plus, mu- = h'minus."""
        first, last = shard
        start, count = self._start(first), self._start(last) - self._start(first)
        names = {"G": plus} if minus is None else {"mu_plus": plus, "mu_minus": minus}
        found = {name: np.empty((count, plus.shape[1])) for name in names}
        square, total, peak = (np.empty(count) for _ in range(3))
        for tile, H in self._tiles(partition, memo, range(first, last)):
            mine = slice(self._start(tile) - start, self._start(tile + 1) - start)
            for name, residual in names.items():
                loops.byte_sums(H, residual, found[name][mine])
            statistics = partial(_statistics, H, partition.weight)
            square[mine], total[mine], peak[mine] = memo.get(f"patch-statistics-{tile}", self.token, statistics)
        return Sums(add={**found, "square": square, "total": total}, peak={"peak": peak})

    def names(self, keys: Sequence[Key], features: Sequence[str] | None) -> list[str]:
        """``patch 17 at 2,3``; names of pixels have no part in it."""
        templates, masks = _pairs(keys)
        return words_of(templates, masks, self.bank.lattices)

    def chosen(self, keys: Sequence[Key], features: Sequence[str] | None) -> Chosen:
        bank, slots, masks = self._part(keys)
        return PatchSet(bank, np.unique(_pairs(keys)[0]), slots, masks)

    def _part(self, keys: Sequence[Key]) -> tuple[Bank, NDArray[np.int64], NDArray[np.int64]]:
        """The templates of some keys, each once, and the template and mask of every key."""
        templates, masks = _pairs(keys)
        used, slots = np.unique(templates, return_inverse=True)
        return self.bank.take(used), slots.astype(np.int64), masks

    def _start(self, tile: int) -> int:
        """Place of a tile's first patch among all."""
        return min(tile * TILE, len(self.bank)) * self.bank.n_masks

    def _kept(self, memo: Any) -> int:
        """How many tiles, from the first, are remembered."""
        return min(self.bank.n_tiles, int(_SHARE * memo.budget / (self.rows_per_worker * TILE * self.bank.n_masks)))

    def _tiles(self, partition: Partition, memo: Any, numbers: Sequence[int]) -> Iterator[tuple[int, Bytes]]:
        """The features of a partition, tile by tile."""
        images = cache(lambda: self.bank.images(stored(partition)))
        keeps = self._kept(memo)

        def build(tile: int) -> Bytes:
            return self.bank.features(images(), tile)

        return tiles(memo, "patches", self.token, numbers, build, lambda tile: tile < keeps)


def _pairs(keys: Sequence[Key]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    pairs = np.array(keys, dtype=np.int64).reshape(len(keys), 2)
    return pairs[:, 0].copy(), pairs[:, 1].copy()


def _statistics(H: Bytes, weight: Array) -> tuple[Array, Array, Array]:
    square, total, peak = (np.empty(H.shape[1]) for _ in range(3))
    loops.byte_statistics(H, weight, square, total, peak)
    return square, total, peak


# Images that patches are drawn from; more would not fit a driver where images are large.
_IMAGES = 10_000


@dataclass(frozen=True, eq=False)
class Patches(Joinable):
    """Templates of image patches under Gaussian masks, as hypotheses.

    The hypothesis of template w and mask g is the largest value, over all positions p at which the template lies within
    the image I, of (I * w)(p) g(p), or 0 where all are negative; it is a byte q / 256 in [0, 1). The paper leaves open
    how templates are scaled and where masks lie. Here:

    - a template has mean zero over its pixels, so that a blank patch gives 0, and its positive weights sum to one over
      the largest pixel of the data, so that no response of pixels >= 0 is above 1 (others are cut off at 255 / 256);
    - masks are centred on a `masks` x `masks` lattice of the positions; their standard deviation is `spread` spacings
      of the lattice, and they are zero beyond three of these. Several lattices may lie over each other, such as a fine
      one of narrow masks and a coarse one of wide masks: ``masks=(3, 1), spread=(0.6, 0.5)``;
    - with a `contrast`, (I * w)(p) is the cosine between the template and the patch at p, each less its mean, so that a
      faint or thin stroke counts as a strong one of the same shape. A patch whose contrast, the norm of its pixels less
      their mean, is below `contrast` times the largest pixel of the data is divided by that instead.

    Parameters
    ----------
    templates : int or array of shape (t, size, size)
        How many templates k-means finds among random patches of the images, each less its mean; or the templates. The
        patches are those of 10,000 images at random, or of all, at positions that are not blank.
    size : int
        Side of a template, in pixels.
    masks : int or sequence of int
        Masks of every template, on each side of the lattice; 4 are 16 masks. A sequence is one number per lattice.
    spread : float or sequence of float
        Standard deviation of a mask, in spacings of its lattice; one for all lattices, or one per lattice.
    shape : tuple of two int, optional
        Rows and columns of an image; by default images are square. Pixel (i, j) is raw column i * columns + j.
    sample : int
        Patches that k-means sees.
    contrast : float, optional
        Least contrast by which responses are divided, in the largest pixel of the data; a patch with one such pixel
        has a contrast of nearly 1. None leaves responses as they are.

    Raises
    ------
    UsageError
        When a parameter has no meaning.

    Examples
    --------
    >>> Patches(templates=50, size=5).to_json()  # doctest: +NORMALIZE_WHITESPACE
    {'family': 'patches', 'templates': 50, 'size': 5, 'masks': 4, 'spread': 0.5, 'shape': None, 'sample': 100000,
    'contrast': None}
    """

    name = FAMILY
    templates: Any = 1000
    size: int = 7
    masks: Any = 4
    spread: Any = 0.5
    shape: Any = None
    sample: int = 100_000
    contrast: float | None = None

    def __post_init__(self) -> None:
        for name in ("size", "sample"):
            _positive(name, getattr(self, name))
        object.__setattr__(self, "masks", _one_or_more("masks", self.masks, _side))
        object.__setattr__(self, "spread", _one_or_more("spread", self.spread, _positive_number))
        if self.contrast is not None:
            object.__setattr__(self, "contrast", _positive_number("contrast", self.contrast))
        if isinstance(self.masks, tuple) and isinstance(self.spread, tuple) and len(self.masks) != len(self.spread):
            raise UsageError(
                f"masks names {len(self.masks)} lattices and spread {len(self.spread)}",
                hint="give one spread for each lattice, or one for all",
            )
        if len(set(self.lattices)) < len(self.lattices):
            raise UsageError(f"masks={self.masks}, spread={self.spread} name a lattice twice", hint="leave one out")
        if isinstance(self.templates, int | np.integer):
            _positive("templates", self.templates)
        else:
            object.__setattr__(self, "templates", _given(self.templates, int(self.size)))
        if self.shape is not None:
            sides = tuple(self.shape) if isinstance(self.shape, tuple | list) else ()
            if len(sides) != 2 or not all(is_whole(side, self.size) for side in sides):
                raise UsageError(f"shape={self.shape!r}", hint=f"expected (rows, columns), each at least {self.size}")
            object.__setattr__(self, "shape", (int(sides[0]), int(sides[1])))

    @staticmethod
    def restore(spec: Document, arrays: Mapping[str, NDArray[Any]], n_features: int) -> PatchSet:
        """The hypotheses of a saved model, trusting nothing in it."""
        shape, size = spec.integers("shape").tolist(), spec.count("size")
        floor = 0.0
        if "grid" in spec.fields:
            # as models with one lattice were saved before there were several
            lattices: tuple[Lattice, ...] = (Lattice(spec.count("grid"), spec.number("spread")),)
        else:
            floor = spec.number("floor")
            lattices = tuple(Lattice(part.count("side"), part.number("spread")) for part in spec.children("lattices"))
        sound = len(shape) == 2 and 0 < size <= min(shape) and shape[0] * shape[1] == n_features and bool(lattices)
        sound = sound and 0.0 <= floor < math.inf
        if not sound or not all(0 < one.side <= MOST_MASKS and 0.0 < one.spread < math.inf for one in lattices):
            raise ModelFormatError("the patches' image shape, size, masks or floor are wrong", file=spec.file)
        numbered = {f"patch_{name}": (np.int64, 1) for name in ("numbers", "slots", "masks")}
        expected = {"patch_templates": (np.float32, 2), **numbered}
        templates, numbers, slots, masks = saved_arrays(FAMILY, arrays, expected, spec.file)
        bank = Bank(templates, (shape[0], shape[1]), size, lattices, floor)
        sound = (
            templates.shape[1] == size**2
            and len(numbers) == len(templates)
            and len(slots) == len(masks)
            and bool(np.all(numbers >= 0) and np.all((slots >= 0) & (slots < len(templates))))
            and bool(np.all((masks >= 0) & (masks < bank.n_masks)))
        )
        if not sound:
            raise ModelFormatError("the templates of the patches are damaged", file=spec.file)
        return PatchSet(bank, numbers, slots, masks)

    def prepare(self, context: Context) -> Pool:
        """Find the templates.

        Raises
        ------
        DataError
            When the columns are no images of that shape, all pixels are zero, or there are fewer patches than
            templates.
        """
        shape = self._shape(context.n_features)
        top = float(context.peak.max(initial=0.0))
        if not top > 0.0:
            raise DataError("patches of images whose pixels are all zero")
        none = np.zeros((0, self.size**2), np.float32)
        frame = Bank(none, shape, int(self.size), self.lattices, top * (self.contrast or 0.0))
        if isinstance(self.templates, np.ndarray):
            raw = self.templates.reshape(len(self.templates), -1)
        else:
            raw = centres_of(self._patches(context, frame), int(self.templates), context.seed, "templates")
        bank = replace(frame, templates=scaled(raw, top) if self.contrast is None else directions(raw))
        return PatchPool(bank, -(-context.n_rows // max(1, context.engine.n_workers)))

    @property
    def lattices(self) -> tuple[Lattice, ...]:
        """The lattices of the masks."""
        sides, spreads = np.broadcast_arrays(np.array(self.masks), np.array(self.spread))
        pairs = zip(sides.reshape(-1).tolist(), spreads.reshape(-1).tolist(), strict=True)
        return tuple(Lattice(side, spread) for side, spread in pairs)

    def _shape(self, n_features: int) -> tuple[int, int]:
        side = math.isqrt(n_features)
        shape: tuple[int, int] = (side, side) if self.shape is None else self.shape
        if shape[0] * shape[1] != n_features or min(shape) < self.size:
            raise DataError(
                f"{n_features} columns are no images of {shape[0]} x {shape[1]} pixels for patches of "
                f"{self.size} x {self.size}",
                hint="give shape=(rows, columns)" if self.shape is None else "expected rows * columns raw columns",
            )
        return shape

    def _patches(self, context: Context, frame: Bank) -> Array:
        """Random patches that are not blank, each less its mean: (at most sample, size**2)."""
        count = min(context.n_rows, _IMAGES, int(self.sample))
        rows = draw(context, count, purpose=3)
        images = np.zeros((count, frame.n_pixels), np.float64)
        images[np.repeat(np.arange(count), np.diff(rows.pointer)), rows.slots] = rows.values
        rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([context.seed, 4])))
        taps, found = frame.taps[: frame.size**2], []
        each = -(-int(self.sample) // count)
        for image in images:
            seen = image[frame.corners[:, None] + taps]
            lit = np.flatnonzero(np.any(seen != 0.0, axis=1))
            if len(lit):
                found.append(seen[rng.choice(lit, size=min(each, len(lit)), replace=False)])
        patches = np.concatenate([np.zeros((0, frame.size**2)), *found])
        given: Array = patches - patches.mean(axis=1, keepdims=True)
        return given


def scaled(templates: Array, top: float) -> NDArray[np.float32]:
    """Templates (t, pixels) with mean zero whose positive weights sum to LEVELS / top; flat ones are zero."""
    return _brought_to(LEVELS / top, templates, lambda centred: np.maximum(centred, 0.0).sum(axis=1, keepdims=True))


def directions(templates: Array) -> NDArray[np.float32]:
    """Templates (t, pixels) with mean zero and norm LEVELS; flat ones are zero."""
    return _brought_to(LEVELS, templates, lambda centred: np.linalg.norm(centred, axis=1, keepdims=True))


def _brought_to(wanted: float, templates: Array, measure: Callable[[Array], Array]) -> NDArray[np.float32]:
    """Templates less their means, of which `measure` tells the size (t, 1), brought to one size."""
    centred = templates - templates.mean(axis=1, keepdims=True)
    size = measure(centred)
    flat = size <= 1e-9 * np.abs(templates).sum(axis=1, keepdims=True)
    found = np.where(flat, 0.0, centred / np.where(flat, 1.0, size) * wanted)
    return np.ascontiguousarray(found, dtype=np.float32)


def _positive(name: str, value: Any) -> None:
    if not is_whole(value):
        raise UsageError(f"{name}={value!r}", hint="expected a positive integer")


def _one_or_more(name: str, value: Any, read: Callable[[str, Any], Any]) -> Any:
    """A checked value, or a tuple of checked ones for a sequence that is not empty."""
    if not isinstance(value, list | tuple | np.ndarray):
        return read(name, value)
    if not len(value):
        raise UsageError(f"{name} is empty", hint="expected one value, or one for each lattice")
    return tuple(read(name, one) for one in value)


def _side(name: str, value: Any) -> int:
    _positive(name, value)
    if value > MOST_MASKS:
        raise UsageError(f"{name}={value}", hint=f"expected at most {MOST_MASKS} on a side")
    return int(value)


def _positive_number(name: str, value: Any) -> float:
    if not is_positive(value):
        raise UsageError(f"{name}={value!r}", hint="expected a number > 0")
    return float(value)


def _given(templates: Any, size: int) -> Array:
    """Given templates as float64."""
    try:
        found = np.array(templates, dtype=np.float64)
    except (TypeError, ValueError) as fault:
        raise UsageError(f"templates={templates!r}", hint="expected an integer, or an array of templates") from fault
    if found.ndim != 3 or not len(found) or found.shape[1:] != (size, size) or not np.all(np.isfinite(found)):
        raise UsageError(
            f"templates of shape {found.shape}", hint=f"expected finite numbers of shape (templates, {size}, {size})"
        )
    return found
