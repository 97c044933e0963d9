"""Print the lowest versions that pyproject.toml allows, one requirement a line: ``python lab/lowest.py``.

Covers: dependencies, and those of the extra ``test`` that tests import. Does not cover: installing them
(``make test-lowest``). It is run before anything is installed and needs only the standard library.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
WITHOUT = ("coverage", "mypy", "ruff", "setuptools")
"""Tools of the extra ``test`` that no test of the lane imports."""


def requirements(pyproject: Path = PYPROJECT) -> list[str]:
    """Every ``name>=version`` as ``name==version``."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    found = []
    for requirement in [*project["dependencies"], *project["optional-dependencies"]["test"]]:
        name, bound, version = requirement.partition(">=")
        if not bound:
            raise ValueError(f"{requirement!r} has no lower bound; expected name>=version")
        if name not in WITHOUT:
            found.append(f"{name}=={version}")
    return found


if __name__ == "__main__":
    print("\n".join(requirements()))
