"""The part of numba that dboost calls, for type checking: numba itself says nothing of its types.

A compiled function takes and returns what its source says, so ``njit`` gives back the type that it is given.
"""

from collections.abc import Callable
from typing import Any, TypeVar, overload

types: Any

F = TypeVar("F", bound=Callable[..., Any])

@overload
def njit(function: F, /) -> F: ...
@overload
def njit(**options: Any) -> Callable[[F], F]: ...
def __getattr__(name: str) -> Any: ...
