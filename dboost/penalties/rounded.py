"""What norms rounded at zero share: their sharpness, and a derivative everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dboost.errors import UsageError
from dboost.penalties.base import Penalty
from dboost.penalties.rows import BoolArray, FloatArray, per_row


@dataclass(frozen=True)
class RoundedPenalty(Penalty):
    """A penalty that is smooth at zero, so that no row ever vanishes; see ``SmoothL1`` and ``SmoothLinf``.

    Raises UsageError if ``sharpness`` is not a positive number.
    """

    sharpness: float = 1.0  # b > 0; the larger, the closer to the norm.
    certified: ClassVar[bool] = False
    threshold: ClassVar[bool] = False
    degree: ClassVar[int] = 0

    def __post_init__(self) -> None:
        number = isinstance(self.sharpness, int | float) and not isinstance(self.sharpness, bool)
        if not (number and 0.0 < self.sharpness < np.inf):
            raise UsageError(
                f"sharpness is {self.sharpness!r}, expected a positive number", hint="1 is the penalty of the papers"
            )

    def leaves_zero(self, G: FloatArray, lam: npt.ArrayLike) -> BoolArray:
        """Wherever there is a pull: the derivative at zero is zero."""
        result: BoolArray = np.any(G != 0.0, axis=1)
        return result

    def score_quadratic(self, G: FloatArray, D: npt.ArrayLike, lam: npt.ArrayLike) -> FloatArray:
        """Exact: the decrease at the solution."""
        D, lam = per_row(D, len(G)), per_row(lam, len(G))
        moved = self.solve_quadratic(np.zeros_like(G), G, D, lam)
        inner = np.einsum("ij,ij->i", G, moved) - 0.5 * D * np.einsum("ij,ij->i", moved, moved)
        result: FloatArray = inner - lam * self.value(moved)
        return result
