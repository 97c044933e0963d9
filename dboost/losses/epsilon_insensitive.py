"""Smooth eps-insensitive loss: l(y, f) = softplus(f - y - eps) + softplus(y - f - eps) with a real label y.

(Dekel, Shalev-Shwartz & Singer 2005; docs/math.md 1 and 7 (E).) It grows linearly far from the label and is
flat within eps of it; eps = 0 is the symmetric logistic loss. With z = y - f it pulls up by sigma(z - eps) and down by
sigma(-z - eps), and the exponential bound needs both pulls, not their difference alone (docs/math.md, eq. 2).

The ends of the zone are rounded off over one unit of the labels, or over a softness h: h l(y / h, f / h) at eps / h.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dboost.compiled.kept import njit
from dboost.compiled.vectors.room import greater
from dboost.errors import UsageError
from dboost.losses.real import FAR, TUBE, KindOfLoss, is_number, widths

# Above this eps the conjugate is computed with cosh and sinh divided by e^eps, which would overflow.
_LARGE = 20.0


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def softplus(x: float) -> float:
    """log(1 + e^x) for any x."""
    value: float = greater(x, 0.0) + math.log1p(math.exp(-abs(x)))
    return value


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def sigmoid(x: float) -> float:
    """1 / (1 + e^-x) without cancellation or overflow."""
    e = math.exp(-abs(x))
    return (1.0 if x > 0.0 else e) / (1.0 + e)


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def tube(z: float, epsilon: float, softness: float) -> tuple[float, float]:
    """The loss of an error z, and its derivative, sigma(z - eps) - sigma(-z - eps) in units of the softness.

    The latter to full relative precision also next to z = 0.
    """
    value = softness * (softplus((z - epsilon) / softness) + softplus((-z - epsilon) / softness))
    a, epsilon = abs(z) / softness, epsilon / softness
    u = sigmoid(a - epsilon) * -math.expm1(-2.0 * a) / (1.0 + math.exp(-a - epsilon))
    return value, math.copysign(u, z)


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def tube_curvature(z: float, epsilon: float, softness: float) -> float:
    """Its second derivative; where that is but e^-|z|, far outside the tube, what stands for it (``real.FAR``)."""
    up = math.exp(-abs(z - epsilon) / softness)
    down = math.exp(-abs(z + epsilon) / softness)
    own = (up / ((1.0 + up) * (1.0 + up)) + down / ((1.0 + down) * (1.0 + down))) / softness
    return float(greater(own, FAR * abs(tube(z, epsilon, softness)[1]) / greater(abs(z), softness)))


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def tube_dual(theta: float, label: float, epsilon: float, softness: float) -> float:
    """inf_f l(label, f) + theta f for |theta| <= 1 (docs/math.md 1)."""
    t = abs(theta)
    if t >= 1.0:
        return theta * label - epsilon
    epsilon = epsilon / softness
    # z = |label - f| at the minimiser: e^z = (sqrt(1 + (t sinh eps)^2) + t cosh eps) / (1 - t), without cancellation
    if epsilon < _LARGE:
        c = math.cosh(epsilon)
        r = (t * math.sinh(epsilon)) ** 2
        z = math.log1p((r / (1.0 + math.sqrt(1.0 + r)) + t * c + t) / (1.0 - t))
    else:
        e = math.exp(-2.0 * epsilon)
        top = t * (1.0 + e) + math.sqrt(4.0 * e + (t * (1.0 - e)) ** 2)
        z = greater(epsilon + math.log(0.5 * greater(top, 1e-300)) - math.log1p(-t), 0.0)
    return float(theta * label + softness * (softplus(z - epsilon) + softplus(-z - epsilon) - t * z))


@dataclass(frozen=True)
class EpsilonInsensitive(KindOfLoss):
    """The smooth eps-insensitive loss of one real label.

    Parameters
    ----------
    epsilon : float
        Half the width of the zone around a label in which an error costs little; finite, >= 0, in units of the labels.
    softness : float
        Over how large an error the ends of the zone are rounded off; finite, > 0, in units of the labels.

    Raises
    ------
    UsageError
        If one of them is not such a number.

    Examples
    --------
    >>> EpsilonInsensitive(epsilon=0.5)
    EpsilonInsensitive(epsilon=0.5, softness=1.0)
    """

    epsilon: float = 0.1
    softness: float = 1.0
    kind: ClassVar[int] = TUBE
    numbers: ClassVar[tuple[str, ...]] = ("epsilon", "softness")
    largest: ClassVar[float] = 1.0
    growing: ClassVar[bool] = False
    difference: ClassVar[bool] = True
    probabilities: ClassVar[bool] = True

    def __post_init__(self) -> None:
        given = self.epsilon
        if not (is_number(given) and 0.0 <= given < math.inf):
            raise UsageError(f"epsilon must be a finite number >= 0, got {given!r}")
        object.__setattr__(self, "epsilon", float(given))
        given = self.softness
        if not (is_number(given) and 0.0 < given < math.inf):
            raise UsageError(f"softness must be a finite number > 0, got {given!r}")
        object.__setattr__(self, "softness", float(given))

    @property
    def name(self) -> str:
        """Its public name, which the class alone does not have: it is refused as no loss."""
        return "epsilon_insensitive"

    @property
    def kappa(self) -> float:
        """1 / (1 + C) up to C = 2, then C^2 / (4 (C^2 - 1)), with C = cosh eps: from 1/2 down to 1/4.

        So it is of a softness h = 1; of another one it is that of eps / h, over h.
        """
        epsilon = self.epsilon / self.softness
        if epsilon <= math.acosh(2.0):
            return 1.0 / (1.0 + math.cosh(epsilon)) / self.softness
        return 0.25 / math.tanh(epsilon) ** 2 / self.softness

    @property
    def template_constant(self) -> float:
        """1, as for every loss of one output, whose scores are here in units of the softness."""
        return 1.0 / self.softness

    @property
    def floor(self) -> float:
        """2 softplus(-eps), the loss of f = y, in units of the softness."""
        return 2.0 * self.softness * math.log1p(math.exp(-self.epsilon / self.softness))

    def wider(self, value: float) -> list[tuple[EpsilonInsensitive, float]]:
        """Softer ends; an example far from its prediction pulls the same."""
        return [(EpsilonInsensitive(self.epsilon, h), 1.0) for h in widths(self.softness, value)]
