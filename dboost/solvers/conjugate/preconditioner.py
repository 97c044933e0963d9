"""A preconditioner for conjugate gradients: the diagonal of the curvature, and what it misses most.

The curvature on the support is that of the loss, sum_i (x_i x_i') (x) H_i with H_i = diag(q_i) - q_i q_i' where it is
multinomial (docs/math.md 8 (i)), and that of the penalty, lam (I - u u') / ||w||_2 with u = w / ||w||_2 for a
row of l1/l2.

- The columns that are in most examples (words such as "the" and "of", bright pixels) pull on one another and on the
  intercept. They are few, so the curvature among them is formed from some of the sampled examples, output by output,
  and factored. Where all columns pull on one another, as neighbouring pixels do, many rows are taken.
- Along u the norm of a row is straight, though its diagonal is large where the row is about to vanish: how long the
  rows are is solved for by itself.
- H_i is zero along a shift of all outputs: there the penalty alone is curved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.solves import descent
from dboost.compiled.solves.positive import factor_blocks, solve_blocks
from dboost.hypotheses.held_by_model import Cut
from dboost.penalties import Face
from dboost.problem.slices import equal_slices, parts_of
from dboost.problem.tuning import Blocks

Array = NDArray[np.float64]
Places = NDArray[np.int64]
# The function of every item, on threads.
Each = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]

DEFAULT = Blocks()
"""The sizes that were measured."""
_PARTS = 4
_RIDGE = 1e-6
_PIVOT = 1e-12
# The share of its curvature that an entry, or a row along itself, has in its block at least: the examples that the
# block is summed over may hold none of its values, and a step along it would be unbounded.
SEEN = 0.5
# A row without data is as curved along itself as this share of the most curved one.
_LEAST = 1e-10
# Rows with more curvature are left out of the blocks, whose sums are float32.
_LARGEST = 1e30
# What a pair of values in the sums of blocks, and a multiplication of factoring them, take in terms of what a value
# takes in a product with the curvature: as measured, all for each output.
_OF_A_PAIR = 1.0
_OF_A_FACTOR = 5.0
# Multiplications of all factors from which they are shared by threads.
_SHARED = 5e6


class Preconditioner(Protocol):
    """Curvature that has been formed, from which a face of the penalty gets its preconditioner."""

    def solver(
        self, face: Face, scale: Array, penalty: Array, shifts: bool = False, each: Each = ...
    ) -> Callable[[Array], Array]:
        """An approximate solve on a face (``HeavyRows.solver``)."""


def in_turn(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """The function of every item, in this thread."""
    return [function(item) for item in items]


def summed(
    add: Callable[[int, int, Any], None], room: NDArray[Any], m: int, enough: float, cost: float, each: Each
) -> Array:
    """Sums over `enough` or more of m examples, spread evenly, scaled to all of them; float64, shape of `room`.

    `add`: ``add(first, every, sums)`` adds the examples `first`, `first` + `every`, ... to the sums.
    `room`: zeros of the shape and type to sum in.
    `cost`: operations for an example. With it and the number of examples alone it is decided in how many parts they are
    summed: the bits do not depend on threads.
    `each`: runs the parts.
    """
    every = max(1, int(m // enough))
    taken = len(range(0, m, every))
    parts = max(1, min(_PARTS, taken, parts_of(taken * cost)))

    def part(number: int) -> NDArray[Any]:
        sums = np.zeros_like(room)
        add(number * every, parts * every, sums)
        return sums

    total, *others = each(part, range(parts))
    for other in others:
        total += other
    return np.asarray(total * np.float64(m / max(1, taken)))


@dataclass(frozen=True)
class HeavyRows:
    """Curvature among the heaviest active rows and the intercept, for every output."""

    rows: Places  # (t,): Their places among the active rows.
    # (k, t, t) or (k, t + 1, t + 1): sum_i h_ir x_ij x_il of output r, the intercept last where there is one.
    gram: Array
    whole: bool  # Whether these are all active rows.

    @classmethod
    def of(
        cls,
        cut: Cut,
        h: NDArray[np.float32],
        rank_one: Array,
        diagonal: Array,
        intercept: bool,
        stored: float | None = None,
        each: Each = in_turn,
        sizes: Blocks = DEFAULT,
    ) -> HeavyRows:
        """Sum the blocks over some examples of a cut block.

        `cut`: the examples, by row.
        `h`, `rank_one`: their Hessians, diag(h_i) - r_i h_i h_i'.
        `diagonal`, (a or a + 1, k): diagonal of the curvature, the intercept last: it says which rows are heavy.
        `stored`: take as many rows as is affordable, where a product with the curvature goes over so many values.
        `each`: runs the parts.
        `sizes`: how many rows and examples.
        """
        m, a, k = h.shape[0], diagonal.shape[0] - intercept, diagonal.shape[1]
        held = cut[1].shape[0] / max(m, 1) + intercept
        most = sizes.heavy if stored is None else rows_affordable(k, held, stored, sizes)
        weight = diagonal[:a].sum(axis=1)
        heavy = np.sort(np.argsort(-weight, kind="stable")[:most])
        # products of columns with those beyond it are no float32
        heavy = heavy[weight[heavy] <= _LARGEST]
        place = np.full(a, -1, np.int64)
        place[heavy] = np.arange(heavy.shape[0])
        size = heavy.shape[0] + intercept

        def add(first: int, every: int, sums: NDArray[np.float32]) -> None:
            descent.curvature_blocks(*cut, h, rank_one, place, first, every, intercept, sums)

        room = np.zeros((size, size, h.shape[1]), np.float32)
        enough = sizes.looked_at(size)
        upper = np.moveaxis(summed(add, room, m, enough, held * held * k, each)[:, :, :k], 2, 0)
        return cls(heavy, upper + np.swapaxes(np.triu(upper, 1), 1, 2), heavy.shape[0] == a)

    def solver(
        self, face: Face, scale: Array, penalty: Array, shifts: bool = False, each: Each = in_turn
    ) -> Callable[[Array], Array]:
        """The preconditioner on a face of the penalty.

        `face`: coordinates of the free entries.
        `scale`, (dim,) or (dim + k,): diagonal of the curvature and of the penalty in these coordinates, then of the
        intercept.
        `penalty`, (dim,): the penalty's share of it.
        `shifts`: whether a shift of all outputs changes no loss.
        `each`: runs the parts.
        """
        # One spare slot, addressed by -1: entries outside every block read and write it.
        own, share = np.append(scale, 1.0), np.zeros(scale.shape[0] + 1)
        share[: face.dim] = penalty
        least = SEEN * own
        blocks = [self._entries(face, share, least), *self._sizes(face, share, least)]
        for _, gram in blocks:
            factored(gram, each)
        lengths = _Lengths.of(self, face, own - share)
        shift = _Shifts.of(face, share, self.gram.shape[0]) if shifts else None

        def apply(r: Array) -> Array:
            padded = np.append(r, 0.0)
            rest = padded if shift is None else shift.removed(padded)
            z = rest / own
            for places, factors in blocks:
                solve_blocks(factors, places, rest, z)
            if shift is not None:
                shift.put(padded, z)
            lengths.add(padded, z)
            found: Array = z[:-1]
            return found

        return apply

    def _entries(self, face: Face, share: Array, least: Array) -> tuple[Places, Array]:
        """One block for each output: the free entries of the heavy rows, and the intercept."""
        places = face.places()[self.rows].T
        if self.gram.shape[1] > self.rows.shape[0]:
            places = np.column_stack([places, face.dim + np.arange(self.gram.shape[0])])
        return block_of(places, self.gram, share, least)

    def _sizes(self, face: Face, share: Array, least: Array) -> list[tuple[Places, Array]]:
        """One block for the common sizes of tied entries, where there are any."""
        tied, sizes = face.ties()
        sizes = sizes[self.rows]
        if np.all(sizes < 0):
            return []
        return [block_of(sizes[None], self.among(tied[self.rows])[None], share, least)]

    def among(self, steps: Array) -> Array:
        """Curvature among steps of the heavy rows, each in a direction of its own (t, k); shape (t, t)."""
        t = self.rows.shape[0]
        found: Array = np.einsum("jr,lr,rjl->jl", steps, steps, self.gram[:, :t, :t])
        return found


def products_to_form(t: int, held: float, examples: float, stored: float) -> float:
    """How many products with the curvature cost as much as to form blocks of `t` rows and factor them.

    `held`: values of an example that are in these rows.
    `examples`: so many are looked at.
    `stored`: values that a product goes over.
    """
    pairs = 0.5 * held**2 * examples
    return (_OF_A_PAIR * pairs + _OF_A_FACTOR * t**3 / 3.0) / max(stored, 1.0)


def rows_affordable(k: int, held: float, stored: float, sizes: Blocks) -> int:
    """How many rows blocks of k outputs may have, for examples of so many values; see ``products_to_form``."""
    t = max(sizes.heavy, int((sizes.wide / k) ** 0.5))
    while t > sizes.heavy and products_to_form(t, min(held, t), sizes.looked_at(t), stored) > sizes.products:
        t = max(sizes.heavy, t - max(1, t // 16))
    return t


def block_of(places: Places, gram: Array, share: Array, least: Array) -> tuple[Places, Array]:
    """Blocks with the penalty's share on their diagonals, `least` at least; a place of -1 is the spare slot."""
    here = places >= 0
    # by themselves in memory: threads that factor blocks side by side would wait for one another's lines of the cache
    matrix = np.ascontiguousarray(np.where(here[:, :, None] & here[:, None, :], gram, 0.0))
    entry = np.arange(places.shape[1])
    # a column that is the copy of another would leave the block singular
    diagonal = share[places] + (1.0 + _RIDGE) * matrix[:, entry, entry]
    matrix[:, entry, entry] = np.where(here, np.maximum(diagonal, least[places]), 1.0)
    return np.ascontiguousarray(places), matrix


def factored(blocks: Array, each: Each) -> None:
    """Factor the blocks in place."""
    count, n, _ = blocks.shape
    parts = equal_slices(count, _PARTS) if count * n**3 > _SHARED else [slice(0, count)]
    each(lambda part: factor_blocks(blocks[part], _PIVOT), parts)


@dataclass(frozen=True)
class _Lengths:
    """Steps of rows along themselves (``Face.lines``)."""

    places: Places  # (n, k): Coordinates of the entries of the rows that have such a direction; -1 for the spare slot.
    units: Array  # (n, k): The directions.
    curvature: Array  # (n,): Of the loss along them.
    heavy: Places  # (1, t): Which of these rows are heavy.
    factors: Array  # (1, t, t): The curvature among those, factored.

    @classmethod
    def of(cls, rows: HeavyRows, face: Face, diagonal: Array) -> _Lengths:
        """The directions of a face, where the loss has this diagonal."""
        lines = face.lines()
        chosen = np.flatnonzero(np.any(lines != 0.0, axis=1))
        places, units = face.places()[chosen], lines[chosen]
        curvature = np.sum(diagonal[places] * units**2, axis=1)
        curvature = np.maximum(curvature, _LEAST * curvature.max(initial=np.finfo(float).tiny / _LEAST))
        number = np.full(lines.shape[0], -1, np.int64)
        number[chosen] = np.arange(chosen.shape[0])
        heavy = number[rows.rows]
        if np.all(heavy < 0):
            return cls(places, units, curvature, np.zeros((1, 0), np.int64), np.zeros((1, 0, 0)))
        gram = rows.among(lines[rows.rows])
        entry = np.arange(heavy.shape[0])
        # the examples of the blocks may lack a row
        gram[entry, entry] = np.maximum(
            (1.0 + _RIDGE) * gram[entry, entry], np.where(heavy >= 0, SEEN * curvature[heavy], 1.0)
        )
        factor_blocks(gram[None], _PIVOT)
        return cls(places, units, curvature, heavy[None], gram[None])

    def add(self, r: Array, z: Array) -> None:
        """Add to z the steps that a residual asks for."""
        if not self.places.size:
            return
        along = np.sum(r[self.places] * self.units, axis=1)
        step = along / self.curvature
        solve_blocks(self.factors, self.heavy, along, step)
        z[self.places] += step[:, None] * self.units


@dataclass(frozen=True)
class _Shifts:
    """Steps of all outputs of a row together."""

    places: Places  # (n, k): Coordinates of the rows that are free to be shifted and whose penalty is curved there.
    bend: Array  # (n, 1): The penalty's curvature.
    intercept: slice  # Coordinates of the intercept, which no penalty holds.

    @classmethod
    def of(cls, face: Face, share: Array, k: int) -> _Shifts:
        """The rows of a face, where the penalty has this diagonal."""
        places = face.places()
        # along itself a row is not curved: k entries share what k - 1 directions have
        bend = np.sum(share[places], axis=1) / max(k - 1, 1)
        chosen = np.all(places >= 0, axis=1) & (bend > 0.0)
        return cls(places[chosen], bend[chosen, None], slice(face.dim, share.shape[0] - 1))

    def removed(self, r: Array) -> Array:
        """A residual without its shifts."""
        rest = r.copy()
        rest[self.places] -= r[self.places].mean(axis=1, keepdims=True)
        return rest

    def put(self, r: Array, z: Array) -> None:
        """Give a step the shifts that the residual asks for in place of its own."""
        wanted = r[self.places].mean(axis=1, keepdims=True) / self.bend
        z[self.places] += wanted - z[self.places].mean(axis=1, keepdims=True)
        if self.intercept.stop > self.intercept.start:
            z[self.intercept] -= z[self.intercept].mean()
