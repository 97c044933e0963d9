"""``lab all-products``: a small run of one system, and what counts as growing with the products.

Does not cover: the figures of its page.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.all_products import SYSTEMS, judged, main


def test_seconds_may_grow_with_the_products_and_no_faster() -> None:
    first = {"system": "forward", "classes": 2, "engine": "in-process", "products": 1000, "seconds a round": 0.2}
    more = first | {"products": 16_000}
    for seconds, met in ((3.0, "yes"), (30.0, "NO")):
        assert [row["met"] for row in judged([first, more | {"seconds a round": seconds}])] == ["yes", met]
    # each engine beside its own
    assert [row["met"] for row in judged([first, more | {"engine": "2 workers", "seconds a round": 30.0}])] == [
        "yes"
    ] * 2


@pytest.mark.full
def test_a_small_run_writes_its_table(tmp_path: Path) -> None:
    out = tmp_path / "table.md"
    sizes = ["--rows", "60", "--columns", "40", "80", "--system", "leveraging", "ShareBoost", "--workers", "0"]
    main([*sizes, "--rounds", "2", "--out", str(out)])
    lines = [line for line in out.read_text(encoding="utf-8").splitlines() if "in-process" in line]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert [row[:3] for row in cells] == [
        [system, classes, columns]
        for system in ("leveraging", "ShareBoost")
        for classes in map(str, SYSTEMS[system][0])
        for columns in ("40", "80")
    ]
    assert all(row[5] == "2" and int(row[3]) > 40 for row in cells)
