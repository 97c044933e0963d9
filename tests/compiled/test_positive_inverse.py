"""Nothing in a fit has other bits for other threads of a BLAS."""

from __future__ import annotations

import re
from pathlib import Path

import dboost


def test_no_fit_asks_lapack():
    """Its threads would fight the passes' for the cores, and may change the bits."""
    asked = re.compile(r"linalg\.(?!norm\b)\w+")
    files = Path(dboost.__file__).parent.rglob("*.py")
    assert not [f"{file.name}: {found}" for file in files for found in asked.findall(_code(file.read_text()))]


def _code(text: str) -> str:
    """Without the examples of docstrings."""
    return "\n".join(line for line in text.splitlines() if not line.strip().startswith((">>>", "...")))
