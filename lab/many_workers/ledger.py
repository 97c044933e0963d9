"""The tasks of a pass as the scheduler saw them: where each ran, how large its result was, what it depended on.

Covers: a plugin of the scheduler that notes tasks as they finish, and fetching what it noted.
Does not cover: what follows from it (``replay``).

Noting costs the scheduler time, so passes that are noted are not timed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin

NAME = "many-workers-ledger"


@dataclass(frozen=True)
class Entry:
    """A task that has finished.

    Parameters
    ----------
    key : str
    worker : str
        Address of the worker that did it.
    nbytes : int
        Bytes of its result in the simulation.
    needs : tuple of str
        Keys of the tasks whose results it took.
    """

    key: str
    worker: str
    nbytes: int
    needs: tuple[str, ...]


class Ledger(SchedulerPlugin):  # type: ignore[misc]
    """Notes every task that finishes, in that order."""

    name = NAME

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def start(self, scheduler: Any) -> None:
        """Dask calls this with the scheduler."""
        self.scheduler = scheduler

    def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        """Dask calls this whenever the state of a task changes."""
        if start == "processing" and finish == "memory":
            task = self.scheduler.tasks[key]
            needs = tuple(str(other.key) for other in task.dependencies)
            self.entries.append(Entry(str(key), str(kwargs["worker"]), int(task.nbytes), needs))


def noted(client: Any, run: Any) -> list[Entry]:
    """The tasks of a pass, which ``run()`` does."""
    client.register_plugin(Ledger())
    try:
        run()
        # found by its name: what is run on the scheduler is given the scheduler by this name of the argument
        entries: list[Entry] = client.run_on_scheduler(_entries)
    finally:
        client.unregister_scheduler_plugin(NAME)
    return entries


def _entries(dask_scheduler: Any) -> list[Entry]:
    found: list[Entry] = dask_scheduler.plugins[NAME].entries
    return found
