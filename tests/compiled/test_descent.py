"""Block descent on the quadratic models against proximal gradient steps on the same model in dense numpy."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.compiled.solves import descent
from dboost.compiled.sparse import columns
from dboost.losses import LOSSES
from dboost.penalties import PENALTIES, CompiledProx, get_penalty
from tests.boosting.plain import covering
from tests.compiled.newton_model import ACTIVE

SEPARABLE = [name for name in PENALTIES if get_penalty(name).separable and isinstance(get_penalty(name), CompiledProx)]


@pytest.fixture(params=list(LOSSES))
def loss_name(request):
    return request.param


@pytest.mark.full
@pytest.mark.parametrize(
    "loss_name,name,intercept,block",
    covering(LOSSES, SEPARABLE, [True, False], [np.float32, np.float64]),
    indirect=["loss_name", "intercept", "block"],
)
def test_newton_descent_reaches_the_minimum_of_its_model(model, intercept, name):
    """Restarted from its own result (G moves by H D) it ends at the minimum, with exact zeros."""
    penalty = get_penalty(name)
    lam = np.full(len(model.W), 0.0 if name == "none" else 1.5)
    if intercept:
        lam[-1] = 0.0
    turned = columns.transpose(*model.cut, 6)
    diagonal = np.zeros(model.W.shape)
    model.fill_diagonal(turned, intercept, diagonal)
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
def test_rows_that_have_nothing_to_gain_do_not_keep_others_from_being_visited(coupled, seed):
    """The second row is solved exactly at once; by then the first, visited before it, is no longer optimal at zero."""
    D = np.zeros((2, 2))
    args = (*coupled.cut, coupled.h, coupled.rank_one, coupled.G, np.zeros((2, 2)), np.ones(2), coupled.damping)
    prox, signs = get_penalty("l1").compiled, np.zeros(2, np.int8)
    descent.newton_descent(*args, coupled.damping, *prox, 1000, seed, D, 1e-6, signs)
    np.testing.assert_allclose(D, coupled.best, atol=1e-5)
