"""What a run file names besides one file: patterns of documents, and a contract that lies beside it."""

import pytest

from pipelines.cli import main
from tests.pipelines.conftest import write_documents

RUN = """
[data]
data = "month=*/documents.parquet"
label = "label"
[prepare]
expect = "contract.toml"
[model]
alpha = 0.01
[cluster]
workers = 0
"""


@pytest.fixture
def file(tmp_path):
    for month in (1, 2):
        (tmp_path / f"month={month}").mkdir()
        write_documents(tmp_path / f"month={month}" / "documents.parquet", rows=120, seed=month)
    (tmp_path / "contract.toml").write_text("rows = [100, 1000]\n")
    (tmp_path / "trees.toml").write_text(RUN)
    return tmp_path / "trees.toml"


def stages(file, capsys):
    """How many stages a call does."""
    capsys.readouterr()
    assert main(["run", str(file), "--log-format", "json"]) == 0
    return capsys.readouterr().out.count('"event": "stage_start"')


def test_documents_of_a_pattern_and_a_contract_are_inputs(file, capsys):
    assert stages(file, capsys) > 1 and stages(file, capsys) == 0
    (file.parent / "contract.toml").write_text("rows = [100, 999]\n")
    assert stages(file, capsys) > 0 and stages(file, capsys) == 0
    (file.parent / "month=3").mkdir()
    write_documents(file.parent / "month=3" / "documents.parquet", rows=120, seed=3)
    assert stages(file, capsys) > 1
    (file.parent / "contract.toml").write_text("rows = [1, 2]\n")
    assert main(["run", str(file)]) == 3
    assert "360 rows, expected 1 to 2" in capsys.readouterr().err


def test_raw_documents_of_a_pattern_are_labelled(file, tmp_path, capsys):
    stages(file, capsys)
    model = tmp_path / "runs" / "trees" / "model"
    out = tmp_path / "labelled"
    pattern = str(tmp_path / "month=*" / "documents.parquet")
    assert main(["predict", str(model), pattern, "--out", str(out), "--workers", "0"]) == 0
    assert "240 predictions" in capsys.readouterr().out
