"""Faces: the smooth manifold through W on which a penalty is twice differentiable, with coordinates of length ``dim``.

Conjugate gradients run in these coordinates once the support has settled. Covers: ``EntryFace`` (coordinates are single
entries), ``RowFace`` (all entries of the nonzero rows), ``BoundFace`` (one size per row for its tied entries: l1/linf),
``SmoothFace`` and ``JointFace`` (all entries, of penalties that are smooth wherever they are used). Does not cover:
deciding when a support has settled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dboost.penalties.rows import BoolArray, FloatArray, norm2, per_row

TIE = 1e-12


def _unpenalised_rows(lam: npt.ArrayLike | None, rows: int) -> BoolArray:
    if lam is None:
        return np.zeros(rows, dtype=np.bool_)
    return per_row(lam, rows) <= 0.0


@dataclass(frozen=True, eq=False)
class Face(ABC):
    """A face whose coordinates are some entries of W, in row-major order, which may go anywhere.

    Parameters
    ----------
    mask : bool array, shape (rows, k)
        These entries.
    at : float64 array, shape (rows, k)
        The point the face was made from.

    Examples
    --------
    >>> from dboost.penalties import get_penalty
    >>> get_penalty("l1").face(np.array([[3.0, 0.0]])).expand(np.array([0.5])).tolist()
    [[0.5, 0.0]]
    """

    mask: BoolArray
    at: FloatArray

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return int(np.count_nonzero(self.mask))

    @property
    def bounded(self) -> bool:
        """Whether a direction may leave the face."""
        return True

    @property
    def apart(self) -> bool:
        """Whether all entries are coordinates, row by row, and each is penalised by itself."""
        return False

    @cached_property
    def _whole(self) -> bool:
        return bool(self.mask.all())

    def places(self) -> npt.NDArray[np.int64]:
        """Coordinate of each entry (rows, k) that is one by itself, -1 for the others."""
        numbers = np.full(self.mask.shape, -1, np.int64)
        numbers[self.mask] = np.arange(np.count_nonzero(self.mask))
        return numbers

    def ties(self) -> tuple[FloatArray, npt.NDArray[np.int64]]:
        """Signs (rows, k) of the entries of a row that share a coordinate, else 0, and it (rows,), -1 for none."""
        return np.zeros(self.mask.shape), np.full(self.mask.shape[0], -1, np.int64)

    def lines(self) -> FloatArray:
        """Unit rows (rows, k) along which the penalty is straight though its diagonal is not zero; else zeros."""
        return np.zeros(self.mask.shape)

    def restrict(self, G: FloatArray) -> FloatArray:
        """Gradient in coordinates (dim,) of a function whose gradient in W is G (rows, k): adjoint of ``expand``.

        It may share the memory of G, as ``expand`` that of v.
        """
        return G.ravel() if self._whole else G[self.mask]

    def restrict_diagonal(self, D: FloatArray) -> FloatArray:
        """Diagonal in coordinates (dim,) of a matrix whose diagonal in W is D (rows, k), for tied entries their sum."""
        return self.restrict(D)

    def expand(self, v: FloatArray) -> FloatArray:
        """Direction (rows, k) in W of a direction v (dim,) in coordinates."""
        if self._whole:
            return v.reshape(self.mask.shape)
        full = np.zeros(self.mask.shape)
        full[self.mask] = v
        return full

    def coordinates(self, D: FloatArray) -> FloatArray:
        """Coordinates (dim,) of a direction D (rows, k) along the face: inverse of ``expand``."""
        return self.restrict(D)

    def retract(self, W: FloatArray, v: FloatArray) -> FloatArray:
        """W + expand(v) (rows, k), with entries that left the face pulled back onto its boundary."""
        return W + self.expand(v)

    @abstractmethod
    def gradient(self, lam: npt.ArrayLike) -> FloatArray:
        """Gradient (dim,) of sum_j lam_j omega(W_j) in coordinates, at the W the face was made from."""

    @abstractmethod
    def hessian(self, v: FloatArray, lam: npt.ArrayLike) -> FloatArray:
        """Hessian of sum_j lam_j omega(W_j) in coordinates, times v (dim,)."""

    @abstractmethod
    def diagonal(self, lam: npt.ArrayLike) -> FloatArray:
        """Diagonal (dim,) of that Hessian; preconditions conjugate gradients."""


@dataclass(frozen=True, eq=False)
class EntryFace(Face):
    """Free entries of W as coordinates, penalty lam_j (group ||w||_2 + entry ||w||_1 + ridge ||w||_2^2 / 2)."""

    held: BoolArray  # (rows,): Rows that are penalised and so must stay on their side of zero.
    group: float
    entry: float
    ridge: float

    @classmethod
    def through(
        cls, W: FloatArray, lam: npt.ArrayLike | None, *, group: float, entry: float, ridge: float
    ) -> EntryFace:
        """The face through W (rows, k): nonzero entries, and all entries of rows with lam = 0."""
        free = _unpenalised_rows(lam, len(W))
        return cls(cls._nonzero(W) | free[:, None], W, ~free, group, entry, ridge)

    @classmethod
    def _nonzero(cls, W: FloatArray) -> BoolArray:
        return np.asarray(W != 0)

    @property
    def bounded(self) -> bool:
        """Whether a row stays on its side of zero."""
        return bool(self.held.any())

    @property
    def apart(self) -> bool:
        """Whether all entries are free, and no norm ties those of a row."""
        return self._whole and not self.group

    def lines(self) -> FloatArray:
        """w / ||w||_2 for each penalised row of several entries, along which the norm is straight; else zeros."""
        if not self.group or self.ridge:
            return super().lines()
        several = self.held & (np.count_nonzero(self.mask, axis=1) > 1)
        result: FloatArray = self._units * several[:, None]
        return result

    def gradient(self, lam: npt.ArrayLike) -> FloatArray:
        """lam (group w / ||w||_2 + entry sign w + ridge w)."""
        weight = per_row(lam, len(self.at))[:, None]
        total = self.entry * np.sign(self.at) if self.entry else np.zeros(self.at.shape)
        if self.ridge:
            total += self.ridge * self.at
        if self.group:
            total += self.group * self._units
        total *= weight
        return self.restrict(total)

    def hessian(self, v: FloatArray, lam: npt.ArrayLike) -> FloatArray:
        """lam (group (v - u <u, v>) / ||w||_2 + ridge v) with u = w / ||w||_2; the l1 part is flat."""
        if not self.group:
            return self.restrict(self._ridge(lam) * self.expand(v)) if self.ridge else np.zeros_like(v)
        full = self.expand(v)
        across = full - self._units * np.einsum("ij,ij->i", self._units, full)[:, None]
        across *= self._factor(lam)[:, None]
        return self.restrict(across + self._ridge(lam) * full if self.ridge else across)

    def diagonal(self, lam: npt.ArrayLike) -> FloatArray:
        """lam (group (1 - u**2) / ||w||_2 + ridge)."""
        ridge = np.broadcast_to(self._ridge(lam), self.at.shape)
        if not self.group:
            return self.restrict(ridge)
        across = self._factor(lam)[:, None] * (1.0 - self._units**2)
        return self.restrict(across + ridge if self.ridge else across)

    def _factor(self, lam: npt.ArrayLike) -> FloatArray:
        """lam group / ||w||_2 of each row, 0 of a row of zeros."""
        weight = self.group * per_row(lam, len(self.at))
        return np.divide(weight, self._norms, out=np.zeros_like(self._norms), where=self._norms > 0)

    def _ridge(self, lam: npt.ArrayLike) -> FloatArray:
        """lam ridge of each row, (rows, 1)."""
        return self.ridge * per_row(lam, len(self.at))[:, None]

    def retract(self, W: FloatArray, v: FloatArray) -> FloatArray:
        """W + expand(v); penalised entries that crossed zero are set to zero."""
        new = W + self.expand(v)
        if self.bounded:
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
    def _nonzero(cls, W: FloatArray) -> BoolArray:
        return np.repeat(np.any(W != 0, axis=1)[:, None], W.shape[1], axis=1)

    def retract(self, W: FloatArray, v: FloatArray) -> FloatArray:
        """W + expand(v); penalised rows that crossed zero are set to zero."""
        new = W + self.expand(v)
        new[self.held & (np.einsum("ij,ij->i", new, self._units) <= 0.0)] = 0.0
        return new


@dataclass(frozen=True, eq=False)
class BoundFace(Face):
    """Rows whose largest entries are tied in size: free entries first (row-major), then one size per row.

    The free entries, `mask`, are those below the bound, and all entries of rows with lam = 0.
    """

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
        return cls(loose, W, np.where(tie, np.sign(W), 0.0), np.flatnonzero(bounded))

    @property
    def dim(self) -> int:
        """Number of loose entries plus number of sizes."""
        return super().dim + self.sized.size

    def ties(self) -> tuple[FloatArray, npt.NDArray[np.int64]]:
        """Signs of the tied entries (rows, k), zero elsewhere, and the coordinate of each row's size, -1 for none."""
        sizes = np.full(self.mask.shape[0], -1, np.int64)
        sizes[self.sized] = np.count_nonzero(self.mask) + np.arange(self.sized.size)
        return self.tied, sizes

    def restrict(self, G: FloatArray) -> FloatArray:
        """Loose entries of G, then for each size the sum of G over its tied entries, with their signs."""
        return np.concatenate([G[self.mask], np.einsum("ij,ij->i", G[self.sized], self.tied[self.sized])])

    def restrict_diagonal(self, D: FloatArray) -> FloatArray:
        """Loose entries of D, then for each size the sum of D over its tied entries."""
        return np.concatenate([D[self.mask], np.einsum("ij,ij->i", D[self.sized], np.abs(self.tied[self.sized]))])

    def expand(self, v: FloatArray) -> FloatArray:
        """Loose entries as they are; tied entries move together."""
        cut = v.size - self.sized.size
        full = super().expand(v[:cut])
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
        result[self.dim - self.sized.size :] = per_row(lam, len(self.mask))[self.sized]
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


@dataclass(frozen=True, eq=False)
class SmoothFace(Face):
    """All entries; a penalty sum_j lam_j omega(W_j) with the Hessian diag(bend) - tie tie' of a row."""

    # (rows, k): The gradient of omega, and the two parts of its Hessian.
    slope: FloatArray
    bend: FloatArray
    tie: FloatArray
    bounded: ClassVar[bool] = False

    @classmethod
    def through(cls, W: FloatArray, slope: FloatArray, bend: FloatArray, tie: FloatArray) -> SmoothFace:
        """The face through W (rows, k)."""
        return cls(np.ones(W.shape, np.bool_), W, slope, bend, tie)

    @property
    def apart(self) -> bool:
        """Whether nothing ties the entries of a row."""
        return not self.tie.any()

    def gradient(self, lam: npt.ArrayLike) -> FloatArray:
        """lam_j omega'(w)."""
        return (per_row(lam, len(self.at))[:, None] * self.slope).ravel()

    def hessian(self, v: FloatArray, lam: npt.ArrayLike) -> FloatArray:
        """lam_j (bend v - tie <tie, v>) row by row."""
        V = self.expand(v)
        bent = self.bend * V - self.tie * (self.tie * V).sum(axis=1, keepdims=True)
        result: FloatArray = (per_row(lam, len(self.at))[:, None] * bent).ravel()
        return result

    def diagonal(self, lam: npt.ArrayLike) -> FloatArray:
        """lam_j (bend - tie^2)."""
        bend = np.maximum(self.bend - self.tie**2, 0.0)
        return (per_row(lam, len(self.at))[:, None] * bend).ravel()


@dataclass(frozen=True, eq=False)
class JointFace(Face):
    """All entries; penalty sqrt(sum_j (lam_j ||W_j||_2)^2), away from zero; there its derivatives are taken as zero."""

    bounded: ClassVar[bool] = False

    def _parts(self, lam: npt.ArrayLike) -> tuple[FloatArray, FloatArray, float]:
        """lam_j^2 and gradient, both (dim,), and the penalty."""
        weight = np.broadcast_to(per_row(lam, len(self.at))[:, None], self.at.shape)
        size = float(norm2((weight * self.at).reshape(1, -1))[0])
        squares = (weight * weight).ravel()
        return squares, squares * self.at.ravel() / (size or 1.0), size

    def gradient(self, lam: npt.ArrayLike) -> FloatArray:
        """lam_j^2 w / T, T the penalty."""
        return self._parts(lam)[1]

    def hessian(self, v: FloatArray, lam: npt.ArrayLike) -> FloatArray:
        """(lam_j^2 v - g <g, v>) / T with g the gradient."""
        squares, g, size = self._parts(lam)
        return (squares * v - g * np.sum(g * v)) / size if size else np.zeros_like(v)

    def diagonal(self, lam: npt.ArrayLike) -> FloatArray:
        """(lam_j^2 - g^2) / T."""
        squares, g, size = self._parts(lam)
        return np.maximum(squares - g * g, 0.0) / size if size else np.zeros(self.dim)
