"""What is compiled is kept so that processes can share it: no file is written by two, and none is taken for another."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import re
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from dboost.compiled.kept import FilesByKey, njit

ROOT = Path(__file__).resolve().parents[2]
BASE, STAMP = "loops.add", "what it comes from"


def save_many(folder: str, mine: int, start: object) -> None:
    files = FilesByKey(folder, BASE, STAMP)
    start.wait()
    for number in range(100):
        files.save((mine, number), f"code of {mine} {number}")


def test_two_processes_that_save_at_once_lose_nothing(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    start = spawn.Barrier(2)
    both = [spawn.Process(target=save_many, args=(str(tmp_path), mine, start)) for mine in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(60)
        assert one.exitcode == 0
    files = FilesByKey(str(tmp_path), BASE, STAMP)
    assert all(files.load((mine, n)) == f"code of {mine} {n}" for mine in range(2) for n in range(100))


def test_code_of_another_source_is_not_loaded_and_goes_after_a_while(tmp_path):
    before, after = FilesByKey(tmp_path, BASE, STAMP), FilesByKey(tmp_path, BASE, "something else")
    neighbour = FilesByKey(tmp_path, BASE + "1", STAMP)
    neighbour.save("floats", "of the neighbour")
    before.save("floats", "old")
    assert after.load("floats") is None and not after.any()
    after.save("floats", "new")
    # two clones that share a folder do not throw away each other's
    assert (before.load("floats"), after.load("floats")) == ("old", "new")
    for path in tmp_path.iterdir():
        os.utime(path, (0, 0))
    after.save("integers", "new, too")
    assert (before.load("floats"), after.load("floats")) == (None, "new")
    assert neighbour.load("floats") == "of the neighbour"
    after.flush()
    assert after.load("floats") is None and not after.any()


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


MODULES = {
    "constants": "FACTOR = {factor}\n",
    "inner": "from constants import FACTOR\nfrom dboost.compiled.kept import njit\n{blank}\n\n@njit(cache=True)\n"
    "def inner(x):\n{doc}    return FACTOR * x {added}\n",
    "outer": "import inner\nfrom dboost.compiled.kept import njit\n\n\n@njit(cache=True)\ndef outer(x):\n"
    "    return inner.inner(x) + 1.0\n",
}
SAME = {"factor": 2.0, "blank": "", "doc": "", "added": ""}


def outer(folder, monkeypatch, **changed):
    """A loop that calls a loop of another file, which reads a number of a third one: all three read anew."""
    folder.mkdir(exist_ok=True)
    for name, text in MODULES.items():
        (folder / f"{name}.py").write_text(text.format(**(SAME | changed)))
        monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.invalidate_caches()
    with monkeypatch.context() as here:
        here.syspath_prepend(str(folder))
        here.setattr(sys, "dont_write_bytecode", True)
        return importlib.import_module("outer").outer


def test_a_loop_is_compiled_again_when_anything_changes_that_its_code_comes_from(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "loops"))

    def misses(number, **changed):
        loop = outer(tmp_path / str(number), monkeypatch, **changed)
        return loop(3.0), sum(loop.stats.cache_misses.values())

    assert misses(1) == (7.0, 1)
    # another clone, in which lines have moved and a docstring was written
    assert misses(2, blank="# a comment\n\n", doc='    """In words."""\n') == (7.0, 0)
    assert misses(3, factor=3.0) == (10.0, 1)
    assert misses(4, added="- 1.0") == (6.0, 1)
    assert misses(5) == (7.0, 0)


def test_the_digests_of_all_loops_are_the_same_in_every_process():
    """Whatever was imported first, a loss of somebody else's too, and in whatever order sets are."""
    modules = ("dboost.losses.quantile", "dboost.losses", "dboost.passes.residuals", "dboost.boosting.fit")
    found = []
    for order, seed in ((modules, "1"), (("tests.extending.toy_loss", *modules[::-1]), "2")):
        line = (
            f"import gc, json, {', '.join(order)}\n"
            "from dboost.compiled.content import content\nfrom numba.core.dispatcher import Dispatcher\n"
            "loops = [one.py_func for one in gc.get_objects() if isinstance(one, Dispatcher)]\n"
            "ours = [one for one in loops if one.__module__.startswith('dboost')]\n"
            "print(json.dumps(sorted([one.__module__, one.__qualname__, content(one)] for one in ours)))"
        )
        environment = dict(os.environ, PYTHONHASHSEED=seed, PYTHONPATH=str(ROOT))
        command = [sys.executable, "-c", line]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert len(found[0]) > 100 and found[0] == found[1]


def test_carried_loops_are_found_first_and_those_for_less_of_a_processor_run(monkeypatch, tmp_path):
    from dboost.compiled import kept

    def double(values):
        return values * 2

    carried, own = tmp_path / "loops", tmp_path / "own"
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(carried))
    made = njit(cache=True)(double)
    made(np.arange(3.0))
    (path,) = carried.iterdir()
    monkeypatch.setattr(kept, "CARRIED", carried)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(own))
    found = njit(cache=True)(double)
    found(np.arange(3.0))
    assert sum(found.stats.cache_hits.values()) == 1 and not own.exists()
    # as another machine made it: for the processor that all of the kind can run
    files = FilesByKey(carried, "tests.double", STAMP)
    own_target, *less = kept._targets(found.targetctx.codegen())
    files.save(("types", own_target), "native")
    assert [files.load(("types", target)) for target in less] == [None] * len(less)
    assert all(target[:-2] == own_target[:-2] and target[-2:] == kept.portable() for target in less)
    # who names a processor is given nothing that was made for another one
    monkeypatch.setattr(numba.config, "CPU_NAME", "x86-64")
    alone = njit(cache=True)(double)
    assert alone._cache._folders() == (str(own),)


def test_every_loop_is_kept_this_way():
    from_numba = re.compile(r"from numba import .*\bn?jit\b|@numba\.")
    found = [str(path) for path in (ROOT / "dboost").rglob("*.py") if from_numba.search(path.read_text("utf-8"))]
    assert found == []


def test_no_fit_asks_lapack():
    """Threads of a BLAS would fight the passes' for the cores, and may change the bits."""
    asked = re.compile(r"linalg\.(?!norm\b)\w+")
    for path in (ROOT / "dboost").rglob("*.py"):
        lines = [line for line in path.read_text("utf-8").splitlines() if not line.strip().startswith((">>>", "..."))]
        assert not asked.findall("\n".join(lines)), path
