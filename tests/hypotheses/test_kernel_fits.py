"""Fits over kernels equal the fits on the explicit kernel matrix, on both engines."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.boosting.fit import FitSettings, fit
from dboost.data.plan import build_plan
from dboost.engine.dask.engine import DaskEngine
from dboost.engine.local import LocalEngine
from dboost.hypotheses.kernels.family import Kernels
from tests.hypotheses.test_kernels import formed

LOSSES = {"binary": "log", "multiclass": "multinomial", "multitask": "multitask"}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 5)) * (rng.random((160, 5)) < 0.8)
    code = ((X[:, 0] ** 2 > 0.5).astype(int) + (X[:, 1] * X[:, 2] > 0)).astype(int)
    return X, {"binary": code > 0, "multiclass": code, "multitask": np.eye(3, dtype=int)[code]}


def solved(engine, X, y, task, **settings):
    plan = build_plan(X, y, task=task, engine=engine)
    return fit(plan, engine, FitSettings(LOSSES[task], alpha=0.005, tol=1e-10, **settings))


@pytest.mark.full
@pytest.mark.parametrize(
    ("task", "penalty", "support", "input"),
    [
        ("binary", "l1", "perceptron", "raw"),
        ("multiclass", "l1/linf", "perceptron", "raw"),
        ("multiclass", "l1/l2", 60, "cosine"),
        ("multitask", "l1/linf", "perceptron-union", "raw"),
    ],
)
def test_the_fit_is_that_of_the_explicit_matrix(data, client, task, penalty, support, input):
    X, labels = data
    y = labels[task]
    family = Kernels(support=support, input=input)
    with LocalEngine(2) as engine:
        lazy = solved(engine, X, y, task, penalty=penalty, hypotheses=family)
    with LocalEngine(1) as engine:
        whole = solved(engine, formed(lazy.pool, X), y, task, penalty=penalty)
    assert lazy.stop_reason == whole.stop_reason == "tol" and max(lazy.gap, whole.gap) <= 1e-10
    assert lazy.alpha_max == pytest.approx(whole.alpha_max, rel=1e-12)
    assert lazy.objective == pytest.approx(whole.objective, rel=1e-9)
    assert 3 < len(lazy.active) < lazy.pool.size
    held = [lazy.state.keys[i][0] for i in lazy.active.tolist()]
    assert sorted(held) == whole.active.tolist()
    np.testing.assert_allclose(lazy.W[np.argsort(held)], whole.W, atol=2e-4)
    with DaskEngine(client) as engine:
        there = solved(engine, X, y, task, penalty=penalty, hypotheses=family)
    assert (there.pool.token, there.state.keys, there.objective) == (lazy.pool.token, lazy.state.keys, lazy.objective)
    np.testing.assert_array_equal(there.W, lazy.W)
