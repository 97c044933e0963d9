"""Whether whoever is on the network reaches a scheduler: one that is not encrypted runs what anybody sends.

Covers: what an address says of itself, and a warning, once for each address of a process. Does not cover: policies of
a network that keep others away, which nobody can see from here.
"""

from __future__ import annotations

import ipaddress
import socket

from dboost.notices import warn_user

GUARDED = frozenset({"tls", "wss", "gateway", "inproc", "ucxx+tls"})
"""Protocols of Dask that encrypt, and the one that never leaves its process."""

_warned: set[str] = set()


def open_address(address: str) -> str:
    """Return protocol and host of a scheduler that takes anybody's work from a network, or an empty text.

    Examples
    --------
    >>> from dboost.engine.dask.encryption import open_address
    >>> open_address("tcp://10.0.0.5:8786"), open_address("tls://10.0.0.5:8786"), open_address("tcp://127.0.0.1:8786")
    ('tcp://10.0.0.5', '', '')
    """
    scheme, _, rest = address.rpartition("://")
    host = rest.rpartition(":")[0].strip("[]")
    if scheme in GUARDED or _on_loopback(host):
        return ""
    return f"{scheme or 'tcp'}://{host}"


def warn_of_open(address: str) -> None:
    """Warn, once, of a scheduler that is neither encrypted nor on this machine alone."""
    found = open_address(address)
    if found and found not in _warned:
        _warned.add(found)
        warn_user(
            f"the scheduler at {found} is not encrypted, and runs whatever is sent to it by anybody who reaches it: "
            "use TLS (--tls, or distributed.comm.tls in Dask's settings), or keep others away from its network"
        )


def _on_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        return all(ipaddress.ip_address(info[4][0]).is_loopback for info in socket.getaddrinfo(host, None))
    except (OSError, ValueError):
        # A name that does not resolve here is that of a proxy or another network.
        return False
