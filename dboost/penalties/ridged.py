"""What a norm and a ridge together share: ``elastic_net`` and ``l1/l2+ridge``.

omega(w) = r ||w|| + (1 - r) ||w||_2^2 / 2. A row is zero where it is under lam r ||w||, and the ridge adds
lam (1 - r) to the curvature of one that is not. No dual point is out of reach, at the charge of docs/math.md 6.1.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dboost.errors import UsageError
from dboost.penalties.base import TiltedPenalty
from dboost.penalties.group import solve_entries
from dboost.penalties.rows import BoolArray, FloatArray, per_row

# A step so short is the Newton step from zero, to rounding.
_NEAR = 1e-7
# Below it 1 - e^-g - g is formed by its series, whose next term is below rounding.
_SMALL = 1e-2


@dataclass(frozen=True)
class RidgedPenalty(TiltedPenalty):
    """omega(w) = l1_ratio ||w|| + (1 - l1_ratio) ||w||_2^2 / 2; a subclass says which norm.

    Raises UsageError if ``l1_ratio`` is outside (0, 1].
    """

    # In (0, 1]: the share of the norm; 1 is the norm alone. It means what it means in scikit-learn.
    l1_ratio: float = 0.5
    degree: ClassVar[int] = 0
    sizes_only: ClassVar[bool] = True
    alone: ClassVar[str]

    def __post_init__(self) -> None:
        number = isinstance(self.l1_ratio, int | float) and not isinstance(self.l1_ratio, bool)
        if not (number and 0.0 < self.l1_ratio <= 1.0):
            raise UsageError(
                f"l1_ratio is {self.l1_ratio!r}, expected a number in (0, 1]",
                hint=f"1 is {self.alone!r}; the ridge alone is 'l2_squared'",
            )

    @property
    def single(self) -> tuple[float, float]:
        """Both norms are |w|."""
        return self.l1_ratio, 1.0 - self.l1_ratio

    @abstractmethod
    def _norm(self, W: FloatArray) -> FloatArray:
        """The norm of each row, (rows,)."""

    @abstractmethod
    def _dual(self, G: FloatArray) -> FloatArray:
        """The dual of that norm for each row, (rows,)."""

    @abstractmethod
    def _shrunk(self, Z: FloatArray, t: FloatArray) -> FloatArray:
        """The prox of t times that norm for each row, (rows, k)."""

    def _parts(self, lam: npt.ArrayLike, rows: int) -> tuple[FloatArray, FloatArray]:
        lam = per_row(lam, rows)
        return lam * self.l1_ratio, lam * (1.0 - self.l1_ratio)

    def value(self, W: FloatArray) -> FloatArray:
        """The norm and half the squares, weighted."""
        result: FloatArray = self.l1_ratio * self._norm(W) + (1.0 - self.l1_ratio) * 0.5 * (W * W).sum(axis=1)
        return result

    def dual_norm(self, G: FloatArray) -> FloatArray:
        """That of the norm's part: next to zero nothing is left of the ridge."""
        result: FloatArray = self._dual(G) / self.l1_ratio
        return result

    def dual_radius(self, k: int) -> float:
        """1 / l1_ratio: omega(w) >= l1_ratio ||w||_2."""
        return 1.0 / self.l1_ratio

    def conjugate(self, G: FloatArray, lam: npt.ArrayLike) -> FloatArray:
        """||prox of the norm's part||_2^2 / (2 lam (1 - l1_ratio)) (docs/math.md 6.1)."""
        norm, ridge = self._parts(lam, len(G))
        rest = self._shrunk(G, norm)
        squares = (rest * rest).sum(axis=1)
        with np.errstate(divide="ignore"):
            bent: FloatArray = squares / np.where(squares > 0.0, 2.0 * ridge, 1.0)
        return bent

    def leaves_zero(self, G: FloatArray, lam: npt.ArrayLike) -> BoolArray:
        """The condition of the dual norm, in the very numbers of the prox."""
        result: BoolArray = self._dual(G) > self._parts(lam, len(G))[0]
        return result

    def prox(self, Z: FloatArray, t: npt.ArrayLike) -> FloatArray:
        """The prox of the norm's part, shortened by the ridge."""
        norm, ridge = self._parts(t, len(Z))
        result: FloatArray = self._shrunk(Z, norm) / (1.0 + ridge)[:, None]
        return result

    def solve_quadratic(self, W: FloatArray, G: FloatArray, D: npt.ArrayLike, lam: npt.ArrayLike) -> FloatArray:
        """The norm's part of D W + G, over D + lam (1 - l1_ratio) (docs/math.md 4.6)."""
        rows = len(W)
        D, (norm, ridge) = per_row(D, rows), self._parts(lam, rows)
        column = D > 0
        moved = self._shrunk(D[:, None] * W + G, norm)
        new: FloatArray = moved / np.where(column, D + ridge, 1.0)[:, None]
        return np.where(column[:, None], new, self._rest(W, per_row(lam, rows)))

    def score_quadratic(self, G: FloatArray, D: npt.ArrayLike, lam: npt.ArrayLike) -> FloatArray:
        """||prox of the norm's part||_2^2 / (2 (D_j + lam_j (1 - l1_ratio))), exact."""
        norm, ridge = self._parts(lam, len(G))
        moved = self._shrunk(G, norm)
        squares = (moved * moved).sum(axis=1)
        with np.errstate(divide="ignore"):
            score: FloatArray = squares / np.where(squares > 0.0, 2.0 * (per_row(D, len(G)) + ridge), 1.0)
        return score

    def _solve_scaled(self, A: FloatArray, B: FloatArray, lam: FloatArray, scale: FloatArray) -> FloatArray:
        norm, ridge = self._parts(lam, len(A))
        return self._roots(A, B, norm, ridge * scale)

    def _score_scaled(
        self, mu_plus: FloatArray, mu_minus: FloatArray, lam: FloatArray, scale: FloatArray
    ) -> FloatArray:
        norm, ridge = self._parts(lam, len(mu_plus))
        return self._gains(mu_plus, mu_minus, norm, ridge * scale)

    def solve_tilted(self, A: FloatArray, B: FloatArray, lam: FloatArray) -> FloatArray:
        """One root for each entry, or nested ones."""
        return self._roots(A, B, *self._parts(lam, len(A)))

    def score_tilted(self, mu_plus: FloatArray, mu_minus: FloatArray, lam: FloatArray) -> FloatArray:
        """As ``score_exponential`` with a = 1."""
        return self._gains(mu_plus, mu_minus, *self._parts(lam, len(mu_plus)))

    @abstractmethod
    def _roots(self, A: FloatArray, B: FloatArray, norm: FloatArray, ridge: FloatArray) -> FloatArray:
        """``solve_tilted`` for strengths of the norm and of the ridge, (rows,) each."""

    @abstractmethod
    def _gains(self, mu_plus: FloatArray, mu_minus: FloatArray, norm: FloatArray, ridge: FloatArray) -> FloatArray:
        """``score_tilted`` for strengths of the norm and of the ridge, (rows,) each."""


def entry_gains(p: FloatArray, q: FloatArray, lam1: FloatArray, lam2: FloatArray, excess: FloatArray) -> FloatArray:
    """max_g p (1 - e^-g) - q (e^g - 1) - lam1 g - lam2 g^2 / 2 for each entry (rows, k), p >= q >= 0.

    It is p u^2 + lam1 (u - g) + lam2 g (u - g / 2) at the maximiser, with u = 1 - e^-g, by stationarity
    (docs/math.md 4.5).

    `p`, `q`: (rows, k). `lam1`, `lam2`: (rows,). `excess`, (rows, k): p - q - lam1, without rounding; not positive
    where the maximiser is zero.
    """
    rise = lam2[:, None]
    with np.errstate(divide="ignore"):
        g = np.abs(solve_entries(np.log(p), np.log(q), lam1, lam2))
    # next to the threshold the logarithms agree to rounding
    near = np.maximum(excess, 0.0) / np.where(excess > 0.0, p + q + rise, 1.0)
    g = np.where(excess > 0.0, np.where(near < _NEAR, near, np.where(g > 0.0, g, near)), 0.0)
    endless = np.isinf(g)
    g = np.where(endless, 0.0, g)
    u = np.where(endless, 1.0, -np.expm1(-g))
    series = -0.5 * g * g * (1.0 - g / 3.0 * (1.0 - g / 4.0 * (1.0 - g / 5.0 * (1.0 - g / 6.0 * (1.0 - g / 7.0)))))
    less = np.where(endless, 0.0, np.where(g < _SMALL, series, u - g))
    result: FloatArray = p * u * u + lam1[:, None] * less + rise * g * (u - 0.5 * g)
    return result
