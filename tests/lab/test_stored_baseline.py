"""The stored baseline: a kernel that takes longer is caught, an unchanged one is not; the file, the words, exit codes.

Does not cover: the figures (``python -m lab bench compare``), or commits in turn (``test_bench``).
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dboost.errors import DataError, UsageError
from dboost.hypotheses.stumps import histograms
from lab.benchmarks import beside, command, kept
from lab.benchmarks.beside import LEAST_MARGIN, MOST, TURNS, VISITS, Measuring, Ratio, Standing, standings
from lab.benchmarks.kept import Baseline
from lab.benchmarks.small import PROBLEMS

STEADY = Ratio(ratio=2.0, noise=0.01, seconds=0.2, beside=0.1)


@pytest.mark.full
def test_a_kernel_that_is_run_more_often_is_caught_and_an_unchanged_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a wide margin: what else the machine does is no part of the test."""
    stored = beside.measured(["stumps"], visits=1, scale=0.1)
    (same,) = standings(stored, beside.measured(["stumps"], visits=1, scale=0.1), least=1.0)
    assert not same.worse, same
    swept = histograms.split_sums_of_one

    def slowed(*arguments: Any) -> None:
        *data, bins = arguments
        for _ in range(300):
            swept(*data, bins.copy())
        swept(*data, bins)

    monkeypatch.setattr(histograms, "split_sums_of_one", slowed)
    (slow,) = standings(stored, beside.measured(["stumps"], visits=1, scale=0.1), least=1.0)
    assert slow.worse and slow.change > same.change, slow


def test_what_slows_both_is_no_change_and_one_turn_is_no_noise() -> None:
    ours, other = [1.0, 1.1, 0.9, 1.05, 0.95], [0.5, 0.55, 0.45, 0.525, 0.475]
    found = Ratio.of(ours, other, 3)
    assert found.ratio == pytest.approx(2.0) and found.noise == pytest.approx(0.0, abs=1e-12)
    doubled = Ratio.of([2 * x for x in ours], [2 * x for x in other], 3)
    assert Standing("a", found, doubled).change == pytest.approx(1.0)
    interrupted = Ratio.of([1.0, 1.1, 9.0, 1.05, 0.95], other, 3)
    assert interrupted.ratio == pytest.approx(2.0) and interrupted.noise == pytest.approx(0.0, abs=1e-12)


def test_a_verdict_is_by_the_noise_of_both() -> None:
    for ratio, noise, worse, better in [
        (2.0, 0.01, False, False),
        (2.19, 0.01, False, False),
        (2.3, 0.01, True, False),
        (2.3, 0.07, False, False),
        (4.0, 0.05, True, False),
        (1.7, 0.01, False, True),
        (float("nan"), 0.01, True, False),
    ]:
        found = Standing("a", STEADY, replace(STEADY, ratio=ratio, noise=noise))
        assert (found.worse, found.better) == (worse, better)
        assert found.margin >= LEAST_MARGIN


def test_what_seems_slower_is_visited_until_it_is_decided() -> None:
    """By times that are made up: a loss of a fifth under noise that hides it in three visits, and no loss."""
    clock = iter(np.random.default_rng(1).normal(size=10_000))

    class Scripted(Measuring):
        def __init__(self, slower: float) -> None:
            super().__init__()
            self.slower, self.visits = slower, 0

        def visit(self, names: Any, visits: int) -> None:
            for name in names:
                for _ in range(visits):
                    ours = [2.0 * self.slower * (1.0 + 0.15 * next(clock)) for _ in range(TURNS)]
                    self.add(name, ours, [1.0] * TURNS)
            self.visits += visits

    def caught(slower: float) -> tuple[int, int, int]:
        """Of ten comparisons: called worse, by the first visits alone, and the most visits of one."""
        first = after = most = 0
        for _ in range(10):
            alone, measuring = Scripted(slower), Scripted(slower)
            alone.visit(["a"], VISITS)
            first += standings({"a": STEADY}, alone.ratios())[0].worse
            after += standings({"a": STEADY}, beside.compared({"a": STEADY}, measuring, ["a"]))[0].worse
            most = max(most, measuring.visits)
        return after, first, most

    after, first, most = caught(1.25)
    assert after >= first + 4 and VISITS < most <= MOST
    assert caught(3.0) == (10, 10, VISITS) and caught(1.0)[0] <= 1


def stored(**ratios: Ratio) -> Baseline:
    return Baseline("abc", "2026-11-26", {"processor": "p"}, {"numpy": "2"}, ratios)


def test_what_is_written_is_read_and_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    with pytest.raises(UsageError, match="no stored baseline"):
        kept.read(path)
    kept.write(stored(a=STEADY), path)
    assert kept.read(path) == stored(a=STEADY)
    good = json.loads(path.read_text())
    zero = {"ratio": -1.0, "noise": 0.1, "seconds": 1.0, "beside": 1.0}
    wrong = {"schema": 9}, {"ratios": {}}, {"ratios": {"a": {"ratio": 1}}}, {"ratios": {"a": zero}}, {"more": 1}
    for text in ("no", *(json.dumps(good | change) for change in wrong)):
        path.write_text(text)
        with pytest.raises(DataError, match="baseline.json"):
            kept.read(path)


def test_the_committed_baseline_has_every_problem_and_names_no_place() -> None:
    found = kept.read(kept.FILE)
    assert set(found.ratios) == set(PROBLEMS)
    assert "/" not in "".join([*found.machine.values(), *found.versions.values(), found.commit])


def test_what_is_slower_is_said_with_the_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "baseline.json"
    kept.write(stored(a=STEADY, b=STEADY), path)
    now = {"a": STEADY, "b": replace(STEADY, ratio=2.5)}
    monkeypatch.setattr(beside, "compared", lambda *_, **__: now)
    said: list[str] = []
    assert kept.compare(said.append, path=path) == 1
    assert "too slow: b takes 1.25 times as long as stored; up to 1.10 may be noise" in said
    now["b"] = STEADY
    assert kept.compare(said.append, path=path) == 0
    now["c"] = STEADY
    with pytest.raises(DataError, match="no problem 'c'"):
        kept.compare(said.append, path=path)
    monkeypatch.setattr(kept, "compare", lambda: 1)
    assert command.main(["compare"]) == 1
