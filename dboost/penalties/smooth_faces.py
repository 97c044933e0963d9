"""Faces of penalties that are smooth wherever they are used: every entry of W is free.

Covers: ``SmoothFace`` (a sum over entries or rows with a diagonal Hessian: l2_squared, smooth_l1) and ``JointFace``
(the norm of all rows together: l2). Does not cover: penalties whose support must first settle (``faces``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dboost.penalties.rows import FloatArray, norm2, per_row


@dataclass(frozen=True, eq=False)
class WholeFace:
    """All entries of W as coordinates, in row-major order."""

    at: FloatArray  # (rows, k): The point the face was made from.

    @property
    def dim(self) -> int:
        """Number of entries."""
        return self.at.size

    def places(self) -> npt.NDArray[np.int64]:
        """The number of each entry."""
        return np.arange(self.at.size).reshape(self.at.shape)

    def ties(self) -> tuple[FloatArray, npt.NDArray[np.int64]]:
        """No entries move together: zeros (rows, k), and -1 for each row."""
        return np.zeros(self.at.shape), np.full(self.at.shape[0], -1, np.int64)

    def lines(self) -> FloatArray:
        """Zeros (rows, k): no row has a direction of its own in which the penalty is straight."""
        return np.zeros(self.at.shape)

    def restrict(self, G: FloatArray) -> FloatArray:
        """The entries of G."""
        return G.ravel()

    def expand(self, v: FloatArray) -> FloatArray:
        """v in the shape of W."""
        return v.reshape(self.at.shape)

    def coordinates(self, D: FloatArray) -> FloatArray:
        """The entries of D."""
        return D.ravel()

    def retract(self, W: FloatArray, v: FloatArray) -> FloatArray:
        """W + expand(v): there is no boundary."""
        return W + self.expand(v)


@dataclass(frozen=True, eq=False)
class SmoothFace(WholeFace):
    """Penalty sum_jr lam_j h(w_jr)."""

    # slope, bend: (rows, k): h' and h'' at each entry.
    slope: FloatArray
    bend: FloatArray

    def gradient(self, lam: npt.ArrayLike) -> FloatArray:
        """lam_j h'(w)."""
        result: FloatArray = (per_row(lam, len(self.at))[:, None] * self.slope).ravel()
        return result

    def hessian(self, v: FloatArray, lam: npt.ArrayLike) -> FloatArray:
        """lam_j h''(w) v."""
        return self.diagonal(lam) * v

    def diagonal(self, lam: npt.ArrayLike) -> FloatArray:
        """lam_j h''(w)."""
        result: FloatArray = (per_row(lam, len(self.at))[:, None] * self.bend).ravel()
        return result


@dataclass(frozen=True, eq=False)
class JointFace(WholeFace):
    """Penalty sqrt(sum_j (lam_j ||W_j||_2)^2), away from zero; at zero its derivatives are taken as zero."""

    def _parts(self, lam: npt.ArrayLike) -> tuple[FloatArray, FloatArray, float]:
        """lam_j^2 and gradient, both (rows, k), and the penalty."""
        weight = per_row(lam, len(self.at))[:, None]
        squares = np.broadcast_to(weight * weight, self.at.shape)
        size = float(norm2((weight * self.at).reshape(1, -1))[0])
        return squares, squares * self.at / (size or 1.0), size

    def gradient(self, lam: npt.ArrayLike) -> FloatArray:
        """lam_j^2 w / T, T the penalty."""
        return self._parts(lam)[1].ravel()

    def hessian(self, v: FloatArray, lam: npt.ArrayLike) -> FloatArray:
        """(lam_j^2 v - g <g, v>) / T with g the gradient."""
        squares, g, size = self._parts(lam)
        if size == 0.0:
            return np.zeros_like(v)
        flat = g.ravel()
        result: FloatArray = (squares.ravel() * v - flat * np.sum(flat * v)) / size
        return result

    def diagonal(self, lam: npt.ArrayLike) -> FloatArray:
        """(lam_j^2 - g^2) / T."""
        squares, g, size = self._parts(lam)
        if size == 0.0:
            return np.zeros(self.dim)
        result: FloatArray = np.maximum(squares - g * g, 0.0).ravel() / size
        return result
