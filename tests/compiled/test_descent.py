"""Block descent on the quadratic models against proximal gradient steps on the same model in dense numpy."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.compiled.solves import descent
from dboost.compiled.solves.row_prox import diagonal_prox
from dboost.compiled.sparse import columns
from dboost.losses import LOSSES
from dboost.penalties import PENALTIES, CompiledProx, get_penalty
from tests.boosting.plain import covering
from tests.compiled.newton_model import ACTIVE

SEPARABLE = [
    name for name in PENALTIES if get_penalty(name).separable and isinstance(get_penalty(name), CompiledProx)
]
PENALISED = [name for name in SEPARABLE if name != "none"]


@pytest.fixture(params=list(LOSSES))
def loss_name(request):
    return request.param


def test_the_diagonal_bounds_each_row(model, intercept):
    k = model.W.shape[1]
    out = np.zeros(model.W.shape)
    turned = columns.transpose(*model.cut, 6)
    model.fill_diagonal(turned, intercept, out)
    for j, row in enumerate(out):
        slack = np.linalg.eigvalsh(np.diag(row) - model.hessian[j, :, j, :])
        assert slack.min() >= -1e-5 * max(row.max(), 1e-30)
    assert not out[1].any()
    if k == 1 or not model.rank_one.any():
        np.testing.assert_allclose(out, np.einsum("arar->ar", model.hessian), rtol=1e-5)


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
        sweeps = descent.newton_descent(*args, *penalty.compiled, 50, seed, D)
        assert 1 <= sweeps <= 50
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


def test_the_bound_may_overwrite_the_curvature(model, intercept):
    turned = columns.transpose(*model.cut, 6)
    expected, found = np.zeros(model.W.shape), np.zeros(model.W.shape)
    model.fill_diagonal(turned, intercept, expected)
    h = model.h.copy()
    descent.curvature_diagonal(*turned, np.arange(6), h, model.rank_one, model.weight, intercept, found, h)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("loss_name,name", covering(LOSSES, PENALISED), indirect=["loss_name"])
def test_newton_descent_settles_its_rows(model, intercept, name):
    """Asked to, it ends where every row is within the accuracy of its own optimum."""
    penalty = get_penalty(name)
    lam = np.full(len(model.W), 1.5)
    if intercept:
        lam[-1] = 0.0
    turned = columns.transpose(*model.cut, 6)
    diagonal = np.zeros(model.W.shape)
    model.fill_diagonal(turned, intercept, diagonal)
    damping = 1e-9 * diagonal
    most, missed = 3000, []
    for settle in (0.3, 1e-3):
        D = np.zeros_like(model.W)
        args = (*turned, model.h, model.rank_one, model.G, model.W, lam, diagonal, damping)
        assert 1 <= descent.newton_descent(*args, *penalty.compiled, most, 3, D, settle)
        # the rows' own steps from D: what they miss their optimality by
        metric = np.maximum(diagonal + damping, 1e-300)
        out = np.array(model.W + D)
        for j in np.flatnonzero(diagonal.any(axis=1) & (lam > 0)):
            centre = out[j] + (model.G - model.times(D))[j] / metric[j]
            diagonal_prox(*penalty.compiled, centre, metric[j], lam[j], out[j], np.empty(4 * len(centre) + 8))
        moved = metric * (out - model.W - D)
        missed.append(float(penalty.dual_norm(moved[:6]).max()) / 1.5)
    # rows moved after their own last visit, by no more than the accuracy each; float32 ends the rest
    assert missed[1] <= 10 * 1e-3
    assert missed[1] <= missed[0] or missed[0] <= 1e-3


def test_the_order_of_the_blocks_is_a_function_of_the_seed(model, intercept):
    penalty = get_penalty("l1/l2")
    turned = columns.transpose(*model.cut, 6)
    diagonal = np.zeros(model.W.shape)
    model.fill_diagonal(turned, intercept, diagonal)
    results = []
    for seed in (3, 3, 4):
        D = np.zeros_like(model.W)
        lam = np.full(len(model.W), 0.3)
        args = (*turned, model.h, model.rank_one, model.G, model.W, lam, diagonal, 1e-9 * diagonal)
        descent.newton_descent(*args, *penalty.compiled, 2, seed, D)
        results.append(D.tobytes())
    assert results[0] == results[1] != results[2]


@pytest.mark.parametrize("seed", range(8))
def test_rows_that_have_nothing_to_gain_do_not_keep_others_from_being_visited(coupled, seed):
    """The second row is solved exactly at once; by then the first, visited before it, is no longer optimal at zero."""
    D = np.zeros((2, 2))
    args = (*coupled.cut, coupled.h, coupled.rank_one, coupled.G, np.zeros((2, 2)), np.ones(2), coupled.damping)
    descent.newton_descent(*args, coupled.damping, *get_penalty("l1").compiled, 1000, seed, D, 1e-6)
    np.testing.assert_allclose(D, coupled.best, atol=1e-5)
