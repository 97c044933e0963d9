"""See ``numba/__init__.pyi``."""

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")

def overload(function: Any, /, **options: Any) -> Callable[[F], F]: ...

# What is written begins with the typing context, which a caller does not give.
def intrinsic(function: Callable[Concatenate[Any, P], Any], /) -> Callable[P, Any]: ...
def __getattr__(name: str) -> Any: ...
