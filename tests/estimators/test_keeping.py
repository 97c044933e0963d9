"""Checkpoints come by time, the last one in any case, and never cost much.

Covers: which states are written, what is left after errors and interrupts. Does not cover: the file
(tests/estimators/test_persistence.py).
"""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dboost
from dboost.boosting.fit import FitState
from dboost.errors import ConvergenceWarning, StorageError
from dboost.estimators.checkpoint import MOST_SECONDS, SHARE, CheckpointWriter


def state(number: int) -> FitState:
    return FitState(np.zeros(0, np.int64), np.zeros((0, 1)), np.zeros(1), 0.0, round=number)


class Clock:
    """A clock that others move."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def run(every: float, cost: float, rounds: int) -> tuple[list[int], Clock]:
    """Rounds written when each takes `every` seconds and a write `cost`."""
    clock, written = Clock(), []

    def write(kept: FitState) -> None:
        written.append(kept.round)
        clock.now += cost

    keeper = CheckpointWriter(write, clock)
    with keeper.closing():
        for number in range(1, rounds + 1):
            clock.now += every
            keeper.update(state(number))
    return written, clock


def test_long_rounds_are_all_written() -> None:
    assert run(every=2.0, cost=0.01, rounds=9)[0] == list(range(1, 10))


def test_writing_takes_a_share_of_the_time_and_the_last_state_is_written() -> None:
    written, clock = run(every=0.001, cost=0.01, rounds=5_000)
    assert written[0] == 1 and written[-1] == 5_000
    assert (len(written) - 2) * 0.01 <= SHARE * clock.now


def test_a_state_is_never_older_than_a_minute_and_a_round() -> None:
    written, _ = run(every=1.0, cost=30.0, rounds=300)
    assert max(np.diff(written)) <= MOST_SECONDS + 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_after_an_error_or_an_interrupt_the_last_state_is_there(error: type[BaseException]) -> None:
    clock, written = Clock(), []
    keeper = CheckpointWriter(lambda kept: written.append(kept.round) or setattr(clock, "now", clock.now + 1.0), clock)
    with pytest.raises(error), keeper.closing():
        for number in (1, 2, 3):
            keeper.update(state(number))
        raise error
    assert written == [1, 3]


def test_a_checkpoint_that_cannot_be_written_is_told_once() -> None:
    clock, calls = Clock(), []

    def broken(kept: FitState) -> None:
        calls.append(kept.round)
        raise StorageError("no space")

    keeper = CheckpointWriter(broken, clock)
    with pytest.raises(StorageError, match="no space"), keeper.closing():
        keeper.update(state(1))
    assert calls == [1]


def test_a_literal_loop_does_not_wait_for_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    y = X[:, 0] + 0.5 * rng.standard_normal(60) > 0
    writes = [0]
    flush = os.fsync

    def slow(descriptor: Any) -> None:
        writes[0] += 1
        time.sleep(0.02)
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", slow)
    settings = {"penalty": "l1", "alpha": 1e-3, "update": "gradboost", "sweeps": 1, "max_rounds": 300, "tol": 1e-12}
    path = tmp_path / "state"

    def fit(rounds: int) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return dboost.BoostedClassifier(**settings | {"max_rounds": rounds}, checkpoint=path).fit(X, y)

    fit(300)
    # a file and its folder
    assert writes[0] <= 2 * 40
    monkeypatch.setattr(os, "fsync", flush)
    resumed = fit(320)
    path.unlink()
    whole = fit(320)
    assert resumed.n_iter_ == whole.n_iter_ == 320 and resumed.coef_.tobytes() == whole.coef_.tobytes()
