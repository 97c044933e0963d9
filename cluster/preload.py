"""Run by every worker before its first task: equal versions, and compiled kernels in memory.

Covers: refusing a worker whose dboost, NumPy or Python differs from the scheduler's expectations, which would otherwise
show as a task that never ends; loading the kernels from their cache. Does not cover: how kernels are compiled
(``dboost.warm``, run when the image is built).
"""

from __future__ import annotations

import logging
import sys
from importlib.metadata import version
from typing import Any

log = logging.getLogger("distributed.worker")

# Where a different version changes bits or cannot be unpickled.
CHECKED = ("dboost", "dask", "distributed", "numpy", "numba", "pyarrow")


def own_versions() -> dict[str, str]:
    """Versions of this process."""
    return {"python": f"{sys.version_info[0]}.{sys.version_info[1]}", **{name: version(name) for name in CHECKED}}


async def dask_setup(worker: Any) -> None:
    """Dask calls this when the worker starts.

    Raises
    ------
    SystemExit
        When the scheduler runs other versions of what both have. Dask only logs an ordinary exception of a preload and
        lets the worker join all the same.
    """
    mine = own_versions()
    answer = await worker.scheduler.versions(packages=list(CHECKED))
    theirs = {name: found for name, found in answer["packages"].items() if found is not None}
    theirs["python"] = ".".join(str(theirs.get("python", mine["python"])).split(".")[:2])
    different = {name: (found, theirs[name]) for name, found in mine.items() if theirs.get(name, found) != found}
    if different:
        shown = ", ".join(f"{name} {here} here, {there} there" for name, (here, there) in sorted(different.items()))
        log.error("this worker and its scheduler differ: %s; use one image for both", shown)
        raise SystemExit(f"this worker and its scheduler differ: {shown}")
    from dboost.warm import warm

    log.info("dboost %s: kernels ready after %.1f s", mine["dboost"], warm())
