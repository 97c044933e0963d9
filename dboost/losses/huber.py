"""Huber's loss: l(y, f) = z^2 / 2 for |z| <= eps and eps (|z| - eps / 2) beyond, with z = y - f (docs/math.md 1).

An example far from its prediction pulls by eps and no more, so that a few wrong labels do not decide the fit. It has no
exponential bound, as the squared loss has none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dboost.compiled.kept import njit
from dboost.compiled.vectors.room import greater, lesser
from dboost.errors import UsageError
from dboost.losses.real import FAR, HUBER, KindOfLoss, is_number, widths


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def huber(z: float, epsilon: float) -> tuple[float, float]:
    """The loss of an error z, and its derivative in z."""
    size = abs(z)
    near = lesser(size, epsilon)
    return near * (size - 0.5 * near), lesser(greater(z, -epsilon), epsilon)


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def huber_curvature(z: float, epsilon: float) -> float:
    """Its second derivative, or what stands for it (``real.FAR``)."""
    z = abs(z)
    return 1.0 if z <= epsilon else FAR * epsilon / z


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def huber_dual(theta: float, label: float) -> float:
    """inf_f l(label, f) + theta f for |theta| <= eps."""
    return float(theta * (label - 0.5 * theta))


@dataclass(frozen=True)
class Huber(KindOfLoss):
    """Huber's loss of one real label.

    Parameters
    ----------
    epsilon : float
        The error up to which the loss is half its square; finite, > 0, in units of the labels. scikit-learn's
        ``HuberRegressor`` multiplies it by a scale that it estimates.

    Raises
    ------
    UsageError
        If `epsilon` is not such a number.

    Examples
    --------
    >>> Huber(epsilon=2.0)
    Huber(epsilon=2.0)
    """

    epsilon: float = 1.35
    kind: ClassVar[int] = HUBER
    numbers: ClassVar[tuple[str, ...]] = ("epsilon",)
    kappa: ClassVar[float] = 1.0
    kinked: ClassVar[bool] = True
    difference: ClassVar[bool] = True
    growing: ClassVar[bool] = False

    def __post_init__(self) -> None:
        given = self.epsilon
        if not (is_number(given) and 0.0 < given < math.inf):
            raise UsageError(f"epsilon must be a finite number > 0, got {given!r}")
        object.__setattr__(self, "epsilon", float(given))

    @property
    def name(self) -> str:
        """Its public name, which the class alone does not have: it is refused as no loss."""
        return "huber"

    @property
    def largest(self) -> float:
        """eps."""
        return self.epsilon

    def wider(self, value: float) -> list[tuple[Huber, float]]:
        """Bends of larger errors; far from its prediction an example then pulls that much more."""
        return [(Huber(e), e / self.epsilon) for e in widths(self.epsilon, value / self.epsilon)]
