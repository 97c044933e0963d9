"""What a pass costs on any number of machines: the model behind the curve.

    seconds = driver + scheduler + played
    driver, scheduler = a + b * tasks + c * bytes through them          (a, b: fitted; c: measured)
    played = the planned tasks, on workers with a thread and a link each (``replay``)

Covers: the constants and how they are fitted, the prediction, and which part binds.
Does not cover: counting tasks (``planned``), seconds of leaves (``recorded``).

The parts are added, as if none ran beside another: the truth lies between the largest of them and their sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from lab.many_workers.ledger import Entry
from lab.many_workers.measure import Record, role_of
from lab.many_workers.planned import Pass, planned
from lab.many_workers.recorded import Work
from lab.many_workers.replay import Network, Played, played
from lab.many_workers.sizes import Question


@dataclass(frozen=True)
class Line:
    """Seconds of a process for a pass: ``per_pass + per_task * tasks + per_byte * nbytes``.

    Parameters
    ----------
    per_pass, per_task, per_byte : float
    """

    per_pass: float
    per_task: float
    per_byte: float = 0.0

    def seconds(self, tasks: int, nbytes: float = 0.0) -> float:
        """Seconds of a pass of so many tasks, with so many bytes through the process."""
        return self.per_pass + self.per_task * tasks + self.per_byte * nbytes


def fitted(tasks: Sequence[int], seconds: Sequence[float], per_byte: float) -> Line:
    """The line through measured passes with the least relative errors; bytes of the simulation are too few to count."""
    weights = 1.0 / np.asarray(seconds)
    A = np.stack([weights, weights * np.asarray(tasks)], axis=1)
    per_pass, per_task = np.linalg.lstsq(A, np.ones(len(tasks)), rcond=None)[0]
    return Line(float(per_pass), float(per_task), per_byte)


@dataclass(frozen=True)
class Model:
    """The constants.

    Parameters
    ----------
    question : Question
    work : mapping of str to Work
        Seconds of a leaf, by name of pass.
    adding : float
        Bytes of sums that a worker adds in a second.
    scheduler, driver : Line
    network : Network
    """

    question: Question
    work: Mapping[str, Work]
    adding: float
    scheduler: Line
    driver: Line
    network: Network = field(default_factory=Network)


@dataclass(frozen=True)
class Predicted:
    """A pass on so many workers.

    Parameters
    ----------
    name : str
    workers, per_worker : int
    tasks : int
    driver, scheduler : float
        Seconds.
    work, network : float
        Seconds of the workers alone, and what the network adds to them.
    played : Played
    through : int
        Bytes through driver and scheduler.
    """

    name: str
    workers: int
    per_worker: int
    tasks: int
    driver: float
    scheduler: float
    work: float
    network: float
    played: Played
    through: int

    @property
    def seconds(self) -> float:
        """All together."""
        return self.driver + self.scheduler + self.work + self.network

    @property
    def binds(self) -> str:
        """The part that takes longest."""
        return max(("driver", "scheduler", "work", "network"), key=lambda part: getattr(self, part))


def predicted(model: Model, kind: Pass, workers: int, per_worker: int = 1) -> Predicted:
    """What the model says of a pass."""
    entries = planned(kind, workers, per_worker)
    known = {entry.key: entry for entry in entries}
    work = partial(_work, model, kind, workers * per_worker, per_worker, known)
    found = played(entries, lambda entry: entry.nbytes, work, model.network)
    through = kind.arguments + kind.finishing + found.gathered
    alone = found.without_network
    return Predicted(
        kind.name, workers, per_worker, len(entries),
        model.driver.seconds(len(entries), through), model.scheduler.seconds(len(entries), through),
        alone, found.seconds - alone, found, through,
    )  # fmt: skip


def _work(
    model: Model, kind: Pass, partitions: int, per_worker: int, known: Mapping[str, Entry], entry: Entry
) -> float:
    """Seconds of a task: leaves and the sums of a bundle, or the sums that are merged."""
    role = role_of(entry.key, kind.name)
    if role == "bundle":
        documents = model.question.documents / partitions
        return per_worker * model.work[kind.name].seconds(documents) + (per_worker - 1) * kind.sums / model.adding
    if role in ("merge", "reduce"):
        # the first of them is copied, which costs as much as adding it
        return sum(known[need].nbytes for need in entry.needs if need in known) / model.adding
    return 0.0


def lines_of(records: Sequence[Record], per_byte: tuple[float, float]) -> tuple[Line, Line]:
    """The lines of scheduler and driver through some records."""
    tasks = [record.tasks for record in records]
    scheduler = fitted(tasks, [record.spent.scheduler for record in records], per_byte[0])
    return scheduler, fitted(tasks, [record.spent.driver for record in records], per_byte[1])
