"""The demo on a few documents: the whole way, and the page it prints and saves."""

import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dboost.errors import UsageError
from dboost.model.fitted import read_model
from pipelines import demo
from pipelines.sources import arxiv
from tests.pipelines.conftest import LOCAL, give, write_documents


@pytest.fixture
def few_documents(tmp_path, monkeypatch):
    write_documents(tmp_path / "documents.parquet", rows=300)
    table = pq.read_table(tmp_path / "documents.parquet")
    table = table.append_column("source", pa.array([f"file-{i}" for i in range(300)]))
    source = replace(demo.SOURCES["installed"], load=lambda: table, tokenizer="words")
    monkeypatch.setitem(demo.SOURCES, "installed", source)


@pytest.mark.usefixtures("few_documents")
def test_the_demo_prints_and_saves_one_page(tmp_path, prints):
    out = tmp_path / "demo"
    page = prints("demo", "--out", out)
    assert max(len(line) for line in page.splitlines() if str(tmp_path) not in line) <= 100
    for word in ("certified", "held-out documents right", "orchard", "Seconds", "l1/l2"):
        assert word in " ".join(page.split())
    found = json.loads((out / "demo.json").read_text(encoding="utf-8"))
    run = out / "runs" / "topics"
    assert 0 <= found["evaluation"]["error"] < 0.3 and found["documents"]["test"] == 75
    assert read_model(run / "model").certificate.gap <= 1e-3 and (run / "report.html").is_file()
    labelled = pq.read_table(run / "predictions" / "part-00000.parquet")
    assert {"source", "prediction", "top_classes"} <= set(labelled.column_names) and labelled.num_rows == 75
    # The commands of the page work as they stand, but for that on YOUR.parquet.
    commands = [line.split() for line in page.split("Seconds")[1].splitlines() if line.startswith("  dboost ")]
    for command in commands[:-1]:
        give(*command[1:])


@pytest.mark.usefixtures("few_documents")
def test_a_demo_that_fails_leaves_nothing(tmp_path, monkeypatch, refused):
    def fail(*_):
        raise UsageError("stop here")

    monkeypatch.setattr(demo, "write_run", fail)
    assert "stop here" in refused("demo", "--out", tmp_path / "demo", *LOCAL)
    assert [path.name for path in tmp_path.iterdir()] == ["documents.parquet"]


def test_arxiv_needs_its_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("DBOOST_DATA_HOME", raising=False)
    with pytest.raises(UsageError, match="DBOOST_DATA_HOME is not set"):
        arxiv.load()
    with pytest.raises(UsageError, match="no such file"):
        arxiv.load(str(tmp_path))


@pytest.mark.full
def test_arxiv_titles_have_an_archive_and_a_part(data_home):
    table = arxiv.load(str(data_home))
    assert table.num_rows == 573_800
    labels = set(table["label"].unique().to_pylist())
    assert len(labels) == 38 and {"math", "cs", "hep-th"} <= labels
    share = table["split"].to_pylist().count("test") / table.num_rows
    assert share == pytest.approx(0.2, abs=0.005)
