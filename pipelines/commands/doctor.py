"""``dboost doctor``: whether this machine or cluster is fit for a training, and what to change.

Every check is a function of the client, the data and the path of the data, each None where there is none. It says what
it found and what to do, if anything; none changes anything. The command ends with 4 where a training could not work,
with 0 otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from dboost.engine.machine import available_cores
from dboost.errors import ClusterError, DataError, DboostError
from dboost.files.paths import local_path
from dboost.files.store_folders import current
from dboost.files.stores import any_path

from .. import pages
from ..before_training import in_seconds, judged, room_of, shape_of
from ..cluster import connect
from ..config import ClusterSettings, DataSettings, LogSettings, Text, key
from ..console import Console
from ..fitting_table import grid
from ..inputs import open_data

GOOD, ADVICE, BAD = "good", "advice", "bad"
UNFIT = 4
_TIMEOUT = 20.0
# Variables by which numerical libraries are told how many threads they may start.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Finding:
    """What a check found."""

    check: str
    state: str  # {"good", "advice", "bad"}
    found: str
    advice: str = ""  # what to do; empty where nothing is


@dataclass(frozen=True, kw_only=True)
class DoctorSettings(DataSettings, ClusterSettings, LogSettings):
    """What `dboost doctor` takes."""


def do_doctor(settings: DoctorSettings, console: Console) -> int:
    """Print the findings of all checks; 4 where a training cannot work."""
    data = None if settings.data is None else open_data(settings, "train")
    with connect(settings, console) as client:
        path = None if settings.data is None else str(current(any_path(settings.data, "data").resolve()))
        found = [finding for check in CHECKS for finding in check(client, data, path)]
    rows = [(one.check, one.state, one.found, one.advice) for one in found]
    table = grid(("check", "", "found", "what to do"), rows, left=range(4))
    worst = BAD if any(one.state == BAD for one in found) else ADVICE if any(one.advice for one in found) else GOOD
    words = {GOOD: "a training can begin", ADVICE: "a training works, see the advice", BAD: "a training cannot work"}
    values = {"verdict": worst, "findings": [vars(one) for one in found]}
    console.page("doctor", [pages.titled(words[worst], table)], values)
    return UNFIT if worst == BAD else 0


# ---- the checks ----------------------------------------------------------------------------------------------------


def versions(client: Any, data: Any, path: str | None) -> Iterator[Finding]:
    """Client, scheduler and workers are of the same make."""
    if client is None:
        return
    from dboost.engine.dask.versions import check

    try:
        client.sync(check, client, list(client.nthreads()), _TIMEOUT, True)
    except DboostError as error:
        yield Finding("versions", BAD, " ".join(str(error.what).split())[:200], "install the same packages everywhere")
        return
    yield Finding("versions", GOOD, f"the same on {len(client.nthreads())} workers")


def threads(client: Any, data: Any, path: str | None) -> Iterator[Finding]:
    """Nobody starts more threads than there are cores."""
    if client is None:
        yield Finding("threads", GOOD, f"{available_cores()} cores of this machine")
        return
    answers = client.run(_threads_of_worker)
    hosts: dict[str, list[tuple[int, int, dict[str, str]]]] = {}
    for address, answer in answers.items():
        hosts.setdefault(address.rpartition("://")[2].rpartition(":")[0], []).append(answer)
    for host, here in sorted(hosts.items()):
        mine, cores = sum(answer[0] for answer in here), here[0][1]
        if mine > cores:
            advice = f"start workers with --nthreads {max(1, cores // len(here))}"
            yield Finding("threads", ADVICE, f"{mine} threads on the {cores} cores of {host}", advice)
            return
        limits = {name: value for answer in here for name, value in answer[2].items() if value != "1"}
        if limits:
            named = ", ".join(f"{name}={value}" for name, value in sorted(limits.items()))
            yield Finding("threads", ADVICE, f"{host}: {named}", "set these to 1: the loops bring their own threads")
            return
    yield Finding("threads", GOOD, f"{sum(answer[0] for answer in answers.values())} on {len(answers)} workers")


def _threads_of_worker(dask_worker: Any = None) -> tuple[int, int, dict[str, str]]:
    limits = {name: os.environ[name] for name in _THREADS if name in os.environ}
    return dask_worker.state.nthreads, available_cores(), limits


def paths(client: Any, data: Any, path: str | None) -> Iterator[Finding]:
    """Every worker sees the data under the name that is used here, and has room for what it may have to put aside."""
    if client is None or path is None:
        return
    here = state_of(path)
    other = {address for address, seen in client.run(state_of, path).items() if seen != here}
    if other:
        some = ", ".join(sorted(other)[:3])
        words = f"{len(other)} workers do not see {path} as it is here: {some}"
        yield Finding("data", BAD, words, "mount the same folder everywhere")
        return
    yield Finding("data", GOOD, "all workers see it")


def state_of(path: str) -> Any:
    """Names in a folder, the size of a file, None of what is not there: equal where the same data are seen."""
    where = any_path(path)
    if where.is_dir():
        return sorted(one.name for one in where.iterdir())
    return where.stat().st_size if where.exists() else None


def memory(client: Any, data: Any, path: str | None) -> Iterator[Finding]:
    """What a training takes, of memory, seconds and bytes on the way, against what there is; see ``preflight``."""
    if data is None:
        return
    shape, room = shape_of(data), room_of(client)
    try:
        found = judged(shape, room)
    except (ClusterError, DataError) as error:
        yield Finding("memory", BAD, error.what, error.hint or "")
        return
    words = f"{found.memory}, {in_seconds(found.needs.seconds)} a pass"
    yield Finding("memory", ADVICE if found.advice else GOOD, words, found.advice)


def encryption(client: Any, data: Any, path: str | None) -> Iterator[Finding]:
    """A scheduler beyond this machine is encrypted: whoever reaches it runs code on it."""
    if client is None:
        return
    from dboost.engine.dask.encryption import open_address

    address = str(client.scheduler.address)
    found = open_address(address)
    if found:
        yield Finding("encryption", ADVICE, f"{found} is open to its network", "use TLS (--tls), or a policy")
    else:
        scheme = address.partition("://")[0]
        words = f"{scheme}:// on loopback" if scheme in ("tcp", "inproc") else "encrypted"
        yield Finding("encryption", GOOD, words)


def loops(client: Any, data: Any, path: str | None) -> Iterator[Finding]:
    """Compiled loops are kept for later processes."""
    from dboost.kernel_cache import VARIABLE, lasting

    if lasting():
        yield Finding("compiled loops", GOOD, "kept for later processes")
    else:
        yield Finding("compiled loops", ADVICE, "compiled by every process", f"set {VARIABLE} to a folder it can write")


CHECKS = (versions, threads, paths, memory, encryption, loops)


@dataclass(frozen=True, kw_only=True)
class WarmSettings(LogSettings):
    """What `dboost warm` takes."""

    to: Text | None = key(None, "folder for loops that other machines of this kind can run as well")
    fits: Literal["all", "default"] = key("all", "whose loops: of every fit, or of those that the defaults make")


def do_warm(settings: WarmSettings, console: Console) -> None:
    """Compile."""
    # numba and all parts of the library, which `--help` does not load
    from dboost import warm
    from dboost.compiled.kept import CARRIED

    if settings.to is None:
        seconds = warm.warm(settings.fits, console.say)
        console.say(warm.words(seconds))
        return
    folder = local_path(settings.to, "to").resolve()
    warm.warm_to(folder, settings.fits)
    found = "where they are found" if folder == CARRIED else f"to be found, they go to {CARRIED}"
    console.say(f"{sum(1 for _ in folder.glob('*.nbc'))} loops lie in {folder}: {found}")


COMMANDS = {"doctor": (DoctorSettings, do_doctor), "warm": (WarmSettings, do_warm)}
