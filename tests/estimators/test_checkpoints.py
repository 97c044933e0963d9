"""Checkpoints: damaged ones, of which the older generation is used or the fit refuses; and when they are written.

Covers: the bits of a fit that goes on, which states are written, what is left after errors and interrupts. Does not
cover: fits of every kind that are killed (test_every_kind.py), paths and folds (test_path_checkpoints.py).
"""

from __future__ import annotations

import os
import shutil
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dboost import BoostedClassifier, ConvergenceWarning, DboostWarning, ModelFormatError, StorageError, UsageError
from dboost.boosting.fit import FitState
from dboost.estimators import checkpoint as module
from dboost.estimators import fitting
from dboost.estimators.checkpoint import MOST_SECONDS, SHARE, CheckpointWriter
from dboost.files.generations import read_generation
from dboost.files.storage import pack_arrays
from tests.estimators.conftest import Killed, after

PARAMS = {"alpha": 0.02, "tol": 1e-9, "features_per_round": 3}
FLIPS = 100


@pytest.fixture
def killed(multiclass, tmp_path):
    """A folder with the states after rounds 3 and 2 of a fit, as one that was killed may leave it."""
    for rounds in (2, 3):
        with pytest.warns(ConvergenceWarning):
            BoostedClassifier(**PARAMS, checkpoint=tmp_path / "state", max_rounds=rounds).fit(*multiclass)
    assert sorted(os.listdir(tmp_path)) == ["state", "state.previous"]
    return tmp_path


@pytest.fixture
def read(killed, multiclass, monkeypatch):
    """Reads the checkpoint of a path as the fit would."""
    seen = []
    monkeypatch.setattr(fitting, "read_checkpoint", lambda path, *fit: seen.append(fit))
    BoostedClassifier(**PARAMS | {"tol": 1e3}, checkpoint=killed / "other").fit(*multiclass)
    monkeypatch.undo()
    (killed / "other").unlink(missing_ok=True)
    return lambda path: module.read_checkpoint(path, *seen[0])


def flips(data, count, seed):
    rng = np.random.default_rng(seed)
    for at, bit in zip(rng.integers(0, len(data), count).tolist(), rng.integers(0, 8, count).tolist(), strict=True):
        broken = bytearray(data)
        broken[at] ^= 1 << bit
        yield bytes(broken)


def bits(state):
    arrays = {name: value.tobytes() for name, value in vars(state).items() if isinstance(value, np.ndarray)}
    return arrays, state.round, state.passes, state.objective, repr(state.history)


def test_any_flipped_bit_of_the_newest_leads_to_the_one_before_it_and_of_both_to_a_refusal(killed, read, tmp_path):
    newest, older = (killed / "state").read_bytes(), (killed / "state.previous").read_bytes()
    expected, before = bits(read(killed / "state")), bits(module_state(read, killed, older))
    assert (expected[1], before[1]) == (3, 2)
    path, previous = tmp_path / "copy", tmp_path / "copy.previous"
    for broken, also_broken in zip(flips(newest, FLIPS, 0), flips(older, FLIPS, 1), strict=True):
        path.write_bytes(broken)
        previous.write_bytes(older)
        with pytest.warns(DboostWarning, match="goes on from the one before it, after round 2"):
            assert bits(read(path)) == before
        # The sound one now has the name of the newest: the next write keeps it.
        assert path.read_bytes() == older and not previous.exists()
        path.write_bytes(newest)
        previous.write_bytes(also_broken)
        assert bits(read(path)) == expected
        path.write_bytes(broken)
        with pytest.raises(ModelFormatError, match="delete the checkpoint to start again"):
            read(path)


def module_state(read, folder, data):
    """The state in the bytes of one generation."""
    alone = folder / "alone"
    alone.write_bytes(data)
    try:
        return read(alone)
    finally:
        alone.unlink()


def test_a_cut_checkpoint_is_damaged(killed, read):
    data, older = (killed / "state").read_bytes(), (killed / "state.previous").read_bytes()
    for length in (0, 5, 100, 2000, -1):
        (killed / "state").write_bytes(data[:length])
        (killed / "state.previous").write_bytes(older)
        with pytest.warns(DboostWarning, match="after round 2"):
            assert read(killed / "state").round == 2
    (killed / "state").write_bytes(data + b"x")
    with pytest.raises(ModelFormatError, match="bytes of"):
        read(killed / "state")


def test_a_fit_that_goes_on_from_the_older_one_ends_with_the_same_bits(multiclass, killed):
    whole = BoostedClassifier(**PARAMS).fit(*multiclass)
    (killed / "state").write_bytes(b"\0" * 1000)
    rounds = []
    model = BoostedClassifier(**PARAMS, checkpoint=killed / "state", callbacks=[lambda r: rounds.append(r["round"])])
    with pytest.warns(DboostWarning, match="is no dboost-checkpoint, or damaged in its first line; the fit goes on"):
        model.fit(*multiclass)
    assert rounds[0] == 3
    assert model.coef_.tobytes() == whole.coef_.tobytes()
    assert model.intercept_.tobytes() == whole.intercept_.tobytes()
    assert (model.duality_gap_, model.n_iter_) == (whole.duality_gap_, whole.n_iter_)
    again = BoostedClassifier(**PARAMS, checkpoint=killed / "state").fit(*multiclass)
    assert again.coef_.tobytes() == whole.coef_.tobytes()


def test_a_damaged_newest_never_takes_the_place_of_the_older_one(multiclass, killed):
    """Killed again and damaged again, before the first round after the damage: the older one is still there."""
    for _ in range(3):
        (killed / "state").write_bytes(b"damaged")
        shutil.copy(killed / "state.previous", killed / "kept")
        with pytest.raises(Killed), pytest.warns(DboostWarning, match="after round 2"):
            BoostedClassifier(**PARAMS, checkpoint=killed / "state", callbacks=[after(1)]).fit(*multiclass)
        assert (killed / "state.previous").read_bytes() == (killed / "kept").read_bytes()


def test_a_deleted_checkpoint_starts_again_whatever_is_beside_it(multiclass, killed):
    (killed / "state").unlink()
    rounds = []
    fit = BoostedClassifier(**PARAMS, checkpoint=killed / "state", callbacks=[lambda r: rounds.append(r["round"])])
    fit.fit(*multiclass)
    assert rounds[0] == 1


def test_an_older_one_of_another_fit_is_refused_and_kept(multiclass, killed):
    (killed / "state").write_bytes(b"damaged")
    older = (killed / "state.previous").read_bytes()
    with pytest.raises(UsageError, match="other settings of alpha"):
        BoostedClassifier(**PARAMS | {"alpha": 0.03}, checkpoint=killed / "state").fit(*multiclass)
    assert (killed / "state.previous").read_bytes() == older


def test_what_a_killed_fit_left_of_a_write_is_deleted_by_the_next_fit(multiclass, killed):
    left = [f".{name}.0123456789ab.tmp" for name in ("state", "other")]
    for name in left:
        (killed / name).write_bytes(b"half")
    BoostedClassifier(**PARAMS, checkpoint=killed / "state").fit(*multiclass)
    assert sorted(os.listdir(killed)) == [left[1], "state", "state.previous"]


def test_a_file_that_is_no_checkpoint_is_told_as_such_and_left_alone(multiclass, tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("a,b\n1,2\n")
    with pytest.raises(ModelFormatError, match="is no dboost-checkpoint.*give another path"):
        BoostedClassifier(**PARAMS, checkpoint=data).fit(*multiclass)
    assert data.read_text() == "a,b\n1,2\n"
    old = tmp_path / "old"
    old.write_bytes(pack_arrays({"W": np.zeros(3)}, {"state": "{}"}))
    with pytest.raises(ModelFormatError, match="of an earlier version of dboost"):
        BoostedClassifier(**PARAMS, checkpoint=old).fit(*multiclass)
    with pytest.raises(ModelFormatError, match="is 'dboost-checkpoint 5', this version reads 'dboost-checkpoint 9'"):
        BoostedClassifier(**PARAMS, checkpoint=tmp_path / "state").fit(*multiclass)
        read_generation(tmp_path / "state", "dboost-checkpoint 9", "")


def test_a_checkpoint_that_cannot_be_written_is_refused_before_the_fit(multiclass, tmp_path):
    seen = []
    for path, said in (
        (tmp_path / "no" / "folder" / "state", "folder of the checkpoint is not there"),
        (tmp_path, "a folder has this name"),
        ("/proc/state", "cannot write"),
    ):
        with pytest.raises(StorageError, match=said):
            BoostedClassifier(alpha="quick", checkpoint=path, callbacks=[seen.append]).fit(*multiclass)
    assert seen == []
    assert os.listdir(tmp_path) == []


# ---- by time: the last one in any case, and at little cost -----------------------------------------------------------


def numbered(number: int) -> FitState:
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
            keeper.update(numbered(number))
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
            keeper.update(numbered(number))
        raise error
    assert written == [1, 3]


def test_a_checkpoint_that_cannot_be_written_is_told_once() -> None:
    clock, calls = Clock(), []

    def broken(kept: FitState) -> None:
        calls.append(kept.round)
        raise StorageError("no space")

    keeper = CheckpointWriter(broken, clock)
    with pytest.raises(StorageError, match="no space"), keeper.closing():
        keeper.update(numbered(1))
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
            return BoostedClassifier(**settings | {"max_rounds": rounds}, checkpoint=path).fit(X, y)

    fit(300)
    # a file and its folder
    assert writes[0] <= 2 * 40
    monkeypatch.setattr(os, "fsync", flush)
    resumed = fit(320)
    path.unlink()
    whole = fit(320)
    assert resumed.n_iter_ == whole.n_iter_ == 320 and resumed.coef_.tobytes() == whole.coef_.tobytes()
