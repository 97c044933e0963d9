"""What the code cites of the mathematics is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MATHEMATICS = (ROOT / "docs" / "math.md").read_text(encoding="utf-8")
# "docs/math.md 8 (ii)", "docs/math.md 4.1, eq. 9" or "docs/math.md, eq. 16", also over the end of a line of a comment.
CITATION = re.compile(r"docs/math\.md(?:,?\s+(?:#\s+)?(\d+(?:\.\d+)?)(?:\s\(([A-L]|[iv]+)\))?)?(?:,?\s+eq\. (\d+))?")
FOLDERS = ("dboost", "lab", "pipelines", "tests")
CITING = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")) if path != Path(__file__)]


def missing(text: str) -> list[str]:
    """Citations of a text that the mathematics does not have."""
    wrong = []
    for found in CITATION.finditer(text):
        section, part, equation = found.groups()
        there = [
            section is None or re.search(rf"^(?:#+ )?{re.escape(section)}\.? ", MATHEMATICS, re.MULTILINE),
            part is None or re.search(rf"^### \({part}\) ", MATHEMATICS, re.MULTILINE),
            equation is None or f"({equation})" in MATHEMATICS,
        ]
        wrong += [] if all(there) else [found.group()]
    return wrong


def test_every_section_and_equation_that_is_cited_is_there() -> None:
    wrong = {path.relative_to(ROOT).as_posix(): missing(path.read_text(encoding="utf-8")) for path in CITING}
    assert len(wrong) > 500 and not {path: found for path, found in wrong.items() if found}
