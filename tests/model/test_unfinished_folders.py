"""What a killed process leaves of a folder goes with the next one; what a running process fills stays.

Covers: ``dboost.files.unfinished`` and the places that make output folders.
Does not cover: how a filled folder gets its name (tests/model/test_storage.py, tests/data/test_prepare.py).
"""

from __future__ import annotations

import fcntl
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dboost
from dboost.data.prepared import prepare
from dboost.data.prepared.prepare import prepare_text
from dboost.files.storage import check_writable, write_folder
from dboost.files.unfinished import clear_abandoned, own_folder
from tests.model.models import make


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
        # the system lifts the locks of a process that ends: tests/model/test_unfinished.py kills one
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
