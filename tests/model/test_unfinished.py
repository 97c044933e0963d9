"""What killed processes left of their writes is deleted; what a living one writes is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dboost.errors import StorageError
from dboost.files.storage import check_writable, write_file
from dboost.files.unfinished import clear_abandoned, own_file

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


def test_other_names_are_left_alone(tmp_path):
    others = [".state.0123456789ab.tmp.x", "state.0123456789ab.tmp", ".other.0123456789ab.tmp", ".state.short.tmp"]
    for name in others:
        (tmp_path / name).write_text("mine")
    (tmp_path / "real").write_text("mine")
    (tmp_path / ".state.0123456789ab.tmp").symlink_to(tmp_path / "real")
    assert clear_abandoned(tmp_path / "state") == []
    assert clear_abandoned(tmp_path / "none" / "state") == []
    assert len(os.listdir(tmp_path)) == len(others) + 2


def test_a_writer_that_loses_its_new_file_to_a_clean_up_takes_another(tmp_path, monkeypatch):
    """The clean-up of another process may come between the creation of a file and its lock."""
    import dboost.files.unfinished as module

    lock, seen = module._lock, []

    def late(descriptor, *, wait):
        if wait and not seen:
            seen.extend(clear_abandoned(tmp_path / "state"))
        return lock(descriptor, wait=wait)

    monkeypatch.setattr(module, "_lock", late)
    beside, handle = own_file(tmp_path / "state")
    with handle:
        assert len(seen) == 1 and beside.exists() and beside.name != seen[0]
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
