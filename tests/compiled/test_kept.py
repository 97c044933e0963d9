"""What is compiled is kept so that processes can share it: no file is written by two, and none is taken for another."""

from __future__ import annotations

import multiprocessing
import re
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import caching

from dboost.compiled.kept import FilesByKey, njit

ROOT = Path(__file__).resolve().parents[2]
BASE, STAMP = "loops.add-7.py311", (1.0, 20)


def save_many(kind: type, folder: str, mine: int, start: object) -> None:
    files = kind(folder, BASE, STAMP)
    start.wait()
    for number in range(100):
        files.save((mine, number), f"code of {mine} {number}")


def kept_by_two(kind: type, folder: Path) -> int:
    spawn = multiprocessing.get_context("spawn")
    start = spawn.Barrier(2)
    both = [spawn.Process(target=save_many, args=(kind, str(folder), mine, start)) for mine in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(60)
        assert one.exitcode == 0
    files = kind(str(folder), BASE, STAMP)
    return sum(files.load((mine, number)) == f"code of {mine} {number}" for mine in range(2) for number in range(100))


def test_two_processes_that_save_at_once_lose_nothing(tmp_path):
    assert kept_by_two(FilesByKey, tmp_path) == 200


def test_code_of_another_source_is_not_loaded_and_goes(tmp_path):
    before, after = FilesByKey(str(tmp_path), BASE, STAMP), FilesByKey(str(tmp_path), BASE, (2.0, 20))
    neighbour = FilesByKey(str(tmp_path), BASE + "1", STAMP)
    neighbour.save("floats", "of the neighbour")
    before.save("floats", "old")
    assert after.load("floats") is None
    after.save("floats", "new")
    assert (before.load("floats"), after.load("floats")) == (None, "new")
    assert neighbour.load("floats") == "of the neighbour"
    after.flush()
    assert after.load("floats") is None


@pytest.mark.parametrize("content", [b"", b"\x80", b"not what was written", b"cnowhere\nat_all\n.", b"I1x\n."])
def test_a_damaged_file_is_compiled_again(tmp_path, content):
    files = FilesByKey(str(tmp_path), BASE, STAMP)
    files.save("floats", "code")
    next(tmp_path.iterdir()).write_bytes(content)
    assert files.load("floats") is None


def test_a_file_says_what_it_is_for(tmp_path):
    files = FilesByKey(str(tmp_path), BASE, STAMP)
    files.save("floats", "code")
    next(tmp_path.iterdir()).rename(files._path("integers"))
    assert files.load("integers") is None


def test_numba_finds_what_an_earlier_one_compiled(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def double(values):
        return values * 2

    first, second = njit(nogil=True, cache=True)(double), njit(nogil=True, cache=True)(double)
    assert np.array_equal(first(np.arange(3.0)), second(np.arange(3.0)))
    assert (sum(first.stats.cache_misses.values()), sum(second.stats.cache_hits.values())) == (1, 1)
    assert isinstance(njit(nogil=True)(double)._cache, caching.NullCache)


def test_every_loop_is_kept_this_way():
    from_numba = re.compile(r"from numba import .*\bn?jit\b|@numba\.")
    found = [str(path) for path in (ROOT / "dboost").rglob("*.py") if from_numba.search(path.read_text("utf-8"))]
    assert found == []
