"""A preconditioner for rows that are held from the round they enter: their Gram matrix times the curvature of the classes.

The Hessian of a multiclass loss is sum_i s_i x_i x_i' (x) H_i. Where the classes of an example do not depend on its
features it is the product (X'SX) (x) mean H, whose inverse costs two small products. Features that are copies of one
another to three digits, such as products of pixels, make conjugate gradients with a diagonal slow, and this one fast.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.problem import Problem

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# Rows whose products are held together; the eigenvectors of a block cost its third power.
BLOCK = 512
_RIDGE = 1e-9


@dataclass(frozen=True)
class GramBlocks:
    """X'SX of the rows in the order in which they entered, in blocks of at most `BLOCK` consecutive ones.

    Parameters
    ----------
    order : int64 array, shape (a,)
        The rows.
    sizes : int64 array
        Rows of each block.
    entries : float64 array
        The blocks, one after the other, row by row.
    """

    order: Rows
    sizes: Rows
    entries: Array

    @staticmethod
    def empty() -> GramBlocks:
        """Of no rows."""
        return GramBlocks(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))

    def joined(self, problem: Problem, active: Rows, fresh: Rows) -> GramBlocks:
        """With some more rows; one pass. `active` has all rows, ascending."""
        return self.with_cross(active, fresh, problem.cross_gram(active, fresh))

    def with_cross(self, active: Rows, fresh: Rows, cross: Array) -> GramBlocks:
        """With more rows, whose products with all `active` ones are known, (a, len(fresh))."""
        last = int(self.sizes[-1]) if self.sizes.size else 0
        if not last or last + fresh.shape[0] > BLOCK:
            block = cross[np.searchsorted(active, fresh)]
            sizes = np.append(self.sizes, fresh.shape[0])
            return GramBlocks(np.append(self.order, fresh), sizes, np.append(self.entries, block.ravel()))
        size = last + fresh.shape[0]
        block = np.empty((size, size))
        start = self.entries.shape[0] - last * last
        block[:last, :last] = self.entries[start:].reshape(last, last)
        block[:, last:] = cross[np.searchsorted(active, np.append(self.order[-last:], fresh))]
        block[last:, :last] = block[:last, last:].T
        return GramBlocks(
            np.append(self.order, fresh),
            np.append(self.sizes[:-1], size),
            np.append(self.entries[:start], block.ravel()),
        )

    def blocks(self) -> list[tuple[Rows, Array]]:
        """The rows of each block and their products."""
        found, row, entry = [], 0, 0
        for size in self.sizes.tolist():
            rows = self.order[row : row + size]
            found.append((rows, self.entries[entry : entry + size * size].reshape(size, size)))
            row, entry = row + size, entry + size * size
        return found


@dataclass(frozen=True)
class _Factor:
    """One block: places of its rows, sqrt of the diagonal, eigenvectors and eigenvalues of its correlations."""

    places: Rows
    scale: Array
    vectors: Array
    values: Array


class Preconditioner:
    """An approximate inverse of the Hessian over the rows of some blocks, and the intercept where there is one.

    Parameters
    ----------
    problem : Problem
    active : int64 array, shape (a,)
        The rows of W, ascending.
    blocks : list of (rows, Gram matrix)
        Rows of no block are left alone.
    curvature : float64 array, shape (k, k)
        sum_i s_i H_i: the Hessian of the intercept.
    penalty : float64 array, shape (a, k)
        Diagonal of the penalty's Hessian.
    intercept : bool
        Whether the intercept moves too.
    """

    def __init__(
        self,
        problem: Problem,
        active: Rows,
        blocks: list[tuple[Rows, Array]],
        curvature: Array,
        penalty: Array,
        intercept: bool,
    ) -> None:
        weight = problem.statistics.weight
        self._weight, self._intercept = weight, intercept
        self._mean = problem.statistics.sum[active] / weight if intercept else np.zeros(active.shape[0])
        values, self._classes = np.linalg.eigh(curvature / weight)
        self._curvature = np.maximum(values, 0.0)
        self._factors: list[_Factor] = []
        self._bottoms: list[Array] = []
        for rows, gram in blocks:
            places = np.searchsorted(active, rows)
            mean = self._mean[places]
            centred = gram - weight * np.outer(mean, mean)
            scale = np.sqrt(np.maximum(np.diag(centred), _RIDGE * np.maximum(np.diag(gram), np.finfo(float).tiny)))
            values, vectors = np.linalg.eigh(centred / np.outer(scale, scale))
            factor = _Factor(places, scale, vectors, np.maximum(values, 0.0))
            bottom = np.outer(factor.values, self._curvature)
            bottom += float(np.mean(penalty[places] / (scale**2)[:, None]))
            # a direction without any curvature, such as a shift of all classes, is left out of the step by its size
            self._bottoms.append(np.maximum(bottom, _RIDGE * max(float(bottom.max()), np.finfo(float).tiny)))
            self._factors.append(factor)
        top = max(float(self._curvature.max(initial=0.0)), np.finfo(float).tiny)
        self._bias_bottom = weight * np.maximum(self._curvature, _RIDGE * top)

    def __call__(self, rows: Array, bias: Array) -> tuple[Array, Array]:
        """P^-1 of a residual: rows (a, k), intercept (k,)."""
        out = np.zeros_like(rows)
        moved = rows - self._mean[:, None] * bias
        for factor, bottom in zip(self._factors, self._bottoms, strict=True):
            # einsum, not BLAS: its threads would fight the passes' for the cores
            R = moved[factor.places] / factor.scale[:, None]
            R = np.einsum("ji,jr->ir", factor.vectors, R)
            R = np.einsum("ir,rq->iq", R, self._classes) / bottom
            R = np.einsum("iq,rq->ir", R, self._classes)
            out[factor.places] = np.einsum("ij,jr->ir", factor.vectors, R) / factor.scale[:, None]
        if not self._intercept:
            return out, np.zeros_like(bias)
        free = np.einsum("r,rq->q", bias, self._classes) / self._bias_bottom
        return out, np.einsum("q,rq->r", free, self._classes) - np.einsum("j,jr->r", self._mean, out)
