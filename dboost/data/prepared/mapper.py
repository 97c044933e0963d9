"""What planning and preparing need of an engine.

Covers: the ``Mapper`` protocol, which every engine of ``dboost.engine`` fulfils, its simplest form, and ``Clustered``,
which those with a Dask client are.
Does not cover: the engines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")
S = TypeVar("S")


class Mapper(Protocol):
    """Runs a module-level function over items, somewhere."""

    def map(self, fn: Callable[..., T], items: Sequence[Any], *args: Any, name: str) -> list[T]:
        """fn(item, *args) for every item, in the order of the items."""

    def on_driver(self, fn: Callable[[S], T], items: Sequence[S]) -> list[T]:
        """fn(item) for every item, on threads of this process."""

    def run_in_background(self, fn: Callable[[], T]) -> Callable[[], T]:
        """Begin fn() beside what the caller does next; the function that is returned gives its result."""


@runtime_checkable
class Clustered(Protocol):
    """An engine whose items may be futures of a Dask client."""

    @property
    def client(self) -> Any:
        """The ``distributed.Client``."""


class InProcess:
    """Maps in this process, one item after the other."""

    def map(self, fn: Callable[..., T], items: Sequence[Any], *args: Any, name: str) -> list[T]:
        """fn(item, *args) for every item; `name` is for engines that show their work."""
        return [fn(item, *args) for item in items]

    def on_driver(self, fn: Callable[[S], T], items: Sequence[S]) -> list[T]:
        """fn(item) for every item."""
        return [fn(item) for item in items]

    def run_in_background(self, fn: Callable[[], T]) -> Callable[[], T]:
        """fn(), computed at once."""
        found = fn()
        return lambda: found
