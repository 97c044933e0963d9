"""README and the page it opens with: every block runs as it is typed, with small made-up data beside it.

Covers: all blocks of a page from top to bottom in one folder, twice; of the quick start with
``documents.parquet``, ``held-out.parquet`` and ``documents.csv`` (columns `text` and `topic`) there, and `X` and `y`
for scripts. A new block is run by being there. What would install or build (``pip``, ``make``) is replaced by programs
that check their arguments.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from pipelines.cli import main

ROOT = Path(__file__).resolve().parents[1]
TYPED = ("docs/quickstart.md",)

# What a script of the reader has before the block: a table of three columns, and three classes that are numbers too.
BEFORE = """
import numpy as _np
import pandas as _pd

_rng = _np.random.default_rng(0)
X = _pd.DataFrame({name: _rng.normal(size=120) for name in ("rm", "lstat", "age")})
y = (X["rm"] + X["lstat"] ** 2 > 0.5).astype(int) + (X["rm"] > 1)
table = X.assign(label=y, weight=1.0)
"""
STAND_INS = {
    # An installation would need a network, which a test has not: the extras that are asked for must be there.
    "pip": """
import re, sys, tomllib
project = tomllib.load(open({root!r} + "/pyproject.toml", "rb"))["project"]
assert sys.argv[1] == "install", sys.argv
for wanted in sys.argv[2:]:
    found = re.fullmatch(r"\\.(?:\\[([\\w,-]+)\\])?", wanted)
    assert found, wanted
    assert set((found[1] or "").split(",")) - {{""}} <= set(project["optional-dependencies"]), wanted
""",
    # Make would build an environment and run these tests in it: the targets must be there.
    "make": """
import re, sys
targets = set(re.findall(r"^([a-z-]+):", open({root!r} + "/Makefile").read(), flags=re.M))
assert set(sys.argv[1:]) <= targets, sys.argv
""",
    "dboost": """
import sys
sys.path.insert(0, {root!r})
from pipelines.cli import main
# The workers of a cluster read this file again.
if __name__ == "__main__":
    sys.exit(main())
""",
}


class Block(NamedTuple):
    language: str
    line: int
    text: str
    page: str = ""


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page of this repository, with the line each begins at."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", text, flags=re.M | re.S)
    return [Block(match[1], text[: match.start()].count("\n") + 1, match[2], page) for match in found]


def write_documents(folder: Path) -> None:
    """Documents of three topics, each with a word of its own."""
    rng = np.random.default_rng(0)
    for name, rows in (("documents", 150), ("held-out", 40)):
        topics = [("sea", "sky", "sand")[i] for i in rng.integers(0, 3, rows)]
        texts = [" ".join(["the", topic, *rng.choice([f"w{i:02d}" for i in range(20)], 6)]) for topic in topics]
        table = pa.table({"text": texts, "topic": topics})
        pq.write_table(table, folder / f"{name}.parquet")
        pa_csv.write_csv(table, folder / f"{name}.csv")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with documents, and programs before those of this machine on the path."""
    write_documents(tmp_path)
    (tmp_path / "bin").mkdir()
    for name, code in STAND_INS.items():
        program = tmp_path / "bin" / name
        program.write_text(f"#!{sys.executable}\n" + code.format(root=str(ROOT)))
        program.chmod(0o755)
    return tmp_path


def run(command: list[str], folder: Path, scheduler: str | None = None) -> None:
    """Run a command in a folder; it must end well. (Dask may log that a machine is slow.)"""
    environment = {
        **os.environ,
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "MPLBACKEND": "Agg",
    }
    environment.pop("DASK_SCHEDULER_ADDRESS", None)
    if scheduler:
        environment["DASK_SCHEDULER_ADDRESS"] = scheduler
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280, env=environment)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stdout + done.stderr


def all_of(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch, before: str = "") -> None:
    """Type a page from top to bottom, in this process but for what installs."""
    monkeypatch.chdir(folder)
    # what is made up is warned of, as a reader would be
    warnings.simplefilter("default")
    for block in blocks(page):
        if block.language == "python" and "Client" in block.text:
            # workers read the script again
            (folder / "script.py").write_text(before + block.text)
            run([sys.executable, "script.py"], folder)
        elif block.language == "python":
            exec(compile(before + block.text, f"{page}:{block.line}", "exec"), {"__name__": "__main__"})
        elif block.language == "toml":
            (folder / "run.toml").write_text(block.text)
        else:
            for line in block.text.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words[:1] == ["dboost"]:
                    assert main([*words[1:], "--log-format", "plain"]) == 0, line
                elif words:
                    run(["bash", "-euo", "pipefail", "-c", line], folder)


def test_readme_runs_from_top_to_bottom_and_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in folder.glob("*.*"):
        file.unlink()  # README makes its own
    for _ in range(2):
        all_of("README.md", folder, monkeypatch)
        for part in ("labelled", "runs/run/predictions"):
            [found] = (folder / part).glob("part-*.parquet")
            rows = pq.read_table(found).to_pylist()
            assert [(row["id"], row["file"], row["row"], row["prediction"]) for row in rows] == [
                (7, "new.csv", 0, "sea"), (8, "new.csv", 1, "sky"),
            ]  # fmt: skip
        assert "held-out.csv" in (folder / "runs" / "run" / "run.toml").read_text()
        assert (folder / "model.html").is_file() and (folder / "runs" / "run" / "report.html").is_file()


@pytest.mark.full
@pytest.mark.timeout(600)
def test_the_quick_start_runs_from_top_to_bottom_and_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        all_of("docs/quickstart.md", folder, monkeypatch, BEFORE)
        assert main(["prepare", "documents.parquet", "--label", "topic", "--out", "prepared", "--force"]) == 0
