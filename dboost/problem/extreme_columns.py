"""Columns whose values are too large or too small to be squared and summed are refused by name before a fit."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dboost.errors import DataError

REACH_BITS = 100
"""Columns are used where their largest value is between 2**-100 and 2**100, or zero.

Bounds, curvatures and scores are made of squares of columns and of their products with others; steps on float32 copies
of columns multiply them by weights of the reciprocal size. Within 1e30 all of these keep their digits.
"""


def refuse_extreme_columns(peak: NDArray[np.float64], names: Sequence[str] | None) -> None:
    """Refuse columns by the largest size of their values, shape (n,); columns of zeros only are none to use.

    Raises
    ------
    DataError
        Names the first such column, and says how many there are and what to divide it by.
    """
    outside = ~((peak == 0.0) | ((peak >= 2.0**-REACH_BITS) & (peak <= 2.0**REACH_BITS)))
    found = np.flatnonzero(outside)
    if not found.size:
        return
    first = int(found[0])
    size = float(peak[first])
    others = f", and {found.size - 1} other columns are like it" if found.size > 1 else ""
    raise DataError(
        f"the largest value is {size:.3g}, expected a size between {2.0**-REACH_BITS:.1e} and {2.0**REACH_BITS:.1e}: "
        f"sums of squares of others leave the range of float64{others}",
        column=str(first) if names is None else names[first],
        hint=f"divide it by {10.0 ** math.floor(math.log10(size)):.0e}, or leave it out",
    )
