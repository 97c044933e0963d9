"""A kernel of Jupyter, as a notebook talks to it: cells run in it, and are interrupted as by the button."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

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


def executed(notebook: Path, folder: Path) -> Any:
    """The notebook with what its cells show, run from the first to the last in a kernel that works in `folder`.

    In a process of its own, since the client of a kernel leaves sockets to be closed with it.
    """
    out = folder / "executed.ipynb"
    command = [sys.executable, "-m", "tests.notebooks.kernels", str(notebook), str(folder), str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=5 * PATIENCE)
    assert done.returncode == 0, done.stderr
    return nbformat.read(out, as_version=4)


def execute(notebook: str, folder: str, out: str) -> None:
    """Run a notebook and write it with what its cells show."""
    read = nbformat.read(notebook, as_version=4)
    client = NotebookClient(read, km=_manager(Path(folder)), timeout=PATIENCE)
    asyncio.run(client.async_execute(cwd=folder))
    nbformat.write(read, out)


def _manager(folder: Path) -> AsyncKernelManager:
    # Files of sockets, not ports: nobody else on this machine may send code.
    manager = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=str(folder / "socket"))
    manager.kernel_spec.argv[0] = sys.executable  # not that of whatever kernel is installed for the user
    return manager


@contextlib.contextmanager
def kernel(folder: Path) -> Iterator[Kernel]:
    """A kernel of this environment, with the library of this checkout, that works in a folder."""
    manager = _manager(folder)
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
    await manager.start_kernel(cwd=str(folder))
    client = manager.client()
    client.start_channels()
    await client.wait_for_ready(timeout=PATIENCE)
    return client


if __name__ == "__main__":
    execute(*sys.argv[1:])
