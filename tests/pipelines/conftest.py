"""A small prepared data set and a model of it, made through the command line once."""

from pathlib import Path

import pytest

from lab import run_kills
from pipelines.cli import main

CLASSES = run_kills.TREES


def write_documents(path: Path, rows: int = 400, seed: int = 0) -> None:
    """Documents of four trees, as the campaign of kills has them."""
    run_kills.write_documents(path, rows, seed)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    write_documents(folder / "documents.parquet")
    arguments = ["prepare", str(folder / "documents.parquet"), "--label", "label", "--split", "split"]
    assert main([*arguments, "--out", str(folder / "out"), "--workers", "0", "--log-format", "json"]) == 0
    return folder / "out"


@pytest.fixture(scope="session")
def trained(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "model"
    arguments = ["train", str(prepared), "--out", str(out), "--workers", "0", "--penalty", "l1/l2", "--alpha", "0.005"]
    assert main([*arguments, "--log-format", "json"]) == 0
    return out
