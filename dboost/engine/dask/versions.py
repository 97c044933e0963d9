"""Are client, scheduler and workers of the same make?

Covers: asking all of them, within a time limit, and one error with a table when they differ.
Does not cover: repairing it.

Dask itself only warns, and the first task may then wait for ever: what one side pickles the other cannot read.
Equal versions of numpy and numba are also what "the same bits on any worker" rests on.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable
from typing import Any

from dboost.errors import ClusterError

PACKAGES = ("python", "dask", "distributed", "numpy", "numba", "pyarrow", "dboost")
_SCHEDULER_MAY_LACK = ("numba", "pyarrow")
"""The scheduler moves tasks and runs none."""

AGAIN = 0.2
"""Seconds until a worker is asked again that did not answer and is still on the scheduler's list."""


def own_versions() -> dict[str, str | None]:
    """Return the versions of this process."""
    from distributed.versions import get_versions

    return _relevant(get_versions(packages=list(PACKAGES)))


def _relevant(answer: dict[str, Any]) -> dict[str, str | None]:
    packages = dict(answer["packages"])
    python = answer["host"].get("python")
    packages["python"] = None if python is None else ".".join(python.split(".")[:2])
    return {name: packages.get(name) for name in PACKAGES}


def compare(
    client: dict[str, str | None],
    scheduler: dict[str, str | None],
    workers: dict[str, dict[str, str | None]],
) -> None:
    """Raise when versions differ.

    Raises ClusterError with a table of package, client, scheduler and workers.
    """
    lines = []
    for name in PACKAGES:
        mine, its = client[name], scheduler[name]
        wrong_scheduler = its != mine and not (its is None and name in _SCHEDULER_MAY_LACK)
        wrong = {address: versions[name] for address, versions in workers.items() if versions[name] != mine}
        if wrong_scheduler or wrong:
            some = ", ".join(f"{address} {version or 'missing'}" for address, version in sorted(wrong.items())[:3])
            more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
            lines.append(f"  {name:<12} {mine or 'missing':<14} {its or 'missing':<14} {some + more or 'same'}")
    if lines:
        table = "\n".join([f"  {'package':<12} {'client':<14} {'scheduler':<14} workers that differ", *lines])
        raise ClusterError(
            "client, scheduler and workers run different versions, which makes tasks wait for ever or results differ",
            hint=f"install the same versions everywhere:\n{table}",
        )


async def check(client: Any, addresses: Iterable[str], timeout: float, strict: bool) -> set[str]:
    """Ask scheduler and workers for their versions and compare them with this process.

    `addresses`: workers to ask. `timeout`: seconds for each question. `strict`: raise when a worker that is still there
    does not answer; otherwise leave it out (it may be stopped). Returns the workers that answered. Raises ClusterError:
    versions differ, or someone does not answer.
    """
    addresses = sorted(addresses)
    try:
        scheduler = await asyncio.wait_for(client.scheduler.versions(packages=list(PACKAGES)), timeout)
    except (TimeoutError, OSError) as error:
        raise ClusterError(
            f"the scheduler did not tell its versions within {timeout:g} s ({type(error).__name__})",
            hint="check the scheduler's address and log",
        ) from error

    async def ask(some: list[str]) -> dict[str, Any]:
        message = {"op": "versions", "packages": list(PACKAGES)}
        answer: dict[str, Any] = await asyncio.wait_for(
            client.scheduler.broadcast(msg=message, workers=some, on_error="ignore"), timeout
        )
        return answer

    answers: dict[str, Any] = {}
    mute, until = addresses, time.monotonic() + timeout
    while mute:
        try:
            answers |= await ask(mute)
        except (TimeoutError, OSError):
            # One frozen worker keeps the joint answer back; ask each, to learn which one it is.
            for one in await asyncio.gather(*(ask([address]) for address in mute), return_exceptions=True):
                if isinstance(one, dict):
                    answers.update(one)
        mute = [address for address in mute if address not in answers]
        if not mute or not strict:
            break
        # One that has died since it was listed is taken from the list in a moment, and whoever comes in its place is
        # asked then.
        with contextlib.suppress(TimeoutError, OSError):
            there = await asyncio.wait_for(client.scheduler.ncores_running(), timeout)
            mute = [address for address in mute if address in there]
        if time.monotonic() > until:
            break
        await asyncio.sleep(AGAIN)
    compare(own_versions(), _relevant(scheduler), {address: _relevant(a) for address, a in answers.items()})
    if mute and strict:
        raise ClusterError(
            f"{len(mute)} of {len(addresses)} workers did not tell their versions within {timeout:g} s: "
            + ", ".join(mute[:5]),
            hint="they are stopped, overloaded or of a version that cannot be talked to; restart or remove them",
        )
    return set(answers)
