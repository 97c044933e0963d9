"""The strengths of a path where none are given: from the least that uses no feature down.

Covers: the grid, and the problems that have none. Does not cover: the fits along it (``progress``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.fit import Fitting
from dboost.errors import DataError, UsageError

Array = NDArray[np.float64]


def strengths(
    fitting: Fitting, alphas: Sequence[float] | None, n_alphas: int, eps: float, *, empty: bool = False
) -> Array:
    """Falling strengths: those that are given, or a geometric grid from alpha_max to `eps` of it.

    Parameters
    ----------
    empty : bool, default False
        Where no feature says anything of the labels, as of a target that does not vary, the one strength 0, whose model
        is the best constant, instead of an error. Where signs alone keep features out, it is an error all the same.

    Raises
    ------
    UsageError
        They are to be chosen, and the penalty leaves W = 0 at none.
    DataError
        They are to be chosen, and W = 0 is optimal at every one.
    """
    if alphas is not None:
        return np.sort(np.asarray(alphas, np.float64))[::-1]
    largest = fitting.alpha_max()
    if not math.isfinite(largest):
        raise UsageError(
            f"penalty {fitting.problem.penalty.name!r} has no strength at which every weight is zero, where a path "
            "could begin",
            hint="give alphas= for the strengths",
        )
    if not largest > 0.0:
        signs = fitting.settings.signs is not None and fitting.drawn()
        if empty and not signs:
            return np.zeros(1)
        raise DataError(
            "no feature says anything of the labels: alpha_max, the least strength that uses none, is 0",
            hint="check positive=, lower= and upper=: no feature may have the sign that it is drawn to"
            if signs
            else "check that features and labels vary",
        )
    return largest * np.geomspace(1.0, eps, n_alphas)
