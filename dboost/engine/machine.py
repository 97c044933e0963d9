"""What this process may use: cores and memory of the machine or its container, and processes of its own.

Covers: cgroup versions 1 and 2, CPU affinity.
Does not cover: what others on the machine are using right now.
"""

from __future__ import annotations

import math
import multiprocessing
import os
from pathlib import Path

from dboost.errors import UsageError

_CGROUP = Path("/sys/fs/cgroup")


def refuse_daemonic() -> None:
    """Say that workers cannot be started here where multiprocessing will refuse it, as in a task of Celery.

    Raises
    ------
    UsageError
    """
    if multiprocessing.current_process().daemon:
        raise UsageError(
            "this process is daemonic, as those of a multiprocessing pool and of Celery are, and may start no workers",
            hint="take its own threads (--workers 0, in Python no client), or the scheduler of a cluster elsewhere",
        )


def _number(path: Path) -> int | None:
    try:
        text = path.read_text().split()[0]
    except (OSError, IndexError):
        return None
    return int(text) if text.lstrip("-").isdigit() else None


def available_cores(cgroup: Path = _CGROUP) -> int:
    """Return the cores this process may use (at least 1)."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quota, period = _number(cgroup / "cpu" / "cpu.cfs_quota_us"), _number(cgroup / "cpu" / "cpu.cfs_period_us")
    modern = cgroup / "cpu.max"
    if modern.exists():
        words = modern.read_text().split()
        quota = int(words[0]) if words[0].isdigit() else None
        period = int(words[1]) if len(words) > 1 else 100_000
    if quota is not None and period and quota > 0:
        cores = min(cores, math.ceil(quota / period))
    return max(1, cores)


def available_memory(cgroup: Path = _CGROUP) -> int:
    """Return the bytes of memory this process may use."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in (cgroup / "memory.max", cgroup / "memory" / "memory.limit_in_bytes"):
        limit = _number(path)
        if limit is not None and limit > 0:
            total = min(total, limit)
    return int(total)
