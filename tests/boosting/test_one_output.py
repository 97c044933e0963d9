"""Steps of one output on the driver: the same bits wherever the columns lie, and from any checkpoint.

Does not cover: that the optimum is that of passes (``test_accelerators``).
"""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest

from dboost.boosting import fit as fits
from dboost.boosting.fit import FitSettings, Fitting
from dboost.data.plan import build_plan
from dboost.engine.local import LocalEngine
from dboost.errors import ModelFormatError
from dboost.estimators.checkpoint import Identity, read_checkpoint, write_checkpoint
from dboost.problem import slices
from dboost.problem.driver_columns import DriverColumns
from dboost.problem.memory import Anchor, Memory
from dboost.problem.state import FitState

TASKS = {"log": "binary", "squared": "regression", "epsilon_insensitive": "regression"}


@pytest.fixture(params=TASKS)
def problem(request):
    """Arguments of `build_plan` and the loss: correlated columns, so that sweeps alone are slow."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 60)) + 2.0 * rng.normal(size=(400, 1))
    X *= rng.random(X.shape) < 0.7
    score = X[:, :6] @ rng.normal(size=6) + rng.normal(size=400)
    return X, score > 0 if request.param == "log" else score, request.param


class Away(LocalEngine):
    """Partitions that are not at hand."""

    def resident_partitions(self):
        return None


def fitted(problem, engine=None, dtype=np.float64, **settings):
    X, y, loss = problem
    with LocalEngine(1) if engine is None else engine as engine:
        plan = build_plan(X.astype(dtype), y, task=TASKS[loss], engine=engine)
        return fits.fit(plan, engine, replace(FitSettings(loss, "l1", alpha=0.03, tol=1e-9), **settings))


def bits(result):
    return result.active.tobytes(), result.W.tobytes(), result.intercept.tobytes(), result.gap, result.passes


def anchored(problem, **settings):
    """A fit whose rounds take in few rows, and the states between them."""
    X, y, loss = problem
    settings = FitSettings(loss, "l1", alpha=0.01, tol=1e-9, features_per_round=5, **settings)
    states = []
    with LocalEngine(1) as engine:
        fitting = Fitting(build_plan(X, y, task=TASKS[loss], engine=engine), engine, settings)
        found = fitting.fit(0.01, callback=lambda record, state: states.append(state))
    return found, states, settings


@pytest.mark.full
def test_a_quadratic_model_does_not_keep_the_columns_alive(problem):
    """They would be freed by the garbage collector only, and the next fit would have to touch new memory."""
    X, y, loss = problem
    gc.collect()
    gc.disable()
    try:
        with LocalEngine(1) as engine:
            fitting = Fitting(build_plan(X, y, task=TASKS[loss], engine=engine), engine, FitSettings(loss, "l1"))
            fitting.fit(0.01)
            columns = weakref.ref(fitting.problem.columns)
            assert columns().quadratic is not None
            del fitting
            assert columns() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("blocks", [1, 3])
def test_bits_do_not_depend_on_where_the_columns_are(problem, blocks, dtype, monkeypatch):
    monkeypatch.setattr("dboost.data.blocks.BLOCK_COST", 400 * 60 // blocks)
    # several parts for threads
    monkeypatch.setattr(slices, "PART", 500)
    here = fitted(problem, dtype=dtype)
    assert bits(here) == bits(fitted(problem, Away(1), dtype)) == bits(fitted(problem, LocalEngine(3), dtype))


def test_a_checkpoint_has_the_anchor(problem, tmp_path):
    """Rounds that follow one that left an anchor, from the file of that round, with the same bits."""
    X, y, loss = problem
    whole, states, settings = anchored(problem)
    fit = Identity("data", {"loss": loss, "hypotheses": None})
    chosen = [s for s in states[:-1] if s.memory.anchor is not None and len(s.memory.anchor.added) > 1]
    assert chosen
    for state in chosen[:3]:
        write_checkpoint(tmp_path / "state", fit, state)
        again = read_checkpoint(tmp_path / "state", fit, X.shape[1], 1)
        for name, array in vars(state.memory.anchor).items():
            assert np.array_equal(getattr(again.memory.anchor, name), array)
        with LocalEngine(2) as engine:
            fitting = Fitting(build_plan(X, y, task=TASKS[loss], engine=engine), engine, settings)
            assert bits(fitting.fit(0.01, resume=again)) == bits(whole)


@pytest.mark.parametrize(
    "damage",
    [
        {"rows": np.array([1, 60])},
        {"rows": np.array([1, 1])},
        {"rows": np.array([1.0, 2.0])},
        {"added": np.array([1])},
        {"added": np.array([3, -1])},
        {"active": np.array([4, 2])},
        {"W": np.array([[1.0], [np.nan]])},
        {"intercept": np.zeros(2)},
    ],
)
def test_an_anchor_that_does_not_fit_is_refused(damage, tmp_path):
    whole = {"active": np.array([2, 4]), "W": np.ones((2, 1)), "intercept": np.zeros(1)}
    whole |= {"rows": np.array([7, 3]), "added": np.array([1, 1])}
    fit = Identity("data", {"hypotheses": None})
    state = FitState(whole["active"], whole["W"], whole["intercept"], 1.0)
    file = tmp_path / "state"
    memory = Memory(3, True, 20, 0.5, 1, 2, True, 0.25, True, 4, True, True, Anchor(**whole))
    write_checkpoint(file, fit, replace(state, memory=memory))
    read = read_checkpoint(file, fit, 60, 1).memory
    assert read.anchor is not None and replace(read, anchor=None) == replace(memory, anchor=None)
    write_checkpoint(file, fit, replace(state, memory=Memory(anchor=Anchor(**whole | damage))))
    with pytest.raises(ModelFormatError, match="do not fit together"):
        read_checkpoint(file, fit, 60, 1)


def test_columns_held_in_vain_are_dropped():
    rng = np.random.default_rng(0)
    with Away(1) as engine:
        X, y = rng.normal(size=(30, 40)), rng.normal(size=30)
        plan = build_plan(X, y, task="regression", engine=engine)
        fitting = Fitting(plan, engine, FitSettings("squared", "l1"))
        held, named = DriverColumns(engine, spare=0), fitting.problem.held
        for rows in ([1, 2, 3, 4, 5, 6, 7, 8], [2], [2, 9], [30, 31], [0, 39]):
            active = np.array(rows)
            places = held.places(active, named)
            for j, place in zip(rows, places, strict=True):
                mine = slice(held.indptr[place], held.indptr[place + 1])
                assert np.array_equal(held.values[mine], X[:, j]) and np.array_equal(held.rows[mine], np.arange(30))
        assert held.indptr[-1] < 30 * 8
