"""The stored baseline: a kernel that takes longer is caught, an unchanged one is not; the file, the words, exit codes.

Does not cover: the figures (``python -m lab bench compare``), or commits in turn (``test_bench``).
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dboost.errors import DataError, UsageError
from dboost.hypotheses.stumps import histograms
from lab.benchmarks import beside, command, kept
from lab.benchmarks.beside import LEAST_MARGIN, Ratio, Standing, standings
from lab.benchmarks.kept import Baseline
from lab.benchmarks.small import PROBLEMS

STEADY = Ratio(ratio=2.0, noise=0.01, seconds=0.2, beside=0.1)


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
