"""What a killed process leaves of a folder goes with the next one; what a running process fills stays.

Covers: ``dboost.files.unfinished`` and the places that make output folders.
Does not cover: how a filled folder gets its name (tests/model/test_storage.py, tests/data/test_prepare.py).
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dboost
from dboost.data.prepared.prepare import prepare_text
from dboost.files.storage import check_writable, write_folder
from dboost.files.unfinished import clear_abandoned, own_folder

ROOT = Path(__file__).resolve().parent.parent.parent
# Fills a folder by the function that is named, says where, and waits.
FILLS = """
import sys, time
from pathlib import Path
from dboost.data.prepared import prepare
from dboost.files.storage import write_folder

def wait(*args, **kwargs):
    print("filling", flush=True)
    time.sleep(100)

if sys.argv[1] == "model":
    with write_folder(sys.argv[2], marker="m") as folder:
        (folder / "half").write_text("half")
        wait()
else:
    prepare.count_chunk = wait
    prepare.prepare_text(sys.argv[3], sys.argv[2], text="text", min_df=1, max_df=1.0)
"""


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("documents") / "d.parquet"
    pq.write_table(pa.table({"text": ["red apple", "blue sky", "red sky"] * 5}), path)
    return path


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(".partial"))


@pytest.mark.parametrize("kind", ["model", "prepare"])
def test_a_dead_process_s_folder_goes_and_a_running_one_s_stays(kind: str, documents: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def begun() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", FILLS, kind, str(out), str(documents)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None and process.stdout.readline() == "filling\n"
        return process

    def write() -> None:
        if kind == "model":
            with write_folder(out, marker="m", force=True) as folder:
                (folder / "m").write_text("whole")
        else:
            prepare_text(str(documents), str(out), text="text", min_df=1, max_df=1.0, force=True)

    with begun() as dead, begun() as running:
        try:
            dead.send_signal(signal.SIGKILL)
            dead.wait(10)
            before = leftovers(tmp_path)
            assert len(before) == 2
            write()
            after = leftovers(tmp_path)
            assert len(after) == 1 and set(after) < set(before)
            write()
            assert leftovers(tmp_path) == after and out.is_dir()
        finally:
            running.kill()
            running.wait(10)
    write()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_saving_a_model_clears_what_was_left_of_it(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((40, 3))
    model = dboost.BoostedClassifier(alpha="quick").fit(X, X[:, 0] > 0)
    (tmp_path / ".model.0123456789ab.partial").mkdir()
    (tmp_path / ".model.0123456789ab.partial" / "half").write_text("half")
    model.save(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_only_folders_of_this_output_are_cleared(tmp_path: Path) -> None:
    other = [
        ".models.0123456789ab.partial",
        ".model.x.0123456789ab.partial",
        ".model.0123456789ab.old",
        ".model.mine.partial",
        "model.0123456789ab.partial",
    ]
    for name in other:
        (tmp_path / name).mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / ".model.ffffffffffff.partial").symlink_to(elsewhere)
    (tmp_path / ".model.eeeeeeeeeeee.partial").write_text("a file")
    (tmp_path / ".model.dddddddddddd.partial").mkdir()
    clear_abandoned(tmp_path / "model")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {*other, "elsewhere", ".model.ffffffffffff.partial", ".model.eeeeeeeeeeee.partial"}
    clear_abandoned(tmp_path / "nothing" / "here")


def test_two_threads_fill_the_same_output_side_by_side(tmp_path: Path) -> None:
    with own_folder(tmp_path / "out") as mine:
        other: list[bool] = []

        def fill() -> None:
            with own_folder(tmp_path / "out") as theirs:
                other.append(theirs.is_dir() and mine.is_dir() and theirs != mine)
                (theirs / "x").write_text("x")
                os.rename(theirs, tmp_path / "theirs")

        thread = threading.Thread(target=fill)
        thread.start()
        thread.join()
        assert other == [True] and mine.is_dir()
        os.rename(mine, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "theirs"]


def test_a_folder_taken_for_a_dead_one_s_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flock, calls = fcntl.flock, []

    def hurried(descriptor: int, how: int) -> None:
        calls.append(how)
        if len(calls) == 1:
            next(tmp_path.glob(".out.*.partial")).rmdir()
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", hurried)
    with own_folder(tmp_path / "out") as folder:
        assert folder.is_dir() and len(calls) == 2


def test_folders_are_made_where_the_file_system_has_no_locks_and_nothing_is_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without(descriptor: int, how: int) -> None:
        raise OSError(95, "no locks here")

    monkeypatch.setattr(fcntl, "flock", without)
    (tmp_path / ".out.0123456789ab.partial").mkdir()
    with own_folder(tmp_path / "out") as folder:
        assert folder.is_dir()
    assert [path.name for path in tmp_path.iterdir() if path != folder] == [".out.0123456789ab.partial"]


def test_what_a_look_whether_a_place_can_be_written_left_is_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, a process that was killed between the two calls of the look left a folder that nobody removed."""
    with monkeypatch.context() as broken:
        broken.setattr(Path, "rmdir", lambda path: (_ for _ in ()).throw(OSError(5, "Input/output error")))
        with pytest.raises(dboost.StorageError, match="Input/output"):
            check_writable(tmp_path / "out")
    assert len(leftovers(tmp_path)) == 1
    clear_abandoned(tmp_path / "out")
    assert leftovers(tmp_path) == []
