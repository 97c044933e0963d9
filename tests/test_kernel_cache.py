"""Where compiled loops are kept: never in a folder called `~`, and somewhere even where nothing can be written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dboost.errors import UsageError
from dboost.kernel_cache import choice

ROOT = Path(__file__).resolve().parents[1]
# A process of a user without a home folder, on a package that it may not write; root may, so numba is told no.
NOWHERE = """
import os, pwd, sys
def nobody(number):
    raise KeyError(number)
pwd.getpwuid = nobody
import numba.core.caching as caching
write = os.access
os.access = lambda path, mode, **more: "dboost" not in str(path) and write(path, mode, **more)
def no(self):
    raise OSError("read-only")
caching.InTreeCacheLocator.ensure_cache_path = no
import numpy as np
import dboost
from dboost.hypotheses.kernels.kernel_loops import row_squares
out = np.zeros(1)
row_squares(np.array([0, 2]), np.array([3.0, 4.0]), out)
print(out[0], os.environ.get("NUMBA_CACHE_DIR", ""), row_squares.stats.cache_path)
import dboost.warm
print(dboost.warm.words(2.0), file=sys.stderr)
"""


@pytest.fixture
def nobody(monkeypatch):
    def unknown(number):
        raise KeyError(number)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)


def run(cwd, **variables):
    dropped = ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in dropped}
    environment |= {"PYTHONPATH": str(ROOT), **variables}
    command = [sys.executable, "-c", NOWHERE]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=100)


def test_without_a_home_folder_loops_are_kept_for_the_process_and_it_is_said(tmp_path):
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    squares, folder, kept = done.stdout.split()
    assert squares == "25.0" and kept.startswith(folder) and "dboost-kernels-" in folder
    assert "no folder can be written for compiled loops" in done.stderr
    assert "compiled the kernels in 2.0 s, for this process only" in done.stderr and "cached" not in done.stderr
    assert not Path(folder).exists()
    assert os.listdir(tmp_path) == []


@pytest.mark.full
def test_a_tilde_in_the_variables_of_the_cache_is_the_home_folder(tmp_path):
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    for variables in ({"NUMBA_CACHE_DIR": "~/kernels"}, {"XDG_CACHE_HOME": "~/kernels"}):
        done = run(work, HOME=str(home), **variables)
        assert done.returncode == 0 and done.stderr == "compiled and cached the kernels in 2.0 s\n", done.stderr
        assert done.stdout.split()[2].startswith(str(home / "kernels"))
    assert os.listdir(work) == []


def test_numba_is_left_alone_where_it_finds_the_place(tmp_path, monkeypatch):
    assert choice(tmp_path, {}) is None
    assert choice(tmp_path / "not" / "yet", {}) is None
    assert choice(Path("/proc"), {"NUMBA_CACHE_DIR": "/anywhere"}) is None
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(os, "access", lambda path, mode: str(path).startswith(str(tmp_path)))
    assert choice(Path("/package"), {}) == str(tmp_path / ".cache" / "numba")
    assert choice(Path("/package"), {"XDG_CACHE_HOME": "/elsewhere"}) == ""
    assert choice(tmp_path, {"NUMBA_CACHE_DIR": "~/x"}) == str(tmp_path / "x")


def test_a_tilde_that_nobody_can_resolve_is_no_folder(tmp_path, nobody):
    assert choice(Path("/package"), {"NUMBA_CACHE_DIR": "~/x"}) == ""
    assert choice(Path("/package"), {"XDG_CACHE_HOME": "~", "NUMBA_CACHE_DIR": "~"}) == ""


def test_a_cache_at_a_url_is_refused_and_a_file_url_is_served(tmp_path):
    assert choice(tmp_path, {"NUMBA_CACHE_DIR": f"file://{tmp_path}/x"}) == str(tmp_path / "x")
    with pytest.raises(UsageError, match="NUMBA_CACHE_DIR has the scheme 's3', which is not supported") as refused:
        choice(tmp_path, {"NUMBA_CACHE_DIR": "s3://user:hunter22@b/x"})
    assert "hunter22" not in f"{refused.value!r}" and os.listdir(tmp_path) == []
