"""Capabilities: what some objects can do beside the least that all of their kind can, as Protocols."""

from __future__ import annotations

from typing import Any, Protocol

_FOUND: dict[tuple[type, type], bool] = {}


class OfTypes(type(Protocol)):  # type: ignore[misc]
    """The metaclass of a Protocol that asks a type once: passes ask often, and a question looks up all members."""

    def __instancecheck__(cls, instance: Any) -> bool:
        asked = cls, type(instance)
        if asked not in _FOUND:
            _FOUND[asked] = super().__instancecheck__(instance)
        return _FOUND[asked]
