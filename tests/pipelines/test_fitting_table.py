"""Tables at 80 columns: no word is split, no number cut, no column of numbers lost."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console as Terminal

from pipelines import pages
from pipelines.console import COLUMNS, Console
from pipelines.fitting_table import FittingTable, folded, grid
from tests.pipelines.test_pages import model

GROUPS = [f"{area}.{name}" for area in ("comp.sys.ibm", "talk.politics", "rec.sport", "sci") for name in
          ("hardware", "mideast", "baseball", "electronics", "misc")]  # fmt: skip


def lines_of(parts: list[object], width: int) -> list[str]:
    out = io.StringIO()
    Terminal(file=out, width=width, highlight=False, markup=False).print(*parts, sep="\n")
    return [line.rstrip() for line in out.getvalue().splitlines()]


def newsgroups() -> object:
    rng = np.random.default_rng(0)
    W = rng.normal(size=(12, len(GROUPS))) * 10 + 0.01
    return model(W, tuple(f"a_characteristic_word_{j}" for j in range(12)), GROUPS)


@pytest.mark.parametrize("width", [80, 100, 120])
def test_the_map_of_twenty_classes_splits_no_word_and_loses_no_column(width: int) -> None:
    found = newsgroups()
    lines = lines_of(pages.sparsity_map(found, 12), width)
    assert max(map(len, lines)) <= width
    start = next(i for i, line in enumerate(lines) if line.startswith("feature "))
    # One line a feature: what does not fit is cut with an ellipsis, never folded into the next line.
    rows = lines[start + 1 : start + 13]
    assert all(row.startswith("a_char") and row.split()[2] == "20" for row in rows)
    # Every class keeps its number of features, beside as much of the words as there is room for.
    table = lines[next(i for i, line in enumerate(lines) if line.startswith("class ")) :]
    assert table[0].split()[:2] == ["class", "features"]
    assert len(table) == 21 and all(row.split()[1] == "12" for row in table[1:])


def test_numbers_are_whole_however_narrow_it_is() -> None:
    headings = (
        "penalty",
        "error",
        "coverage",
        "features used",
        "weights",
        "certified gap",
        "rounds",
        "passes",
        "seconds",
    )
    cells = ("l1/l2", "12.3 %", "0.123", "12,345 of 56,436", "123,456", "9.9e-05", "1,000", "12,345", "1234.5")
    lines = lines_of([grid(headings, [cells])], 80)
    assert max(map(len, lines)) <= 80
    for cell in cells:
        assert cell in lines[-1]
    for word in " ".join(headings).split():
        assert any(word in line.split() for line in lines)


def test_columns_that_may_be_left_out_go_last_first() -> None:
    table = FittingTable()
    table.add_column("name", least=10)
    table.add_column("a", right=True)
    table.add_column("more", least=10, drop=1)
    table.add_column("most", least=10, drop=2)
    table.add_row("x" * 30, "1", "y" * 30, "z" * 30)
    assert lines_of([table], 100)[0].split() == ["name", "a", "more", "most"]
    assert lines_of([table], 30)[0].split() == ["name", "a", "more"]
    assert lines_of([table], 14)[0].split() == ["name", "a"]


def test_headings_break_at_spaces_only() -> None:
    assert folded("certified gap", 9) == "certified\ngap" and folded("of a b", 4) == "of a\nb"


def test_a_line_of_a_round_fits_80_columns_and_is_one_line() -> None:
    record = {"round": 99999, "objective": 0.6918967, "gap": 1.25e-3, "rows_in": 123, "rows_out": 12}
    record |= {"active_rows": 123456, "entries": 1234567, "passes": 12345, "seconds": 1234.5}
    out = io.StringIO()
    with Console("plain", out=out).rounds("training") as show:
        show(record)
        show(record | {"objective": 1e300, "entries": 10**12})
    lines = out.getvalue().splitlines()
    assert len(lines) == 4 and max(map(len, lines[:3])) <= 80
    assert [len(line.split()) for line in lines[2:]] == [len(COLUMNS)] * 2
