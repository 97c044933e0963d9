"""Descent over single entries of a Newton model: its minimum, its products, its order, and when it is worth it."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.compiled.sparse import columns
from dboost.engine.local import LocalEngine
from dboost.losses import LOSSES
from dboost.penalties import PENALTIES, get_penalty
from dboost.problem import slices
from dboost.solvers.newton.entrywise import EntryModel, unsettled
from tests.boosting.plain import covering
from tests.losses.references import REFERENCES

MANY = [name for name in LOSSES if REFERENCES[name].k > 1]
LAM = 1.5


@pytest.fixture(autouse=True)
def many_parts(monkeypatch):
    """Work of this size would be one part."""
    monkeypatch.setattr(slices, "PART", 20)


@pytest.fixture(params=MANY)
def loss_name(request):
    return request.param


@pytest.fixture
def lam(model, intercept):
    lam = np.full(len(model.W), LAM)
    if intercept:
        lam[-1] = 0.0
    return lam


def entries_of(model, intercept, threads=1):
    engine = LocalEngine(threads)
    turned = columns.transpose(*model.cut, 6)
    return EntryModel(turned, model.h, model.rank_one, model.W.shape[1], intercept, engine.on_driver)


def damping_of(model, intercept):
    out = np.zeros(model.W.shape)
    model.fill_diagonal(columns.transpose(*model.cut, 6), intercept, out)
    return 1e-9 * out


@pytest.mark.parametrize(
    "loss_name,intercept,block", covering(MANY, [True, False], [np.float32, np.float64]), indirect=True
)
@pytest.mark.parametrize("settle", [0.0, 1e-4])
def test_entries_reach_the_minimum_of_the_model(model, lam, intercept, settle):
    """Restarted from its own result (G moves by H D) it ends at the minimum, with exact zeros."""
    penalty, entries, total = get_penalty("l1"), entries_of(model, intercept), np.zeros_like(model.W)
    values = [model.value(penalty, lam, total)]
    for seed in range(200):
        G, W = model.G - model.times(total), model.W + total
        D, sweeps = entries.descend(
            G, W, lam, damping_of(model, intercept), unsettled(G, W, lam), 1000, seed, settle
        )
        assert sweeps >= 1
        total = total + D
        values.append(model.value(penalty, lam, total))
        if np.abs(D).max() < 1e-8:
            break
    best = model.minimise(penalty, lam)
    scale = abs(values[0]) + abs(values[-1])
    assert values[-1] <= model.value(penalty, lam, best) + 1e-9 * scale
    assert max(np.diff(values)) <= 1e-6 * scale
    assert values[0] - values[1] >= 0.5 * (values[0] - values[-1]) - 1e-9 * scale
    # where the optimum holds an entry at zero with something to spare
    vanished = np.abs(model.G - model.times(best)) < 0.99 * lam[:, None]
    # the column without values has no curvature and is left where it is
    vanished[1] = False
    assert not (model.W + total)[vanished].any()


def test_entries_that_come_to_matter_come_in(model, lam, intercept):
    """Begun with the intercept and one entry alone, it solves all of them if it is to settle, and only them if not."""
    damping, penalty = damping_of(model, intercept), get_penalty("l1")
    start = np.zeros_like(model.W)
    few = np.zeros(model.W.shape, np.bool_)
    few[0, 0] = True
    few[lam == 0.0] = True
    # from zero, where the other entries may stay out
    G = model.G + model.times(model.W)
    entries = entries_of(model, intercept)
    D, _ = entries.descend(G, start, lam, damping, few, 100_000, 1, 1e-5)
    model.W, model.G = start, G
    least = model.value(penalty, lam, model.minimise(penalty, lam))
    assert model.value(penalty, lam, D) <= least + 1e-4 * abs(least)
    held, _ = entries.descend(G, start, lam, damping, few, 100_000, 1, 0.0)
    assert not held[~few].any()
    assert np.count_nonzero(D) > np.count_nonzero(held)


def test_products_among_entries_are_those_of_the_hessian(model, rng, intercept):
    moving = rng.random(model.W.shape) < 0.5
    V = np.where(moving, rng.normal(size=model.W.shape), 0.0)
    rows, bias = entries_of(model, intercept).product(moving)(V[:6], V[6] if intercept else np.zeros(V.shape[1]))
    found = np.vstack([rows, bias])[: len(model.W)]
    expected = np.where(moving, model.times(V), 0.0)
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()
    assert not found[~moving].any()


def test_bits_depend_on_the_seed_and_not_on_threads(model, lam, intercept):
    damping, moving = damping_of(model, intercept), np.ones(model.W.shape, np.bool_)
    results = []
    for seed, threads in ((3, 1), (3, 2), (4, 1)):
        entries = entries_of(model, intercept, threads)
        D, _ = entries.descend(model.G, model.W, lam, damping, moving, 3, seed, 0.0)
        rows, bias = entries.product(moving)(D[:6], np.ones(D.shape[1]))
        results.append(D.tobytes() + rows.tobytes() + bias.tobytes())
    assert results[0] == results[1] != results[2]


def test_work_is_limited(model, lam, intercept):
    damping, entries = damping_of(model, intercept), entries_of(model, intercept)
    moving = np.ones(model.W.shape, np.bool_)
    sweeps = [
        entries.descend(model.G, model.W, lam, damping, moving, most, 1, 1e-12)[1] for most in (1, 10, 100_000)
    ]
    assert 1 <= sweeps[0] <= sweeps[1] < 1000


def test_few_entries_pay(model, intercept):
    entries = entries_of(model, intercept)
    few = np.zeros(model.W.shape, np.bool_)
    assert entries.pays(few)
    assert not entries.pays(~few)


def test_which_penalties_tie_no_entries():
    assert [name for name in PENALTIES if get_penalty(name).entries is not None] == ["l1", "elastic_net"]


@pytest.mark.parametrize("seed", range(8))
def test_entries_that_have_nothing_to_gain_do_not_keep_others_from_being_visited(coupled, seed):
    entries = EntryModel(coupled.cut, coupled.h, coupled.rank_one, 2, False, LocalEngine(1).on_driver)
    W = np.zeros((2, 2))
    args = (coupled.G, W, np.ones(2), coupled.damping, np.ones(W.shape, np.bool_))
    D, _ = entries.descend(*args, 1000, seed, 1e-6)
    np.testing.assert_allclose(D, coupled.best, atol=1e-5)
