"""Steps of one output on the driver: the optimum found by passes, and the same bits wherever the columns lie."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from dboost.boosting import fit as fits
from dboost.boosting import loop, one_output
from dboost.boosting.fit import FitSettings, Fitting
from dboost.data.plan import build_plan
from dboost.engine.local import LocalEngine

TASKS = {"log": "binary", "squared": "regression", "epsilon_insensitive": "regression"}


@pytest.fixture(params=TASKS)
def problem(request):
    """Arguments of `build_plan` and the loss: correlated columns, so that sweeps alone are slow."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 60)) + 2.0 * rng.normal(size=(400, 1))
    X *= rng.random(X.shape) < 0.7
    score = X[:, :6] @ rng.normal(size=6) + rng.normal(size=400)
    return X, score > 0 if request.param == "log" else score, request.param


def fitted(problem, engine=None, dtype=np.float64, **settings):
    X, y, loss = problem
    with LocalEngine(1) if engine is None else engine as engine:
        plan = build_plan(X.astype(dtype), y, task=TASKS[loss], engine=engine)
        return fits.fit(plan, engine, replace(FitSettings(loss, "l1", alpha=0.03, tol=1e-9), **settings))


def bits(result):
    return result.active.tobytes(), result.W.tobytes(), result.intercept.tobytes(), result.gap, result.passes


@pytest.mark.parametrize("settings", [{}, {"fit_intercept": False}, {"penalty": "l1/linf"}, {"standardize": True}])
def test_the_optimum_is_that_of_passes(problem, settings, monkeypatch):
    mine = fitted(problem, **settings)
    assert mine.gap <= 1e-9 and "newton" in {r["step"] for r in mine.history}
    monkeypatch.setattr(loop, "takes", lambda *_: False)
    theirs = fitted(problem, **settings)
    assert np.array_equal(mine.active, theirs.active)
    np.testing.assert_allclose(mine.W, theirs.W, atol=1e-4)
    assert mine.objective == pytest.approx(theirs.objective, rel=3e-9)


def test_without_steps_on_the_support_the_optimum_is_the_same(problem, monkeypatch):
    whole = fitted(problem)
    monkeypatch.setattr(one_output.OneOutputSteps, "_pays", lambda *_: False)
    swept = fitted(problem)
    assert "newton" not in {r["step"] for r in swept.history}
    assert swept.gap <= 1e-9 and swept.objective == pytest.approx(whole.objective, rel=3e-9)


def test_a_round_that_begins_at_the_support_of_the_minimiser_has_no_descent(problem, monkeypatch):
    seen = []
    holds, step = one_output.OneOutputSteps._holds, one_output.OneOutputSteps.step

    def asked(self, at, lam):
        self.seen = holds(self, at, lam)
        return self.seen

    def taken(self, at, lam, aim):
        self.seen = False
        found = step(self, at, lam, aim)
        if self.seen and aim.final:
            seen.append((found[1].kind, set(np.flatnonzero(at.W[:, 0])) >= set(np.flatnonzero(found[0].W[:, 0]))))
        return found

    monkeypatch.setattr(one_output.OneOutputSteps, "_holds", asked)
    monkeypatch.setattr(one_output.OneOutputSteps, "step", taken)
    # the curvature costs more than a few sweeps and less than all
    few = one_output._FEW_SWEEPS
    monkeypatch.setattr(one_output.OneOutputSteps, "_pays", lambda self, support, sweeps: sweeps > few)
    # one step a round, so that a round begins where the support is known
    monkeypatch.setattr(loop, "_MAX_NEWTON_STEPS", 1)
    found = fitted(problem, tol=1e-11)
    assert found.gap <= 1e-11
    assert seen and all(kind == "newton" and within for kind, within in seen)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("blocks", [1, 3])
def test_bits_do_not_depend_on_where_the_columns_are(problem, blocks, dtype, monkeypatch):
    from dboost.data import memory

    class Away(LocalEngine):
        """Partitions that are not at hand."""

        def at_hand(self):
            return None

    monkeypatch.setattr(memory, "BLOCK_COST", 400 * 60 // blocks)
    # several parts for threads
    monkeypatch.setattr(one_output, "_PART", 500)
    here = fitted(problem, dtype=dtype)
    assert bits(here) == bits(fitted(problem, Away(1), dtype)) == bits(fitted(problem, LocalEngine(3), dtype))


def test_any_round_is_resumed_with_the_same_bits(problem):
    X, y, loss = problem
    settings = FitSettings(loss, "l1", alpha=0.01, tol=1e-9)

    def fitting(engine):
        return Fitting(build_plan(X, y, task=TASKS[loss], engine=engine), engine, settings)

    states = []
    with LocalEngine(1) as engine:
        whole = fitting(engine).fit(0.01, callback=lambda record, state: states.append(pickle.dumps(state)))
    assert len(states) > 2
    for state in states[:-1]:
        with LocalEngine(1) as engine:
            assert bits(fitting(engine).fit(0.01, resume=pickle.loads(state))) == bits(whole)


def test_columns_held_in_vain_are_dropped(monkeypatch):
    from dboost.boosting import driver_columns

    monkeypatch.setattr(driver_columns, "_SPARE", 0)
    rng = np.random.default_rng(0)
    with LocalEngine(1) as engine:
        monkeypatch.setattr(engine, "at_hand", lambda: None)
        X, y = rng.normal(size=(30, 40)), rng.normal(size=30)
        plan = build_plan(X, y, task="regression", engine=engine)
        fitting = Fitting(plan, engine, FitSettings("squared", "l1"))
        held, named = fitting.problem.columns, fitting.problem.held
        for rows in ([1, 2, 3, 4, 5, 6, 7, 8], [2], [2, 9], [30, 31], [0, 39]):
            active = np.array(rows)
            places = held.places(active, named)
            for j, place in zip(rows, places, strict=True):
                mine = slice(held.indptr[place], held.indptr[place + 1])
                assert np.array_equal(held.values[mine], X[:, j]) and np.array_equal(held.rows[mine], np.arange(30))
        assert held.indptr[-1] < 30 * 8
