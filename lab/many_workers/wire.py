"""Bytes that a process puts on its sockets, and processor seconds it takes.

Covers: counting what Dask's connections write. Does not cover: whose bytes they are (``ledger``).
"""

from __future__ import annotations

import time
from typing import Any

from distributed.comm.tcp import TCP

_sent = 0


def count_bytes() -> None:
    """Count from now on what this process writes to Dask's connections."""
    write = TCP.write

    async def counted(self: Any, *args: Any, **kwargs: Any) -> int:
        global _sent
        nbytes: int = await write(self, *args, **kwargs)
        _sent += nbytes
        return nbytes

    TCP.write = counted


def spent() -> tuple[float, int]:
    """Processor seconds of this process, and bytes it has written since `count_bytes`."""
    return time.process_time(), _sent
