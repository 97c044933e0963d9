"""Losses of one real label: what they share, so that a new one says little more than its formulas.

A loss l(y, f) of this kind is a class derived from ``RealLoss`` and four compiled functions of one example. Those of
this library share one target and one set of row functions (``real_rows``), so that no loop is compiled again for one of
them; of those of a new loss ``rows_of`` makes the functions that the loops call. Their dual value is that of any convex
loss, D(theta) = inf_f l(y, f) + theta f (docs/math.md 1), and a free intercept is allowed for by taking the mean of the
residuals off all of them (docs/math.md 6).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from dboost.compiled.examples.loss_rows import Array, lasting
from dboost.compiled.vectors.emit import INLINED
from dboost.losses.base import Loss, Repair
from dboost.losses.scalar import sum_over_outputs

Row = Callable[..., Any]


class RealLabels(NamedTuple):
    """Labels of one block, float64 (m, k), NaN where missing, and the loss of each output (``real_rows``).

    With its kind, int8 (k,), two parameters, float64 (k,), and what is added to both pulls, float64 (k,). Whether all
    losses are squared is a case of its own: the compiler then makes vector code of a row.
    """

    label: Array
    kind: NDArray[np.int8]
    first: Array
    second: Array
    both: Array
    squared: bool


SQUARED, LOG, POISSON, HUBER, QUANTILE, TUBE = range(6)
"""The kinds, which the compiled functions tell the losses by."""


FAR = 0.1
"""Where a loss is linear, the curvature that steps are given, as a share of that of the least parabola above it.

Its own is zero there: where all examples are, or all that hold a feature, no step would be defined. The parabola that
touches it at a score and its mirror image is above it everywhere, but steps under it are short. With this share fits of
labels in units of 1e-4 of a bend, through wider bends, ended certified in 36 of 36 cases of 60 examples, in 300 to 1000
passes; with 0.03 two of nine stalled near 1e-3, with 0.3 some took five times the steps (2026-11). The same where a
loss is nearly linear.
"""


# Of ten each took as long together, and one of them was stuck (2026-11).
_NARROWER = 4.0
# Labels are below 2**100 times those that a bend is made for (``data.ranges``).
_MOST_WIDTHS = 200


def is_number(given: Any) -> bool:
    """Whether a parameter of a loss is a real number, and no truth value."""
    return isinstance(given, (int, float, np.integer, np.floating)) and not isinstance(given, bool)


def rows_of(value: Row, pull: Row, curvature: Row, dual: Row) -> Callable[[type], Any]:
    """Decorate a target, a ``NamedTuple`` that holds what four functions read, by the row functions these make.

    Parameters
    ----------
    value : function (target, i, f) -> float
        l(y_i, f), compiled by numba as the others are.
    pull : function (target, i, f) -> float
        -dl/df.
    curvature : function (target, i, f) -> float
        The second derivative in f.
    dual : function (target, i, theta) -> float
        inf_f l(y_i, f) + theta f, for theta among the values of `pull` and between them and zero.

    Returns
    -------
    decorator
        It gives back a type of the same name, which the compiler chooses these functions by.
    """

    inlined: Callable[[Row], Row] = register_jitable(**INLINED)

    # of the one output that there is; a shift is taken off the residual
    @inlined
    def at(target: Any, i: int, r: int, f: float) -> tuple[float, float]:
        return value(target, i, f), pull(target, i, f)

    @inlined
    def curvature_at(target: Any, i: int, r: int, f: float) -> float:
        return float(curvature(target, i, f))

    @inlined
    def dual_at(target: Any, i: int, r: int, f: float, scale: float, mix: float, shift: float, prior: float) -> float:
        theta = scale * (pull(target, i, f) - shift)
        return float(dual(target, i, theta) - theta * prior)

    @inlined
    def theta_at(
        target: Any, i: int, r: int, u: float, s: float, keep: float, mix: float, shift: float, prior: float
    ) -> float:
        return keep * (u - s * shift)

    def decorated(target: type) -> type:
        made = lasting(target)
        sum_over_outputs(made, at, curvature_at, dual_at, theta_at)
        return made

    return decorated


class RealLoss(Loss):
    """What is true of any convex loss of one real label, or safe to say of it.

    A loss that is derived from it gives its `name`, `kappa` and `target`, and whatever it knows better.
    """

    task: ClassVar[str] = "regression"
    separable: ClassVar[bool] = True

    @property
    def largest(self) -> float:
        """What no residual of an example of weight one is larger than, in size: infinite, no such number is known."""
        return math.inf

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest residual of an example of weight one: -`largest` and `largest`."""
        return -self.largest, self.largest

    def label_mass(self, y: NDArray[Any], weight: Array, k: int) -> tuple[Array, Array]:
        """(sum s y, sum s), each of shape (1,)."""
        return np.array([(weight * y).sum()]), np.array([weight.sum()])

    def null_intercept(self, mass: Array, total: Array) -> Array:
        """The weighted mean of the labels."""
        return mean_label(mass, total)

    def longest_residual(self, k: int) -> Array | None:
        """`largest`, where there is one."""
        return np.full(k, self.largest) if math.isfinite(self.largest) else None

    def kept(self, far: Array, moved: Array) -> float:
        """1 / (1 + |moved| / a), a being how far the nearer end of a residual lies from zero."""
        low, high = self.ends
        return 1.0 / (1.0 + float(np.max(moved, initial=0.0)) / min(-low, high))

    def repair(self, mass: Array, total: Array, bias: Array) -> Repair:
        """Residuals minus their weighted mean e, over 1 + |e| / a, which brings them back between their ends.

        a is how far the end lies from zero that e moves them towards: the lower one where e > 0. The division takes
        |e| / (a + |e|) of a residual, which is no larger than `largest`, and the shift |e| / (1 + |e| / a).
        """
        shift, zero = mean_label(bias, total), np.zeros_like(total)
        if math.isinf(self.largest):
            return Repair(np.ones_like(total), zero, shift, mean_label(mass, total), 0.0, np.abs(shift), zero)
        low, high = self.ends
        room = np.where(shift > 0.0, -low, high)
        keep = 1.0 / (1.0 + np.abs(shift) / room)
        drift = np.abs(shift) * keep * (1.0 + self.largest / room)
        return Repair(keep, zero, shift, mean_label(mass, total), 0.0, drift, zero)


class KindOfLoss(RealLoss):
    """One of the losses of which ``real_rows`` has the functions."""

    kind: ClassVar[int]
    numbers: ClassVar[tuple[str, ...]] = ()
    """Its parameters that these functions are given, two at most."""

    def target(self, y: NDArray[Any]) -> RealLabels:
        """Wrap float64 labels of shape (m,), or (m, k)."""
        k = 1 if y.ndim == 1 else y.shape[1]
        first, second, *_ = [*(getattr(self, name) for name in self.numbers), 0.0, 0.0]
        first_of, second_of, both = np.repeat([[first], [second], [0.0]], k, axis=1)
        kinds = np.full(k, self.kind, np.int8)
        return RealLabels(y.reshape(y.shape[0], k), kinds, first_of, second_of, both, self.kind == SQUARED)


def widths(own: float, error: float) -> list[float]:
    """Widths from about `error` down to above `own`, a quarter each of the one before; none where that is as large."""
    found = [own]
    while found[-1] < error and len(found) < _MOST_WIDTHS:
        found.append(found[-1] * _NARROWER)
    return found[:0:-1]


def mean_label(mass: Array, total: Array) -> Array:
    """mass / total, 0 where there is no weight."""
    seen = total > 0.0
    return np.where(seen, mass / np.where(seen, total, 1.0), 0.0)
