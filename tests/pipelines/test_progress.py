"""How far work has come, and how long it still takes: estimates, and what passes tell."""

import io
import math
import time

import numpy as np
import pytest

import dboost
from dboost.engine.local import LocalEngine
from dboost.progress import Remaining, telling
from pipelines import console
from pipelines.console import Console


def test_a_gap_that_falls_by_a_factor_ends_when_it_is_said():
    left = Remaining(1e-6)
    for second in range(1, 30):
        gap = 10.0 ** (-second / 5)
        estimate = left.after(float(second), gap)
        if estimate is not None:
            assert estimate == pytest.approx(30 - second, abs=1e-6)
    assert estimate is not None


@pytest.mark.parametrize(
    "gaps", [[0.5] * 20, [math.nan] * 20, [math.inf] * 20, [0.5, 0.49, 0.48, 0.47], [0.9, 0.1, 0.01], [0.0] * 9]
)
def test_nothing_is_said_where_nothing_is_known(gaps):
    left = Remaining(1e-4)
    assert all(left.after(float(at), gap) is None for at, gap in enumerate(gaps, 1))


@pytest.mark.full
def test_estimates_of_a_real_fit_are_within_a_factor_of_three_once_it_is_half_done():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 60))
    y = (X[:, :20].sum(axis=1) + rng.normal(size=400) > 0).astype(int)
    seen: list[tuple[int, float | None]] = []
    left = Remaining(2e-3)
    fit = dboost.BoostedClassifier(
        update="gradboost",
        sweeps=1,
        alpha=0.01,
        tol=2e-3,
        callbacks=[lambda record: seen.append((record["round"], left.after(float(record["round"]), record["gap"])))],
    ).fit(X, y)
    total = fit.n_iter_
    late = [(at, found) for at, found in seen if found is not None and total / 2 < at < 0.9 * total]
    assert len(late) > 5
    ratios = [found / (total - at) for at, found in late]
    assert 1 / 3 < float(np.median(ratios)) < 3


class Clock:
    now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    # That of the module alone: event loops, on which clusters of other tests run, go by the one of Python.
    monkeypatch.setattr(console, "monotonic", clock.monotonic)
    return clock


def test_a_stage_of_the_console_shows_passes_and_is_clean_afterwards(clock):
    out = io.StringIO()
    console = Console("plain", out=out, err=io.StringIO())

    def slow(item):
        clock.now += 1.0
        return item

    with console.stage("prepare"), LocalEngine(1) as engine:
        assert engine.map(slow, list(range(5)), name="count-terms") == list(range(5))
    assert "prepare: counting terms, 2 of 5, 2 s, a few seconds left of it" in out.getvalue()
    # what is done outside of a stage is not shown
    shown = out.getvalue()
    with LocalEngine(1) as engine:
        engine.map(slow, list(range(5)), name="count-terms")
    assert out.getvalue() == shown


def test_workers_tell_too(one_worker):
    from dboost.engine.dask.engine import DaskEngine

    told: list[tuple[str, int, int]] = []
    with telling(lambda *so_far: told.append(so_far)), DaskEngine(one_worker) as engine:
        engine.map(time.sleep, [0.4] * 4, name="naps")
    assert told and all(name == "naps" and of == 4 for name, _, of in told)
    counts = [done for _, done, _ in told]
    assert counts == sorted(counts) and 0 < counts[-1] <= 4


def test_rounds_say_what_is_left_after_a_while(clock):
    out = io.StringIO()
    console = Console("plain", out=out, err=io.StringIO())
    with console.rounds("training", tol=1e-9) as told:
        for at in range(1, 9):
            clock.now = 10.0 * at
            told({"round": at, "objective": 1.0, "gap": 10.0**-at, "features": 3})
    lines = out.getvalue().splitlines()
    assert lines[-1].endswith("about 10 s left") and "left" not in lines[3]
