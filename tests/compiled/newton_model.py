"""The model of a Newton step on a small block, with its Hessian written out and its minimum by proximal steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dboost.compiled.examples import fused
from dboost.compiled.solves import descent
from dboost.compiled.sparse import columns
from dboost.losses import get_loss
from tests.losses.references import REFERENCES

ACTIVE = np.array([0, 2, 3, 5, 7, 9])


@dataclass
class Model:
    """A Newton model: kernels' arguments, and its Hessian as a dense matrix over (rows, outputs)."""

    cut: Any
    h: Any
    rank_one: Any
    weight: Any
    G: Any
    W: Any
    dense: Any
    hessian: Any

    def times(self, D):
        a, k = D.shape
        return (self.hessian.reshape(a * k, a * k) @ D.ravel()).reshape(a, k)

    def fill_diagonal(self, turned, intercept, out):
        given = (*turned, np.arange(6), self.h, self.rank_one, self.weight, intercept, out)
        descent.curvature_diagonal(*given, np.empty_like(self.h))

    def value(self, penalty, lam, D):
        return 0.5 * np.sum(D * self.times(D)) - np.sum(self.G * D) + float(lam @ penalty.value(self.W + D))

    def minimise(self, penalty, lam, steps=20_000):
        """FISTA with restarts."""
        a, k = self.W.shape
        bound = np.linalg.eigvalsh(self.hessian.reshape(a * k, a * k)).max()
        D = E = np.zeros_like(self.W)
        t = 1.0
        for _ in range(steps):
            gradient = self.times(E) - self.G
            new = penalty.prox(self.W + E - gradient / bound, lam / bound) - self.W
            if np.sum((E - new) * (new - D)) > 0:
                t = 1.0
            after = 0.5 * (1 + np.sqrt(1 + 4 * t * t))
            if np.abs(new - D).max() < 1e-13 and t > 1:
                return new
            E, D, t = new + (t - 1) / after * (new - D), new, after
        return D


def newton_model(block, rng, loss_name, intercept):
    """The model of a loss at random weights of the columns ``ACTIVE``, two rows of them zero."""
    reference = REFERENCES[loss_name]
    W = 0.3 * rng.normal(size=(6 + intercept, reference.k))
    W[[1, 3]] = 0.0
    b = W[-1].copy() if intercept else np.zeros(reference.k)
    y = reference.labels(rng, 40)
    cut = columns.cut_rows(*block.csc, ACTIVE, 40)
    h, rank_one = np.empty((40, reference.k), np.float32), np.empty(40)
    args = (*cut, W[:6], b, get_loss(loss_name).target(y), block.weight)
    fused.curvature(*args, h, rank_one)
    X = block.dense[:, ACTIVE]
    if intercept:
        X = np.hstack([X, np.ones((40, 1))])
    H = h[:, :, None] * np.eye(reference.k) - rank_one[:, None, None] * h[:, :, None] * h[:, None, :].astype(float)
    # the gradient of the loss itself: any other may have a part along which the model has no minimum
    G = X.T @ fused.residuals(*args, np.zeros(reference.k))[0][:, : reference.k]
    return Model(cut, h, rank_one, block.weight, G, W, X, np.einsum("ia,irs,ib->arbs", X, H, X))


class Coupled:
    """Two rows of the same column, one example: -a + 3 b + (a + b)**2 / 2 + (a**2 + b**2) / 2 + |a| + |b|.

    At zero the first row is optimal and the second is not. All numbers are powers of two, so that a row that is solved
    moves by exactly nothing when it is visited again.
    """

    def __init__(self):
        self.cut = (np.array([0, 1, 2]), np.zeros(2, np.int32), np.ones(2, np.float32))
        self.h, self.rank_one = np.zeros((1, 4), np.float32), np.zeros(1)
        self.h[:, :2] = 1.0
        self.G, self.damping = np.array([[1.0, 0.0], [-3.0, 0.0]]), np.ones((2, 2))
        self.best = np.array([[2 / 3, 0.0], [-4 / 3, 0.0]])
