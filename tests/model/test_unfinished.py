"""What killed processes left of their files and folders goes; what a living one writes stays.

Covers: ``dboost.files.unfinished`` and the places that make output folders.
Does not cover: how a filled folder gets its name (test_storage.py, tests/data/test_prepare.py).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dboost
from dboost.data.prepared import prepare
from dboost.data.prepared.prepare import prepare_text
from dboost.errors import StorageError
from dboost.files.storage import check_writable, write_file, write_folder
from dboost.files.unfinished import clear_abandoned, own_file, own_folder
from tests.model.models import make

ROOT = Path(__file__).resolve().parents[2]
# A process that stops in the middle of a write, where the content is not yet flushed.
STOPS = """
import os, sys, time
from dboost.files import storage
def fsync(descriptor):
    print("writing", flush=True)
    time.sleep(60)
os.fsync = fsync
storage.write_file(sys.argv[1], b"half")
"""


def stopped(path):
    """A process that has begun to write `path` and goes no further."""
    command = [sys.executable, "-c", STOPS, str(path)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"writing\n"
    return process


def test_what_a_killed_process_left_is_deleted_and_what_a_living_one_writes_is_not(tmp_path):
    path = tmp_path / "state"
    dead, alive = stopped(path), stopped(path)
    try:
        assert len(os.listdir(tmp_path)) == 2
        os.kill(dead.pid, signal.SIGKILL)
        dead.wait(timeout=30)
        assert len(clear_abandoned(path)) == 1
        assert len(os.listdir(tmp_path)) == 1
        assert clear_abandoned(path) == []
    finally:
        for process in (dead, alive):
            process.kill()
            process.wait(timeout=30)
            process.stdout.close()
    assert len(clear_abandoned(path)) == 1
    assert os.listdir(tmp_path) == []


def test_other_names_and_kinds_are_left_alone(tmp_path):
    files = [".state.0123456789ab.tmp.x", "state.0123456789ab.tmp", ".other.0123456789ab.tmp", ".state.short.tmp"]
    files += ["real", ".state.eeeeeeeeeeee.partial"]
    folders = [".states.0123456789ab.partial", ".state.x.0123456789ab.partial", ".state.0123456789ab.old"]
    folders += [".state.mine.partial", "state.0123456789ab.partial", ".state.ffffffffffff.tmp"]
    for name in files:
        (tmp_path / name).write_text("mine")
    for name in folders:
        (tmp_path / name).mkdir()
    (tmp_path / ".state.0123456789ab.tmp").symlink_to(tmp_path / "real")
    (tmp_path / ".state.ffffffffffff.partial").symlink_to(tmp_path / folders[0])
    kept = sorted(os.listdir(tmp_path))
    (tmp_path / ".state.dddddddddddd.partial").mkdir()
    assert clear_abandoned(tmp_path / "state") == [".state.dddddddddddd.partial"]
    assert clear_abandoned(tmp_path / "none" / "state") == []
    assert sorted(os.listdir(tmp_path)) == kept


@contextlib.contextmanager
def file_of(target: Path) -> Iterator[Path]:
    made, handle = own_file(target)
    with handle:
        yield made


@pytest.mark.parametrize("own", [file_of, own_folder])
def test_a_writer_that_loses_what_it_made_to_a_clean_up_makes_another(tmp_path, monkeypatch, own):
    """The clean-up of another process may come between the creation of a file or folder and its lock."""
    flock, seen = fcntl.flock, []

    def late(descriptor, how):
        if not how & fcntl.LOCK_NB and not seen:
            seen.extend(clear_abandoned(tmp_path / "state"))
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with own(tmp_path / "state") as made:
        assert len(seen) == 1 and made.exists() and made.name != seen[0]
        assert clear_abandoned(tmp_path / "state") == []


def test_the_old_file_keeps_a_second_name(tmp_path, monkeypatch):
    for how in ("link", "copy"):
        path, keep = tmp_path / how, tmp_path / f"{how}.previous"
        for content in (b"1", b"2", b"3"):
            write_file(path, content[:0], content, keep=keep)
        assert (path.read_bytes(), keep.read_bytes()) == (b"3", b"2")
        path.unlink()
        write_file(path, b"4", keep=keep)
        assert not keep.exists()

        def no_links(*names):
            raise OSError(95, "Operation not supported")

        monkeypatch.setattr(os, "link", no_links)


def test_whether_a_place_can_be_written_is_found_and_nothing_stays(tmp_path):
    check_writable(tmp_path / "a" / "b" / "out")
    check_writable(tmp_path / "out")
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file" / "out", "/proc/out", "/proc/a/b/out", tmp_path / ("x" * 300)):
        with pytest.raises(StorageError, match="cannot write"):
            check_writable(path)
    assert os.listdir(tmp_path) == ["file"]


def test_a_write_holds_its_lock_until_the_file_has_its_name(tmp_path, monkeypatch):
    replace = os.replace

    def watched(source, target):
        assert clear_abandoned(tmp_path / "state") == []
        replace(source, target)

    monkeypatch.setattr(os, "replace", watched)
    write_file(tmp_path / "state", b"x")
    assert os.listdir(tmp_path) == ["state"]


# ---- folders ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("documents") / "d.parquet"
    pq.write_table(pa.table({"text": ["red apple", "blue sky", "red sky"] * 5}), path)
    return path


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(".partial"))


@pytest.mark.parametrize("kind", ["model", "prepare"])
def test_a_dead_writer_s_folder_goes_and_those_that_are_being_filled_stay(
    kind: str, documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, seen = tmp_path / "out", []

    def filling() -> None:
        clear_abandoned(out)
        seen.append(leftovers(tmp_path))

    def counting(*args: object) -> object:
        filling()
        return count_chunk(*args)

    count_chunk = prepare.count_chunk
    monkeypatch.setattr(prepare, "count_chunk", counting)
    with own_folder(out) as running:
        # the system lifts the locks of a process that ends, as that of the one which is killed above
        (tmp_path / ".out.0123456789ab.partial").mkdir()
        if kind == "model":
            with write_folder(out, marker="m", force=True) as folder:
                (folder / "m").write_text("whole")
                filling()
        else:
            prepare_text(str(documents), str(out), text="text", min_df=1, max_df=1.0, force=True)
        assert len(seen[0]) == 2 and running.name in seen[0] and ".out.0123456789ab.partial" not in seen[0]
        assert leftovers(tmp_path) == [running.name] and out.is_dir()


def test_saving_a_model_clears_what_was_left_of_it(tmp_path: Path) -> None:
    (tmp_path / ".model.0123456789ab.partial").mkdir()
    (tmp_path / ".model.0123456789ab.partial" / "half").write_text("half")
    make().save(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


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
