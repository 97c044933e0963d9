"""A preconditioner for conjugate gradients on few rows: the blocks of the Hessian of each class, inverted.

Columns that are copies of one another to three digits, such as products of pixels, make conjugate gradients slow under
a diagonal. The products of all columns within a class, weighted by how undecided each example is about it, make them
fast; they are summed over some of the examples where all would cost more than the steps they save.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.solves.positive import inverse_positive
from dboost.passes import class_blocks
from dboost.problem.iterate import Iterate
from dboost.problem.problem import Problem

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# Rows whose products are formed together at most, and numbers in the blocks of all classes.
BLOCK = 1024
_NUMBERS = 8e6
# Multiplications spent on the products of all blocks: what is aimed at, and at most. Examples for each row of a block
# that are always looked at.
_WORK = 2e8
_MOST_WORK = 1e9
_EXAMPLES = 10
# One block of all rows may take as many multiplications as so many passes over the data, whose multiplications are
# some four times as slow: with two blocks where one would do, a solve takes hundreds of passes more.
_PASSES = 100
_RIDGE = 1e-9


@dataclass(frozen=True)
class _Block:
    """Places of its rows, and the inverse of each class's block, (k, b, b), the intercept last where it moves."""

    places: Rows
    inverse: Array


class ClassBlocks:
    """An approximate inverse of the Hessian of loss plus penalty.

    `iterate`: where the Hessian is taken; one pass.
    `rows`: places among the active rows that move; the others are left at zero.
    `intercept`: whether the intercept moves too.
    `bend`, (a, k): diagonal of the penalty's Hessian.
    `n_rows`: number of examples.
    """

    def __init__(
        self, problem: Problem, iterate: Iterate, rows: Rows, intercept: bool, bend: Array, n_rows: int
    ) -> None:
        self._intercept = intercept
        self._shifts = not problem.loss.separable
        self._bend = bend.mean(axis=1)
        count = max(1, rows.shape[0])
        width = widest(problem.k, count, n_rows)
        pieces = [rows[start : start + width] for start in range(0, rows.shape[0], width)] or [rows]
        most = max(len(piece) for piece in pieces) + 1
        every = sampled(problem.k, most, max(count, most), n_rows, _WORK)
        self._blocks = []
        for places, gram in zip(pieces, grams(problem, iterate, pieces, intercept, every), strict=True):
            inverse = np.stack([inverse_positive(H, 0.0) for H in regularised(gram, bend[places])])
            self._blocks.append(_Block(places, inverse))

    def __call__(self, rows: Array, bias: Array) -> tuple[Array, Array]:
        """P^-1 of a residual: rows (a, k), intercept (k,).

        The operator is symmetric and positive, without which conjugate gradients go astray: what is left out or scaled
        of the answer is left out or scaled of the residual too.
        """
        shift = rows.mean(axis=1) if self._shifts else np.zeros(rows.shape[0])
        if self._shifts:
            rows, bias = rows - shift[:, None], bias - bias.mean()
        out, free = np.zeros_like(rows), np.zeros_like(bias)
        # Every block has the intercept: of as many answers the mean is taken, half of the division on either side.
        share = 1.0 / np.sqrt(len(self._blocks))
        for block in self._blocks:
            residual = rows[block.places]
            if self._intercept:
                residual = np.vstack([residual, share * bias])
            # einsum, not BLAS: its threads would fight the passes' for the cores
            moved = np.einsum("rij,jr->ir", block.inverse, residual)
            out[block.places] = moved[: block.places.shape[0]]
            if self._intercept:
                free += share * moved[-1]
        if self._shifts:
            # a shift of all classes changes no loss: along it the penalty alone is curved
            along = np.where(self._bend > 0.0, shift / np.where(self._bend > 0.0, self._bend, 1.0), 0.0)
            out += (along - out.mean(axis=1))[:, None]
            free -= free.mean()
        return out, free


def widest(k: int, count: int, n_rows: int) -> int:
    """How many of `count` rows stand in a block at most: all, where a block of them is affordable."""
    held = min(BLOCK, int(np.sqrt(_NUMBERS / k)))
    # a pass forms scores and gradients; a block half of the products of its rows, for the examples that are looked at
    passes = _PASSES * 2.0 * k * count * n_rows
    if count <= held and 0.5 * k * count * count * min(n_rows, _EXAMPLES * count) <= max(_MOST_WORK, passes):
        return count
    return max(16, min(held, int(np.sqrt(_MOST_WORK / (0.5 * k * _EXAMPLES * count)))))


def sampled(k: int, width: int, count: int, n_rows: int, work: float) -> int:
    """Of how many examples one is looked at where `count` rows in blocks of a width are to cost `work` multiplications.

    No fewer than some for each row of a block.
    """
    enough = max(work / (0.5 * k * width * count), _EXAMPLES * width)
    return max(1, int(n_rows // enough))


def regularised(gram: Array, bend: Array) -> Array:
    """Blocks (k, b, b) of the Hessian of the loss, with the penalty's diagonal (rows, k) and a little more added.

    In place: they are large.
    """
    size, own = bend.shape[0], np.arange(gram.shape[1])
    diagonal = gram[:, own, own]
    # a class that no example of the sample is undecided about has no curvature there
    gram[:, own, own] += _RIDGE * np.maximum(diagonal, diagonal.max(initial=0.0)) + np.finfo(float).tiny
    gram[:, own[:size], own[:size]] += bend.T
    return gram


def grams(problem: Problem, iterate: Iterate, pieces: Sequence[Rows], intercept: bool, every: int) -> list[Array]:
    """Blocks (k, b, b) of the Hessian at a model, each of one set of active rows, by place, and one output.

    Summed over every so many examples and scaled up. With `intercept` it is the last row and column of each.
    """
    sums = problem.own_pass(class_blocks.class_grams, iterate, tuple(pieces), intercept, every, name="gram")
    found = [sums.add[f"gram{number}"] for number in range(len(pieces))]
    return [upper + np.swapaxes(np.triu(upper, 1), 1, 2) for upper in found]
