"""From which probability on a label is predicted: chosen on examples that were held out.

Covers: the threshold of the best F1, and the least one with a precision. Does not cover: how it is applied (``tasks``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
HALF = 0.5


def best_f1(P: Float, true: NDArray[np.bool_], weight: Float) -> float:
    """The threshold with the best F1, the highest of several; one half where nothing is true.

    Examples
    --------
    >>> best_f1(np.array([0.9, 0.4, 0.3, 0.1]), np.array([True, True, False, False]), np.ones(4))
    0.4
    """
    ends, hits, chosen = _cuts(P, true, weight)
    whole = float(weight[true].sum())
    return HALF if not whole > 0.0 else float(ends[np.argmax(2.0 * hits / (chosen + whole))])


def least_with_precision(at_least: float) -> Callable[[Any, Any, Any], float]:
    """A function as ``best_f1`` that gives the least threshold whose precision is so large; 1 where none has."""

    def choose(P: Float, true: NDArray[np.bool_], weight: Float) -> float:
        ends, hits, chosen = _cuts(P, true, weight)
        if not true.any():
            return HALF
        enough = np.flatnonzero(hits >= at_least * chosen * (1.0 - 1e-12))
        return float(ends[enough[-1]]) if enough.size else 1.0

    return choose


def _cuts(P: Float, true: NDArray[np.bool_], weight: Float) -> tuple[Float, Float, Float]:
    """The different probabilities, falling, and what is true, and all, from each on."""
    order = np.argsort(-P, kind="stable")
    falling = P[order]
    last = np.append(np.flatnonzero(falling[1:] != falling[:-1]), len(P) - 1) if len(P) else np.zeros(0, np.int64)
    hits, chosen = np.cumsum((weight * true)[order]), np.cumsum(weight[order])
    return falling[last], hits[last], chosen[last]
