"""Where a command runs: threads of this process, an embedded cluster, or a scheduler elsewhere.

A scheduler that comes back knows no task and no worker of before, so nothing is asked of it: the work starts anew with
a client of its own, and goes on from its last state.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from dboost.errors import ClusterError, SchedulerLostError, UsageError

from .config import ClusterSettings, given
from .console import Console
from .places.registry import PLACES
from .places.security import TEMPORARY, security_of
from .runs.fingerprints import files_of

# Bytes of files up to which the work is done sooner than a cluster is there; they take some times as much in memory.
SMALL_BYTES = 32 << 20
# Keys that ask for a cluster.
_OF_A_CLUSTER = ("to", "workers", "memory_limit", "hosts", "options")
# Seconds for taking leave of a scheduler that has not answered.
CLOSE_SECONDS = 1.0
# Seconds for reaching a scheduler, and for waiting for a lost one, where settings do not say it.
CONNECT_SECONDS, REJOIN_SECONDS = 30.0, 60.0
ADDRESS_VARIABLE = "DASK_SCHEDULER_ADDRESS"


@contextlib.contextmanager
def connect(settings: ClusterSettings, console: Console, data: Sequence[str | None] = ()) -> Iterator[Any]:
    """Yield a Dask client, or None for threads of this process (``workers = 0``); closes what was opened here.

    Where nothing is said of a cluster, and the data is small, none is made: starting it takes longer than the work.

    `data`: what is read; None for what is not given. Without any a cluster is made.
    """
    address = address_of(settings)
    undecided = data and not address and not _asks_for_one(settings) and settings.tls is None
    size = bytes_of(data) if undecided else None
    if size is not None and size <= SMALL_BYTES:
        console.say(f"in this process, since the data is small ({size / 1e6:.2g} MB); --workers N makes a cluster")
        yield None
        return
    check(settings)
    if settings.workers == 0:
        yield None
        return
    if address and "://" not in address:
        # Dask takes it so, and only in a whole address can a password be told from a host.
        address = f"tcp://{address}"
    if address and "@" in address:
        # Dask's own refusal, some seconds later, repeats the address with what stands before the @.
        raise UsageError(f"the address of the scheduler names a user: {address}", hint="leave out what is before the @")
    from dboost.engine.dask.cluster import hushed

    with contextlib.ExitStack() as opened:
        if not console.debug:
            # Where the cluster is lost, Dask logs tracebacks from threads of its own; the error below is one line.
            opened.enter_context(hushed())
        with console.stage("cluster"):
            client = opened.enter_context(
                _remote(address, settings) if address else PLACES[kind_of(settings)].cluster(settings)
            )
        threads = client.nthreads()
        where = address or ("in this machine" if kind_of(settings) == "local" else f"of kind {settings.to}")
        console.say(f"{len(threads)} workers, {sum(threads.values())} threads; {where}")
        yield client


def check(settings: ClusterSettings) -> None:
    """Refuse settings that no cluster can meet (UsageError), before anything is started."""
    if settings.scheduler and settings.to:
        raise UsageError(
            f"scheduler and to={settings.to!r} name two clusters",
            hint="give the scheduler of one, or the kind of a new one",
        )
    if settings.scheduler:
        made = [name for name in ("workers", "memory_limit", "hosts", "options") if getattr(settings, name) is not None]
        if made:
            raise UsageError(
                f"{made[0]}= is of a cluster that is made, and scheduler= names one that is there",
                hint=f"leave {made[0]}= out",
            )
        if settings.tls == TEMPORARY:
            raise UsageError(
                "temporary certificates are made with a cluster, and the scheduler has its own",
                hint="give the folder of its certificates",
            )
    elif settings.workers == 0:
        given = [name for name in ("hosts", "tls", "options", "memory_limit") if getattr(settings, name)]
        if given or kind_of(settings) != "local":
            given = given or [f"to={settings.to}"]
            raise UsageError(f"workers is 0, which is no cluster, and {given[0]} is of one", hint="leave one out")
    else:
        PLACES[kind_of(settings)].check(settings)
    for name in ("connect_timeout", "rejoin_seconds"):
        if not settings.scheduler and _asks_for_one(settings) and getattr(settings, name) is not None:
            asks = next(key for key in _OF_A_CLUSTER if getattr(settings, key) is not None)
            raise UsageError(
                f"{name}= is of a scheduler that is there, and {asks}= is of a cluster that is made",
                hint="leave one out",
            )


def _asks_for_one(settings: ClusterSettings) -> bool:
    return any(getattr(settings, name) is not None for name in _OF_A_CLUSTER)


def address_of(settings: ClusterSettings) -> str | None:
    """The scheduler that is joined: the one that is given, else that of the environment, unless one is to be made."""
    return settings.scheduler or (None if _asks_for_one(settings) else os.environ.get(ADDRESS_VARIABLE))


def bytes_of(data: Sequence[str | None]) -> int:
    """Bytes of the files of some data, compressed as they are; what cannot be read is told by who reads it."""
    files = [file for one in data if one is not None for file in files_of(one).values()]
    return sum(file.stat().st_size for file in files if file.is_file())


def kind_of(settings: ClusterSettings) -> str:
    """The kind of the cluster that is made."""
    return settings.to or "local"


def cluster_overrides(settings: ClusterSettings) -> list[str]:
    """What was said of the cluster, as a run takes it over its file."""

    def text(value: Any) -> str:
        return json.dumps(value) if isinstance(value, dict) else ",".join(value) if isinstance(value, tuple) else value

    return [f"cluster.{name}={text(value)}" for name, value in given(settings, ClusterSettings).items()]


@contextlib.contextmanager
def _remote(address: str, settings: ClusterSettings) -> Iterator[Any]:
    import asyncio

    timeout = CONNECT_SECONDS if settings.connect_timeout is None else settings.connect_timeout
    security = security_of(settings.tls)
    # Whoever is there is asked before there is a Client, which complains when it is collected without a connection.
    kind = asyncio.run(_who_answers(address, timeout, security))
    if "Scheduler" not in kind:
        raise ClusterError(
            f"at {address} there is a Dask {kind.lower()}, not a scheduler", hint="give the scheduler's address"
        )
    try:
        client = _connected(address, timeout, security)
    except Exception as error:
        raise _no_answer(address, timeout, error) from error
    try:
        yield client
    finally:
        # The cluster is somebody else's: only our connection is closed.
        client.close(timeout=5)


async def _who_answers(address: str, timeout: float, security: Any) -> str:
    """What a Dask process at an address says it is."""
    import asyncio

    from distributed import Security
    from distributed.comm import connect
    from distributed.comm.registry import backends

    protocol, _, rest = address.rpartition("://")
    host, _, port = rest.rpartition("@")[2].rpartition(":")
    known = sorted(set(backends) - {"inproc"})
    # An address of IPv6 holds colons itself, and so stands in brackets.
    whole = bool(host) and port.isdigit() and (":" not in host or host.endswith("]"))
    if not whole or (protocol and protocol not in known):
        raise UsageError(
            f"the scheduler's address is {address!r}; expected PROTOCOL://HOST:PORT with a protocol of "
            f"{', '.join(known)}",
            hint="the scheduler logs its address when it starts; it looks like tcp://10.0.0.5:8786",
        )
    try:
        # Connecting has the time that was given; a second more lets Dask tell itself why it failed.
        async with asyncio.timeout(timeout + 1):
            given = (security or Security()).get_connection_args("client")
            comm = await connect(address, timeout=timeout, **given)
            try:
                await comm.write({"op": "identity", "reply": True})
                answer = await comm.read()
            finally:
                comm.abort()
        return str(answer["type"])
    except Exception as error:
        # Whatever else listens there may make Dask fail in any way: an HTTP server's answer, read as lengths of
        # messages, asks for more memory than there is.
        first = _first(error)
        if not str(first) or isinstance(first, TimeoutError):
            # The last of several tries was cut off by the time limit, and nothing is left of why those before failed.
            try:
                socket.create_connection((host.strip("[]"), int(port)), timeout=1.0).close()
            except OSError as said:
                first.__cause__ = said
        raise _no_answer(address, timeout, error) from error


def _first(error: BaseException) -> BaseException:
    """The error that the others were raised from: that of the system (refused, unknown name), where there is one."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _no_answer(address: str, timeout: float, error: Exception) -> ClusterError:
    cause = _first(error)
    why = " ".join(str(cause).split()) or "no answer"
    if isinstance(cause, MemoryError):
        why = "what listens there does not speak Dask's protocol"
    elif isinstance(cause, ValueError):
        # Its text quotes parts of the address, which may hold a password.
        why = "it is not an address that Dask can use"
    return ClusterError(
        f"no Dask scheduler answers at {address} within {timeout:g} s ({why})",
        hint="check the address and that the scheduler runs, or leave out --scheduler",
    )


def _connected(address: str, timeout: float, security: Any) -> Any:
    """A client of a scheduler; after an error or an interrupt nothing of it is left.

    A client that was not closed closes itself when Python ends, and then waits for a thread that has ended already.
    """
    from distributed import Client

    client = Client.__new__(Client)
    try:
        client.__init__(address, timeout=timeout, set_as_default=False, security=security)
    except BaseException:
        if getattr(client, "status", "closed") != "closed":
            with contextlib.suppress(Exception):
                client.close(timeout=CLOSE_SECONDS)
            client.status = "closed"
        raise
    return client


def engine_on(client: Any) -> Any:
    """An engine on a client, or on the threads of this process; use it as a context manager."""
    if client is None:
        from dboost.engine.local import LocalEngine

        return LocalEngine()
    from dboost.engine.dask.engine import DaskEngine

    return DaskEngine(client)


T = TypeVar("T")

REJOINS = 5
"""Times that a scheduler may be lost in one piece of work: one that dies of the work itself would die for ever."""

TRY_AGAIN = 0.5
"""Seconds between two tries to reach a scheduler that refuses at once."""


class ClusterSession:
    """The cluster of a command; use it as a context manager."""

    def __init__(
        self, settings: ClusterSettings, console: Console, client: Any = None, data: Sequence[str | None] = ()
    ) -> None:
        self.settings = settings
        self.console = console
        self.data = data
        self.patience = REJOIN_SECONDS if settings.rejoin_seconds is None else settings.rejoin_seconds
        self._given = client
        self._made: list[Any] = []
        self._opened = contextlib.ExitStack()

    def __enter__(self) -> ClusterSession:
        return self

    def __exit__(self, *error: Any) -> None:
        self._opened.__exit__(*error)

    def client(self) -> Any:
        """The client, or None for threads of this process; the first call makes it."""
        if self._given is not None:
            return self._given
        return self._connected(self.settings)

    def _connected(self, settings: ClusterSettings) -> Any:
        if not self._made:
            self._made.append(self._opened.enter_context(connect(settings, self.console, self.data)))
        return self._made[0]

    def run_with_rejoin(self, work: Callable[[Any], T]) -> T:
        """Return ``work(client)``; where the scheduler is lost and comes back, the work is called again."""
        losses = 0
        while True:
            try:
                return work(self.client())
            except SchedulerLostError as error:
                losses += 1
                address = address_of(self.settings)
                brought_back = address and self._given is None
                if not brought_back or not self.patience or losses > REJOINS:
                    raise
                self._rejoin(str(address), error)

    def _rejoin(self, address: str, lost: SchedulerLostError) -> None:
        """Wait until the scheduler is there again and has a worker, or raise the error by which it was lost."""
        seconds = self.patience
        self.console.event("scheduler_lost", text=lost.what, seconds=seconds)
        self.console.say(f"lost the scheduler {address}; waiting up to {seconds:g} s for it to come back")
        until = time.monotonic() + seconds
        self._leave()
        while True:
            left = until - time.monotonic()
            patience = max(0.1, min(self.settings.connect_timeout or CONNECT_SECONDS, left))
            try:
                client = self._connected(dataclasses.replace(self.settings, connect_timeout=patience))
                client.wait_for_workers(1, timeout=max(0.1, until - time.monotonic()))
            except (ClusterError, TimeoutError, OSError):
                self._leave()
                if time.monotonic() >= until:
                    raise lost from None
                time.sleep(TRY_AGAIN)
            else:
                self.console.event("scheduler_rejoined", seconds=round(seconds - left, 3))
                self.console.say("the scheduler is back; the work goes on from its last state")
                return

    def _leave(self) -> None:
        """Close the client of a scheduler that is gone; it has nobody to take leave of."""
        self._made.clear()
        opened, self._opened = self._opened, contextlib.ExitStack()
        with contextlib.suppress(Exception):
            opened.close()
