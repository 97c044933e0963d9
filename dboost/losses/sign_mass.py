"""The mass of labels that are signs, by output.

Covers: labels -1, 0 (missing) and +1. Does not cover: classes and real labels, which their losses count themselves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def sign_mass(y: NDArray[np.int8], weight: Array) -> tuple[Array, Array]:
    """Weighted mass of label +1, and of all observed labels, per output, of labels -1, 0 (missing) and +1, (m, k)."""
    found = np.empty((2, y.shape[1]))
    for r, label in enumerate(y.T):
        # one after the other, as no sum of NumPy adds them
        found[:, r] = [np.bincount(on, weight, 2)[1] for on in (label > 0, label != 0)]
    return found[0], found[1]
