"""The mass of labels that are signs, by output.

Covers: labels -1, 0 (missing) and +1. Does not cover: classes and real labels, which their losses count themselves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.kept import njit

Array = NDArray[np.float64]


@njit(nogil=True, cache=True)
def _add_signs(y: NDArray[np.int8], weight: Array, positive: Array, observed: Array) -> None:
    for i in range(y.shape[0]):
        label, s = y[i], weight[i]
        for r in range(label.shape[0]):
            positive[r] += s if label[r] > 0 else 0.0
            observed[r] += s if label[r] != 0 else 0.0


def sign_mass(y: NDArray[np.int8], weight: Array) -> tuple[Array, Array]:
    """Weighted mass of label +1, and of all observed labels, per output, of labels -1, 0 (missing) and +1, (m, k)."""
    positive, observed = np.zeros(y.shape[1]), np.zeros(y.shape[1])
    _add_signs(y, weight, positive, observed)
    return positive, observed
