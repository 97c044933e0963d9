"""How long a noted pass takes on machines of their own, joined by a network: the part of the model that is no formula.

Covers: playing the tasks of a pass again, in the order of what they depend on, each worker with one thread and one
link, at the full size.
Does not cover: the time of scheduler and driver (``model``).

A link takes one transfer after the other in each direction. A transfer from a to b begins when the result is there, the
outgoing link of a is free and the incoming one of b is; it takes the latency and its bytes over the rate of the links.
A task begins when all that it needs has come and its worker is free. The driver is one more place, to which the results
go that no other task takes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.many_workers.ledger import Entry


@dataclass(frozen=True)
class Network:
    """What joins the machines, as assumed: it is not measured.

    Parameters
    ----------
    rate : float
        Bytes in a second, in each direction of the link of a machine; 10 Gbit/s.
    latency : float
        Seconds of a message.
    """

    rate: float = 1.25e9
    latency: float = 2e-4


@dataclass(frozen=True)
class Played:
    """What came of it.

    Parameters
    ----------
    seconds : float
        From the first task to the last result at the driver.
    without_network : float
        The same if everything arrived at once.
    moved : int
        Bytes that went between workers.
    gathered : int
        Bytes that went to the driver.
    busiest : int
        The most bytes that one worker received or sent.
    depth : int
        Tasks in the longest chain.
    """

    seconds: float
    without_network: float
    moved: int
    gathered: int
    busiest: int
    depth: int


DRIVER = "driver"


def played(entries: Sequence[Entry], size: Callable[[Entry], int], work: Callable[[Entry], float],
           network: Network) -> Played:  # fmt: skip
    """Play a pass again.

    Parameters
    ----------
    entries : sequence of Entry
        In the order in which they finished, so that what a task needs comes before it.
    size, work : callable
        Bytes of a result at the full size, and seconds of the task itself.
    """
    known = {entry.key: entry for entry in entries}
    taken = {need for entry in entries for need in entry.needs}
    ends: dict[str, float] = {}
    levels: dict[str, int] = {}
    held: dict[tuple[str, str], float] = {}
    outgoing, incoming, busy = (defaultdict[str, float](float) for _ in range(3))
    sent, received = (defaultdict[str, int](int) for _ in range(2))

    def brought(need: Entry, place: str) -> float:
        """When the result of a task is at a place; a copy that was brought once stays there."""
        if need.worker == place:
            return ends[need.key]
        if (need.key, place) not in held:
            nbytes = size(need)
            begin = max(ends[need.key], outgoing[need.worker], incoming[place])
            end = begin + network.latency + nbytes / network.rate
            outgoing[need.worker] = incoming[place] = held[need.key, place] = end
            sent[need.worker] += nbytes
            received[place] += nbytes
        return held[need.key, place]

    # by the number of tasks before them: what could begin first goes over the links first
    for entry in entries:
        levels[entry.key] = 1 + max((levels[need] for need in entry.needs if need in known), default=0)
    for entry in sorted(entries, key=lambda one: levels[one.key]):
        needs = [known[need] for need in entry.needs if need in known]
        there = max([brought(need, entry.worker) for need in sorted(needs, key=lambda one: ends[one.key])], default=0.0)
        ends[entry.key] = busy[entry.worker] = max(there, busy[entry.worker]) + work(entry)
    results = [entry for entry in entries if entry.key not in taken]
    last = max(brought(entry, DRIVER) for entry in sorted(results, key=lambda one: ends[one.key]))
    gathered = received.pop(DRIVER, 0)
    alone = last
    if network.rate != float("inf"):
        alone = played(entries, size, work, Network(float("inf"), 0.0)).seconds
    busiest = max([*sent.values(), *received.values()], default=0)
    return Played(last, alone, sum(received.values()), gathered, busiest, max(levels.values(), default=0))
