"""A kernel of Jupyter, as a notebook talks to it: cells run in it, and are interrupted as by the button."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from jupyter_client.manager import AsyncKernelManager

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0


class Kernel:
    """Runs cells in a kernel and collects what they show.

    Attributes
    ----------
    shown : list of (str, dict)
        Of the last cell: type of each message, and its content.
    """

    def __init__(self, manager: Any, client: Any, loop: asyncio.Runner) -> None:
        self.manager = manager
        self.client = client
        self._loop = loop
        self.shown: list[tuple[str, dict[str, Any]]] = []

    def run(self, code: str, on_message: Callable[[str, dict[str, Any]], None] | None = None) -> str:
        """Run a cell to its end; returns the name of the exception that ended it, or nothing."""
        return self._loop.run(self._run(code, on_message))

    async def _run(self, code: str, on_message: Callable[[str, dict[str, Any]], None] | None) -> str:
        asked = self.client.execute(code)
        self.shown = []
        ended = ""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                message = await self.client.get_iopub_msg(timeout=1.0)
            except queue.Empty:
                continue
            if message["parent_header"].get("msg_id") != asked:
                continue
            kind, content = message["msg_type"], message["content"]
            self.shown.append((kind, content))
            if kind == "error":
                ended = content["ename"]
            if kind == "status" and content["execution_state"] == "idle":
                return ended
            if on_message is not None:
                on_message(kind, content)
        raise AssertionError(f"the cell did not end within {PATIENCE:g} s: {self.shown}")

    def texts(self, *kinds: str) -> list[str]:
        """What messages of these types say as text."""
        found = [content for kind, content in self.shown if kind in kinds]
        return [content["data"]["text/plain"] if "data" in content else content["text"] for content in found]

    def interrupt(self) -> None:
        """What the button of a notebook does; from any thread."""
        os.kill(self.manager.provisioner.pid, signal.SIGINT)


@contextlib.contextmanager
def kernel(folder: Path) -> Iterator[Kernel]:
    """A kernel of this environment, with the library of this checkout, that works in a folder."""
    # Files of sockets, not ports: nobody else on this machine may send code.
    manager = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=str(folder / "socket"))
    # A loop of its own, which the plain manager would leave open.
    with asyncio.Runner() as loop:
        try:
            client = loop.run(_started(manager, folder))
            found = Kernel(manager, client, loop)
            assert found.run(f"import sys; sys.path.insert(0, {str(ROOT)!r})") == ""
            yield found
            client.stop_channels()
        finally:
            loop.run(manager.shutdown_kernel(now=True))


async def _started(manager: AsyncKernelManager, folder: Path) -> Any:
    manager.kernel_spec.argv[0] = sys.executable  # not that of whatever kernel is installed for the user
    await manager.start_kernel(cwd=str(folder))
    client = manager.client()
    client.start_channels()
    await client.wait_for_ready(timeout=PATIENCE)
    return client
