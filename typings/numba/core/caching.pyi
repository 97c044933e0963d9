"""What ``dboost.compiled.kept`` takes over of how numba keeps compiled code."""

from typing import Any

def dumps(obj: Any) -> bytes: ...

class CompileResultCacheImpl:
    _lineno: int
    _locator: Any
    locator: Any
    def __init__(self, py_func: Any) -> None: ...
    def check_cachable(self, data: Any) -> bool: ...
    def reduce(self, data: Any) -> Any: ...
    def rebuild(self, target_context: Any, payload: Any) -> Any: ...

class FunctionCache:
    _name: str
    _impl: Any
    _enabled: bool
    def enable(self) -> None: ...
