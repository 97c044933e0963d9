"""What ``dboost.compiled.kept`` takes over of how numba keeps compiled code."""

from contextlib import AbstractContextManager
from typing import IO, Any

class IndexDataCacheFile:
    _cache_path: str
    _source_stamp: Any
    def __init__(self, cache_path: str, filename_base: str, source_stamp: Any) -> None: ...
    def _dump(self, obj: Any) -> bytes: ...
    def _open_for_write(self, filepath: str) -> AbstractContextManager[IO[bytes]]: ...

class FunctionCache:
    _cache_path: str
    _cache_file: IndexDataCacheFile
    _impl: Any
    def __init__(self, py_func: Any) -> None: ...
