"""Atomic writes, and what is refused on reading. Models are in test_model.py and test_model_refusals.py."""

from __future__ import annotations

import os

import numpy as np
import pytest

from dboost.errors import ModelFormatError, StorageError, UsageError
from dboost.files.storage import (
    pack_arrays,
    read_plain_file,
    unpack_arrays,
    write_file,
    write_folder,
)


def test_a_write_that_fails_keeps_the_old_file(tmp_path, monkeypatch):
    write_file(tmp_path / "state", b"old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        write_file(tmp_path / "state", b"new")
    assert (tmp_path / "state").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["state"]


def test_write_file_through_a_link_keeps_the_link(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_folder_appears_only_when_complete(tmp_path):
    target = tmp_path / "deep" / "model"
    with write_folder(target, marker="m") as folder:
        (folder / "m").write_text("1")
        assert not target.exists()
    assert (target / "m").read_text() == "1"
    assert os.listdir(tmp_path / "deep") == ["model"]


def test_folder_that_fails_midway_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError, match="half"), write_folder(tmp_path / "model", marker="m") as folder:
        (folder / "m").write_text("1")
        raise RuntimeError("half")
    assert os.listdir(tmp_path) == []


def test_existing_folder_needs_force_and_the_marker(tmp_path):
    with write_folder(tmp_path / "model", marker="m") as folder:
        (folder / "m").write_text("1")
    with pytest.raises(UsageError, match="folder exists"), write_folder(tmp_path / "model", marker="m"):
        pytest.fail("entered")
    with write_folder(tmp_path / "model", marker="m", force=True) as folder:
        (folder / "m").write_text("2")
    assert (tmp_path / "model" / "m").read_text() == "2"
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letters").write_text("keep")
    with pytest.raises(UsageError, match="holds no m"), write_folder(tmp_path / "home", marker="m", force=True):
        pytest.fail("entered")
    (tmp_path / "file").write_text("keep")
    with pytest.raises(UsageError, match="a file of this name"), write_folder(tmp_path / "file", marker="m"):
        pytest.fail("entered")


@pytest.mark.parametrize("name", ["../outside", "/etc/hostname", "a/b", "..", "", "c:\\x", "a\\b"])
def test_names_that_lead_outside_are_refused(tmp_path, name):
    with pytest.raises(ModelFormatError, match="leads outside"):
        read_plain_file(tmp_path, name, max_bytes=10)


def test_links_pipes_folders_and_large_files_are_refused(tmp_path):
    (tmp_path / "real").write_bytes(b"12345678901")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name, message in {
        "link": "symbolic link",
        "folder": "regular file",
        "pipe": "regular file",
        "real": "at most 10",
        "nothing": "missing",
    }.items():
        with pytest.raises(ModelFormatError, match=message):
            read_plain_file(tmp_path, name, max_bytes=10)
    assert read_plain_file(tmp_path, "real", max_bytes=11) == b"12345678901"


def test_arrays_round_trip():
    for shape in [(3, 2), (0, 2), (4,), ()]:
        value = np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape)
        back, metadata = unpack_arrays(pack_arrays({"a": value}, {"note": "x"}), file="f")
        assert back["a"].shape == shape
        assert back["a"].tobytes() == value.tobytes()
        assert metadata == {"note": "x"}


def test_oversize_and_cut_headers_are_refused():
    data = pack_arrays({"a": np.zeros(3)})
    huge = (1 << 40).to_bytes(8, "little") + data[8:]
    for broken in (huge, b"", data[:4], data[:20], data[:-1], (3).to_bytes(8, "little") + b"{}x"):
        with pytest.raises(ModelFormatError):
            unpack_arrays(broken, file="f")
    with pytest.raises(ModelFormatError, match="limit: 8"):
        unpack_arrays(data, file="f", max_header=8)
