"""How numba writes a new array into a loop."""

from collections.abc import Sequence
from typing import Any

def _empty_nd_impl(context: Any, builder: Any, array: Any, shape: Sequence[Any]) -> Any: ...
def __getattr__(name: str) -> Any: ...
