"""The penalty ``l2``: sqrt(sum_j (lam_j ||W_j||_2)^2), the norm of the whole matrix (Duchi & Singer 2009, section 5).

It is not a sum over rows: W is zero as a whole or has no zeros at all, and a method that moves one row at a time stops
at W = 0 when no single row can leave it (docs/math.md 3). All rows are therefore solved for at once; the methods
of ``Penalty`` read the rows they are given as all there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dboost.bounds import exponential
from dboost.compiled.solves.row_prox import GROUP, diagonal_prox
from dboost.penalties.base import Penalty
from dboost.penalties.faces import JointFace
from dboost.penalties.group import nested_root, row_is_zero
from dboost.penalties.rows import BoolArray, FloatArray, in_strengths, norm2, per_row


@dataclass(frozen=True)
class Frobenius(Penalty):
    """lam ||W||_F, or sqrt(sum_j (lam_j ||W_j||_2)^2) where columns differ in scale; its own dual.

    Examples
    --------
    >>> Frobenius().value(np.array([[3.0, -4.0]])).tolist()
    [5.0]
    """

    name: ClassVar[str] = "l2"
    separable: ClassVar[bool] = False
    sizes_only: ClassVar[bool] = True
    # That of ``l1/l2``, for all entries of W read as one row.
    compiled: ClassVar[tuple[int, float, float, float]] = (GROUP, 1.0, 0.0, 0.0)

    def value(self, W: FloatArray) -> FloatArray:
        """Euclidean norm of each row, (rows,); they do not add up to the penalty, see `total`."""
        return norm2(W)

    def total(self, W: FloatArray, lam: npt.ArrayLike) -> float:
        """The penalty of all rows."""
        return float(norm2((per_row(lam, len(W))[:, None] * W).reshape(1, -1))[0])

    def dual_norm(self, G: FloatArray) -> FloatArray:
        """Euclidean norm of each row: what ``dual_size`` is made of."""
        return norm2(G)

    def dual_size(self, norms: FloatArray, weights: FloatArray) -> float:
        """sqrt(sum_j (||X_j'Theta||_2 / w_j)^2)."""
        return float(norm2(in_strengths(norms, weights)[None])[0])

    def join_sizes(self, sizes: Sequence[float]) -> float:
        """Their Euclidean norm."""
        return float(norm2(np.asarray(sizes, dtype=np.float64)[None])[0])

    def leaves_zero(self, G: FloatArray, lam: npt.ArrayLike) -> BoolArray:
        """Whether a row leaves zero once any row does: wherever there is a pull."""
        result: BoolArray = np.any(G != 0.0, axis=1)
        return result

    def prox(self, Z: FloatArray, t: npt.ArrayLike) -> FloatArray:
        """argmin_W ||W - Z||_F^2 / 2 + sqrt(sum_j (t_j ||W_j||_2)^2), (rows, k)."""
        return self.solve_quadratic(np.zeros_like(Z), Z, 1.0, t)

    def solve_quadratic(self, W: FloatArray, G: FloatArray, D: npt.ArrayLike, lam: npt.ArrayLike) -> FloatArray:
        """Minimiser of the quadratic bound plus penalty over all rows at once (docs/math.md 3).

        In V_j = (lam_j / top) W_j, top the largest lam_j, the penalty is top ||V||_F, so all penalised entries are one
        group of the secular equation of ``diagonal``. Rows with lam_j = 0 are free, rows with D_j = 0 become zero if
        penalised and stay otherwise.
        """
        rows = len(W)
        D, lam = per_row(D, rows), per_row(lam, rows)
        column = (D > 0)[:, None]
        centre = (D[:, None] * W + G) / np.where(column, D[:, None], 1.0)
        tied = np.flatnonzero((lam > 0) & (D > 0))
        # relative to the largest: the square of a strength of 1e-170 would be zero
        top = float(lam[tied].max(initial=0.0))
        weight = np.repeat(lam[tied] / top, W.shape[1])
        z, out = weight * centre[tied].ravel(), np.empty(weight.size)
        metric = np.repeat(D[tied], W.shape[1]) / weight**2
        diagonal_prox(GROUP, 1.0, 0.0, 0.0, z, metric, top, out, np.empty(weight.size))
        new = np.where(column, centre, np.where((lam > 0)[:, None], 0.0, W))
        new[tied] = (out / weight).reshape(tied.size, W.shape[1])
        return new

    def solve_exponential(
        self, W: FloatArray, mu_plus: FloatArray, mu_minus: FloatArray, a: npt.ArrayLike, lam: npt.ArrayLike
    ) -> tuple[FloatArray, BoolArray]:
        """Minimiser of the exponential bound plus penalty over all rows at once (``TiltedPenalty``).

        The nested roots of docs/math.md 4.4, over all entries: for a fixed size tau of the whole matrix every
        entry is a scalar root.
        """
        rows, k = W.shape
        a, lam = per_row(a, rows), per_row(lam, rows)
        scale = np.where(np.isfinite(a), a, 1.0)
        tied = np.flatnonzero(lam > 0)

        def solve(A: FloatArray, B: FloatArray, strength: FloatArray) -> FloatArray:
            P, N, s = exponential.sides(A, B)
            gamma = exponential.shrunk_root(P, N, np.zeros(rows))
            if tied.size == 0:
                return s * gamma
            weight, length = np.repeat(strength[tied], k), np.repeat(scale[tied], k)
            top = float(weight.max())
            unit = weight / top
            p, q, upper = P[tied].ravel(), N[tied].ravel(), gamma[tied].ravel()
            found = np.zeros(p.size)
            if not row_is_zero(p - np.log(weight), q - np.log(weight), 1.0, 0.0):
                nested_root(p, q, upper, weight * unit * length, (unit * length) ** 2, 0.0, np.zeros(p.size), found)
            gamma[tied] = found.reshape(tied.size, k)
            return s * gamma

        return exponential.solve_rows(solve, W, mu_plus, mu_minus, a, lam)

    def score_quadratic(self, G: FloatArray, D: npt.ArrayLike, lam: npt.ArrayLike) -> FloatArray:
        """||G_j||_2^2 / (2 D_j): a row's share of the decrease were there no penalty; it only ranks rows."""
        squares = np.einsum("ij,ij->i", G, G)
        with np.errstate(divide="ignore"):
            score: FloatArray = squares / np.where(squares > 0, 2.0 * per_row(D, len(G)), 1.0)
        return score

    def score_exponential(
        self, mu_plus: FloatArray, mu_minus: FloatArray, a: npt.ArrayLike, lam: npt.ArrayLike
    ) -> FloatArray:
        """a_j sum_r (sqrt(mu+) - sqrt(mu-))^2: a row's decrease were there no penalty; it only ranks rows."""
        p, q = np.maximum(mu_plus, mu_minus), np.minimum(mu_plus, mu_minus)
        gain = exponential.gain(p, q, 0.0).sum(axis=1)
        score: FloatArray = np.where(gain > 0, per_row(a, len(p)), 0.0) * gain
        return score

    def face(self, W: FloatArray, lam: npt.ArrayLike | None = None) -> JointFace:
        """All entries."""
        return JointFace(np.ones(W.shape, np.bool_), W.copy())
