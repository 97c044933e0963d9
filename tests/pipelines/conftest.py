"""Small data, a model and a run file of it; commands that are given, read and refused, and processes of them."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lab import run_kills
from pipelines.cli import loaded, main
from pipelines.config import hints

CLASSES = run_kills.TREES
ROOT = Path(__file__).resolve().parents[2]
LOCAL = ["--workers", "0"]
FILE = """
[data]
data = "documents.parquet"
label = "label"
[prepare]
split = "split"
[model]
penalty = "l1/l2"
alpha = 0.005
[predict]
[cluster]
workers = 0
"""


def write_documents(path: Path, rows: int = 400, seed: int = 0) -> None:
    """Documents of four trees, as the campaign of kills has them."""
    run_kills.write_documents(path, rows, seed)


def write_trees(folder: Path) -> Path:
    """The run file above, beside its documents."""
    write_documents(folder / "documents.parquet")
    (folder / "trees.toml").write_text(FILE)
    return folder / "trees.toml"


def give(*words: Any, code: int = 0) -> None:
    """A command, without a cluster where it could make one and none is named, which has to end with a code."""
    line = [*map(str, words)]
    makes = "workers" in hints(loaded(line[0])[0]) and not {"--workers", "--scheduler"} & set(line)
    assert main([*line, *(LOCAL if makes else [])]) == code, words


def heard() -> None:
    """A hangup is heard again in a process of tests that were started by ``nohup``, which ignores it."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@contextlib.contextmanager
def started(*command: str, apart: bool = False) -> Iterator[subprocess.Popen[str]]:
    """A process of Python that does not outlive the test; in a group of its own, as a shell has it, where asked for."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        preexec_fn=heard,
        start_new_session=apart,
        stdout=pipe,
        stderr=pipe,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def labelled(folder: Path) -> list[dict[str, Any]]:
    """The rows that `predict` has written into a folder."""
    return pq.read_table(folder).to_pylist()


def figures(folder: Path) -> dict[str, Any]:
    """What `evaluate` has written into a folder."""
    return json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_trees(tmp_path)


@pytest.fixture
def prints(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Gives a command as ``give`` does, and returns what it prints."""

    def command(*words: Any, code: int = 0) -> str:
        capsys.readouterr()
        give(*words, code=code)
        return capsys.readouterr().out

    return command


@pytest.fixture
def tells(prints: Callable[..., str]) -> Callable[..., list[dict[str, Any]]]:
    """The same as the events that it tells."""
    return lambda *words: [json.loads(line) for line in prints(*words, "--log-format", "json").splitlines()]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Gives a command that has to be refused, and returns the one line that it says on stderr."""

    def command(*words: Any, code: int = 2) -> str:
        capsys.readouterr()
        ended = main([*map(str, words)])
        captured = capsys.readouterr()
        lines = captured.err.splitlines()
        assert (ended, len(lines)) == (code, 1), (words, captured.err)
        assert lines[0].startswith("dboost: error[") and "Traceback" not in captured.out + captured.err
        return lines[0]

    return command


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    write_documents(folder / "documents.parquet")
    documents = ["prepare", folder / "documents.parquet", "--label", "label", "--split", "split"]
    give(*documents, "--out", folder / "out", "--log-format", "json")
    return folder / "out"


@pytest.fixture(scope="session")
def trained(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "model"
    give("train", prepared, "--out", out, "--penalty", "l1/l2", "--alpha", "0.005", "--log-format", "json")
    return out
