"""What planning and preparing need of an engine.

Covers: the ``Mapper`` protocol, which every engine of ``dboost.engine`` fulfils, and its simplest form.
Does not cover: the engines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Mapper(Protocol):
    """Runs a module-level function over items, somewhere."""

    def map(self, fn: Any, items: Sequence[Any], *args: Any, name: str) -> list[Any]:
        """fn(item, *args) for every item, in the order of the items."""
        ...

    def on_driver(self, fn: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """fn(item) for every item, on threads of this process."""
        ...

    def aside(self, fn: Callable[[], Any]) -> Callable[[], Any]:
        """Begin fn() beside what the caller does next; the function that is returned gives its result."""
        ...


class InProcess:
    """Maps in this process, one item after the other."""

    def map(self, fn: Any, items: Sequence[Any], *args: Any, name: str) -> list[Any]:
        """fn(item, *args) for every item; `name` is for engines that show their work."""
        return [fn(item, *args) for item in items]

    def on_driver(self, fn: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """fn(item) for every item."""
        return [fn(item) for item in items]

    def aside(self, fn: Callable[[], Any]) -> Callable[[], Any]:
        """fn(), computed at once."""
        found = fn()
        return lambda: found
