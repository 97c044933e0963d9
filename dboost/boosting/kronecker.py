"""A preconditioner for all classes of a model at once: Gram matrix of the columns times mean Hessian of the classes.

The Hessian of a multiclass loss is sum_i s_i x_i x_i' (x) H_i. With H_i = w_i C it is (X'diag(w)X) (x) C, whose inverse
costs two small products. Columns that are copies of one another to three digits, such as products of pixels, make
conjugate gradients with a diagonal slow and with this fast; the trace w_i keeps the examples that still count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.problem import Iterate, Problem

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# Rows whose products are formed together; the eigenvectors of a block cost its third power.
BLOCK = 512
_RIDGE = 1e-9


@dataclass(frozen=True)
class _Factor:
    """One block: places of its rows, sqrt of the diagonal, eigenvectors of its correlations, and what is divided by."""

    places: Rows
    scale: Array
    vectors: Array
    bottom: Array


class Kronecker:
    """An approximate inverse of the Hessian of loss plus penalty.

    Parameters
    ----------
    problem : Problem
    at : Iterate
        Where the Hessian is taken; two passes.
    rows : int64 array
        Places among the active rows that move; the others are left at zero.
    intercept : bool
        Whether the intercept moves too.
    bend : float64 array, shape (a, k)
        Diagonal of the penalty's Hessian.
    """

    def __init__(self, problem: Problem, at: Iterate, rows: Rows, intercept: bool, bend: Array) -> None:
        H = problem.intercept_sums(at.active, at.W, at.intercept)[2]
        blocks = [rows[start : start + BLOCK] for start in range(0, rows.shape[0], BLOCK)] or [rows]
        grams = problem.curvature_grams(at, blocks, intercept)
        self._intercept = intercept
        # the mean Hessian of the classes, of trace one
        whole = max(float(np.trace(H)), np.finfo(float).tiny)
        values, self._classes = np.linalg.eigh(H / whole)
        curvature = np.maximum(values, 0.0)
        self._mean = np.zeros(at.active.shape[0])
        self._factors = []
        for places, gram in zip(blocks, grams, strict=True):
            size = places.shape[0]
            own = np.maximum(np.diag(gram)[:size], np.finfo(float).tiny)
            centred = gram[:size, :size]
            if intercept and gram[size, size] > 0.0:
                # what is left of the columns once the intercept takes up their mean
                self._mean[places] = gram[:size, size] / gram[size, size]
                centred = centred - gram[size, size] * np.outer(self._mean[places], self._mean[places])
            scale = np.sqrt(np.maximum(np.diag(centred), _RIDGE * own))
            values, vectors = np.linalg.eigh(centred / np.outer(scale, scale))
            bottom = np.outer(np.maximum(values, 0.0), curvature)
            bottom += float(np.mean(bend[places] / (scale**2)[:, None])) if size else 0.0
            # a direction without curvature, such as a shift of all classes, has no gradient either
            bottom = np.maximum(bottom, _RIDGE * max(float(bottom.max(initial=0.0)), np.finfo(float).tiny))
            self._factors.append(_Factor(places, scale, vectors, bottom))
        top = max(float(curvature.max(initial=0.0)), np.finfo(float).tiny)
        self._bias_bottom = whole * np.maximum(curvature, _RIDGE * top)

    def __call__(self, rows: Array, bias: Array) -> tuple[Array, Array]:
        """P^-1 of a residual: rows (a, k), intercept (k,)."""
        out = np.zeros_like(rows)
        moved = rows - self._mean[:, None] * bias
        for factor in self._factors:
            # einsum, not BLAS: its threads would fight the passes' for the cores
            R = moved[factor.places] / factor.scale[:, None]
            R = np.einsum("ji,jr->ir", factor.vectors, R)
            R = np.einsum("ir,rq->iq", R, self._classes) / factor.bottom
            R = np.einsum("iq,rq->ir", R, self._classes)
            out[factor.places] = np.einsum("ij,jr->ir", factor.vectors, R) / factor.scale[:, None]
        if not self._intercept:
            return out, np.zeros_like(bias)
        free = np.einsum("r,rq->q", bias, self._classes) / self._bias_bottom
        return out, np.einsum("q,rq->r", free, self._classes) - np.einsum("j,jr->r", self._mean, out)
