"""Several targets, each with a loss of its own: l(y, f) = sum over the observed r of l_r(y_r, f_r).

A row of W is one feature in all targets, so that a penalty on rows chooses features for a click (``log``), a count
(``poisson``) and an amount (``squared``) together. Each output is its own loss by itself; all that is said of the sum
is what is said of the parts, output by output. A target that is NaN is missing and contributes nothing.

Where one of the parts has no largest curvature there is no quadratic bound, and the exponential bound holds for all of
them: a loss of curvature kappa at most, which pulls by u, has

    l(f + d) - l(f) <= -u d + kappa d^2 / 2 <= ([u]_+ + kappa / 2) (e^-d - 1) + ([-u]_+ + kappa / 2) (e^d - 1),

as e^-d - 1 >= -d and e^d + e^-d - 2 >= d^2 (docs/math.md, eq. 2 and 3).

Covers: ``PerTarget``, and ``BinaryTarget``, the log-loss of a target that is 0 or 1. Does not cover: the functions of
one example (``real_rows``), several targets of squared loss (``squared``) or of log-loss (``logistic``), which
are faster.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dboost.errors import UsageError
from dboost.losses.base import Array, Loss, Repair
from dboost.losses.epsilon_insensitive import EpsilonInsensitive
from dboost.losses.huber import Huber
from dboost.losses.link import Link
from dboost.losses.logistic import Logistic
from dboost.losses.poisson import Poisson
from dboost.losses.quantile import Quantile
from dboost.losses.real import HUBER, LOG, QUANTILE, SQUARED, RealLabels
from dboost.losses.squared import Squared, label_mass


@dataclass(frozen=True)
class BinaryTarget(Logistic):
    """The log-loss of a target that is 0 or 1, whose prediction is the probability of 1."""

    name: str = "log"
    task: str = "multitarget"
    kind: ClassVar[int] = LOG
    numbers: ClassVar[tuple[str, ...]] = ()
    labels_taken: ClassVar[str] = "0 and 1"
    link: ClassVar[Link] = Link(logistic=True)

    def invalid(self, y: NDArray[Any]) -> int:
        """Place of the first label that is neither 0 nor 1."""
        bad = ~((y == 0.0) | (y == 1.0))
        return int(np.argmax(bad)) if bad.any() else -1

    def unbounded(self, mass: Array, total: Array) -> str:
        """With one label only the best intercept is the logarithm of zero, or of its inverse."""
        alone = np.any((mass <= 0.0) | (mass >= total))
        return f"every label is {int(mass[0] > 0.0)}, so that the best intercept is infinite" if alone else ""

    def deviance(self, y: Array, mean: Array) -> Array:
        """-2 log of the probability of the label."""
        with np.errstate(divide="ignore"):
            return np.asarray(-2.0 * np.log(np.where(y > 0.0, mean, 1.0 - mean)))


# The parts there are.
_PARTS = (Squared, BinaryTarget, Poisson, Huber, Quantile, EpsilonInsensitive)
SEPARATOR = ","


@dataclass(frozen=True)
class PerTarget(Loss):
    """A loss for each of several targets.

    Parameters
    ----------
    losses : tuple of Loss
        One for each target, in their order: ``squared``, ``huber``, ``quantile``, ``epsilon_insensitive``, ``poisson``,
        or ``log`` for a target that is 0 or 1.

    Raises
    ------
    UsageError
        If one of them is another loss.

    Examples
    --------
    >>> from dboost.losses import get_loss
    >>> get_loss(["squared", "poisson", "log"]).name
    'squared,poisson,log'
    """

    losses: tuple[Any, ...]

    task: ClassVar[str] = "multitarget"
    separable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        given = tuple(BinaryTarget() if one.name == "log" else one for one in self.losses)
        wrong = [one.name for one in given if type(one) not in _PARTS]
        if wrong or not given:
            raise UsageError(
                f"loss {wrong[0]!r} cannot be that of one target among several" if wrong else "no loss for any target",
                hint="known: squared, huber, quantile, epsilon_insensitive, poisson, and log for one that is 0 or 1",
            )
        object.__setattr__(self, "losses", given)

    def of_output(self, r: int) -> Loss:
        """That of one target."""
        found: Loss = self.losses[r]
        return found

    def by_difference(self, k: int) -> NDArray[np.bool_]:
        """As each of them says."""
        return np.concatenate([one.by_difference(1) for one in self.losses])

    @property
    def targets(self) -> int:
        """How many there are."""
        return len(self.losses)

    def links(self, k: int) -> tuple[Link, ...]:
        """Theirs."""
        return tuple(one.link for one in self.losses)

    def _each(self, *arrays: Array) -> Iterator[tuple[Any, tuple[Array, ...]]]:
        """The losses, with what is theirs of arrays whose last axis is of outputs."""
        for r, one in enumerate(self.losses):
            yield one, tuple(array[..., r : r + 1] for array in arrays)

    # ---- what it is of its parts -----------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The names of the losses, with commas between them; of one, with a comma after it."""
        names = SEPARATOR.join(one.name for one in self.losses)
        return names if len(self.losses) > 1 else names + SEPARATOR

    @property
    def kappa(self) -> float:
        """The largest of theirs."""
        return float(max(one.kappa for one in self.losses))

    @property
    def template_constant(self) -> float:
        """1, see the module, or the largest of theirs: the bound falls as the constant grows."""
        return float(max(1.0, *(one.template_constant for one in self.losses)))

    # no loss is below it; theirs count for the observed targets only, of which some may be missing
    floor: ClassVar[float] = 0.0

    @property
    def growing(self) -> bool:
        """Whether one of theirs is."""
        return any(one.growing for one in self.losses)

    @property
    def closed_null(self) -> bool:
        """Whether each of theirs has a formula."""
        return all(one.closed_null for one in self.losses)

    @property
    def kinked(self) -> bool:
        """Whether one of theirs is."""
        return any(one.kinked for one in self.losses)

    @property
    def probabilities(self) -> bool:
        """Whether those of one are."""
        return any(one.probabilities for one in self.losses)

    @property
    def labels_taken(self) -> str:
        """What each of them takes."""
        return "; ".join(dict.fromkeys(f"{one.name} {one.labels_taken}" for one in self.losses))

    def target(self, y: NDArray[Any]) -> RealLabels:
        """Wrap float64 labels of shape (m, k)."""
        numbers = np.zeros((2, len(self.losses)))
        for r, one in enumerate(self.losses):
            numbers[: len(one.numbers), r] = [getattr(one, name) for name in one.numbers]
        kinds = np.array([one.kind for one in self.losses], np.int8)
        # the log-loss, Poisson's and the tube's are branches by themselves
        bounded = (SQUARED, HUBER, QUANTILE)
        both = np.array([0.5 * one.kappa if one.kind in bounded else 0.0 for one in self.losses])
        return RealLabels(y, kinds, numbers[0], numbers[1], both, False)

    def invalid(self, y: NDArray[Any]) -> int:
        """Place of the first observed label that the loss of its target is not defined for, row by row."""
        found = []
        for r, one in enumerate(self.losses):
            seen = np.flatnonzero(~np.isnan(y[:, r]))
            wrong = one.invalid(np.ascontiguousarray(y[seen, r]))
            if wrong >= 0:
                found.append(int(seen[wrong]) * len(self.losses) + r)
        return min(found, default=-1)

    def unbounded(self, mass: Array, total: Array) -> str:
        """As the first of them says that has no best intercept."""
        for r, (one, mine) in enumerate(self._each(mass, total)):
            why: str = one.unbounded(*mine)
            if why:
                return f"target {r}: {why}"
        return ""

    def predicted(self, F: Array) -> Array:
        """The mean of each target, by its own inverse link."""
        return np.hstack([one.predicted(mine) for one, (mine,) in self._each(F)])

    def label_mass(self, y: NDArray[Any], weight: Array, k: int) -> tuple[Array, Array]:
        """(sum s y, sum s) over the observed labels of each output, of shape (k,)."""
        return label_mass(y, weight)

    def null_intercept(self, mass: Array, total: Array) -> Array:
        """As each of them says."""
        return np.concatenate([one.null_intercept(*mine) for one, mine in self._each(mass, total)])

    def longest_residual(self, k: int) -> Array | None:
        """Theirs, where each has one."""
        found = [one.longest_residual(1) for one in self.losses]
        known = [one for one in found if one is not None]
        return np.concatenate(known) if len(known) == len(found) else None

    def repair(self, mass: Array, total: Array, bias: Array) -> Repair:
        """Each output as its loss repairs it."""
        parts = [one.repair(*mine) for one, mine in self._each(mass, total, bias)]
        joined = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("keep", "mix", "shift", "prior", "drift", "spill")
        )
        keep, mix, shift, prior, drift, spill = joined
        return Repair(keep, mix, shift, prior, max(part.null_share for part in parts), drift, spill)

    def shifts(self, pull: Array, z: Array) -> Array:
        """As each of them says."""
        return np.hstack([one.shifts(*mine) for one, mine in self._each(pull, z)])

    def kept(self, far: Array, moved: Array) -> float:
        """The least of theirs."""
        return float(min(one.kept(*mine) for one, mine in self._each(far, moved)))

    def pulls(self, value: float, mass: Array, total: Array, bias: Array) -> float:
        """The sum of theirs; of bounded curvature, sqrt(2 kappa L sum s), as u^2 <= 2 kappa l of a loss l >= 0."""
        found = (
            one.pulls(value, *mine)
            if math.isinf(one.kappa)
            else math.sqrt(2.0 * one.kappa * max(value, 0.0) * float(mine[1][0]))
            for one, mine in self._each(mass, total, bias)
        )
        return float(sum(found))

    def terms(self, value: float, at_zero: float, mass: Array, total: Array, bias: Array) -> float:
        """The sum of theirs."""
        return float(sum(one.terms(value, at_zero, *mine) for one, mine in self._each(mass, total, bias)))
