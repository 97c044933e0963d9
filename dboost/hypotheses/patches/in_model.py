"""Templates of image patches under masks: their responses, and the ones that a model holds.

Covers: ``Bank`` (templates and the geometry of images, masks and positions), ``PatchSet`` and ``restore``.
Does not cover: how templates are found, or candidates (``patches``).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import ModelFormatError
from dboost.files.documents import Document
from dboost.hypotheses.base import Block
from dboost.hypotheses.patches import patch_loops as loops
from dboost.hypotheses.patches.patch_loops import LEVELS, STEP, TILE

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
        found: NDArray[np.float64] = ((np.arange(count) - centres[:, None]) / (self.spread * spacing)) ** 2
        return found


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
        loops.dense_images(raw.indptr, raw.rows, raw.values, places, out)
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
class PatchSet:
    """The patches that a model holds."""

    bank: Bank  # The templates that are used, each once.
    numbers: NDArray[np.int64]  # (templates,): Their numbers among the candidates.
    # slots, masks: int64 arrays, shape (a,). Template (in `bank`) and mask of every hypothesis.
    slots: NDArray[np.int64]
    masks: NDArray[np.int64]

    family = FAMILY

    @property
    def inputs(self) -> NDArray[np.int64]:
        """Pixels that some template sees under its mask."""
        return self.bank.pixels_seen(np.unique(self.masks)) if len(self.masks) else np.zeros(0, np.int64)

    @property
    def n_hypotheses(self) -> int:
        """How many pairs of template and mask."""
        return len(self.slots)

    def words(self) -> list[str]:
        """``patch 17 at 2,3``: the template's number, row and column of the mask; see ``words_of``."""
        return words_of(self.numbers[self.slots], self.masks, self.bank.lattices)

    def evaluate(self, raw: Block) -> Block:
        """The features as columns."""
        return made_columns(self.bank, self.slots, self.masks, self.bank.images(raw, self.inputs))

    def to_json(self) -> dict[str, Any]:
        """The geometry."""
        bank = self.bank
        lattices = [{"side": lattice.side, "spread": lattice.spread} for lattice in bank.lattices]
        frame = {"shape": list(bank.shape), "size": bank.size, "lattices": lattices, "floor": bank.floor}
        return {"family": FAMILY, **frame}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Templates, and the hypotheses."""
        found = {"numbers": self.numbers, "slots": self.slots, "masks": self.masks}
        return {"patch_templates": self.bank.templates, **{f"patch_{name}": value for name, value in found.items()}}


def words_of(numbers: NDArray[np.int64], masks: NDArray[np.int64], lattices: Sequence[Lattice]) -> list[str]:
    """Names of templates under masks: ``patch 17 at 2,3``; with several lattices ``patch 17 at 2,3 of 4x4 (0.5)``."""
    places = []
    for lattice in lattices:
        which = f" of {lattice.side}x{lattice.side} ({lattice.spread:g})" if len(lattices) > 1 else ""
        places += [f"{row},{column}{which}" for row in range(lattice.side) for column in range(lattice.side)]
    return [f"patch {number} at {places[mask]}" for number, mask in zip(numbers.tolist(), masks.tolist(), strict=True)]


def restore(spec: Document, arrays: Mapping[str, NDArray[Any]], n_features: int) -> PatchSet:
    """Read a `PatchSet` back, trusting nothing.

    Raises ModelFormatError.
    """
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
    names = ("numbers", "slots", "masks")
    odd = sorted(set(arrays) ^ {"patch_templates", *(f"patch_{name}" for name in names)})
    if odd:
        raise ModelFormatError(f"hypotheses of family {FAMILY!r}: array {odd[0]!r} is odd or missing", file=spec.file)
    templates = arrays["patch_templates"]
    numbers, slots, masks = (arrays[f"patch_{name}"] for name in names)
    bank = Bank(templates, (shape[0], shape[1]), size, lattices, floor)
    sound = (
        templates.dtype == np.float32
        and templates.ndim == 2
        and templates.shape[1] == size**2
        and bool(np.all(np.isfinite(templates)))
        and all(array.dtype == np.int64 and array.ndim == 1 for array in (numbers, slots, masks))
        and len(numbers) == len(templates)
        and len(slots) == len(masks)
        and bool(np.all(numbers >= 0) and np.all((slots >= 0) & (slots < len(templates))))
        and bool(np.all((masks >= 0) & (masks < bank.n_masks)))
    )
    if not sound:
        raise ModelFormatError("the templates of the patches are damaged", file=spec.file)
    return PatchSet(bank, numbers, slots, masks)
