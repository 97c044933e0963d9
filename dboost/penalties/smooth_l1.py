"""The penalty ``smooth_l1``: the l1 norm rounded at zero, the baseline of Dekel, Shalev-Shwartz & Singer (2005).

omega(w) = sum_r [softplus(b w_r) + softplus(-b w_r) - 2 log 2] / b: the symmetrised logistic loss of one pseudo-example
per weight (docs/math.md 7 (G)), less its value at zero, so that objectives are comparable while features enter. With
boosting nothing changes but the sums: the pseudo-examples add to mu+ and mu-.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dboost.bounds import exponential
from dboost.compiled.vectors.norms import largest_entries
from dboost.penalties.faces import SmoothFace
from dboost.penalties.rounded import RoundedPenalty
from dboost.penalties.rows import BoolArray, FloatArray, per_row

_LOG2 = np.log(2.0)
_STEPS = 200


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
