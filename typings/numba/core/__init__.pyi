"""See ``numba/__init__.pyi``."""

from typing import Any

cgutils: Any
types: Any

def __getattr__(name: str) -> Any: ...
