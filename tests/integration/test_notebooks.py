"""Every notebook of the examples, from its first cell to its last, one of them on a cluster that it starts."""

from __future__ import annotations

import pytest

from tests.notebooks.kernels import ROOT, executed


def texts(path, folder):
    """What the cells show, as text; none may have warned."""
    cells = [cell for cell in executed(path, folder).cells if cell.cell_type == "code"]
    outputs = [output for cell in cells for output in cell.outputs]
    warned = [output["text"] for output in outputs if output.get("name") == "stderr"]
    assert not [text for text in warned if not text.startswith("compiling the loops")]
    return [output.get("text") or output["data"].get("text/plain", "") for output in outputs]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("first_model", "of new digits right"),
        ("cluster_and_path", "RegularizationPath(8 models)"),
        ("documents_at_a_client", "'prepare': 'done'"),
        ("nightly_retraining", "v0001 is the champion again, and no longer v0002"),
    ],
)
def test_a_notebook_runs_to_its_end(name, said, tmp_path):
    shown = texts(ROOT / "examples" / "notebooks" / f"{name}.ipynb", tmp_path)
    assert any(said in text for text in shown)
    if name == "cluster_and_path":
        assert "True" in shown and any(" · done" in text for text in shown)
    if name == "nightly_retraining":
        assert [text.split("'")[1] for text in shown if text.startswith("Decision(")] == [
            "promoted",
            "promoted",
            "declined",
        ]
