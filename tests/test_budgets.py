"""The suite and the code stay as large as ``budgets.toml`` says: whoever needs more changes it in the same commit."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.costs import BUDGETS, folder

ROOT = Path(__file__).resolve().parent.parent


def test_items_of_each_folder(request: pytest.FixtureRequest) -> None:
    found = Counter(folder(item.nodeid) for item in request.session.items if item.get_closest_marker("full") is None)
    above = {name: count for name, count in found.items() if count > BUDGETS["items"].get(name, 0)}
    assert not above, f"more items in `make test` than tests/budgets.toml has: {above}"


def test_lines_of_each_part() -> None:
    found = {
        part: sum(len(path.read_bytes().splitlines()) for path in (ROOT / part).rglob("*.py"))
        for part in BUDGETS["lines"]
    }
    above = {part: lines for part, lines in found.items() if lines > BUDGETS["lines"][part]}
    assert min(found.values()) > 1000 and not above, f"more lines than tests/budgets.toml has: {above}"
