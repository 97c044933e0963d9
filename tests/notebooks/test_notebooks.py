"""The notebooks of the examples: what is committed of them, and the first of them run from its first cell to its last.

``make integration`` runs all of them (tests/integration/test_notebooks.py).
"""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from tests.notebooks.kernels import ROOT, executed

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_what_it_showed_and_tells_before_it_does(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[0].cell_type == "markdown" and notebook.cells[0].source.startswith("# ")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) >= 5 and len(notebook.cells) - len(code) >= 5
    for cell in code:
        assert cell.outputs == [] and cell.execution_count is None and cell.metadata == {}
        compile(cell.source, str(path), "exec")
    assert path.read_text(encoding="utf-8").endswith("}\n")


def test_the_first_notebook_runs_and_shows_the_model(tmp_path: Path) -> None:
    shown = executed(ROOT / "examples" / "notebooks" / "first_model.ipynb", tmp_path)
    outputs = [output for cell in shown.cells if cell.cell_type == "code" for output in cell.outputs]
    pages = [output["data"]["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert any("parameters-table" in page and "certified gap" in page for page in pages)
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
    assert outputs[-1]["data"]["text/plain"] == "True"
    assert not [output for output in outputs if output.get("name") == "stderr"]


@pytest.mark.full
def test_documents_become_a_page_at_a_client_with_progress_below_the_cells(tmp_path: Path) -> None:
    shown = executed(ROOT / "examples" / "notebooks" / "documents_at_a_client.ipynb", tmp_path)
    outputs = [output for cell in shown.cells if cell.cell_type == "code" for output in cell.outputs]
    said = "".join(output["text"] for output in outputs if output.get("name") == "stdout")
    for line in ("pre-flight: ", "prepare: ", "certified gap", "evaluate: ", "90 predictions: "):
        assert line in said, line
    values = [" ".join(output["data"].get("text/plain", "").split()) for output in outputs if "data" in output]
    # Six words of each tree, and "and", "in", "the" and "note", of which none is in at most half of the notes.
    assert "{'features': 18, 'splits': {'test': 90, 'train': 600}}" in values
    assert "0.0" in values
    assert str(dict.fromkeys(("prepare", "train", "evaluate", "predict", "report"), "done")) in values
    pages = [output["data"]["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert any("orchard" in page and "</html>" in page for page in pages)
    assert not [output for output in outputs if output.get("name") == "stderr"]
