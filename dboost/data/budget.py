"""How much decoded data may stay in memory.

Covers: the budget of an engine that states one, else half of the memory of this machine or container.
Does not cover: who evicts what (the engine's cache does).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_budget(engine: Any) -> int:
    """Bytes of decoded partitions that fit; `engine.memory_budget` where the engine has one."""
    stated = getattr(engine, "memory_budget", None)
    if stated is not None:
        return int(stated)
    import psutil

    total = int(psutil.virtual_memory().total)
    for name in _LIMITS:
        path = Path(name)
        if path.is_file():
            text = path.read_text().strip()
            if text.isdigit():
                total = min(total, int(text))
    return total // 2
