"""A penalty of your own: one file, and one line where it shall have a name, ``PENALTIES["rising"] = Rising``.

Outputs that come later cost more: omega(w) = sum_r sqrt(r) |w_r|, r = 1, 2, ... A penalty of rows needs three things,
its value, the dual of it, and its prox. What only some solvers need (solves under the exponential bound, derivatives,
compiled loops) may be left out: they refuse the penalty by name, and ``update="gradboost"`` needs none of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dboost.penalties.base import Penalty
from dboost.penalties.rows import FloatArray, per_row


@dataclass(frozen=True)
class Rising(Penalty):
    """omega(w) = sum_r sqrt(r) |w_r|."""

    name: ClassVar[str] = "rising"

    def value(self, W: FloatArray) -> FloatArray:
        """omega of each row of W (rows, k)."""
        result: FloatArray = (prices(W) * np.abs(W)).sum(axis=1)
        return result

    def dual_norm(self, G: FloatArray) -> FloatArray:
        """sup_w <g, w> / omega(w) of each row: it proves the gap of a model, and which rows are zero."""
        result: FloatArray = (np.abs(G) / prices(G)).max(axis=1, initial=0.0)
        return result

    def prox(self, Z: FloatArray, t: npt.ArrayLike) -> FloatArray:
        """argmin_w ||w - z||^2 / 2 + t omega(w) of each row: every entry moves towards zero by t times its price."""
        shrunk: FloatArray = np.sign(Z) * np.maximum(np.abs(Z) - per_row(t, len(Z))[:, None] * prices(Z), 0.0)
        return shrunk


def prices(W: FloatArray) -> FloatArray:
    """sqrt(r) for each output, (k,)."""
    return np.sqrt(np.arange(1.0, W.shape[1] + 1.0))
