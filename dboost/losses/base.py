"""What a loss is: a few compiled functions of one example, and what they are worth to the bounds and the certificate.

A loss provides a *target*, a ``NamedTuple`` of label arrays of one block, and overloads the four row functions below
for the type of its target. The fused kernels (``dboost.compiled.examples.fused``) call the row functions; the compiler
picks the overload by type, so a new loss is one file and one line of the registry and the kernels stay as they are.
Passing compiled functions as values was rejected: such kernels cannot be cached on disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numba import njit
from numba.extending import overload
from numpy.typing import NDArray

from dboost.compiled.vectors.emit import INLINED
from dboost.compiled.vectors.lanes import add_row

Array = NDArray[np.float64]

# Below it, a probability that is one less another is not known to many digits.
_LEAST_PROBABILITY = 1e-10


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
    pulls one way only, [U]_+ and [-U]_+, which is what is done for every target that is not in `TWO_BRANCHED`.
    """
    raise NotImplementedError("branch_row runs in compiled code only")


TWO_BRANCHED: set[Any] = set()
"""Targets that overload `branch_row`."""


@overload(branch_row, inline="never", jit_options=INLINED)
def _branch_row(target: Any, i: int, f: Array, s: float, plus: Array, minus: Array) -> Any:
    if getattr(target, "instance_class", None) in TWO_BRANCHED:
        return None

    def one_branch(target: Any, i: int, f: Array, s: float, plus: Array, minus: Array) -> float:
        loss = residual_row(target, i, f, s, plus)
        for r in range(plus.shape[0]):
            u = plus[r]
            plus[r] = max(u, 0.0)
            minus[r] = max(-u, 0.0)
        return loss

    return one_branch


def peak_row(target: Any, i: int, f: Array, s: float) -> float:
    """Return log |U_i|, the larger direction. Overloaded for the targets of losses that are ``shifted``, only."""
    raise NotImplementedError("peak_row runs in compiled code only")


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
        margin = np.empty(1)
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
        margin = np.empty(1)
        scales, mixes, shifts, priors = np.array([scale]), np.array([mix]), np.array([shift]), np.array([prior])
        value = 0.0
        for i in range(f.shape[0]):
            if weight[i] > 0.0:
                margin[0] = f[i]
                value += dual_row(target, i, margin, weight[i], scales, mixes, shifts, priors)
        return value

    return by_row


@dataclass(frozen=True)
class Repair:
    """How the residuals U become a dual point Theta that a free intercept allows: its columns sum to zero.

    Parameters
    ----------
    keep, mix, shift, prior : float64 arrays, shape (k,)
        What `dual_row` and `theta_row` are given; their meaning belongs to the loss.
    null_share : float
    drift, spill : float64 arrays, shape (k,)
        They bound what the repair does to the sums of a column j, in every dual norm:
        ||X_j'(Theta - U)||_* <= null_share ||G0_j||_* + (sum_i s_i |x_ij|) ||drift||_* + (max_i |x_ij|) ||spill||_*,
        with G0 the sums of the null model.
    """

    keep: Array
    mix: Array
    shift: Array
    prior: Array
    null_share: float
    drift: Array
    spill: Array

    @staticmethod
    def nothing(k: int) -> Repair:
        """Theta = U: what holds without an intercept."""
        zero = np.zeros(k)
        return Repair(np.ones(k), zero, zero, zero, 0.0, zero, zero)


def share(excess: Array, mass: Array) -> Array:
    """t = [e]_+ / ([e]_+ + n): how far towards the null model, where the mass n is, an excess e must be moved."""
    positive = np.maximum(excess, 0.0)
    total = positive + mass
    return np.where(total > 0.0, positive / np.where(total > 0.0, total, 1.0), 0.0)


@njit(nogil=True, cache=True, **(INLINED | {"fastmath": {"contract", "reassoc"}}))
def _odds_of_row(u: Array, s: float) -> float:
    # the order of the sum is the compiler's, the same for any number of rows
    total = 0.0
    for r in range(u.shape[0]):
        pull = abs(u[r])
        rest = s - pull
        total += np.inf if rest <= _LEAST_PROBABILITY * s else pull * (s / rest)
    return total


@njit(nogil=True, cache=True)
def odds_sum(U: Array, weight: Array) -> float:
    """Sum of s q / (1 - q) over the entries s q of U, by size; infinite where a probability 1 - q is but rounding.

    The dual value of a label of probability 1 - q is the entropy of t q and 1 - t q: along t it has the second
    derivative -(q / t + q**2 / (1 - t q)), of size q / ((1 - q) t) at most.
    """
    total = 0.0
    for i in range(U.shape[0]):
        if weight[i] > 0.0:
            total += _odds_of_row(U[i], weight[i])
    return total


@njit(nogil=True, cache=True)
def _add_signs(y: NDArray[np.int8], weight: Array, positive: Array, observed: Array) -> None:
    for i in range(y.shape[0]):
        label, s = y[i], weight[i]
        for r in range(label.shape[0]):
            positive[r] += s if label[r] > 0 else 0.0
            observed[r] += s if label[r] != 0 else 0.0


def sign_mass(y: NDArray[np.int8], weight: Array) -> tuple[Array, Array]:
    """Weighted mass of label +1, and of all observed labels, per output, of labels -1, 0 (missing) and +1, (m, k)."""
    positive, observed = np.zeros(y.shape[1]), np.zeros(y.shape[1])
    _add_signs(y, weight, positive, observed)
    return positive, observed


@runtime_checkable
class Loss(Protocol):
    """A loss: one of the registry, or an instance with parameters of its own. Frozen and picklable."""

    @property
    def name(self) -> str:
        """Its public name."""
        ...

    @property
    def kappa(self) -> float:
        """Largest curvature per example, the quadratic bound's constant (docs/math.md 1).

        ``math.inf`` where there is no largest one, and so no quadratic bound and no gap-safe screening.
        """
        ...

    @property
    def template_constant(self) -> float:
        """The constant c of the exponential template bound (docs/math.md, eq. 3); 0 where there is no such bound."""
        ...

    @property
    def floor(self) -> float:
        """D0 = inf_f l(y, f), the dual value of Theta = 0 per unit of weight (docs/math.md 1)."""
        ...

    @property
    def growing(self) -> bool:
        """Whether the curvature of an example may grow along a step, so that Newton steps can overshoot."""
        ...

    @property
    def shifted(self) -> bool:
        """Whether U and l may overflow, so that sums are formed in units of e^c (docs/math.md 0.1).

        The target then has a field ``shift``, the c by which the row functions divide.
        """
        ...

    @property
    def closed_null(self) -> bool:
        """Whether `null_intercept` is exact; otherwise it is where a search over passes starts."""
        ...

    @property
    def separable(self) -> bool:
        """Whether the Hessian of an example is diagonal over the outputs."""
        ...

    def target(self, y: NDArray[Any]) -> Any:
        """Wrap the encoded labels of a block for the compiled functions."""
        ...

    def label_mass(self, y: NDArray[Any], weight: Array, k: int) -> tuple[Array, Array]:
        """Weighted counts per output: (mass with label on, total observed mass), each of shape (k,).

        For real labels: (sum s y, sum s).
        """
        ...

    def null_intercept(self, mass: Array, total: Array) -> Array:
        """Optimal intercept of the model without features, shape (k,), or near it where `closed_null` is false.

        Finite also for outputs with one label only.
        """
        ...

    def ray_curvature(self, y: NDArray[Any], U: Array, weight: Array) -> float:
        """S with -D''(t) <= S / t for the dual value D(t) of t U, 0 < t <= 1; infinite where none is known.

        With the labels of a block, its residuals U, of whole rows (m, ``width(k)``), and weights (m,). D is concave, so
        that its slope at t = 1 and S bound it from below along the ray, without a pass (``certificate.duality_gap``).
        """
        ...

    def longest_residual(self, k: int) -> Array | None:
        """A row (k,) that no residual of an example of weight one is longer than, in any norm that looks at sizes only.

        None where residuals have no bound.
        """
        ...

    def repair(self, mass: Array, total: Array, bias: Array) -> Repair:
        """Make residuals with column sums `bias` feasible for a free intercept; `mass`, `total` of `label_mass`."""
        ...
