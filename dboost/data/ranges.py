"""Numbers near the ends of float64: weights are brought to the middle, targets that cannot be squared are refused.

The objective is a weighted mean, so that a common factor of all weights changes nothing, but sums of weights times
squares leave the range of float64 where weights are of 1e290, and that of the float32 copies that solvers sweep over
long before. A factor that is a power of two changes no digit. A target's scale counts in the objective, whose value
is a square of it: there is none to report where that is infinite or zero.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dboost.errors import DataError

Float = NDArray[np.float64]

ORDINARY_BITS = 10
"""Largest weights from 2**-10 to 2**10 stay as they are."""
REACH_BITS = 100
"""Targets, and values of features (``columns.table``), are used where the largest is between 2**-100 and
2**100.

That is 1.3e30: products of three such numbers are far inside the range of float64, and one is inside that of float32,
with room for sums over examples and for weights.
"""


def weight_exponent(*weights: tuple[float, float]) -> int:
    """The e for which 2**e times the largest (weight, factor of its class) is near one; 0 where it is ordinary."""
    positive = [(weight, factor) for weight, factor in weights if weight > 0.0 and factor > 0.0]
    # of a product, the bits of both: at most one less than its own
    bits = max((math.frexp(weight)[1] + math.frexp(factor)[1] - 2 for weight, factor in positive), default=0)
    return 0 if abs(bits) <= ORDINARY_BITS else -bits


def scaled(weight: Float, exponent: int) -> Float:
    """The weights times 2**exponent; those that become zero are too small beside the largest to count."""
    if exponent == 0:
        return weight
    result: Float = np.ldexp(weight, exponent)
    return result


def check_sum(total: float) -> None:
    """Refuse weights whose sum is infinite."""
    if not math.isfinite(total):
        raise DataError(
            "the sample weights add up to more than a float64 holds",
            hint="divide all of them by the same number: only their ratios count",
        )


def check_target(peak: float) -> None:
    """Refuse targets whose squares, times those of features, leave float64; `peak` is the largest size, 0 for none."""
    if peak == 0.0 or 2.0**-REACH_BITS <= peak <= 2.0**REACH_BITS:
        return
    raise DataError(
        f"the largest target is {peak:.3g}, expected a size between {2.0**-REACH_BITS:.1e} and {2.0**REACH_BITS:.1e}: "
        "sums of squares of others leave the range of float64",
        hint=f"divide all targets by {10.0 ** math.floor(math.log10(peak)):.0e}",
    )
