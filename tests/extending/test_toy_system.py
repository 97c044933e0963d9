"""The toy system fits on every engine with the same bits, resumes, and ends where its own definition says."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from dboost.boosting.fit import FitSettings, Fitting, fit
from dboost.engine.dask.engine import DaskEngine
from dboost.engine.local import LocalEngine
from dboost.errors import UsageError
from tests.boosting import plain
from tests.boosting.test_resume import bits
from tests.extending.toy_system import Stagewise


@pytest.fixture(scope="module")
def data():
    return plain.make("log", m=150, n=6, weights=True, seed=62)


def settings(least=0.0, **changes):
    return FitSettings("log", "none", system=Stagewise(0.02, least), **{"max_rounds": 60} | changes)


def test_a_fit_has_the_same_bits_on_threads_and_on_a_cluster(data, two_processes):
    plan = plain.plan(data, [10, 40, 41, 41, 90, 150])
    results = []
    for engine in (LocalEngine(1), LocalEngine(3), DaskEngine(two_processes)):
        with engine:
            results.append(bits(fit(plan, engine, settings())))
    assert results[0] == results[1] == results[2]


def test_every_step_is_that_of_a_plain_loop(data):
    """Forward stagewise fitting written down with the explicit matrix."""
    X, y, s = data.X.toarray() if hasattr(data.X, "toarray") else data.X, data.y[:, 0], data.s
    with LocalEngine(1) as engine:
        fitting = Fitting(plain.plan(data), engine, settings())
        b = fitting.problem.null().intercept[0]
        found = fitting.fit(0.0)
    w = np.zeros(X.shape[1])
    for _ in range(60):
        residual = s * y / (1.0 + np.exp(y * (X @ w + b)))
        slopes = np.append(X.T @ residual, residual.sum())
        j = int(np.argmax(np.abs(slopes)))
        if j < len(w):
            w[j] += np.copysign(0.02, slopes[j])
        else:
            b += np.copysign(0.02, slopes[j])
    np.testing.assert_allclose(plain.dense(found, len(w))[:, 0], w, atol=1e-12)
    assert found.intercept[0] == pytest.approx(b, abs=1e-12)
    losses = [record["objective"] for record in found.history]
    assert found.n_iter == 60 and np.all(np.diff(losses) < 0.0)


def test_it_ends_once_the_loss_is_flat_and_goes_on_from_any_state(data):
    plan = plain.plan(data)
    with LocalEngine(1) as engine:
        fitting = Fitting(plan, engine, settings(0.02, max_rounds=2000))
        whole = fitting.fit(0.0)
        assert whole.stop_reason == "gradient" and np.isnan(whole.gap)
        first = Fitting(plan, engine, settings(0.02, max_rounds=20)).fit(0.0)
        rest = Fitting(plan, engine, settings(0.02, max_rounds=2000)).fit(0.0, resume=first.state)
    assert bits(rest)[0] == bits(whole)[0] and rest.n_iter == whole.n_iter


def test_its_parameters_are_json_and_a_penalty_is_refused(data):
    assert json.loads(json.dumps(Stagewise(0.1).to_json())) == {"system": "stagewise", "length": 0.1, "least": 0.01}
    with LocalEngine(1) as engine, pytest.raises(UsageError, match="'stagewise' with penalty 'l1'"):
        fit(plain.plan(data), engine, replace(settings(), penalty="l1"))
