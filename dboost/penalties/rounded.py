"""Norms rounded at zero, ``smooth_l1`` and ``smooth_l1/linf``: no row ever vanishes, and all have derivatives.

``smooth_l1`` is the baseline of Dekel, Shalev-Shwartz & Singer (2005): omega(w) = sum_r [softplus(b w_r) +
softplus(-b w_r) - 2 log 2] / b, the symmetrised logistic loss of one pseudo-example per weight (docs/math.md 7 (G)),
less its value at zero, so that objectives are comparable while features enter. With boosting nothing changes but the
sums: the pseudo-examples add to mu+ and mu-.

``smooth_l1/linf`` is the largest absolute entry of a row, rounded (ShareBoost, section 3.3): omega(w) = (1 / b) log
sum_r 2 cosh(b w_r), less its value log(2 k) / b at zero, so that rows may enter without a charge (docs/math.md 7 (J)).
There is no solve of a row under the exponential bound, and no compiled one; fits that need these refuse it
(``dboost.boosting.checks``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dboost.bounds import exponential
from dboost.compiled.vectors.norms import largest_entries, sums_of_entries
from dboost.errors import UsageError
from dboost.penalties.base import Penalty
from dboost.penalties.faces import SmoothFace
from dboost.penalties.rows import BoolArray, FloatArray, per_row

_LOG2 = np.log(2.0)
# Newton steps of an entry, and of a row with their halvings.
_STEPS = 200
_ROW_STEPS = 100
_HALVINGS = 40
_ROUNDING = 1e-14
# What is left of a matrix of condition 1 / it, as far as float64 tells.
_LEAST = 1e-12


@dataclass(frozen=True)
class RoundedPenalty(Penalty):
    """A penalty that is smooth at zero, so that no row ever vanishes; see ``SmoothL1`` and ``SmoothLinf``.

    Raises UsageError if ``sharpness`` is not a positive number.
    """

    sharpness: float = 1.0  # b > 0; the larger, the closer to the norm.
    certified: ClassVar[bool] = False
    threshold: ClassVar[bool] = False
    degree: ClassVar[int] = 0

    def __post_init__(self) -> None:
        number = isinstance(self.sharpness, int | float) and not isinstance(self.sharpness, bool)
        if not (number and 0.0 < self.sharpness < np.inf):
            raise UsageError(
                f"sharpness is {self.sharpness!r}, expected a positive number", hint="1 is the penalty of the papers"
            )

    def leaves_zero(self, G: FloatArray, lam: npt.ArrayLike) -> BoolArray:
        """Wherever there is a pull: the derivative at zero is zero."""
        result: BoolArray = np.any(G != 0.0, axis=1)
        return result

    def score_quadratic(self, G: FloatArray, D: npt.ArrayLike, lam: npt.ArrayLike) -> FloatArray:
        """Exact: the decrease at the solution."""
        D, lam = per_row(D, len(G)), per_row(lam, len(G))
        moved = self.solve_quadratic(np.zeros_like(G), G, D, lam)
        inner = np.einsum("ij,ij->i", G, moved) - 0.5 * D * np.einsum("ij,ij->i", moved, moved)
        result: FloatArray = inner - lam * self.value(moved)
        return result


@dataclass(frozen=True)
class SmoothL1(RoundedPenalty):
    """omega(w) = sum_r (2 / b) log cosh(b w_r / 2), between |w| - 2 log 2 / b and |w|; never sparse.

    Parameters
    ----------
    sharpness : float
        b > 0; the larger, the closer to ``l1``.

    Raises
    ------
    UsageError
        If ``sharpness`` is not a positive number.

    Examples
    --------
    >>> SmoothL1(sharpness=10.0).value(np.array([[0.0]])).tolist()
    [0.0]
    """

    name: ClassVar[str] = "smooth_l1"

    def value(self, W: FloatArray) -> FloatArray:
        """(2 / b) log cosh(b w / 2), summed over the row."""
        u = 0.5 * self.sharpness * np.abs(W)
        near = np.minimum(u, 1.0)
        # log cosh u = log(1 + 2 sinh(u / 2)^2), without cancellation next to zero
        small = np.log1p(2.0 * np.sinh(0.5 * near) ** 2)
        each = np.where(u < 1.0, small, u - _LOG2 + np.log1p(np.exp(-2.0 * u)))
        result: FloatArray = (2.0 / self.sharpness) * each.sum(axis=1)
        return result

    def dual_norm(self, G: FloatArray) -> FloatArray:
        """Largest absolute entry, as for ``l1``: a G beyond lam has no minimiser of -<G, w> + lam omega(w)."""
        return largest_entries(G)

    def prox(self, Z: FloatArray, t: npt.ArrayLike) -> FloatArray:
        """Root of w - z + t tanh(b w / 2) per entry."""
        return self.solve_quadratic(np.zeros_like(Z), Z, 1.0, t)

    def solve_quadratic(self, W: FloatArray, G: FloatArray, D: npt.ArrayLike, lam: npt.ArrayLike) -> FloatArray:
        """Root of D w - (D W + G) + lam tanh(b w / 2) per entry."""
        rows = len(W)
        D, lam = per_row(D, rows), per_row(lam, rows)
        new = _roots(np.where(D > 0, D, 1.0)[:, None], D[:, None] * W + G, lam[:, None], self.sharpness)
        return np.where((D > 0)[:, None], new, np.where((lam > 0)[:, None], 0.0, W))

    def solve_exponential(
        self, W: FloatArray, mu_plus: FloatArray, mu_minus: FloatArray, a: npt.ArrayLike, lam: npt.ArrayLike
    ) -> tuple[FloatArray, BoolArray]:
        """(a / 2) log(mu+ / mu-) with the pseudo-examples among the sums: the minimiser of the bound of both terms."""
        rows = len(W)
        a, lam = per_row(a, rows), per_row(lam, rows)
        free = np.zeros(rows)
        new, unbounded = exponential.solve_rows(_separate, W, mu_plus, mu_minus, a, free)
        held = np.flatnonzero(lam > 0)
        # in logarithms: sigma(b w) leaves the range of float64 long before its logarithm matters
        log_lam, z = np.log(lam[held])[:, None], self.sharpness * W[held]
        with np.errstate(divide="ignore"):
            plus = np.logaddexp(np.log(mu_plus[held]), log_lam - np.logaddexp(0.0, z))
            minus = np.logaddexp(np.log(mu_minus[held]), log_lam - np.logaddexp(0.0, -z))
        moved = W[held] + 0.5 * np.minimum(a[held], 1.0 / self.sharpness)[:, None] * (plus - minus)
        # no data: the penalty alone decides
        silent = ~np.isfinite(a[held])[:, None] | ((mu_plus[held] == 0) & (mu_minus[held] == 0))
        new[held] = np.where(silent, 0.0, moved)
        unbounded[held] = False
        return new, unbounded

    def score_exponential(
        self, mu_plus: FloatArray, mu_minus: FloatArray, a: npt.ArrayLike, lam: npt.ArrayLike
    ) -> FloatArray:
        """a (sqrt(mu+) - sqrt(mu-))^2 summed over the row, the pseudo-examples among the sums."""
        rows = len(mu_plus)
        a, lam = per_row(a, rows), per_row(lam, rows)
        G = mu_plus - mu_minus
        chosen = np.flatnonzero(self.leaves_zero(G, lam))
        score = np.zeros(rows)
        pseudo = 0.5 * lam[chosen, None]
        roots = np.sqrt(mu_plus[chosen] + pseudo) + np.sqrt(mu_minus[chosen] + pseudo)
        short = np.where(lam > 0, np.minimum(a, 1.0 / self.sharpness), a)[chosen]
        # the difference of the roots from G: the pseudo-examples cancel exactly
        score[chosen] = short * ((G[chosen] / np.where(roots > 0, roots, 1.0)) ** 2).sum(axis=1)
        return score

    def face(self, W: FloatArray, lam: npt.ArrayLike | None = None) -> SmoothFace:
        """All entries; slope tanh(b w / 2)."""
        slope = np.tanh(0.5 * self.sharpness * W)
        e = np.exp(-self.sharpness * np.abs(W))
        bend = 2.0 * self.sharpness * e / (1.0 + e) ** 2
        return SmoothFace.through(W, slope, bend, np.zeros_like(W))


def _separate(A: FloatArray, B: FloatArray, lam: FloatArray) -> FloatArray:
    """Half the difference of the logarithms: the penalty is already among the sums."""
    P, N, s = exponential.sides(A, B)
    return s * exponential.shrunk_root(P, N, lam)


def _roots(D: FloatArray, v: FloatArray, lam: FloatArray, b: float) -> FloatArray:
    """Root of D w + lam tanh(b w / 2) = v for each entry, D > 0.

    The left side is concave for w > 0, so Newton from below rises to the root; both bounds of tanh, 1 and its tangent
    at zero, give a start below.
    """
    target = np.abs(v)
    with np.errstate(over="ignore"):
        w = np.maximum((target - lam) / D, target / (D + 0.5 * lam * b))
    for _ in range(_STEPS):
        t = np.tanh(0.5 * b * w)
        step = (target - D * w - lam * t) / (D + 0.5 * lam * b * (1.0 - t * t))
        rising = (step > 1e-16 * w) & (lam > 0.0)
        if not rising.any():
            break
        w = np.where(rising, w + step, w)
    return np.copysign(w, v) + 0.0


@dataclass(frozen=True)
class SmoothLinf(RoundedPenalty):
    """omega(w) = log(sum_r cosh(b w_r) / k) / b, between max_r |w_r| - log(2 k) / b and max_r |w_r|; never sparse.

    Parameters
    ----------
    sharpness : float
        b > 0; the larger, the closer to ``l1/linf``.

    Raises
    ------
    UsageError
        If ``sharpness`` is not a positive number.

    Examples
    --------
    >>> bool(SmoothLinf(sharpness=10.0).value(np.array([[3.0, -4.0]]))[0] >= 0.0)
    True
    """

    name: ClassVar[str] = "smooth_l1/linf"

    def _shares(self, W: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """log mean_r cosh(b w_r) (rows,), its slope in b w, and cosh(b w_r) / sum_r cosh(b w_r), (rows, k)."""
        u = self.sharpness * np.abs(W)
        top = u.max(axis=1, keepdims=True, initial=0.0)
        plus, minus = np.exp(u - top), np.exp(-u - top)
        total = (plus + minus).sum(axis=1, keepdims=True)
        # sum (cosh u - 1) = 2 sum sinh(u / 2)^2 keeps small weights to full precision
        small = np.log1p(2.0 * np.mean(np.sinh(0.5 * np.minimum(u, 1.0)) ** 2, axis=1))
        large = top[:, 0] + np.log(total[:, 0] / (2.0 * max(W.shape[1], 1)))
        value = np.where(top[:, 0] < 1.0, small, large)
        return value, np.sign(W) * (plus - minus) / total, (plus + minus) / total

    def value(self, W: FloatArray) -> FloatArray:
        """log(mean_r cosh(b w_r)) / b for each row."""
        return self._shares(W)[0] / self.sharpness

    def dual_norm(self, G: FloatArray) -> FloatArray:
        """Sum of absolute entries, as for ``l1/linf``: a G beyond lam has no minimiser of -<G, w> + lam omega(w)."""
        return sums_of_entries(G)

    def prox(self, Z: FloatArray, t: npt.ArrayLike) -> FloatArray:
        """Minimiser of ||w - z||^2 / 2 + t omega(w) for each row, by Newton's method with halved steps."""
        t = per_row(t, len(Z))[:, None]
        b, w = self.sharpness, Z.copy()

        def objective(w: FloatArray) -> FloatArray:
            found: FloatArray = 0.5 * ((w - Z) ** 2).sum(axis=1) + t[:, 0] * self.value(w)
            return found

        here = objective(w)
        for _ in range(_ROW_STEPS):
            _, slope, share = self._shares(w)
            gradient = w - Z + t * slope
            if not np.any(np.abs(gradient) > _ROUNDING * (1.0 + np.abs(Z))):
                break
            # (diag(1 + t b share) - t b slope slope')^-1 by Sherman & Morrison
            bottom = 1.0 + t * b * share
            step, other = gradient / bottom, slope / bottom
            # where t b is large, all that keeps this from zero is lost in the difference
            left = np.maximum(1.0 - t * b * (slope * other).sum(axis=1, keepdims=True), _LEAST)
            step = step + t * b * other * (slope * step).sum(axis=1, keepdims=True) / left
            length = np.ones((len(Z), 1))
            for _ in range(_HALVINGS):
                after = objective(w - length * step)
                worse = after > here + _ROUNDING * np.abs(here)
                if not worse.any():
                    break
                length = np.where(worse[:, None], 0.5 * length, length)
            w = w - length * step
            here = objective(w)
        return w

    def solve_quadratic(self, W: FloatArray, G: FloatArray, D: npt.ArrayLike, lam: npt.ArrayLike) -> FloatArray:
        """prox_{lam / D}(W + G / D) for each row."""
        rows = len(W)
        D, lam = per_row(D, rows), per_row(lam, rows)
        column = D > 0.0
        bottom = np.where(column, D, 1.0)
        moved = self.prox(W + G / bottom[:, None], lam / bottom)
        return np.where(column[:, None], moved, np.where((lam > 0.0)[:, None], 0.0, W))

    def face(self, W: FloatArray, lam: npt.ArrayLike | None = None) -> SmoothFace:
        """All entries; the entries of a row bend together."""
        _, slope, share = self._shares(W)
        b = self.sharpness
        return SmoothFace.through(W, slope, b * share, math.sqrt(b) * slope)
