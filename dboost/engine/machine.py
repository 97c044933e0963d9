"""What this process may use: cores and memory of the machine or its container, and processes of its own.

Covers: cgroup versions 1 and 2, CPU affinity.
Does not cover: what others on the machine are using right now.
"""

from __future__ import annotations

import math
import multiprocessing
import os
from pathlib import Path, PurePosixPath

from dboost.errors import UsageError

_CGROUP = Path("/sys/fs/cgroup")
# In which control groups this process is.
_OWN = Path("/proc/self/cgroup")


def refuse_daemonic() -> None:
    """Say that workers cannot be started here where multiprocessing will refuse it, as in a task of Celery."""
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


def available_cores(cgroup: Path = _CGROUP, own: Path = _OWN) -> int:
    """Return the cores this process may use (at least 1)."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    for group in _groups(own):
        quota = _quota(cgroup / group.relative_to("/"), cgroup / "cpu" / group.relative_to("/"))
        if quota is not None:
            cores = min(cores, math.ceil(quota))
    return max(1, cores)


def _groups(own: Path) -> list[PurePosixPath]:
    """The control groups that a process is in, and those around them; a container may see the outermost alone."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        lines = []
    found = {PurePosixPath("/")}
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if path.startswith("/") and (not controllers or "cpu" in controllers.split(",")):
            found |= {PurePosixPath(path), *PurePosixPath(path).parents}
    return sorted(found)


def _quota(group: Path, earlier: Path) -> float | None:
    """How many processors a control group may use at once, by version 2 or 1; None where it says nothing."""
    try:
        words = (group / "cpu.max").read_text().split()
    except OSError:
        words = [str(_number(earlier / name) or "") for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")]
    if not words or not words[0].isdigit():
        return None
    period = float(words[1]) if len(words) > 1 and words[1].isdigit() else 100_000.0
    return float(words[0]) / period if period > 0 and float(words[0]) > 0 else None


def available_memory(cgroup: Path = _CGROUP) -> int:
    """Return the bytes of memory this process may use."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in (cgroup / "memory.max", cgroup / "memory" / "memory.limit_in_bytes"):
        limit = _number(path)
        if limit is not None and limit > 0:
            total = min(total, limit)
    return int(total)
