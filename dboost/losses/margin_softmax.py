"""Multinomial log-loss with a margin: l(y, f) = log sum_r exp(f_r + 1[r != y]) - f_y (ShareBoost, eq. 3).

An upper bound on the number of mistakes. The margin is the fixed offset 1 - Y on the scores (docs/math.md 1), so
that the compiled functions are those of ``multinomial``; it belongs to training, and predictions are made without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.solves.positive import solve_positive
from dboost.losses.base import Alike, Array, Repair
from dboost.losses.link import MOST
from dboost.losses.multinomial import Multinomial, MultinomialTarget

_MARGIN = 1.0
_STEPS = 100
_ROUNDING = 1e-15


@dataclass(frozen=True)
class MarginSoftmax(Multinomial):
    """The multinomial log-loss of k classes in which every other class has a head start of one."""

    name: str = "margin_softmax"
    # It mixes them with shares that its model without features does not predict.
    mixes: ClassVar[bool] = False

    def target(self, y: NDArray[Any]) -> MultinomialTarget:
        """Wrap int32 class codes of shape (m,)."""
        return MultinomialTarget(y, _MARGIN)

    def without_features(self, intercept: Array, mass: Array) -> Alike | None:
        """None: which classes have the head start goes by the class."""
        return None

    def shown(self, F: Array) -> Array:
        """Of two classes the difference, as of every classifier of two that scikit-learn knows."""
        if F.shape[1] != 2:
            return F
        with np.errstate(over="ignore"):
            return np.clip(F[:, 1] - F[:, 0], -MOST, MOST)

    def null_intercept(self, mass: Array, total: Array) -> Array:
        """Minimiser of sum_c n_c (log sum_r exp(b_r + 1[r != c]) - b_c), centred, by Newton's method in k numbers.

        The loss without features depends on the class counts n alone. Classes without examples stay at the lowest score
        that ``multinomial`` gives them.
        """
        start = super().null_intercept(mass, total)
        seen = mass > 0.0
        if np.count_nonzero(seen) < 2:
            return start
        n = mass[seen] / mass.sum()
        b = np.log(n)
        offset = _MARGIN * (1.0 - np.eye(n.shape[0]))

        def at(b: Array) -> tuple[float, Array]:
            F = b + offset
            top = F.max(axis=1, keepdims=True)
            e = np.exp(F - top)
            whole = e.sum(axis=1, keepdims=True)
            return float(n @ (np.log(whole) + top)[:, 0] - n @ b), e / whole

        value, q = at(b)
        for _ in range(_STEPS):
            gradient = n @ q - n
            # what is left of a class costs a certificate its share of the weight of that class
            if np.abs(gradient / n).max() <= _ROUNDING:
                break
            # in units of the roots of the class shares, of which one may be 1e-24 of another; a shift of all scores has
            # no curvature, and is given one
            root = np.sqrt(n)
            # not by BLAS and LAPACK, whose threads may change the bits
            H = (np.diag(n @ q) - np.einsum("ir,is->rs", q * n[:, None], q)) / np.outer(root, root)
            step = solve_positive(H + np.outer(root, root), -gradient / root, 0.0) / root
            t = 1.0
            moved, probabilities = at(b + step)
            while moved > value + _ROUNDING * abs(value) and t > _ROUNDING:
                t *= 0.5
                moved, probabilities = at(b + t * step)
            if t <= _ROUNDING:
                break
            b, value, q = b + t * step, moved, probabilities
        found = start.copy()
        # the others keep their place below the scores of the classes that are there
        found[seen] = b - b.mean() + start[seen].mean()
        return np.asarray(found - found.mean())

    def repair(self, mass: Array, total: Array, bias: Array) -> Repair:
        """As for ``multinomial``: predictions become (1 - t)(q - e/M) + t n/M.

        The null model of this loss predicts something else than n/M, so what the repair does to the sums of a column,
        X'(t (q - n/M) + (1 - t) e/M), is bounded example by example: |q - n/M| <= max(n/M, 1 - n/M).
        """
        plain = super().repair(mass, total, bias)
        t, prior = plain.null_share, plain.prior
        drift = (1.0 - t) * plain.drift + t * np.maximum(prior, 1.0 - prior)
        return Repair(plain.keep, plain.mix, plain.shift, prior, 0.0, drift, plain.spill)
