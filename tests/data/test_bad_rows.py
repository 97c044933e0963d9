"""Documents that cannot be learned from: refused, or put aside with their reasons and counted.

Covers: missing texts and labels in every format, in the split that is learned from and in others; what is kept.
Does not cover: files that cannot be read at all, which are refused in either way.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dboost.data import prepare_text
from dboost.errors import DataError, UsageError
from pipelines.cli import main


def table(rows: int = 60, *, bad: bool = True) -> pa.Table:
    texts = [f"{'sea' if i % 2 else 'sky'} w{i % 5} w{i % 7}" for i in range(rows)]
    labels = ["wet" if i % 2 else "dry" for i in range(rows)]
    if bad:
        texts = [None if i in (3, 10) else text for i, text in enumerate(texts)]
        labels = [None if i in (10, 20, 21) else label for i, label in enumerate(labels)]
    return pa.table({"text": texts, "label": labels, "id": [f"d{i}" for i in range(rows)]})


def written(path: Path, rows: pa.Table) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(rows, path, row_group_size=25)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows.to_pylist()))
    return path


OPTIONS = {"text": "text", "label": "label", "keep": ["id"], "min_df": 1, "max_df": 1.0}


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_bad_rows_are_put_aside_and_the_others_are_as_without_them(suffix: str, tmp_path: Path) -> None:
    file = written(tmp_path / f"d{suffix}", table())
    with pytest.raises(DataError, match="missing"):
        prepare_text(file, tmp_path / "refused", **OPTIONS)
    assert not (tmp_path / "refused").exists()
    manifest = prepare_text(file, tmp_path / "p", on_bad_rows="quarantine", **OPTIONS)
    assert manifest.settings["refused"] == {"label is missing": 2, "text is missing": 2}
    aside = pq.read_table(tmp_path / "p" / "_refused").to_pylist()
    assert [(row["row"], row["reason"], row["id"]) for row in aside] == [
        (3, "text is missing", "d3"),
        (10, "text is missing", "d10"),
        (20, "label is missing", "d20"),
        (21, "label is missing", "d21"),
    ]
    assert {row["file"] for row in aside} == {str(file)}
    good = table().filter(pa.array([i not in (3, 10, 20, 21) for i in range(60)]))
    peer = prepare_text(written(tmp_path / "good.parquet", good), tmp_path / "q", **OPTIONS)
    assert pq.read_table(tmp_path / "p" / "train").to_pylist() == pq.read_table(tmp_path / "q" / "train").to_pylist()
    assert peer.splits["train"]["rows"] == 56


def test_held_out_documents_may_lack_labels_and_not_texts(tmp_path: Path) -> None:
    train, test = written(tmp_path / "a.parquet", table(bad=False)), written(tmp_path / "b.parquet", table())
    manifest = prepare_text({"train": train, "test": test}, tmp_path / "p", on_bad_rows="quarantine", **OPTIONS)
    assert manifest.settings["refused"] == {"text is missing": 2}
    assert (manifest.splits["train"]["rows"], manifest.splits["test"]["rows"]) == (60, 58)


def test_the_command_line_says_how_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path / "d.parquet", table())
    arguments = ["prepare", str(file), "--label", "label", "--min-df", "1", "--max-df", "1.0", "--workers", "0"]
    assert main([*arguments, "--out", str(tmp_path / "x")]) == 3
    assert main([*arguments, "--on-bad-rows", "quarantine", "--out", str(tmp_path / "p")]) == 0
    said = capsys.readouterr().out
    assert "4 documents, in _refused: 2 where label is missing, 2 where text is missing" in " ".join(said.split())
    with pytest.raises(UsageError, match="on_bad_rows='drop'"):
        prepare_text(file, tmp_path / "y", on_bad_rows="drop", **OPTIONS)
