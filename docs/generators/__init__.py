"""Pages of the documentation that are written from the code: options, errors, reference.

Covers: which pages there are, and writing them into a folder. Does not cover: what a page says (one module each).
"""

from __future__ import annotations

from pathlib import Path

from docs.generators import errors, options, reference


def pages() -> dict[str, str]:
    """Name of each file, relative to the folder of generated pages, and its text."""
    return {"options.md": options.page(), "errors.md": errors.page(), **reference.pages()}


def write_all(folder: Path) -> None:
    """Write every page; one that has not changed is left alone, so that Sphinx does not read it again."""
    for name, text in pages().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
