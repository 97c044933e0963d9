"""How far work has come, and how long it still takes: estimates, the line of a stage, what passes tell.

Covers: estimates on gaps that fall in known ways, words, when something is said and where, passes on both engines.
Does not cover: the line in a notebook (tests/notebooks).
"""

from __future__ import annotations

import io
import math
import time
from typing import Any

import numpy as np
import pytest

import dboost
from dboost.engine.local import LocalEngine
from dboost.progress import Remaining, of_share, telling, words
from pipelines import console
from pipelines.console import Console, SeveralFits, StageLine


def test_a_gap_that_falls_by_a_factor_ends_when_it_is_said() -> None:
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
def test_nothing_is_said_where_nothing_is_known(gaps: list[float]) -> None:
    left = Remaining(1e-4)
    assert all(left.after(float(at), gap) is None for at, gap in enumerate(gaps, 1))


def test_a_gap_that_rises_for_a_round_does_not_spoil_the_estimate() -> None:
    left = Remaining(1e-4)
    for second, gap in enumerate([1e-1, 3e-2, 9e-1, 3e-3, 1e-3, 9e-4, 3e-4], 1):
        estimate = left.after(float(second), gap)
    assert estimate is not None and 0 < estimate < 10


def test_estimates_of_a_real_fit_are_within_a_factor_of_three_once_it_is_half_done() -> None:
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


def test_words() -> None:
    said = [words(value) for value in (None, math.inf, 0.1, 12.0, 43.0, 95.0, 3_500.0, 9_000.0, 1e7)]
    assert said == [
        "",
        "",
        "a few seconds",
        "about 10 s",
        "about 45 s",
        "about 2 min",
        "about 58 min",
        "about 2 h",
        "days",
    ]
    assert of_share(1, 100, 50.0) is None and of_share(25, 100, 10.0) == pytest.approx(30.0)


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    # That of the module alone: event loops, on which clusters of other tests run, go by the one of Python.
    monkeypatch.setattr(console, "monotonic", clock.monotonic)
    return clock


def line(clock: Clock, in_place: bool = False) -> tuple[StageLine, list[str], list[dict[str, Any]]]:
    said: list[str] = []
    events: list[dict[str, Any]] = []
    made = StageLine(
        "prepare",
        write=said.append,
        say=said.append,
        event=lambda name, **fields: events.append({"event": name, **fields}),
        in_place=in_place,
    )
    return made, said, events


def test_a_log_hears_of_a_long_stage_at_growing_pauses(clock: Clock) -> None:
    made, said, events = line(clock)
    for second in range(200):
        clock.now = float(second)
        made.passed("count-terms", second, 200)
    assert said[0] == "prepare: counting terms, 2 of 200, 2 s"
    assert said[1] == "prepare: counting terms, 6 of 200, 6 s, about 3 min left of it"
    pauses = np.diff([int(text.split(", ")[2].removesuffix(" s")) for text in said])
    assert pauses.tolist() == [4, 8, 16, 32, 60, 60] and len(events) == len(said)


def test_a_short_stage_says_nothing(clock: Clock) -> None:
    made, said, events = line(clock)
    for at in range(20):
        clock.now = at / 20
        made.passed("count-terms", at, 20)
    assert said == events == []


def test_a_terminal_has_one_line_no_wider_than_it_is(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    made, said, _ = line(clock, in_place=True)
    for at in range(100):
        clock.now = at / 10
        made.passed("write-features", at, 100)
    made.clear()
    assert len(said) > 20 and all("\n" not in text for text in said)
    assert max(len(text.removeprefix("\r\x1b[2K")) for text in said) <= 39 and said[-1] == "\r\x1b[2K"


def test_several_fits_count_weaker_strengths_for_more(clock: Clock) -> None:
    made, said, events = line(clock)
    told = SeveralFits(made, strengths=4, folds=2)
    clock.now = 10.0
    told({"strength": 3, "active_rows": 7, "round": 1})
    clock.now = 110.0
    told({"fold": 0, "strength": 2, "active_rows": 5, "round": 1})
    assert said[0] == "prepare: fitting, strength 4 of 4, 7 features, 10 s"
    assert (
        said[1] == "prepare: fitting, without fold 1 of 2, strength 3 of 4, 5 features, 110 s, about 3 min left of it"
    )
    assert events[1]["share"] == pytest.approx((9 + 5) / (3 * 14), abs=1e-4)


def test_a_stage_of_the_console_shows_passes_and_is_clean_afterwards(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.StringIO()
    console = Console("plain", out=out, err=io.StringIO())

    def slow(item: int) -> int:
        clock.now += 1.0
        return item

    with console.stage("prepare"), LocalEngine(1) as engine:
        assert engine.map(slow, list(range(5)), name="count-terms") == list(range(5))
    assert "prepare: counting terms, 2 of 5, 2 s, a few seconds left of it" in out.getvalue()
    told: list[int] = []
    with LocalEngine(1) as engine:
        engine.map(slow, [1], name="count-terms")
    assert told == []


def test_workers_tell_too(one_worker: Any) -> None:
    from dboost.engine.dask.engine import DaskEngine

    told: list[tuple[str, int, int]] = []
    with telling(lambda *so_far: told.append(so_far)), DaskEngine(one_worker) as engine:
        engine.map(time.sleep, [0.4] * 4, name="naps")
    assert told and all(name == "naps" and of == 4 for name, _, of in told)
    counts = [done for _, done, _ in told]
    assert counts == sorted(counts) and 0 < counts[-1] <= 4


def test_rounds_say_what_is_left_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    console = Console("plain", out=out, err=io.StringIO())
    clock = Clock()
    monkeypatch.setattr("pipelines.console.monotonic", clock.monotonic)
    with console.rounds("training", tol=1e-9) as told:
        for at in range(1, 9):
            clock.now = 10.0 * at
            told({"round": at, "objective": 1.0, "gap": 10.0**-at, "active_rows": 3})
    lines = out.getvalue().splitlines()
    assert lines[-1].endswith("about 10 s left") and "left" not in lines[3]
