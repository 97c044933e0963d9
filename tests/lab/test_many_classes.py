"""``lab many-classes``: a small run, and what counts as growing with the classes.

Does not cover: the figures of its page.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.many_classes import judged, main


def test_seconds_and_megabytes_may_grow_with_the_classes_and_no_faster() -> None:
    first = {"penalty": "l1", "classes": 100, "fit (s)": 2.0, "MB over the data": 10, "gap": 1e-4}
    linear = first | {"classes": 1000, "fit (s)": 25.0, "MB over the data": 120}
    square = first | {"classes": 1000, "fit (s)": 200.0, "MB over the data": 120}
    large = first | {"classes": 1000, "MB over the data": 1000}
    for line, met in ((linear, "yes"), (square, "NO"), (large, "NO"), (linear | {"gap": 0.1}, "NO")):
        assert [row["met"] for row in judged([first, line], 1e-3)] == ["yes", met]
    # each penalty beside its own
    other = square | {"penalty": "l1/l2"}
    assert [row["met"] for row in judged([first, other], 1e-3)] == ["yes", "yes"]


@pytest.mark.full
def test_a_small_run_writes_its_table(tmp_path: Path) -> None:
    out = tmp_path / "table.md"
    sizes = ["--documents", "400", "--words", "100", "--classes", "5", "70", "--penalty", "l1/l2"]
    main([*sizes, "--out", str(out)])
    lines = [line for line in out.read_text(encoding="utf-8").splitlines() if line.startswith("| l1/l2")]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert [row[1] for row in cells] == ["5", "70"] and all(float(row[4]) <= 1e-3 for row in cells)
