"""Patches of images as hypotheses: the largest response of a template over an image, weighted by a mask.

Covers: ``Patches`` (what a user asks for) and its templates. Source: Shalev-Shwartz, Wexler & Shashua 2011
(ShareBoost), section 7.4; docs/math.md 7 (J).
Does not cover: the candidates on one data set (``patch_pool``), responses and the patches that a model holds
(``patch_set``), or k-means (``clusters``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import DataError, UsageError
from dboost.files.documents import Document
from dboost.hypotheses import drawn
from dboost.hypotheses.base import Array, Context, Pool
from dboost.hypotheses.clusters import centres_of
from dboost.hypotheses.patches.in_model import FAMILY, MOST_MASKS, Bank, Lattice, PatchSet, restore
from dboost.hypotheses.patches.patch_loops import LEVELS
from dboost.hypotheses.patches.pool import PatchPool
from dboost.hypotheses.union import Joinable

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
            if len(sides) != 2 or not all(_whole(side) and side >= self.size for side in sides):
                raise UsageError(f"shape={self.shape!r}", hint=f"expected (rows, columns), each at least {self.size}")
            object.__setattr__(self, "shape", (int(sides[0]), int(sides[1])))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Patches) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(repr(self.to_json()))

    def to_json(self) -> dict[str, Any]:
        """The parameters; given templates as lists."""
        given = isinstance(self.templates, np.ndarray)
        return {
            "family": FAMILY,
            "templates": self.templates.tolist() if given else int(self.templates),
            "size": int(self.size),
            "masks": list(self.masks) if isinstance(self.masks, tuple) else self.masks,
            "spread": list(self.spread) if isinstance(self.spread, tuple) else self.spread,
            "shape": None if self.shape is None else list(self.shape),
            "sample": int(self.sample),
            "contrast": self.contrast,
        }

    @classmethod
    def from_json(cls, spec: dict[str, Any]) -> Patches:
        """Undo `to_json`."""
        known = ("templates", "size", "masks", "spread", "shape", "sample", "contrast")
        odd = sorted(set(spec) - {"family", *known})
        if odd:
            raise UsageError(
                f"hypotheses of family {FAMILY!r} have no parameter {odd[0]!r}", hint=f"it takes {', '.join(known)}"
            )
        return cls(**{name: spec[name] for name in known if name in spec})

    @staticmethod
    def restore(spec: Document, arrays: Mapping[str, NDArray[Any]], n_features: int) -> PatchSet:
        """The patches of a saved model; see ``patch_set.restore``."""
        return restore(spec, arrays, n_features)

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
        rows = drawn.draw(context, count, purpose=3)
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


def _whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _positive(name: str, value: Any) -> None:
    if not _whole(value) or value < 1:
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
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not 0.0 < float(value) < math.inf:
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
