"""U of AdaBoost+L1: the signed hypotheses among which a round solves all weights anew, and the sums of that solve.

A hypothesis and its negative are two members of U (docs/math.md 7 (H): H is closed under negation), so that all
weights al are at least zero. Covers: the members, their weights in terms of W, the pass of the re-solve. Does not
cover: which hypothesis enters and when (``rounds``), or the minimum within the budget (``resolve``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.examples import loss_of_rows
from dboost.compiled.solves import one_output
from dboost.compiled.solves.quadratic import gram
from dboost.losses import get_loss
from dboost.partition import Partition, Sums
from dboost.passes import Point
from dboost.solvers.one_output.exact_line import margins

if TYPE_CHECKING:
    from dboost.problem.state import FitState

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# Stands for the hypothesis h = 1 among rows of W, which count from 0.
CONSTANT = -1


@dataclass(frozen=True)
class Ensemble:
    """A convex problem of a round: the signed, scaled hypotheses U, each once, by their rows and the constant last."""

    active: Rows  # (a,): Rows of W that belong to U, ascending.
    place: Rows  # (u,): Place of each member among `active`; a for the constant.
    # (u,): Weight in W (or the intercept) of al_j = 1: the sign of the hypothesis over its largest absolute value.
    scale: Array

    @staticmethod
    def of(rows: Rows, signs: Array, held: Rows, peaks: Array) -> Ensemble:
        """The ensemble of signed rows, repeated ones once.

        Parameters
        ----------
        rows : int64 array, shape (u,)
            Rows of W, `CONSTANT` for the constant.
        signs : float64 array, shape (u,)
        held : int64 array
            Rows of the model, which the sums are to hold too.
        peaks : float64 array, shape (n,)
            Largest absolute value of each hypothesis.
        """
        # A stable order by row, then with the positive sign first; the constant has no row and comes last.
        last = np.where(rows == CONSTANT, np.iinfo(np.int64).max, rows)
        pairs = np.unique(np.stack([last, np.where(signs > 0.0, 0, 1)], axis=1), axis=0)
        last, negative = pairs[:, 0], pairs[:, 1]
        stored = last != np.iinfo(np.int64).max
        active = np.union1d(held, last[stored]).astype(np.int64)
        place = np.where(stored, np.searchsorted(active, last), active.shape[0])
        size = np.append(peaks[active], 1.0)[place]
        return Ensemble(active, place, np.where(negative == 1, -1.0, 1.0) / size)

    def model(self, z: Array) -> Array:
        """Rows of W and, last, the intercept (a + 1,) of the weights al (u,)."""
        found = np.zeros(self.active.shape[0] + 1)
        np.add.at(found, self.place, self.scale * z)
        return found

    def weights(self, state: FitState) -> Array:
        """al (u,) of the model of a state: a weight belongs to the member that has its sign."""
        model = np.zeros(self.active.shape[0] + 1)
        model[np.searchsorted(self.active, state.active)] = state.W[:, 0]
        model[-1] = float(state.intercept[0])
        return np.maximum(model[self.place] / self.scale, 0.0)

    def netted(self, z: Array) -> Array:
        """Weights (u,) of which a hypothesis and its negative have at most one: the same scores by a smaller sum."""
        net = self.model(z)[self.place]
        twice = np.bincount(self.place, weights=z > 0.0, minlength=1)[self.place] > 1.0
        found: Array = np.where(twice, np.maximum(net / self.scale, 0.0), z)
        return found

    def carried(self) -> dict[str, NDArray[Any]]:
        """For ``FitState.carried``; `kept_of` undoes it."""
        rows = np.append(self.active, CONSTANT)[self.place]
        return {"kept_rows": rows, "kept_signs": np.sign(self.scale)}


def kept_of(carried: Mapping[str, NDArray[Any]]) -> tuple[Rows, Array]:
    """The rows and signs of all that ever entered U."""
    rows, signs = carried.get("kept_rows"), carried.get("kept_signs")
    if rows is None or signs is None:
        return np.zeros(0, np.int64), np.zeros(0)
    return rows.astype(np.int64), signs.astype(np.float64)


def held_by(state: FitState, constant: bool) -> tuple[Rows, Array]:
    """The rows and signs of the hypotheses that have a weight; `constant` says whether the constant may be one."""
    weights = np.append(state.W[:, 0], state.intercept)
    rows = np.append(state.active, CONSTANT)
    nonzero = (weights != 0.0) & ((rows != CONSTANT) | constant)
    return rows[nonzero], np.sign(weights[nonzero])


@dataclass(frozen=True)
class InUnits:
    """Numbers in units of e^shift, -inf where all are zero; the sum of two is in the larger unit (docs/math.md 0.1)."""

    shift: float
    numbers: dict[str, Any]

    def __add__(self, other: InUnits) -> InUnits:
        """The sum, name by name."""
        shift = max(self.shift, other.shift)
        mine, theirs = (math.exp(one.shift - shift) if one.shift < shift else 1.0 for one in (self, other))
        return InUnits(shift, {n: mine * value + theirs * other.numbers[n] for n, value in self.numbers.items()})


def moments(partition: Partition, memo: Any, point: Point) -> Sums:
    """L, G, the bias sum, X'diag(h)X and sum |U_i|, the constant last, h being curvature; the least margin y f.

    For the exponential loss, U_i = y_i q_i and h_i = q_i with q_i = s_i e^(-y_i f_i), all are in units of the largest
    q. The peak "ends" holds max_i -y_i f_i, of a loss of two classes, and max_i -s_i over positive weights.
    """
    f = margins(partition, memo, point.held, point.W, point.intercept)
    block, places = point.held.block(partition, memo)
    columns = block.indptr, block.rows, block.values, places
    loss, weight, counted = get_loss(point.loss), partition.weight, partition.weight > 0.0
    worst = -partition.y[:, 0].astype(np.float64) * f if loss.task == "binary" else np.full_like(f, -np.inf)
    ends = [np.max(array[counted], initial=-np.inf) for array in (worst, -weight)]
    shift = 0.0
    if loss.exponential:
        with np.errstate(divide="ignore"):
            log_q = np.log(weight) + worst
        shift = float(log_q.max(initial=-np.inf))
        curvature = np.exp(log_q - (shift if shift > -np.inf else 0.0))
        u = partition.y[:, 0] * curvature
        value = float(curvature.sum())
    else:
        u, curvature = np.empty_like(f), np.empty_like(f)
        value = float(loss_of_rows.single_state(loss.target(partition.y), f, weight, u, curvature))
    G = np.empty(places.shape[0])
    one_output.column_sums(*columns, u, G)
    numbers = {"loss": value, "pulls": float(np.abs(u).sum()), "G": np.append(G, u.sum())}
    numbers["H"] = gram(*columns, curvature, True)
    return Sums(add={"units": InUnits(shift, numbers)}, peak={"ends": np.array(ends)})
