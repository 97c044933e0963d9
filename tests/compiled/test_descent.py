"""Block descent on the quadratic models against proximal gradient steps on the same model in dense numpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dboost.compiled.examples import fused
from dboost.compiled.solves import descent
from dboost.compiled.sparse import columns
from dboost.losses import LOSSES, get_loss
from dboost.penalties import PENALTIES, CompiledProx, get_penalty
from tests.boosting.plain import covering
from tests.losses.references import REFERENCES

ACTIVE = np.array([0, 2, 3, 5, 7, 9])
SEPARABLE = [name for name in PENALTIES if get_penalty(name).separable and isinstance(get_penalty(name), CompiledProx)]


@dataclass
class Model:
    """A Newton model: kernels' arguments, and its Hessian as a dense matrix over (rows, outputs)."""

    cut: Any
    h: Any
    rank_one: Any
    weight: Any
    G: Any
    W: Any
    hessian: Any

    def times(self, D):
        a, k = D.shape
        return (self.hessian.reshape(a * k, a * k) @ D.ravel()).reshape(a, k)

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
    return Model(cut, h, rank_one, block.weight, G, W, np.einsum("ia,irs,ib->arbs", X, H, X))


@pytest.mark.full
@pytest.mark.parametrize(
    "loss_name,name,intercept,block",
    covering(LOSSES, SEPARABLE, [True, False], [np.float32, np.float64]),
    indirect=["block"],
)
def test_newton_descent_reaches_the_minimum_of_its_model(block, rng, loss_name, intercept, name):
    """Restarted from its own result (G moves by H D) it ends at the minimum, with exact zeros."""
    model, penalty = newton_model(block, rng, loss_name, intercept), get_penalty(name)
    lam = np.full(len(model.W), 0.0 if name == "none" else 1.5)
    if intercept:
        lam[-1] = 0.0
    turned = columns.transpose(*model.cut, 6)
    diagonal = np.zeros(model.W.shape)
    given = (*turned, np.arange(6), model.h, model.rank_one, model.weight, intercept, diagonal)
    descent.curvature_diagonal(*given, np.empty_like(model.h))
    total = np.zeros_like(model.W)
    values = [model.value(penalty, lam, total)]
    for seed in range(100):
        D = np.zeros_like(model.W)
        G = model.G - model.times(total)
        args = (*turned, model.h, model.rank_one, G, model.W + total, lam, diagonal, 1e-9 * diagonal)
        assert descent.newton_descent(*args, *penalty.compiled, 50, seed, D, 1e-3, np.zeros(len(D), np.int8)) >= 1
        total = total + D
        values.append(model.value(penalty, lam, total))
        if np.abs(D).max() < 1e-8:
            break
    best = model.minimise(penalty, lam)
    scale = abs(values[0]) + abs(values[-1])
    assert values[-1] <= model.value(penalty, lam, best) + 1e-9 * scale
    assert max(np.diff(values)) <= 1e-6 * scale
    # one call alone already gains most of what there is
    assert values[0] - values[1] >= 0.5 * (values[0] - values[-1]) - 1e-9 * scale
    if name != "none":
        reached = (model.W + total)[: len(ACTIVE)]
        exact = (model.W + best)[: len(ACTIVE)]
        vanished = np.abs(exact).max(axis=1) < 1e-10
        vanished[1] = False
        assert not reached[vanished].any()


@pytest.mark.parametrize("seed", range(8))
def test_rows_that_have_nothing_to_gain_do_not_keep_others_from_being_visited(seed):
    """Two rows of the same column, one example: -a + 3 b + (a + b)**2 / 2 + (a**2 + b**2) / 2 + |a| + |b|.

    At zero the first row is optimal and the second is not. The second is solved exactly at once; by then the first,
    visited before it, is no longer optimal at zero. All numbers are powers of two, so that a row that is solved moves
    by exactly nothing when it is visited again.
    """
    cut = np.array([0, 1, 2]), np.zeros(2, np.int32), np.ones(2, np.float32)
    h, damping = np.zeros((1, 4), np.float32), np.ones((2, 2))
    h[:, :2] = 1.0
    D, G = np.zeros((2, 2)), np.array([[1.0, 0.0], [-3.0, 0.0]])
    args = (*cut, h, np.zeros(1), G, np.zeros((2, 2)), np.ones(2), damping, damping)
    descent.newton_descent(*args, *get_penalty("l1").compiled, 1000, seed, D, 1e-6, np.zeros(2, np.int8))
    np.testing.assert_allclose(D, [[2 / 3, 0.0], [-4 / 3, 0.0]], atol=1e-5)
