"""The pinball loss of a quantile tau, its kink rounded off over a width h (docs/math.md 1).

With z = y - f the pinball loss is (tau - 1/2) z + |z| / 2, whose minimiser predicts the quantile tau. Its curvature has
no bound, and no step or certificate that needs one is defined. Between z = -h/2 and h/2 the parabola z^2 / (2 h) + h/8
takes the place of |z| / 2, which it touches at both ends and is above by h / 8 at most. So the objective here is above
that of the pinball loss by h / 8 at most: a model within a gap g of this optimum is within g + h / 8 of the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dboost.compiled.examples.loss_rows import Array
from dboost.compiled.kept import njit
from dboost.compiled.vectors.room import greater
from dboost.errors import UsageError
from dboost.losses.real import FAR, QUANTILE, KindOfLoss, is_number, widths


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def pinball(z: float, quantile: float, width: float) -> tuple[float, float]:
    """The loss of an error z, and its derivative in z."""
    if z >= 0.5 * width:
        return quantile * z, quantile
    if z <= -0.5 * width:
        return (quantile - 1.0) * z, quantile - 1.0
    return (quantile - 0.5) * z + 0.5 * (z * z / width + 0.25 * width), quantile - 0.5 + z / width


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def pinball_curvature(z: float, width: float) -> float:
    """Its second derivative, or what stands for it (``real.FAR``)."""
    z = abs(z)
    return float(1.0 / width if z <= 0.5 * width else FAR / (2.0 * z))


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def pinball_dual(theta: float, label: float, quantile: float, width: float) -> float:
    """inf_f l(label, f) + theta f for theta from tau - 1 to tau."""
    # h / 8 - h v^2 / 2 at v = theta - tau + 1/2, as a product that is zero at both ends
    room = greater((theta + 1.0 - quantile) * (quantile - theta), 0.0)
    return float(theta * label + 0.5 * width * room)


@dataclass(frozen=True)
class Quantile(KindOfLoss):
    """The pinball loss of a quantile, its kink rounded off.

    Parameters
    ----------
    quantile : float
        tau, in (0, 1): the share of the labels that is to be below the prediction; 0.5 is the median.
    width : float
        h, finite and > 0, in units of the labels: the error up to half of it is squared. The objective is above that of
        the pinball loss by ``width / 8`` at most; fits take longer the smaller it is.

    Raises
    ------
    UsageError
        If one of them is not such a number.

    Examples
    --------
    >>> Quantile(quantile=0.9)
    Quantile(quantile=0.9, width=0.1)
    """

    quantile: float = 0.5
    width: float = 0.1
    kind: ClassVar[int] = QUANTILE
    numbers: ClassVar[tuple[str, ...]] = ("quantile", "width")
    kinked: ClassVar[bool] = True
    difference: ClassVar[bool] = True
    growing: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, most in (("quantile", 1.0), ("width", math.inf)):
            given = getattr(self, name)
            if not (is_number(given) and 0.0 < given < most):
                raise UsageError(f"{name} must be a number between 0 and {most:g}, got {given!r}")
            object.__setattr__(self, name, float(given))

    @property
    def name(self) -> str:
        """Its public name, which the class alone does not have: it is refused as no loss."""
        return "quantile"

    @property
    def kappa(self) -> float:
        """1 / h, within half the width of the label."""
        return 1.0 / self.width

    @property
    def largest(self) -> float:
        """max(tau, 1 - tau)."""
        return max(self.quantile, 1.0 - self.quantile)

    @property
    def ends(self) -> tuple[float, float]:
        """tau - 1 and tau."""
        return self.quantile - 1.0, self.quantile

    @property
    def floor(self) -> float:
        """h tau (1 - tau) / 2: the parabola is no lower, which is at z = h (1/2 - tau)."""
        return 0.5 * self.width * self.quantile * (1.0 - self.quantile)

    def wider(self, value: float) -> list[tuple[Quantile, float]]:
        """Wider kinks; an example far from its prediction pulls the same."""
        return [(Quantile(self.quantile, w), 1.0) for w in widths(self.width, value / self.largest)]

    def deviance(self, y: Array, mean: Array) -> Array:
        """The pinball loss, without the width."""
        z = y - mean
        return np.asarray(np.where(z >= 0.0, self.quantile * z, (self.quantile - 1.0) * z))

    def middle(self, y: Array, weight: Array) -> float:
        """The least label that the share tau of the weight is at or below."""
        order = np.argsort(y, kind="stable")
        mass = np.cumsum(weight[order])
        return float(y[order][np.searchsorted(mass, self.quantile * mass[-1])])
