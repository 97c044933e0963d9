"""A loss of scores that begin at numbers of their own: l(y, o + f), with an offset o for every example and output.

The offset is data, as the label is: it comes in the same array (``labelled``), in a field beside it. Everything of the
loss at o + f is that of the loss itself. Its dual value is that of the loss less <theta, o> (docs/math.md 6.2), and the
residuals of the model without features are other ones, so that a search over passes finds its intercept, and what a
repair that mixes them in does to the sums of a column is bounded example by example.

Covers: ``Offset`` around any loss, and the functions of one example. Does not cover: where offsets come from
(``dboost.passes.offsets``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from dboost.compiled.examples.loss_rows import (
    TWO_BRANCHED,
    branch_row,
    curvature_row,
    dual_row,
    loss_row,
    residual_row,
    theta_row,
)
from dboost.compiled.vectors.emit import INLINED
from dboost.losses.base import Array, Loss, Repair

LABEL, OFFSET = "label", "offset"
"""Fields of the labels of a block."""


class OffsetTarget(NamedTuple):
    """The target of the loss inside, and float64 offsets of one block, (m, k)."""

    inner: Any
    offset: Array


TWO_BRANCHED.add(OffsetTarget)


def labelled(y: NDArray[Any], offset: Array) -> NDArray[Any]:
    """Encoded labels and offsets (m, k) as one array (m,), so that whatever takes rows takes both."""
    shape = y.shape[1:]
    found = np.empty(y.shape[0], np.dtype([(LABEL, y.dtype, shape), (OFFSET, np.float64, offset.shape[1:])]))
    found[LABEL], found[OFFSET] = y, offset
    return found


def codes_of(y: NDArray[Any]) -> NDArray[Any]:
    """The encoded labels, of those that have offsets or none."""
    return y if y.dtype.names is None else np.ascontiguousarray(y[LABEL])


def _is_offset(target: Any) -> bool:
    return getattr(target, "instance_class", None) is OffsetTarget


@overload(residual_row, inline="never", jit_options=INLINED)
def _residual_row(target: Any, i: int, f: Array, s: float, u: Array) -> Any:
    if not _is_offset(target):
        return None

    def offset(target: Any, i: int, f: Array, s: float, u: Array) -> float:
        for r in range(f.shape[0]):
            f[r] += target.offset[i, r]
        return residual_row(target.inner, i, f, s, u)

    return offset


@overload(branch_row, inline="never", jit_options=INLINED)
def _branch_row(target: Any, i: int, f: Array, s: float, plus: Array, minus: Array) -> Any:
    if not _is_offset(target):
        return None

    def offset(target: Any, i: int, f: Array, s: float, plus: Array, minus: Array) -> float:
        for r in range(f.shape[0]):
            f[r] += target.offset[i, r]
        return branch_row(target.inner, i, f, s, plus, minus)

    return offset


@overload(loss_row, inline="never", jit_options=INLINED)
def _loss_row(target: Any, i: int, f: Array, s: float) -> Any:
    if not _is_offset(target):
        return None

    def offset(target: Any, i: int, f: Array, s: float) -> float:
        for r in range(f.shape[0]):
            f[r] += target.offset[i, r]
        return loss_row(target.inner, i, f, s)

    return offset


@overload(curvature_row, inline="never", jit_options=INLINED)
def _curvature_row(target: Any, i: int, f: Array, s: float, h: Array) -> Any:
    if not _is_offset(target):
        return None

    def offset(target: Any, i: int, f: Array, s: float, h: Array) -> float:
        for r in range(f.shape[0]):
            f[r] += target.offset[i, r]
        return curvature_row(target.inner, i, f, s, h)

    return offset


@overload(dual_row, inline="never", jit_options=INLINED)
def _dual_row(target: Any, i: int, f: Array, s: float, scale: Array, mix: Array, shift: Array, prior: Array) -> Any:
    if not _is_offset(target):
        return None

    def offset(target: Any, i: int, f: Array, s: float, scale: Array, mix: Array, shift: Array, prior: Array) -> float:
        k = f.shape[0]
        theta, held = np.empty(k), np.empty(k)
        for r in range(k):
            f[r] += target.offset[i, r]
            held[r] = f[r]
        residual_row(target.inner, i, held, s, theta)
        theta_row(target.inner, i, theta, s, scale, mix, shift, prior)
        value = dual_row(target.inner, i, f, s, scale, mix, shift, prior)
        for r in range(k):
            value -= theta[r] * target.offset[i, r]
        return value

    return offset


@overload(theta_row, inline="never", jit_options=INLINED)
def _theta_row(target: Any, i: int, u: Array, s: float, keep: Array, mix: Array, shift: Array, prior: Array) -> Any:
    if not _is_offset(target):
        return None

    def offset(target: Any, i: int, u: Array, s: float, keep: Array, mix: Array, shift: Array, prior: Array) -> None:
        theta_row(target.inner, i, u, s, keep, mix, shift, prior)

    return offset


@dataclass(frozen=True)
class Offset:
    """A loss whose scores begin at the offsets of the examples; what it does not say is as `inner` says."""

    inner: Loss

    @property
    def closed_null(self) -> bool:
        """False: the best intercept depends on all offsets."""
        return False

    def target(self, y: NDArray[Any]) -> OffsetTarget:
        """Wrap labels as ``labelled`` made them."""
        return OffsetTarget(self.inner.target(codes_of(y)), np.ascontiguousarray(y[OFFSET]))

    def wider(self, value: float) -> list[tuple[Loss, float]]:
        """Those of the loss, at the same offsets."""
        return [(with_offsets(one), factor) for one, factor in self.inner.wider(value)]

    def invalid(self, y: NDArray[Any]) -> int:
        """As the loss says."""
        return self.inner.invalid(codes_of(y))

    def label_mass(self, y: NDArray[Any], weight: Array, k: int) -> tuple[Array, Array]:
        """As the loss says."""
        return self.inner.label_mass(codes_of(y), weight, k)

    def unbounded(self, mass: Array, total: Array) -> str:
        """An output with one label only has its best intercept at infinity, where a search has no end."""
        if self.inner.counted and np.any((mass <= 0.0) | (mass >= total)):
            return "an output with an offset has one label only, and a free intercept"
        return self.inner.unbounded(mass, total)

    def repair(self, mass: Array, total: Array, bias: Array) -> Repair:
        """As the loss repairs; where it mixes predictions with the shares n/M of the labels, it moves them further.

        The model without features predicts something else than n/M, so X'(t (q - n/M)) is bounded example by example:
        |q - n/M| <= max(n/M, 1 - n/M).
        """
        plain = self.inner.repair(mass, total, bias)
        if plain.null_share == 0.0:
            return plain
        t, prior = plain.mix, plain.prior
        drift = (1.0 - t) * plain.drift + t * np.maximum(prior, 1.0 - prior)
        return replace(plain, null_share=0.0, drift=drift)

    def without_features(self, intercept: Array, mass: Array) -> None:
        """None: examples of a class differ by their offsets."""
        return None


def _of_inner(name: str) -> property:
    return property(lambda offset: getattr(offset.inner, name))


# Everything else is as the loss says: what offsets add to a dual value is linear, and bounded with the columns that
# they are; steps move scores that have their offsets; and `null_intercept` is where the search starts.
for _name in vars(Loss):
    if not _name.startswith("_") and _name not in vars(Offset):
        setattr(Offset, _name, _of_inner(_name))


def with_offsets(loss: Loss) -> Loss:
    """The loss at scores that begin at offsets."""
    return cast(Loss, Offset(loss))
