"""Tables of measurements as Markdown, on the terminal and in a file.

Covers: aligning columns, writing ``runs/<name>.md``. Does not cover: measuring, or the live table of a fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dboost.files.paths import local_path


def cell(value: Any) -> str:
    """Return a value as a short text: None is a dash, floats have four figures."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def markdown(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Return an aligned Markdown table.

    `rows`: A missing key is shown as a dash. `columns`: keys, in order; they are the headings too.
    """
    body = [[cell(row.get(column)) for column in columns] for row in rows]
    widths = [max([len(column), *(len(line[j]) for line in body)]) for j, column in enumerate(columns)]

    def joined(line: Sequence[str]) -> str:
        return "| " + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([joined(list(columns)), rule, *(joined(line) for line in body)])


def write(path: Path, title: str, paragraphs: Sequence[str]) -> None:
    """Write a Markdown file with a title, its folder created when missing."""
    path = local_path(path, "out")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join([f"# {title}", *paragraphs]) + "\n", encoding="utf-8")
