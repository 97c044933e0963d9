"""Losses that are a sum over outputs, each of its own score: a few functions of one score give all that loops call.

A *target* is a ``NamedTuple`` of the label arrays of a block. Its functions take it, the example i and the output r;
a label that is missing has a value, a pull and a curvature of zero.

Does not cover: losses whose outputs are tied (``multinomial``), and the loops of one output that some losses have as
vector code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dboost.compiled.examples.loss_rows import (
    TWO_BRANCHED,
    Array,
    branch_row,
    curvature_row,
    dual_row,
    implements,
    loss_row,
    residual_row,
    theta_row,
)
from dboost.compiled.vectors.emit import INLINED
from dboost.compiled.vectors.lanes import total_of

Function = Callable[..., Any]

# Multiplications may be fused with additions: two thirds of the time, and less rounding.
VECTOR = INLINED | {"fastmath": {"contract"}}


def sum_over_outputs(
    made_for: type,
    at: Function,
    curvature: Function,
    dual: Function,
    theta: Function,
    branches: Function | None = None,
    vector: bool = False,
) -> None:
    """Make the row functions of a target (``loss_rows``).

    Of (target, i, r, f) are `at`, the pair of l and -dl/df, `curvature`, the second derivative, and `branches`, the
    pulls up and down, where these are not the parts of -dl/df. Of (target, i, r, f, scale, mix, shift, prior) is
    `dual`, the dual value of an example of weight one (``dual_row``), and of (target, i, r, u, s, keep, mix, shift,
    prior) `theta`, its point (``theta_row``) where the weight is s.

    With `vector` all are straight-line code, of which the compiler makes vector code on the numbers of a row; the sum,
    whose order counts, is apart.
    """
    options = VECTOR if vector else INLINED

    def of_target(row: Any) -> Callable[[Function], Any]:
        return implements(row, made_for, options)

    @of_target(residual_row)
    def _residual_row(target: Any, i: int, f: Array, s: float, u: Array) -> float:
        loss = 0.0
        for r in range(f.shape[0]):
            value, pull = at(target, i, r, f[r])
            u[r] = s * pull
            if vector:
                f[r] = value
            else:
                loss += value
        return float(s * (total_of(f) if vector else loss))

    @of_target(loss_row)
    def _loss_row(target: Any, i: int, f: Array, s: float) -> float:
        loss = 0.0
        for r in range(f.shape[0]):
            if vector:
                f[r] = at(target, i, r, f[r])[0]
            else:
                loss += at(target, i, r, f[r])[0]
        return float(s * (total_of(f) if vector else loss))

    @of_target(curvature_row)
    def _curvature_row(target: Any, i: int, f: Array, s: float, h: Array) -> float:
        for r in range(f.shape[0]):
            h[r] = s * curvature(target, i, r, f[r])
        return 0.0

    @of_target(dual_row)
    def _dual_row(
        target: Any, i: int, f: Array, s: float, scale: Array, mix: Array, shift: Array, prior: Array
    ) -> float:
        value = 0.0
        for r in range(f.shape[0]):
            own = dual(target, i, r, f[r], scale[r], mix[r], shift[r], prior[r])
            if vector:
                f[r] = own
            else:
                value += own
        return float(s * (total_of(f) if vector else value))

    @of_target(theta_row)
    def _theta_row(
        target: Any, i: int, u: Array, s: float, keep: Array, mix: Array, shift: Array, prior: Array
    ) -> None:
        for r in range(u.shape[0]):
            u[r] = theta(target, i, r, u[r], s, keep[r], mix[r], shift[r], prior[r])

    if branches is None:
        return
    TWO_BRANCHED.add(made_for)

    @of_target(branch_row)
    def _branch_row(target: Any, i: int, f: Array, s: float, plus: Array, minus: Array) -> float:
        loss = 0.0
        for r in range(f.shape[0]):
            up, down = branches(target, i, r, f[r])
            plus[r], minus[r] = s * up, s * down
            loss += at(target, i, r, f[r])[0]
        return float(s * loss)
