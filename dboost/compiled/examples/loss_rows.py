"""The loss of one example, as the loops over blocks call it: a few functions that each loss overloads for its target.

A loss has a *target*, a ``NamedTuple`` of label arrays of one block. The loops (``loss_of_rows``) call
the functions of this module; the compiler picks the overload by the target's type, so a new loss is one file of
``dboost.losses`` and the loops stay as they are. Passing compiled functions as values was rejected: such loops cannot
be cached on disk.

Covers: the declarations, and what a target does that does not overload them. Does not cover: any loss.
"""

from __future__ import annotations

import copyreg
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from dboost.compiled.vectors.emit import INLINED
from dboost.compiled.vectors.lanes import add_row
from dboost.compiled.vectors.room import room

Array = NDArray[np.float64]


class _Lasting(type):
    """The type of the targets that ``lasting`` makes."""


_LASTING: dict[tuple[str, str], _Lasting] = {}


def lasting(target: type) -> type:
    """Make a target that compiled loops can be kept on disk for, although other processes lack its module.

    numba lists all types that a loop was compiled for in one file, which every process reads. A type from a module that
    a process cannot import, such as a loss in somebody's own script, would end it there.

    `target`: a ``NamedTuple``. Returns the same, written to files as its name. Where no type of this name has been
    made, reading gives another one, which no loop is ever called with.
    """
    names = {"__module__": target.__module__, "__qualname__": target.__qualname__, "__slots__": ()}
    made = _Lasting(target.__name__, (target,), names)
    _LASTING[target.__module__, target.__qualname__] = made
    return made


def _by_name(module: str, name: str) -> _Lasting:
    return _LASTING.get((module, name)) or _Lasting(name, (tuple,), {"__module__": module, "__qualname__": name})


copyreg.pickle(_Lasting, lambda target: (_by_name, (target.__module__, target.__qualname__)))


def implements(row: Any, target: type, options: dict[str, Any] = INLINED) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a function of the same arguments, which the loops then call in place of `row` for a type of target."""
    signature = inspect.signature(row)

    def register(written: Callable[..., Any]) -> Callable[..., Any]:
        def chosen(*given: Any) -> Any:
            return written if getattr(given[0], "instance_class", None) is target else None

        chosen.__signature__ = signature  # type: ignore[attr-defined]
        overload(row, inline="never", jit_options=options)(chosen)
        return written

    return register


def residual_row(target: Any, i: int, f: Array, s: float, u: Array) -> float:
    """Write U_i = -s dl/df into `u` and return s * l(y_i, f); `f` may be overwritten. Overloaded per target."""
    raise NotImplementedError("residual_row runs in compiled code only")


def residual_rows(target: Any, F: Array, first: int, k: int, weight: Array, U: Array, total: Array) -> float:
    """Write the residuals of consecutive examples, `first` being row 0 of F, and add them to `total` (k,); their loss.

    Margins F may be overwritten; columns of F and U beyond the k outputs stay as they are. Examples of weight zero have
    residuals of zero and count in nothing. By default `residual_row` is called; a target in `ROWS` overloads it by a
    loop that takes what examples have in common together.
    """
    raise NotImplementedError("residual_rows runs in compiled code only")


ROWS: set[Any] = set()
"""Targets that overload `residual_rows`."""


@overload(residual_rows, inline="never", jit_options=INLINED)
def _residual_rows(target: Any, F: Array, first: int, k: int, weight: Array, U: Array, total: Array) -> Any:
    if getattr(target, "instance_class", None) in ROWS:
        return None

    def by_row(target: Any, F: Array, first: int, k: int, weight: Array, U: Array, total: Array) -> float:
        loss = 0.0
        for t in range(F.shape[0]):
            i = first + t
            u = U[t][:k]
            if weight[i] > 0.0:
                loss += residual_row(target, i, F[t][:k], weight[i], u)
                add_row(u, total)
            else:
                for r in range(k):
                    u[r] = 0.0
        return loss

    return by_row


def branch_row(target: Any, i: int, f: Array, s: float, plus: Array, minus: Array) -> float:
    """Write the pulls of U_i in both directions, U_i = plus - minus, both >= 0; return s * l(y_i, f).

    They are what the exponential bound sums (docs/math.md, eq. 1 and 2). A loss that is one monotone branch per output
    pulls one way only, [U]_+ and [-U]_+, which needs no function for a target that is not in `TWO_BRANCHED`.
    """
    raise NotImplementedError("branch_row runs in compiled code only")


TWO_BRANCHED: set[Any] = set()
"""Targets that overload `branch_row`."""


def loss_row(target: Any, i: int, f: Array, s: float) -> float:
    """Return s * l(y_i, f); `f` may be overwritten. Overloaded per target."""
    raise NotImplementedError("loss_row runs in compiled code only")


def curvature_row(target: Any, i: int, f: Array, s: float, h: Array) -> float:
    """Hessian of s * l at f as diag(h) - r h h': write `h`, return r (0 when it is diagonal). Overloaded per target."""
    raise NotImplementedError("curvature_row runs in compiled code only")


def dual_row(target: Any, i: int, f: Array, s: float, scale: Array, mix: Array, shift: Array, prior: Array) -> float:
    """s * D_i at the dual point near U_i that `scale`, `mix`, `shift` and `prior` describe. Overloaded per target.

    Theta_i = scale * s * (the repaired residual of an example), docs/math.md 6. What repairs it belongs to the
    loss. The log-losses take the predicted probability q'' = (1 - mix) (q - shift) + mix prior in place of q; the
    losses of real labels subtract `shift` from the residual and measure labels from `prior`, which changes no value
    as Theta sums to zero; the exponential loss adds to the residuals of one label.
    """
    raise NotImplementedError("dual_row runs in compiled code only")


def theta_row(target: Any, i: int, u: Array, s: float, keep: Array, mix: Array, shift: Array, prior: Array) -> None:
    """Overwrite U_i by the repaired, unscaled dual point: the Theta_i whose value `dual_row` gives at scale = keep.

    Overloaded per target.
    """
    raise NotImplementedError("theta_row runs in compiled code only")


def single_rows(target: Any, first: int, f: Array, weight: Array, u: Array, h: Array) -> float:
    """Examples from `first` on of a loss of one output: write -dl/df and the curvature, weighted; return the loss.

    All arrays are of one dimension, one number for each example; examples of weight zero count in nothing. By default
    the row functions are called; a target in `SINGLE` overloads it by a loop that needs no call for an example.
    """
    raise NotImplementedError("single_rows runs in compiled code only")


SINGLE: set[Any] = set()
"""Targets that overload `single_rows` and `single_dual`."""


@overload(single_rows, inline="never", jit_options={"error_model": "numpy"})
def _single_rows(target: Any, first: int, f: Array, weight: Array, u: Array, h: Array) -> Any:
    if getattr(target, "instance_class", None) in SINGLE:
        return None

    def by_row(target: Any, first: int, f: Array, weight: Array, u: Array, h: Array) -> float:
        margin = room(1, np.float64)
        loss = 0.0
        for t in range(f.shape[0]):
            i = first + t
            u[t] = 0.0
            h[t] = 0.0
            if weight[i] > 0.0:
                margin[0] = f[t]
                curvature_row(target, i, margin, weight[i], h[t : t + 1])
                margin[0] = f[t]
                loss += residual_row(target, i, margin, weight[i], u[t : t + 1])
        return loss

    return by_row


def single_dual(target: Any, f: Array, weight: Array, scale: float, mix: float, shift: float, prior: float) -> float:
    """Sum of `dual_row` over the examples of a loss of one output, margins `f` (m,); overloaded as `single_rows` is."""
    raise NotImplementedError("single_dual runs in compiled code only")


@overload(single_dual, inline="never", jit_options={"error_model": "numpy"})
def _single_dual(target: Any, f: Array, weight: Array, scale: float, mix: float, shift: float, prior: float) -> Any:
    if getattr(target, "instance_class", None) in SINGLE:
        return None

    def by_row(target: Any, f: Array, weight: Array, scale: float, mix: float, shift: float, prior: float) -> float:
        margin, scales, mixes = room(1, np.float64), room(1, np.float64), room(1, np.float64)
        shifts, priors = room(1, np.float64), room(1, np.float64)
        scales[0], mixes[0], shifts[0], priors[0] = scale, mix, shift, prior
        value = 0.0
        for i in range(f.shape[0]):
            if weight[i] > 0.0:
                margin[0] = f[i]
                value += dual_row(target, i, margin, weight[i], scales, mixes, shifts, priors)
        return value

    return by_row
