"""``dboost warm``: loops that are compiled beforehand are found without a variable, and the folder is any."""

import os
import subprocess
import sys

import numpy as np
import pytest

from dboost import warm
from dboost.compiled import kept
from dboost.errors import DboostError, UsageError
from pipelines.cli import main


def test_loops_go_into_a_folder_for_all_processors_of_the_kind(monkeypatch, tmp_path, capsys):
    called = {}

    def run(command, env):
        called.update(command=command, env=env)
        (tmp_path / "to" / "one.nbc").write_bytes(b"")
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(warm.subprocess, "run", run)
    monkeypatch.setattr(kept, "portable", lambda: ("x86-64-v3", ""))
    before = dict(os.environ)
    assert main(["warm", "--fits", "default", "--to", str(tmp_path / "to")]) == 0
    assert called["command"] == [sys.executable, "-m", "dboost.warm", "--fits", "default"]
    told = {name: called["env"][name] for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_CACHE_DIR")}
    assert told == {
        "NUMBA_CPU_NAME": "x86-64-v3",
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_CACHE_DIR": str(tmp_path / "to"),
    }
    # code of this process, and of its other libraries, is made as before
    assert dict(os.environ) == before
    assert f"1 loops lie in {tmp_path / 'to'}: to be found, they go to {kept.CARRIED}" in capsys.readouterr().out


def test_what_cannot_be_made_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr(kept, "portable", lambda: None)
    with pytest.raises(UsageError, match="--to makes loops for processors with AVX2 or NEON, which this one lacks"):
        warm.warm_to(tmp_path)
    monkeypatch.setattr(kept, "portable", lambda: ("x86-64-v3", ""))
    monkeypatch.setattr(warm.subprocess, "run", lambda command, env: subprocess.CompletedProcess(command, 3))
    with pytest.raises(DboostError, match=f"compiles loops into {tmp_path} ended with 3"):
        warm.warm_to(tmp_path)


def test_progress_is_said_part_by_part(monkeypatch):
    done, said = [], []
    monkeypatch.setattr(warm, "warm_part", done.append)
    warm.warm("default", say=said.append)
    assert [part.task for part in done] == ["multiclass", "binary", "regression", "text"]
    assert [line.partition(" after ")[0] for line in said] == [f"{n} of 4 kinds of fits" for n in (1, 2, 3, 4)]
    assert said[0].endswith(": multinomial, float64")


@pytest.mark.full
def test_a_folder_beside_the_package_is_found_without_a_variable(tmp_path):
    """One loop, made for other machines in one process, runs in another one that has nothing but the folder."""
    made = tmp_path / "loops"
    call = (
        "import numpy as np\nfrom pathlib import Path\nfrom dboost.compiled import kept\n"
        "kept.CARRIED = Path({folder!r})\nfrom dboost.compiled.vectors import norms\n"
        "print(norms.sums_of_entries(np.full((2, 3), -1.5)), sum(norms.absolute_entries.stats.cache_hits.values()))"
    )
    name, features = kept.portable() or pytest.skip("this processor has less than those that code is carried to")
    here = {**os.environ, "NUMBA_CACHE_DIR": str(made)}
    runs = (
        (str(tmp_path / "none"), {**here, "NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features}, 0),
        (str(made), {**here, "NUMBA_CACHE_DIR": str(tmp_path / "empty")}, 1),
    )
    for folder, environment, hits in runs:
        command = [sys.executable, "-c", call.format(folder=folder)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=100)
        assert done.stdout.split("] ") == [str(np.full(2, 4.5))[:-1], f"{hits}\n"]
    assert not (tmp_path / "empty").exists()
