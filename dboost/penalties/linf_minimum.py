"""The minimum of a convex, differentiable function plus lam times the largest entry, for functions that a user gives.

Duchi & Singer, "Boosting with Structural Sparsity", Theorem 1 and Figure 1; docs/math.md 4.2 (eq. 11, with the signs
of erratum 4). Of a function whose coordinates are apart, f(w) = sum_r f_r(w_r), the figure finds the minimum at once:

    w = 0  where  sum_r |f_r'(0)| <= lam;  otherwise  w_r = s_r min(t_r, xi),  s_r = -sign f_r'(0),
    t_r = argmin_{t >= 0} f_r(s_r t),  and xi the bound at which  sum_{t_r > xi} -s_r f_r'(s_r xi) = lam.

The left side of the last equation, over all r with each term cut off at zero, falls with xi and needs no t_r: it is
bisected, which is what sorting by t_r does where the t_r are known. Of any other function f the figure solves, again
and again, the bound f(w + d) <= f(w) + <g, d> + sum_r D_r d_r^2 / 2, whose coordinates are apart.

Covers: functions of few numbers, in Python. Does not cover: the rows of a fit, which are solved in closed form
(``bounds``, ``penalties.l1_linf``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dboost.errors import UsageError

Array = NDArray[np.float64]

# A bound beyond which a function that still falls is said to have no minimum.
_FARTHEST = 1e100
# A step whose residual is this near the rounding of its terms cannot become better.
_ROUNDING = 8.0 * float(np.finfo(float).eps)


@dataclass(frozen=True)
class LinfMinimum:
    """A minimum of f(w) + lam max_r |w_r|."""

    w: Array  # (k,)
    value: float  # f(w) + lam max_r |w_r|.
    # How far w is from optimal, in units of the gradient (docs/math.md, eq. 15): the larger of ``||g||_1 - lam`` and
    # ``lam + <g, w> / max_r |w_r|``, with g the gradient of f at w; 0 at the minimum.
    residual: float
    steps: int  # Times that Figure 1 was solved.


def minimise_linf(
    function: Callable[[Array], tuple[float, Any]],
    start: ArrayLike,
    lam: float,
    *,
    separable: bool = False,
    curvature: ArrayLike | None = None,
    tol: float = 1e-9,
    max_steps: int = 10_000,
) -> LinfMinimum:
    """Minimise f(w) + lam max_r |w_r| for a convex, differentiable f.

    The general solver of Duchi & Singer (2009), Theorem 1 and Figure 1.

    Parameters
    ----------
    function : callable
        Takes w, float64 of shape (k,), and returns f(w) and its gradient of shape (k,).
    start : array-like, shape (k,)
        Where to begin. A separable function has no use for it but its shape.
    lam : float
        Strength of the penalty, above 0.
    separable : bool, default False
        Whether entry r of the gradient depends on w_r alone. The minimum is then found at once, to rounding.
    curvature : float or array-like, shape (k,), optional
        Numbers D_r > 0 with ``f(w + d) <= f(w) + <g, d> + sum_r D_r d_r^2 / 2`` for all w and d. Needed where the
        function is not separable: for one with Hessians H, ``max sum_q |H_rq|`` over w will do. That bound is minimised
        again and again.
    tol : float, default 1e-9
        The steps end at a residual of at most `tol` times lam.
    max_steps : int, default 10000

    Returns
    -------
    LinfMinimum

    Raises
    ------
    UsageError
        For values of the wrong shape, a strength that is not above 0, a function that falls without end, one that
        rises above the bound that its curvature promises, or neither `separable` nor `curvature`.

    Examples
    --------
    >>> import numpy as np
    >>> target = np.array([3.0, 2.0, -0.5])
    >>> found = minimise_linf(lambda w: (0.5 * np.sum((w - target) ** 2), w - target), np.zeros(3), 2.0, separable=True)
    >>> np.round(found.w, 6).tolist()
    [1.5, 1.5, -0.5]
    """
    w = np.array(start, dtype=np.float64)
    if w.ndim != 1 or not w.size or not np.isfinite(w).all():
        raise UsageError(f"start has shape {w.shape}", hint="expected finite numbers of shape (k,)")
    if not (isinstance(lam, int | float | np.number) and not isinstance(lam, bool) and 0.0 < float(lam) < math.inf):
        raise UsageError(f"lam={lam!r}", hint="expected a finite number > 0")
    if not callable(function):
        raise UsageError(f"function={function!r}", hint="expected a callable that returns f(w) and its gradient")
    if not isinstance(separable, bool | np.bool_):
        raise UsageError(f"separable={separable!r}", hint="expected True or False")
    if isinstance(max_steps, bool) or not isinstance(max_steps, int | np.integer) or max_steps < 0:
        raise UsageError(f"max_steps={max_steps!r}", hint="expected an integer >= 0")
    given = _checked(function, w.shape)
    if separable:
        w = _figure_1(lambda point: given(point)[1], w.shape, float(lam))
        value, gradient = given(w)
        return LinfMinimum(w, value + lam * _size(w), _residual(w, gradient, lam), 1)
    if curvature is None:
        raise UsageError(
            "neither separable=True nor curvature= was given",
            hint="say that each entry of the gradient depends on its own weight alone, or bound the curvature",
        )
    D = np.asarray(curvature, dtype=np.float64)
    if D.shape not in ((), w.shape) or not (np.isfinite(D).all() and (D > 0.0).all()):
        raise UsageError(f"curvature={curvature!r}", hint="expected finite numbers > 0, one or one for each weight")
    D = np.broadcast_to(D, w.shape)
    value, gradient = given(w)
    for step in range(max_steps + 1):
        rest = _residual(w, gradient, lam)
        if rest <= tol * lam or step == max_steps:
            break
        new = _figure_1(_bound(w, gradient, D), w.shape, float(lam))
        after, then = given(new)
        d = new - w
        most = value + float(gradient @ d) + 0.5 * float(D @ (d * d))
        if after > most + 1e-9 * (abs(value) + abs(most)):
            raise UsageError(
                f"the function is {after:g} where its curvature allows {most:g} at most",
                hint="give a larger curvature=, or check the gradient",
            )
        if np.array_equal(new, w):
            break
        w, value, gradient = new, after, then
    return LinfMinimum(w, value + lam * _size(w), rest, step)


def _checked(function: Callable[[Array], tuple[float, Any]], shape: tuple[int, ...]) -> Callable[[Array], Any]:
    """The function with its results checked: a number, and a gradient of the shape of w."""

    def given(w: Array) -> tuple[float, Array]:
        value, gradient = function(w.copy())
        found = np.asarray(gradient, dtype=np.float64)
        if found.shape != shape:
            raise UsageError(
                f"the gradient has shape {found.shape} for weights of shape {shape}",
                hint="return f(w) and its gradient, one entry for each weight",
            )
        if np.isnan(found).any() or math.isnan(float(value)):
            raise UsageError("the function or its gradient is nan", hint="check it at the weights it was given")
        return float(value), found

    return given


def _bound(w: Array, gradient: Array, D: Array) -> Callable[[Array], Array]:
    """The gradient of the quadratic bound around w, whose coordinates are apart."""
    return lambda point: gradient + D * (point - w)


def _size(w: Array) -> float:
    return float(np.max(np.abs(w)))


def _residual(w: Array, gradient: Array, lam: float) -> float:
    """As in ``LinfMinimum.residual``; at w = 0 the first part alone."""
    size = _size(w)
    # what is left below zero is the rounding of a sum
    above = max(float(np.abs(gradient).sum()) - lam, 0.0)
    return above if size == 0.0 else max(above, lam + float(gradient @ w) / size)


def _figure_1(slopes: Callable[[Array], Array], shape: tuple[int, ...], lam: float) -> Array:
    """The minimum of sum_r f_r(w_r) + lam max_r |w_r| from the derivatives f_r' of all coordinates."""
    first = slopes(np.zeros(shape))
    if float(np.abs(first).sum()) <= lam:
        return np.zeros(shape)
    sign = -np.sign(first)

    def falling(xi: Array) -> Array:
        """-s_r f_r'(s_r xi_r): above zero where f_r still falls, and zero for coordinates that stay at 0."""
        return np.where(sign == 0.0, 0.0, -sign * slopes(sign * xi))

    def pull(xi: float) -> float:
        return float(np.maximum(falling(np.full(shape, xi)), 0.0).sum())

    high = 1.0
    while pull(high) > lam:
        high *= 2.0
        if high > _FARTHEST:
            raise UsageError(
                f"the function still falls by more than lam={lam:g} at weights of {high:g}",
                hint="it has no minimum with this lam: give a larger one",
            )
    low = 0.0
    while high - low > _ROUNDING * high and low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if pull(middle) > lam else (low, middle)
    # coordinates whose own minimum lies within the bound end there
    lows, highs = np.zeros(shape), np.full(shape, high)
    inside = falling(highs) < 0.0
    while np.any(inside & (highs - lows > _ROUNDING * highs)):
        middles = 0.5 * (lows + highs)
        still = falling(middles) > 0.0
        moved = inside & (middles > lows) & (middles < highs)
        if not moved.any():
            break
        lows, highs = np.where(moved & still, middles, lows), np.where(moved & ~still, middles, highs)
    return sign * np.where(inside, highs, high)
