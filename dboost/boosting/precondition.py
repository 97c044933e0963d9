"""A preconditioner for conjugate gradients: the diagonal of the curvature, and whole blocks for the heaviest rows.

The columns that are in most examples (words such as "the" and "of", bright pixels) pull on one another and on the
intercept; under the diagonal alone they make conjugate gradients slow, and the certificate slower still, because it is
as good as its worst row. They are few, so the curvature among them is formed from some of the sampled examples, output
by output, and inverted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dboost.compiled import descent
from dboost.hypotheses.held import Cut
from dboost.penalties.base import Face

Array = NDArray[np.float64]

HEAVY = 32
# Examples that the blocks are summed over.
_EXAMPLES = 2048
_RIDGE = 1e-6


@dataclass(frozen=True)
class HeavyRows:
    """Curvature among the heaviest active rows and the intercept, for every output.

    Parameters
    ----------
    rows : int64 array, shape (t,)
        Their places among the active rows.
    gram : float64 array, shape (k, t, t) or (k, t + 1, t + 1)
        sum_i h_ir x_ij x_il of output r, the intercept last where there is one.
    """

    rows: NDArray[np.int64]
    gram: Array

    @classmethod
    def of(cls, cut: Cut, h: NDArray[np.float32], rank_one: Array, diagonal: Array, intercept: bool) -> HeavyRows:
        """Sum the blocks over some examples of a cut block.

        Parameters
        ----------
        cut : Cut
            The examples, by row.
        h, rank_one
            Their Hessians, diag(h_i) - r_i h_i h_i'.
        diagonal : float64 array, shape (a or a + 1, k)
            Diagonal of the curvature, the intercept last: it says which rows are heavy.
        """
        a, k = diagonal.shape[0] - intercept, diagonal.shape[1]
        weight = diagonal[:a].sum(axis=1)
        heavy = np.sort(np.argsort(-weight, kind="stable")[:HEAVY])
        place = np.full(a, -1, np.int64)
        place[heavy] = np.arange(heavy.shape[0])
        size = heavy.shape[0] + intercept
        sums = np.zeros((size, size, h.shape[1]))
        every = max(1, h.shape[0] // _EXAMPLES)
        descent.curvature_blocks(*cut, h, rank_one, place, every, intercept, sums)
        sums *= h.shape[0] / max(1, len(range(0, h.shape[0], every)))
        return cls(heavy, np.moveaxis(sums[:, :, :k], 2, 0))

    def solver(self, face: Face, scale: Array, penalty: Array) -> Callable[[Array], Array]:
        """The preconditioner on a face of the penalty: blocks where there are some, `scale` elsewhere.

        Parameters
        ----------
        face : Face
            Coordinates of the free entries.
        scale : float64 array, shape (dim,) or (dim + k,)
            Diagonal of the curvature and of the penalty in these coordinates, then of the intercept.
        penalty : float64 array, shape (dim,)
            The penalty's share of it.
        """
        share = np.zeros_like(scale)
        share[: face.dim] = penalty
        blocks = [self._entries(face, share), self._sizes(face, share)]

        def apply(r: Array) -> Array:
            padded = np.append(r, 0.0)
            z = padded / np.append(scale, 1.0)
            for places, inverse in blocks:
                z[places] = np.einsum("rij,rj->ri", inverse, padded[places])
            return z[:-1]

        return apply

    def _entries(self, face: Face, share: Array) -> tuple[NDArray[np.int64], Array]:
        """One block for each output: the free entries of the heavy rows, and the intercept."""
        k = self.gram.shape[0]
        places = face.places()[self.rows].T
        if self.gram.shape[1] > self.rows.shape[0]:
            places = np.column_stack([places, face.dim + np.arange(k)])
        return _inverted(places, self.gram, share)

    def _sizes(self, face: Face, share: Array) -> tuple[NDArray[np.int64], Array]:
        """One block for the common sizes of tied entries."""
        tied, sizes = face.ties()
        t = self.rows.shape[0]
        signs = tied[self.rows]
        gram = np.einsum("jr,lr,rjl->jl", signs, signs, self.gram[:, :t, :t])
        return _inverted(sizes[self.rows][None], gram[None], share)


def _inverted(places: NDArray[np.int64], gram: Array, share: Array) -> tuple[NDArray[np.int64], Array]:
    """Inverse of each block with the penalty's share on its diagonal; a place of -1 is nobody's."""
    here = places >= 0
    both = here[:, :, None] & here[:, None, :]
    matrix = np.where(both, gram, 0.0)
    at = np.arange(places.shape[1])
    own = matrix[:, at, at]
    # a column that is the copy of another would leave the block singular
    matrix[:, at, at] += np.where(here, share[places] + _RIDGE * own, 1.0) + np.finfo(float).tiny
    return places, np.where(both, np.linalg.inv(matrix), 0.0)
