"""``python -m lab``: every program is found, says what it takes, and refuses what it must.

Does not cover: what the programs do (the other files of this folder).
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import dboost
from lab.__main__ import REGISTRY, main
from lab.datasets.base import data_home
from lab.mutation import command as mutation

ROOT = Path(__file__).resolve().parents[2]
SECRET = "hunter22X"
URL = f"s3://user:{SECRET}@bucket/x"


@pytest.mark.parametrize("arguments", [[], ["benhc"]])
def test_without_a_known_name_all_programs_are_listed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    first, *lines = err.splitlines()
    assert out == "" and "expected python -m lab NAME" in first
    assert [line.split()[0] for line in lines] == list(REGISTRY)
    assert all(line.endswith(entry.summary) for line, entry in zip(lines, REGISTRY.values(), strict=True))


def test_every_program_says_what_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    for name, entry in REGISTRY.items():
        module = importlib.import_module(entry.module)
        with pytest.raises(SystemExit) as leave:
            module.main(["--help"])
        assert not leave.value.code and capsys.readouterr().out.startswith(f"usage: python -m lab {name}")


def test_the_module_runs_from_a_checkout_alone(tmp_path: Path) -> None:
    """Neither an installed dboost_pipelines nor another folder than the checkout's is needed."""
    for name in ("dboost", "lab", "pipelines"):
        (tmp_path / name).symlink_to(ROOT / name)
    code = (
        "import runpy, sys; sys.modules['dboost_pipelines'] = None; sys.argv = ['lab', 'bench', '--list'];"
        "runpy.run_module('lab', run_name='__main__', alter_sys=True)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and "overhead" in done.stdout, done.stderr


def test_the_folder_of_data_sets_may_be_in_the_home_folder_and_not_at_a_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DBOOST_DATA_HOME", "~/data")
    (tmp_path / "data").mkdir()
    assert data_home() == tmp_path / "data"
    monkeypatch.setenv("DBOOST_DATA_HOME", URL)
    with pytest.raises(dboost.UsageError, match="DBOOST_DATA_HOME has the scheme 's3'"):
        data_home()


def test_the_tests_of_a_record_are_named_before_and_after_its_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Path, list[str]]] = []
    monkeypatch.setattr(mutation, "record", lambda folder, tests: asked.append((folder, tests)) or 0)
    where = ["--folder", str(tmp_path)]
    for words in (["record", *where, "tests/a", "tests/b"], ["record", "tests/a", "tests/b", *where]):
        assert mutation.main(words) == 0 and asked.pop() == (tmp_path, ["tests/a", "tests/b"])
    assert mutation.main(["record", *where]) == 0 and asked.pop() == (tmp_path, ["tests"])


def test_items_that_reach_a_compiled_function_are_those_that_call_its_callers(tmp_path: Path) -> None:
    source = "@njit\ndef inner(x):\n    return x + 1\n\n\n@njit\ndef loop(x):\n    return inner(x)\n\n\n"
    source += "def fit(x):\n    return loop(x)\n\n\ndef other(x):\n    return fit(x)\n\n\nLIMIT = 2 * 3\n"
    file = tmp_path / "dboost" / "toy.py"
    file.parent.mkdir()
    file.write_text(source)
    called = [["a", 0.5, [["dboost/toy.py", 11]]], ["b", 0.1, [["dboost/toy.py", 15]]], ["c", 0.1, []]]
    (tmp_path / "calls-1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in called))
    record = mutation.Record(tmp_path, tmp_path)
    assert record.seconds == {"a": 0.5, "b": 0.1, "c": 0.1}
    for line, expected in ((3, {"a"}), (8, {"a"}), (12, {"a"}), (16, {"b"}), (19, {"a", "b"})):
        assert record.items(mutation.Mutant("losses", "dboost/toy.py", 0, line, "")) == expected, line


def test_spare_tests_are_slow_ones_whose_functions_others_call() -> None:
    shared, alone = ("dboost/toy.py", 1), ("dboost/toy.py", 9)
    calls = {name: {shared} for name in "abcdef"} | {"g": {shared, alone}}
    seconds = dict.fromkeys(calls, 0.5) | {"a": 2.0, "b": 9.0, "c": 5.0, "d": 1.0, "g": 99.0}
    # of the seven that call it four stay, and with them the only one that calls another function
    assert mutation.spare(seconds, calls) == [("b", 9.0), ("c", 5.0), ("a", 2.0)]
