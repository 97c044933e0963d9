"""The quadratic bound: L(W + Delta) - L(W) <= -<G, Delta> + sum_j (D_j / 2) ||Delta_j||_2^2, G = -grad L(W).

Covers: the choices of D_j and the bound's value. kappa, the largest curvature of the loss of one example, belongs to
the loss and is given by the caller (1/4 for log and multitask, 1/2 for multinomial). Does not cover: the passes that
form the sums. (Duchi & Singer 2009, section 3; docs/math.md 2.)
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]


def one_row(sum_squares: FloatArray, kappa: float) -> FloatArray:
    """D_j = kappa sum_i s_i x_ij^2 (n,), valid when one row changes at a time.

    `sum_squares`, (n,): sum_i s_i x_ij^2, s the example weights.
    """
    return kappa * sum_squares


def many_rows(cross: FloatArray, kappa: float) -> FloatArray:
    """D_j = kappa sum_i s_i |x_ij| rho_i (rows,), valid when all rows of a template change together.

    `cross`, (rows,): sum_i s_i |x_ij| rho_i with rho_i = sum_j |x_ij| over the template.

    Notes
    -----
    (sum_j x_ij d_j)^2 <= rho_i sum_j |x_ij| d_j^2 by Cauchy-Schwarz.
    """
    return kappa * cross


def change(delta: FloatArray, G: FloatArray, D: FloatArray) -> FloatArray:
    """The bound's change of the loss for each row, shape (rows,).

    `delta`, `G`: (rows, k). `D`: (rows,).
    """
    result: FloatArray = 0.5 * D * np.einsum("ij,ij->i", delta, delta) - np.einsum("ij,ij->i", G, delta)
    return result
