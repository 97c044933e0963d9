"""Faces: the smooth pieces of a penalty on which second-order steps are taken.

Covers: ``EntryFace`` (coordinates are single entries: l1, sparse group, none), ``RowFace`` (all entries of the nonzero
rows: l1/l2) and ``BoundFace`` (one size per row for its tied entries: l1/linf). Does not cover: deciding when a support
has settled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dboost.penalties.rows import BoolArray, FloatArray, norm2, per_row

TIE = 1e-12


def _unpenalised_rows(lam: npt.ArrayLike | None, rows: int) -> BoolArray:
    if lam is None:
        return np.zeros(rows, dtype=np.bool_)
    return per_row(lam, rows) <= 0.0


def _numbered(free: BoolArray) -> npt.NDArray[np.int64]:
    """Number of each free entry in row-major order, -1 for the others."""
    numbers = np.full(free.shape, -1, np.int64)
    numbers[free] = np.arange(np.count_nonzero(free))
    return numbers


@dataclass(frozen=True, eq=False)
class EntryFace:
    """Free entries of W as coordinates, penalty lam_j (group ||w||_2 + entry ||w||_1 + ridge ||w||_2^2 / 2)."""

    mask: BoolArray  # (rows, k): The free entries; coordinates follow in row-major order.
    at: FloatArray  # (rows, k): The point the face was made from.
    held: BoolArray  # (rows,): Rows that are penalised and so must stay on their side of zero.
    group: float
    entry: float
    ridge: float = 0.0

    @classmethod
    def through(
        cls, W: FloatArray, lam: npt.ArrayLike | None, *, group: float, entry: float, ridge: float = 0.0
    ) -> EntryFace:
        """The face through W (rows, k): nonzero entries, and all entries of rows with lam = 0."""
        free = _unpenalised_rows(lam, len(W))
        return cls((W != 0) | free[:, None], W.copy(), ~free, group, entry, ridge)

    @property
    def dim(self) -> int:
        """Number of free entries."""
        return int(np.count_nonzero(self.mask))

    def places(self) -> npt.NDArray[np.int64]:
        """Coordinate of each entry (rows, k), -1 for those that are not free."""
        return _numbered(self.mask)

    def ties(self) -> tuple[FloatArray, npt.NDArray[np.int64]]:
        """No entries move together: zeros (rows, k), and -1 for each row."""
        return np.zeros(self.mask.shape), np.full(self.mask.shape[0], -1, np.int64)

    def lines(self) -> FloatArray:
        """w / ||w||_2 for each penalised row of several entries, along which the norm is straight; else zeros."""
        if not self.group or self.ridge:
            return np.zeros(self.mask.shape)
        several = self.held & (np.count_nonzero(self.mask, axis=1) > 1)
        result: FloatArray = self._units * several[:, None]
        return result

    def restrict(self, G: FloatArray) -> FloatArray:
        """The free entries of G."""
        return G[self.mask]

    def expand(self, v: FloatArray) -> FloatArray:
        """v at the free entries, zero elsewhere."""
        full = np.zeros(self.mask.shape)
        full[self.mask] = v
        return full

    def coordinates(self, D: FloatArray) -> FloatArray:
        """The free entries of D."""
        return self.restrict(D)

    def gradient(self, lam: npt.ArrayLike) -> FloatArray:
        """lam (group w / ||w||_2 + entry sign w + ridge w)."""
        weight = per_row(lam, len(self.at))[:, None]
        total = self.entry * np.sign(self.at)
        if self.ridge:
            total = total + self.ridge * self.at
        if self.group:
            total = total + self.group * self._units
        result: FloatArray = (weight * total)[self.mask]
        return result

    def hessian(self, v: FloatArray, lam: npt.ArrayLike) -> FloatArray:
        """lam (group (v - u <u, v>) / ||w||_2 + ridge v) with u = w / ||w||_2; the l1 part is flat."""
        if not self.group:
            return self._ridge(lam) * v if self.ridge else np.zeros_like(v)
        full = self.expand(v)
        across = full - self._units * np.einsum("ij,ij->i", self._units, full)[:, None]
        result: FloatArray = (self._factor(lam)[:, None] * across)[self.mask]
        return result + self._ridge(lam) * v if self.ridge else result

    def diagonal(self, lam: npt.ArrayLike) -> FloatArray:
        """lam (group (1 - u**2) / ||w||_2 + ridge)."""
        result: FloatArray = (self._factor(lam)[:, None] * (1.0 - self._units**2))[self.mask]
        return result + self._ridge(lam) if self.ridge else result

    def _factor(self, lam: npt.ArrayLike) -> FloatArray:
        """lam group / ||w||_2 of each row, 0 of a row of zeros."""
        weight = self.group * per_row(lam, len(self.at))
        return np.divide(weight, self._norms, out=np.zeros_like(self._norms), where=self._norms > 0)

    def _ridge(self, lam: npt.ArrayLike) -> FloatArray:
        """lam ridge at each coordinate."""
        weight = self.ridge * per_row(lam, len(self.at))[:, None]
        return np.broadcast_to(weight, self.mask.shape)[self.mask]

    def retract(self, W: FloatArray, v: FloatArray) -> FloatArray:
        """W + expand(v); penalised entries that crossed zero are set to zero."""
        new = W + self.expand(v)
        new[(np.sign(new) * np.sign(W) < 0) & self.held[:, None]] = 0.0
        return new

    @cached_property
    def _norms(self) -> FloatArray:
        return norm2(self.at)

    @cached_property
    def _units(self) -> FloatArray:
        return self.at / np.where(self._norms > 0, self._norms, 1.0)[:, None]


@dataclass(frozen=True, eq=False)
class RowFace(EntryFace):
    """All entries of the nonzero rows, and of rows with lam = 0; a row that crosses zero vanishes as a whole."""

    @classmethod
    def through(
        cls, W: FloatArray, lam: npt.ArrayLike | None, *, group: float = 1.0, entry: float = 0.0, ridge: float = 0.0
    ) -> RowFace:
        """The face through W (rows, k)."""
        free = _unpenalised_rows(lam, len(W))
        rows = np.any(W != 0, axis=1) | free
        return cls(np.repeat(rows[:, None], W.shape[1], axis=1), W.copy(), ~free, group, entry, ridge)

    def retract(self, W: FloatArray, v: FloatArray) -> FloatArray:
        """W + expand(v); penalised rows that crossed zero are set to zero."""
        new = W + self.expand(v)
        new[self.held & (np.einsum("ij,ij->i", new, self._units) <= 0.0)] = 0.0
        return new


@dataclass(frozen=True, eq=False)
class BoundFace:
    """Rows whose largest entries are tied in size: free entries first (row-major), then one size per row."""

    loose: BoolArray  # (rows, k): Entries below the bound, and all entries of rows with lam = 0.
    tied: FloatArray  # (rows, k): Sign of the entries at the bound, zero elsewhere.
    sized: npt.NDArray[np.intp]  # The rows that have a size.

    @classmethod
    def through(cls, W: FloatArray, lam: npt.ArrayLike | None) -> BoundFace:
        """The face through W (rows, k); entries within a relative 1e-12 of the largest count as tied."""
        free = _unpenalised_rows(lam, len(W))
        size = np.abs(W)
        top = size.max(axis=1, initial=0.0)
        bounded = (top > 0) & ~free
        tie = bounded[:, None] & (size >= (top * (1.0 - TIE))[:, None])
        loose = (bounded[:, None] & ~tie) | free[:, None]
        return cls(loose, np.where(tie, np.sign(W), 0.0), np.flatnonzero(bounded))

    @property
    def dim(self) -> int:
        """Number of loose entries plus number of sizes."""
        return int(np.count_nonzero(self.loose)) + self.sized.size

    def places(self) -> npt.NDArray[np.int64]:
        """Coordinate of each loose entry (rows, k), -1 for the others."""
        return _numbered(self.loose)

    def ties(self) -> tuple[FloatArray, npt.NDArray[np.int64]]:
        """Signs of the tied entries (rows, k), zero elsewhere, and the coordinate of each row's size, -1 for none."""
        sizes = np.full(self.loose.shape[0], -1, np.int64)
        sizes[self.sized] = np.count_nonzero(self.loose) + np.arange(self.sized.size)
        return self.tied, sizes

    def lines(self) -> FloatArray:
        """Zeros (rows, k): the penalty is straight everywhere."""
        return np.zeros(self.loose.shape)

    def restrict(self, G: FloatArray) -> FloatArray:
        """Loose entries of G, then for each size the sum of G over its tied entries, with their signs."""
        return np.concatenate([G[self.loose], np.einsum("ij,ij->i", G[self.sized], self.tied[self.sized])])

    def expand(self, v: FloatArray) -> FloatArray:
        """Loose entries as they are; tied entries move together."""
        full = np.zeros(self.loose.shape)
        cut = v.size - self.sized.size
        full[self.loose] = v[:cut]
        full[self.sized] += self.tied[self.sized] * v[cut:, None]
        return full

    def coordinates(self, D: FloatArray) -> FloatArray:
        """Loose entries of D, then for each size the mean over its tied entries, with their signs."""
        v = self.restrict(D)
        cut = v.size - self.sized.size
        v[cut:] /= np.maximum(np.count_nonzero(self.tied[self.sized], axis=1), 1)
        return v

    def gradient(self, lam: npt.ArrayLike) -> FloatArray:
        """Zero for loose entries, lam for sizes."""
        result = np.zeros(self.dim)
        result[self.dim - self.sized.size :] = per_row(lam, len(self.loose))[self.sized]
        return result

    def hessian(self, v: FloatArray, lam: npt.ArrayLike) -> FloatArray:
        """Zero: the penalty is linear in these coordinates."""
        return np.zeros_like(v)

    def diagonal(self, lam: npt.ArrayLike) -> FloatArray:
        """Zero: the penalty is linear in these coordinates."""
        return np.zeros(self.dim)

    def retract(self, W: FloatArray, v: FloatArray) -> FloatArray:
        """W + expand(v) with loose entries clipped to the new size; a row whose size falls to zero is zero."""
        new = W + self.expand(v)
        cut = v.size - self.sized.size
        size = np.maximum(np.abs(W[self.sized]).max(axis=1, initial=0.0) + v[cut:], 0.0)[:, None]
        signs = self.tied[self.sized]
        # Tied entries are set, not added to, so that they stay equal to the last bit.
        new[self.sized] = np.where(signs != 0, signs * size, np.clip(new[self.sized], -size, size)) + 0.0
        return new
