"""What planning and preparing need of an engine.

Covers: the ``Mapper`` protocol, which every engine of ``dboost.engine`` fulfils, and its simplest form.
Does not cover: the engines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Mapper(Protocol):
    """Runs a module-level function over items, somewhere."""

    def map(self, fn: Any, items: Sequence[Any], *args: Any, name: str) -> list[Any]:
        """fn(item, *args) for every item, in the order of the items."""
        ...


class InProcess:
    """Maps in this process, one item after the other."""

    def map(self, fn: Any, items: Sequence[Any], *args: Any, name: str) -> list[Any]:
        """fn(item, *args) for every item; `name` is for engines that show their work."""
        return [fn(item, *args) for item in items]
