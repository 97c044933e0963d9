"""``python -m lab.many_workers.process scheduler`` or ``... workers ADDRESS COUNT``: a process of the simulation.

Covers: a real scheduler in a process of its own, and many real workers that share one. Each prints a line once it is
ready, and ends when its standard input does, so that none outlives its driver.
Does not cover: starting these (``cluster``).

What the workers of a process share is the interpreter, the event loop and the memory. Each has its own address, its
own connection to the scheduler, its own connections to other workers, its own state and its own thread for tasks: the
messages that scheduler, driver and workers exchange are those of as many processes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys

import dask
from distributed import Scheduler, Worker

from lab.many_workers.wire import count_bytes

SETTINGS = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.http.routes": [],
    "distributed.scheduler.http.routes": [],
    # What each process does for itself however much there is to do: of a thousand in one it would be all that runs.
    "distributed.admin.system-monitor.interval": "1 hour",
    "distributed.admin.tick.interval": "1 minute",
    "distributed.comm.timeouts.connect": "120 s",
    "distributed.comm.timeouts.tcp": "600 s",
}
AT_ONCE = 32
"""Workers that are started at a time."""


async def _until_input_ends() -> None:
    """Wait, and then end the process at once: saying good-bye to a thousand others may last for ever."""
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)


async def _scheduler() -> None:
    async with Scheduler(host="127.0.0.1", port=0, dashboard=False, dashboard_address=None) as scheduler:
        print(scheduler.address, flush=True)
        await _until_input_ends()


async def _workers(address: str, count: int) -> None:
    workers = [
        Worker(address, nthreads=1, memory_limit=0, dashboard=False, host="127.0.0.1", death_timeout=600)
        for _ in range(count)
    ]
    for first in range(0, count, AT_ONCE):
        await asyncio.gather(*workers[first : first + AT_ONCE])
    print(workers[0].address, flush=True)
    await _until_input_ends()


def main(arguments: list[str]) -> int:
    """Run one of the two until the standard input ends."""
    count_bytes()
    # Of each worker that comes and goes the scheduler writes a line, and of a thousand a thousand.
    for name in ("distributed", "distributed.core", "distributed.scheduler", "distributed.worker"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with dask.config.set(SETTINGS):
        if arguments[0] == "scheduler":
            asyncio.run(_scheduler())
        else:
            asyncio.run(_workers(arguments[1], int(arguments[2])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
