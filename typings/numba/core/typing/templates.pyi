"""Where numba registers overloads."""

from typing import Any

builtin_registry: Any
