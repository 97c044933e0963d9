"""Whatever is silent, stopped or gone: the fit goes on, or ends with one clear error, within its limit.

Covers: the faults of ``lab.chaos``, each in a process that an outer clock ends; addresses at which nobody answers, or
somebody who is no scheduler. Does not cover: how often workers may die in one fit (``worker_kills``).
"""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from dboost.errors import ClusterError
from lab.campaign.tally import Tally
from lab.chaos.campaign import attempts, passed
from lab.chaos.scenarios import SCENARIOS, UNDISTURBED
from lab.chaos.work import DATA, fit, write
from pipelines.cluster import connect
from pipelines.config import ClusterSettings
from pipelines.console import Console

BESIDE = 3
"""Trials at once: most of their time is waiting for workers to start, or to be missed."""

CONNECT_SECONDS, MORE_SECONDS = 1.0, 10.0
"""What an address that nobody answers at may take: the limit that is given, and what the goals allow beyond."""

Answer = Callable[[socket.socket], None]


def silent(peer: socket.socket) -> None:
    """Accept, and say nothing."""
    time.sleep(CONNECT_SECONDS + MORE_SECONDS + 1)


def ends(peer: socket.socket) -> None:
    """Accept, and hang up."""


def web(peer: socket.socket) -> None:
    """Answer as a web server does."""
    peer.recv(1024)
    peer.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def noise(peer: socket.socket) -> None:
    """Send bytes without meaning."""
    peer.sendall(random.Random(0).randbytes(4096))
    time.sleep(CONNECT_SECONDS)


def drips(peer: socket.socket) -> None:
    """Send a byte at a time, without end."""
    for _ in range(round((CONNECT_SECONDS + MORE_SECONDS + 1) / 0.1)):
        peer.sendall(b"\x01")
        time.sleep(0.1)


def promises(peer: socket.socket) -> None:
    """Promise more bytes than any memory holds."""
    peer.sendall(b"\xff" * 64)
    time.sleep(CONNECT_SECONDS)


LISTENERS: dict[str, Answer] = {
    "a listener that is silent": silent,
    "a listener that hangs up": ends,
    "a web server": web,
    "a listener that sends noise": noise,
    "a listener that drips": drips,
    "a listener that promises too much": promises,
}


@contextmanager
def listening(answer: Answer) -> Iterator[str]:
    """An address on loopback at which somebody answers so."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=one, args=(peer,), daemon=True).start()

        def one(peer: socket.socket) -> None:
            with peer:
                try:
                    answer(peer)
                except OSError:
                    # The other side gave up, as it should.
                    return

        threading.Thread(target=serve, daemon=True).start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"


def refusing() -> str:
    """An address on loopback at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"tcp://127.0.0.1:{server.getsockname()[1]}"


def called(address: str, folder: Path) -> tuple[float, BaseException | None]:
    """Connect as every command does; returns the seconds it took and the error that came."""
    begun = time.monotonic()
    with open(folder / "said", "a", encoding="utf-8") as out:
        try:
            settings = ClusterSettings(scheduler=address, connect_timeout=CONNECT_SECONDS)
            with connect(settings, Console("plain", out=out)):
                return time.monotonic() - begun, None
        except Exception as error:
            return time.monotonic() - begun, error


def connection(kind: str, folder: Path) -> str:
    """Try one address; returns what is wrong, or nothing."""
    if kind in LISTENERS:
        with listening(LISTENERS[kind]) as address:
            seconds, error = called(address, folder)
    else:
        seconds, error = called(ADDRESSES[kind](), folder)
    if seconds > CONNECT_SECONDS + MORE_SECONDS:
        return f"it took {seconds:.1f} s"
    if not isinstance(error, ClusterError) or len(str(error).splitlines()) != 1:
        return f"{type(error).__name__}: {error}"
    return ""


ADDRESSES: dict[str, Callable[[], str]] = {
    "nobody listens": refusing,
    "a host without a name": lambda: "tcp://no-such-host.invalid:8786",
    "a port beyond all": lambda: "tcp://127.0.0.1:99999",
    "certificates that nobody asked for": lambda: refusing().replace("tcp://", "tls://"),
}

OFTEN: dict[str, int] = {
    "the only worker killed": 30,
    "three workers killed at once": 25,
    "one of two workers stopped": 15,
    "the only worker stopped": 4,
    "memory taken by another task": 10,
    "memory taken again and again": 2,
    "adaptive from no worker": 8,
    "the scheduler killed": 15,
    "the scheduler stopped": 4,
    "all workers gone for good": 4,
    "one of two workers gone for good": 13,
    "workers restarted by another program": 10,
    "the client closed": 10,
}
"""Trials of each scenario in a whole campaign: 150, the fast ones more often. The addresses share as many."""

WHOLE = 300


def run(count: int, folder: Path, tally: Tally) -> None:
    """Half of the trials are addresses, the others are scenarios in the shares of ``OFTEN``."""
    kinds = [*LISTENERS, *ADDRESSES]
    asked = [kinds[trial % len(kinds)] for trial in range(count // 2)]
    with ThreadPoolExecutor(2 * BESIDE) as pool:
        for kind, wrong in zip(asked, pool.map(lambda kind: connection(kind, folder), asked)):
            tally.check(not wrong, "address refused in time", f"{kind}: {wrong}")
    write(folder / DATA)
    expected = fit(folder / DATA, None, threading.Event())
    calm = attempts(UNDISTURBED, 0.0, folder, expected)
    rng = random.Random(0)
    trials = [name for name, often in OFTEN.items() for _ in range(max(1, round(often * count / WHOLE)))]
    moments = [rng.uniform(0.0, 0.7) * calm.rounds for _ in trials]
    slowest = 0.0
    with ThreadPoolExecutor(BESIDE) as pool:
        found = pool.map(lambda name, moment: attempts(name, moment, folder, expected), trials, moments)
        for name, outcome in zip(trials, found):
            slowest = max(slowest, outcome.seconds)
            words = f"{name}: {outcome.outcome} after {outcome.seconds:.1f} s: {outcome.words}"
            tally.check(passed(outcome, SCENARIOS[name]), f"{name}: {outcome.outcome}", words)
    tally.figures["slowest from its fault"] = f"{slowest:.1f} s"
