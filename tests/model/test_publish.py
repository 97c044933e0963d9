"""A finished folder takes the name of an older one: at every moment one of the two has it."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from dboost.files import publish as module
from dboost.files.publish import exchanged, publish


def made(path: Path, word: str) -> Path:
    path.mkdir()
    (path / "word").write_text(word)
    return path


@pytest.mark.parametrize("exchanges", [True, False])
def test_the_new_folder_has_the_name_and_nothing_else_stays(tmp_path, monkeypatch, exchanges):
    if not exchanges:
        monkeypatch.setattr(module, "exchanged", lambda one, other: False)
    for word in ("first", "second"):
        publish(made(tmp_path / ".out.0123456789ab.partial", word), tmp_path / "out")
        assert (tmp_path / "out" / "word").read_text() == word
        assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_whoever_looks_meanwhile_always_sees_a_folder(tmp_path):
    made(tmp_path / "out", "0")
    probe = made(tmp_path / ".probe.partial", "x"), made(tmp_path / "probe", "y")
    if not exchanged(*probe):
        pytest.skip("this file system exchanges no names")
    over, seen = threading.Event(), []

    def look() -> None:
        while not over.is_set():
            seen.append((tmp_path / "out").is_dir())

    thread = threading.Thread(target=look)
    thread.start()
    for number in range(300):
        publish(made(tmp_path / f".out.{number:012x}.partial", str(number)), tmp_path / "out")
    over.set()
    thread.join()
    assert len(seen) > 300 and all(seen)


def test_a_name_that_cannot_be_given_leaves_the_old_folder(tmp_path, monkeypatch):
    made(tmp_path / "out", "old")
    new = made(tmp_path / ".out.0123456789ab.partial", "new")
    monkeypatch.setattr(module, "exchanged", lambda one, other: False)
    real = os.rename

    def rename(source, target):
        if Path(source) == new:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(source, target)

    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(OSError, match="No space"):
        publish(new, tmp_path / "out")
    assert (tmp_path / "out" / "word").read_text() == "old"


def test_an_exchange_that_fails_for_another_reason_is_told(tmp_path):
    with pytest.raises(FileNotFoundError):
        exchanged(tmp_path / "nothing", tmp_path / "here")
