"""The passes: what one partition contributes to the sums of a round.

Covers: the leaf functions (partition, memo, ...) -> Sums that an engine maps and reduces, and the small values they
travel with. Does not cover: where they run (``dboost.engine``) or what the driver decides from the sums
(``dboost.boosting``).

Every leaf is a pure function of the partition and its arguments. The memo only spares repeated work: the cut of the
active columns, and the curvature of the examples at one point of a conjugate gradient solve. Solves are over when the
gradient is asked for, at another point; their curvature, half as large as the margins of all examples, goes then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled import centring, columns, descent, fused, one_output, rows
from dboost.compiled.vector import width
from dboost.hypotheses.held import Held
from dboost.losses import Loss, get_loss
from dboost.partition import Partition, Sums

Array = NDArray[np.float64]
# What the passes over examples take: the cut, W, b, the target and the weights.
Examples = tuple[NDArray[Any], NDArray[Any], NDArray[Any], Array, Array, Any, Array]


@dataclass(frozen=True)
class Point:
    """A model at which a pass evaluates.

    Parameters
    ----------
    loss : str or Loss
        The loss, or its name.
    held : Held
        The columns of the rows of W that are held.
    W : float64 array, shape (a, k)
        Those rows.
    intercept : float64 array, shape (k,)
        The intercept b.
    token : str
        Names the whole point, for the memo.
    """

    loss: str | Loss
    held: Held
    W: Array
    intercept: Array
    token: str


def arguments_at(partition: Partition, memo: Any, point: Point) -> Examples:
    """Arguments shared by the fused kernels: the cut, W, b, the target and the weights."""
    cut = point.held.cut(partition, memo)
    return (*cut, point.W, point.intercept, get_loss(point.loss).target(partition.y), partition.weight)


def _shifted(partition: Partition, memo: Any, point: Point) -> tuple[Examples, float]:
    """Those arguments, with the target in units of e^c, and c, the largest logarithm of the partition; else 0."""
    at = arguments_at(partition, memo, point)
    if not get_loss(point.loss).shifted:
        return at, 0.0
    shift: float = memo.get("shift", point.token, lambda: fused.largest(*at))
    *cut, target, weight = at
    return (*cut, target._replace(shift=shift if shift > -np.inf else 0.0), weight), shift


# A block by column and the places of the columns held in it: (column pointer, rows, values, places).
Columns = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[np.int64]]


def columns_held(partition: Partition, memo: Any, held: Held) -> Columns:
    """The block that has the columns held, and their places in it."""
    block, places = held.block(partition, memo)
    return block.indptr, block.rows, block.values, places


def _single(partition: Partition, memo: Any, point: Point) -> tuple[Array, Columns] | None:
    """Margins (m,) of a model of one output, formed column by column, and its columns.

    None where sums need a unit or are wider. Such a model is not cut out of its columns: that would cost more than the
    margins.
    """
    if point.intercept.shape[0] != 1 or get_loss(point.loss).shifted:
        return None
    held = columns_held(partition, memo, point.held)
    f = np.full(partition.n_rows, point.intercept[0])
    one_output.add_columns(*held, np.ascontiguousarray(point.W[:, 0]), f)
    return f, held


def _state(partition: Partition, loss: str | Loss, f: Array) -> tuple[Array, Array, float]:
    """U (m,), the curvature (m,) and the loss at the margins of one output."""
    u, h = np.empty_like(f), np.empty_like(f)
    target = get_loss(loss).target(partition.y)
    return u, h, float(rows.single_state(target, f, partition.weight, u, h))


def label_counts(partition: Partition, memo: Any, loss: str | Loss, k: int) -> Sums:
    """STAT pass, labels: mass and observed mass per output, sum of the weights, number of rows, L at zero margins."""
    given = get_loss(loss)
    mass, total = given.label_mass(partition.y, partition.weight, k)
    weight = float(partition.weight.sum())
    add = {"mass": mass, "total": total, "weight": weight, "rows": partition.n_rows}
    y, s = partition.y, partition.weight
    if y.dtype == np.int8:
        # labels of two kinds: an example of each, with the weight of all of them in all outputs
        y, s = np.array([[1], [-1]], np.int8), np.array([mass.sum(), (total - mass).sum()])
    if y.dtype == np.int8 or k == 1:
        unused = np.empty((2, s.shape[0]))
        add["at_zero"] = float(rows.single_state(given.target(y), np.zeros(s.shape[0]), s, *unused))
        return Sums(add=add)
    y, s = _alike(partition, k) or (partition.y, partition.weight)
    W, b, at_zero = np.zeros((0, k)), np.zeros(k), np.zeros(1)
    fused.losses_along(*_no_columns(s), W, b, W, b, np.zeros(1), given.target(y), s, at_zero)
    add["at_zero"] = float(at_zero[0])
    return Sums(add=add)


def _no_columns(weight: Array) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The cut of no columns out of so many examples."""
    return np.zeros(weight.shape[0] + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)


def _alike(partition: Partition, k: int) -> tuple[NDArray[Any], Array] | None:
    """One example per class, with the weight of all of that class: the same sums to a model without features.

    None where the labels are no class codes.
    """
    y = partition.y
    if y.ndim > 1 or y.dtype.kind != "i":
        return None
    return np.arange(k, dtype=y.dtype), np.bincount(y, weights=partition.weight, minlength=k).astype(float)


NULL_SUMS = ("G", "bias", "loss", "ray")
"""What ``feature_statistics`` may say of the model without features: the sums of ``score``."""


def feature_statistics(partition: Partition, memo: Any, held: Held | None = None, null: Point | None = None) -> Sums:
    """STAT pass, features: max |x|, sum s x, sum s |x|, sum s x**2 per stored column, or per hypothesis held.

    With `null`, a model of one output without features, also the sums of a scoring pass at it.
    """
    block = partition if held is None else held.block(partition, memo)[0]
    peak, total, absolute, square = (np.zeros(block.indptr.shape[0] - 1) for _ in range(4))
    # most data have no weights, and need not be asked for them value by value
    weight = None if np.all(partition.weight == 1.0) else partition.weight
    data, statistics = (block.indptr, block.rows, block.values, weight), (peak, total, absolute, square)
    sums = Sums(add={"total": total, "absolute": absolute, "square": square}, peak={"peak": peak})
    if null is None:
        columns.column_statistics(*data, *statistics)
        return sums
    U, bias, loss, _, ray, _ = _residuals(partition, memo, null)
    G = np.empty((block.indptr.shape[0] - 1, 1))
    columns.column_statistics(*data, *statistics, U.reshape(-1), G.reshape(-1))
    sums.add |= dict(zip(NULL_SUMS, (G, bias, loss, ray), strict=True))
    return sums


def moments_about(partition: Partition, memo: Any, held: Held, centres: Array) -> Sums:
    """Sums of the columns held about a number for each: sum s (x - c), sum s (x - c)**2, values stored; is any float64.

    Of columns far from zero these keep what ``feature_statistics`` loses to rounding.
    """
    block, places = held.block(partition, memo)
    total, square, stored = (np.zeros(places.shape[0]) for _ in range(3))
    data = (block.indptr, block.rows, block.values, partition.weight)
    centring.moments_about(*data, places, centres, total, square, stored)
    double = np.array([float(block.values.dtype != np.float32 and block.values.size > 0)])
    return Sums(add={"total": total, "square": square, "stored": stored}, peak={"double": double})


# U or U in float32, its column sums, the loss, c, the curvature along the ray, and the state of one output or None.
Residuals = tuple[NDArray[Any], Array, float, float, float, tuple[Array, Array, Array] | None]


def _residuals(partition: Partition, memo: Any, point: Point, rounded: bool = False) -> Residuals:
    """U, its column sums and the loss of a partition, in units of e^c, and what is said of them besides."""
    loss, y, weight = get_loss(point.loss), partition.y, partition.weight

    def build() -> Residuals:
        single = _single(partition, memo, point)
        if single is not None:
            u, h, value = _state(partition, point.loss, single[0])
            ray = loss.ray_curvature(y, u[:, None], weight)
            return u[:, None], np.array([u.sum()]), value, 0.0, ray, (single[0], u, h)
        total = np.zeros(point.intercept.shape[0])
        at, shift = _shifted(partition, memo, point)
        if not rounded:
            U, value = fused.residuals(*at, total)
            return U, total, value, shift, loss.ray_curvature(y, U, weight), None
        table = np.empty((partition.n_rows, width(total.shape[0])), np.float32)
        value = ray = 0.0
        for these, U, part in fused.blocks_of_residuals(*at, total):
            table[these] = U
            value += part
            # of what is not rounded: near a probability of one, float32 knows little of what it lacks
            ray += loss.ray_curvature(y[these], U, weight[these])
        return table, total, value, shift, ray, None

    found: Residuals = memo.get("residual", (point.token, rounded), build, passing=True)
    return found


def _residuals_of_classes(point: Point, y: NDArray[Any], mass: Array) -> tuple[Array, Array, float, float]:
    """U of an example of weight one of every class at a model without features; the sums of them all.

    These are the column sums of U, the loss, and the curvature along the ray.

    Parameters
    ----------
    y, mass
        What ``_alike`` found.
    """
    total = np.zeros(point.intercept.shape[0])
    target = get_loss(point.loss).target(y)
    U, loss = fused.residuals(*_no_columns(mass), point.W, point.intercept, target, mass, total)
    ray = get_loss(point.loss).ray_curvature(y, U, mass)
    # a class without weight has no example to be told from
    U /= np.where(mass > 0.0, mass, 1.0)[:, None]
    return U, total, loss, ray


def _branches(partition: Partition, memo: Any, point: Point) -> tuple[Array, Array, Array, float, float]:
    """The pulls up and down of the examples, the column sums of U, the loss, in units of e^c, and c."""

    def build() -> tuple[Array, Array, Array, float, float]:
        total = np.zeros(point.intercept.shape[0])
        at, shift = _shifted(partition, memo, point)
        plus, minus, loss = fused.branches(*at, total)
        return plus, minus, total, loss, shift

    return memo.get("branches", point.token, build, passing=True)


def score(
    partition: Partition,
    memo: Any,
    candidates: NDArray[np.int64],
    point: Point,
    mu: bool,
    first: bool,
    keep: bool = False,
    rounded: bool = False,
) -> Sums:
    """SCORE pass over one shard of candidate columns: G, or mu+ and mu-; loss and bias sums with the `first` shard.

    The candidates are stored columns; where the model holds hypotheses, places among those. With `keep`, and one
    output, the margins, residuals and curvature of the examples come along, for a driver in the same process. Residuals
    may be `rounded` to float32, which halves what is read for every stored value; sums are float64 all the same.
    """

    shape = (candidates.shape[0], point.intercept.shape[0])
    memo.forget("curvature")
    block = partition if point.held.pool is None else point.held.block(partition, memo)[0]
    arrays = (block.indptr, block.rows, block.values)
    sums = Sums()
    given, ray = get_loss(point.loss), math.inf
    alike = None if mu or point.held.n or given.shifted else _alike(partition, shape[1])
    if alike is not None:
        y, mass = alike
        U, total, loss, ray = _residuals_of_classes(point, y, mass)
        sums.add["G"] = np.empty(shape)
        columns.class_gradient(*arrays, partition.weight, partition.y, U, candidates, sums.add["G"])
    elif mu:
        plus, minus, total, loss, sums.shift = _branches(partition, memo, point)
        sums.add["mu_plus"], sums.add["mu_minus"] = np.empty(shape), np.empty(shape)
        columns.column_mu(*arrays, plus, minus, candidates, sums.add["mu_plus"], sums.add["mu_minus"])
        if first:
            sums.add["bias_plus"], sums.add["bias_minus"] = plus.sum(0), minus.sum(0)
    else:
        U, total, loss, sums.shift, ray, state = _residuals(partition, memo, point, rounded)
        sums.add["G"] = np.empty(shape)
        if keep and first and state is not None:
            sums.parts["state"] = [state]
        if U.shape[1] == 1:
            one_output.column_sums(*arrays, candidates, U.reshape(-1), sums.add["G"].reshape(-1))
        else:
            columns.column_gradient(*arrays, U, candidates, sums.add["G"])
    if first and not mu and not given.shifted:
        sums.add["ray"] = ray
    if first:
        sums.add["bias"] = total.copy()
        sums.add["loss"] = loss
    return sums


def repaired_gradient(
    partition: Partition, memo: Any, candidates: NDArray[np.int64], point: Point, repair: tuple[Array, ...]
) -> Sums:
    """G = X'Theta of stored columns, Theta the dual point that the loss repairs U to (keep, mix, shift, prior)."""
    k = point.intercept.shape[0]
    theta, _ = fused.residuals(*arguments_at(partition, memo, point), np.zeros(k))
    fused.repair(theta, get_loss(point.loss).target(partition.y), partition.weight, *repair)
    G = np.empty((candidates.shape[0], k))
    columns.column_gradient(partition.indptr, partition.rows, partition.values, theta, candidates, G)
    return Sums(add={"G": G})


def active_gradient(partition: Partition, memo: Any, point: Point) -> Sums:
    """L, G_A and the bias sums at `point`, in one sweep of the active columns."""
    memo.forget("curvature")
    single = _single(partition, memo, point)
    if single is not None:
        f, held = single
        u, _, loss = _state(partition, point.loss, f)
        sums = np.empty(point.held.n)
        one_output.column_sums(*held, u, sums)
        return Sums(add={"G": sums[:, None], "bias": np.array([u.sum()]), "loss": loss})
    G, total = np.zeros_like(point.W), np.zeros_like(point.intercept)
    at, shift = _shifted(partition, memo, point)
    loss = fused.active_gradient(*at, G, total)
    return Sums(add={"G": G, "bias": total, "loss": loss}, shift=shift)


def intercept_sums(partition: Partition, memo: Any, point: Point) -> Sums:
    """L, the bias sums and the Hessian of the intercept at `point`."""
    single = _single(partition, memo, point)
    if single is not None:
        u, h, loss = _state(partition, point.loss, single[0])
        return Sums(add={"loss": loss, "bias": np.array([u.sum()]), "H": np.array([[h.sum()]])})
    k = point.intercept.shape[0]
    total, H = np.zeros(k), np.zeros((k, k))
    loss = fused.intercept_sums(*arguments_at(partition, memo, point), total, H)
    return Sums(add={"loss": loss, "bias": total, "H": H})


def losses_along(partition: Partition, memo: Any, point: Point, D: Array, d: Array, steps: Array) -> Sums:
    """GRID pass: L(F + t (X D + d)) for every step t."""
    pointer, slots, values, W, b, target, weight = arguments_at(partition, memo, point)
    out = np.zeros(steps.shape[0])
    fused.losses_along(pointer, slots, values, W, b, D, d, steps, target, weight, out)
    return Sums(add={"loss": out})


def curvature_of(partition: Partition, memo: Any, point: Point) -> tuple[NDArray[np.float32], Array]:
    """Hessian of every example at `point`, in float32: products and diagonals of it steer steps, nothing more."""
    h = np.empty((partition.n_rows, width(point.intercept.shape[0])), np.float32)
    rank_one = np.empty(partition.n_rows)
    fused.curvature(*arguments_at(partition, memo, point), h, rank_one)
    return h, rank_one


def curvature_diagonal(partition: Partition, memo: Any, point: Point, intercept: bool) -> Sums:
    """Diagonal of the curvature of every active row, bounded as in ``descent.curvature_diagonal``; intercept last."""
    h, rank_one = curvature_of(partition, memo, point)
    out = np.zeros((point.held.n + (1 if intercept else 0), point.intercept.shape[0]))
    mine = columns_held(partition, memo, point.held)
    descent.curvature_diagonal(*mine, h, rank_one, partition.weight, intercept, out, h)
    return Sums(add={"diagonal": out})


def hessian_product(partition: Partition, memo: Any, point: Point, V: Array, v: Array) -> Sums:
    """X_A' H (X_A V + 1 v') with H at `point`."""
    h, rank_one = memo.get("curvature", point.token, lambda: curvature_of(partition, memo, point))
    pointer, slots, values = point.held.cut(partition, memo)
    out, total = np.zeros_like(V), np.zeros_like(v)
    fused.hessian_product(pointer, slots, values, h, rank_one, V, v, out, total)
    return Sums(add={"out": out, "bias": total})


def dual_value(
    partition: Partition, memo: Any, point: Point, scale: Array, mix: Array, shift: Array, prior: Array
) -> Sums:
    """DUAL pass: the exact dual objective at a feasible point near U (docs/math.md 6)."""
    single = _single(partition, memo, point)
    if single is not None:
        target = get_loss(point.loss).target(partition.y)
        repair = (float(scale[0]), float(mix[0]), float(shift[0]), float(prior[0]))
        return Sums(add={"dual": float(rows.single_dual_value(target, single[0], partition.weight, *repair))})
    return Sums(add={"dual": fused.dual_value(*arguments_at(partition, memo, point), scale, mix, shift, prior)})


def template_sums(partition: Partition, memo: Any, held: Held, extra: float) -> Sums:
    """MAXT pass: max of rho_i per active column, and sum_i s_i |x_ij| rho_i (docs/math.md 2)."""
    cut = held.cut(partition, memo)
    slots = held.n + (1 if extra else 0)
    peak, diagonal = np.zeros(slots), np.zeros(slots)
    columns.template_sums(*cut, partition.weight, extra, peak, diagonal)
    return Sums(add={"diagonal": diagonal}, peak={"peak": peak})


def gram(partition: Partition, memo: Any, held: Held, extra: float) -> Sums:
    """GRAM pass: upper triangle of X_A' diag(s) X_A, the intercept last."""
    cut = held.cut(partition, memo)
    slots = held.n + (1 if extra else 0)
    out = np.zeros((slots, slots))
    columns.gram(*cut, partition.weight, extra, out)
    return Sums(add={"gram": out})
