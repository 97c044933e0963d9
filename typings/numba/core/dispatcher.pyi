"""What a decorated function is."""

from typing import Any

class Dispatcher:
    py_func: Any
    targetoptions: dict[str, Any]
