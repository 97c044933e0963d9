"""A small prepared data set and a model of it, made through the command line once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.cli import main

CLASSES = ("apple", "birch", "cedar", "dogwood")


def write_documents(path: Path, rows: int = 400, seed: int = 0) -> None:
    """Documents of four trees: each has its own word, and two of them share one."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, len(CLASSES), rows)
    texts = []
    for kind in kinds.tolist():
        words = rng.choice([f"noise{i}" for i in range(40)], 8).tolist()
        words += [f"word_{CLASSES[kind]}"] * int(rng.random() < 0.8) + ["orchard"] * int(kind < 2)
        texts.append(" ".join(words))
    table = pa.table(
        {
            "text": texts,
            "label": [CLASSES[kind] for kind in kinds.tolist()],
            "split": ["test" if i % 4 == 0 else "train" for i in range(rows)],
        }
    )
    pq.write_table(table, path, row_group_size=100)


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
