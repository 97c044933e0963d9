"""Addresses at which nobody answers, or somebody who is no scheduler: each is refused within its limit.

Covers: listeners that are silent, hang up, or send something else. Does not cover: schedulers that stop
(``cluster_faults``).
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
from lab.campaign.command import Tally
from pipelines.cluster import connect
from pipelines.config import ClusterSettings
from pipelines.console import Console

BESIDE = 6
"""Trials at once: most of their time is waiting."""

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


def run(count: int, folder: Path, tally: Tally) -> None:
    """Each kind in turn."""
    kinds = [*LISTENERS, *ADDRESSES]
    asked = [kinds[trial % len(kinds)] for trial in range(count)]
    with ThreadPoolExecutor(BESIDE) as pool:
        for kind, wrong in zip(asked, pool.map(lambda kind: connection(kind, folder), asked)):
            tally.check(not wrong, "refused in time", f"{kind}: {wrong}")
