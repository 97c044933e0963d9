"""Damaged checkpoints: the older generation is used, with the bits of the undisturbed fit, or the fit refuses."""

from __future__ import annotations

import os
import shutil
import warnings

import numpy as np
import pytest

from dboost import BoostedClassifier, ConvergenceWarning, DboostWarning, ModelFormatError, StorageError, UsageError
from dboost.estimators import checkpoint as module
from dboost.estimators import fitting
from dboost.files.generations import read_generation
from dboost.files.storage import pack_arrays

PARAMS = {"alpha": 0.02, "tol": 1e-9}
FLIPS = 100


class Killed(BaseException):
    """As SIGINT: nothing in a fit may catch it."""


def killer(record):
    if record["round"] == 3:
        raise Killed


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


@pytest.mark.parametrize("length", [0, 5, 100, 2000, -1])
def test_a_cut_checkpoint_is_damaged(killed, read, length):
    data = (killed / "state").read_bytes()
    (killed / "state").write_bytes(data[:length])
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
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = BoostedClassifier(**PARAMS, checkpoint=killed / "state").fit(*multiclass)
    assert again.coef_.tobytes() == whole.coef_.tobytes()


def test_a_damaged_newest_never_takes_the_place_of_the_older_one(multiclass, killed):
    """Killed again and damaged again, before the first round after the damage: the older one is still there."""
    for _ in range(3):
        (killed / "state").write_bytes(b"damaged")
        shutil.copy(killed / "state.previous", killed / "kept")
        with pytest.raises(Killed), pytest.warns(DboostWarning, match="after round 2"):
            BoostedClassifier(**PARAMS, checkpoint=killed / "state", callbacks=[killer]).fit(*multiclass)
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
