"""Which peers are left out of a problem, because another has outrun them on every one like it so far.

A lower bound on the ratio to the fastest peer is only as long as that peer's time, so what a slower peer is given is
taken from what can be said. A peer is left out only where time is short (a problem like it was left without an answer
to the last target by everyone), and only after three data sets; the record says so and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lab.benchmarks.curve import TARGETS, Time, named

Record = dict[str, Any]
LEFT_OUT = "left out"
SETS_BEFORE = 3
"""Data sets with the same loss and penalty on which a peer must have been outrun, at every strength."""


def left_out(records: Sequence[Record], peers: Iterable[str]) -> dict[str, str]:
    """The peers to leave out of the next data set, and why.

    Parameters
    ----------
    records : sequence of dict
        Of all problems with its loss and penalty on the data sets before it.
    peers : iterable of str
        Those that take it.
    """
    names = tuple(peers)
    found: dict[str, str] = {}
    if len({record["data"] for record in records}) < SETS_BEFORE or not any(_open(record, names) for record in records):
        return found
    for name in names:
        for other in names:
            if other not in found and all(_outruns(record, other, name) for record in records):
                found[name] = f"{LEFT_OUT}: {other} has outrun it on all {len(records)} problems like it before"
                break
    return found


def said(records: Sequence[Record]) -> list[str]:
    """Who was left out of which problems, in a line for each reason."""
    places: dict[tuple[str, str], list[str]] = {}
    for record in records:
        for name, solver in record["solvers"].items():
            if solver["note"].startswith(LEFT_OUT):
                places.setdefault((name, solver["note"]), []).append(record["problem"])
    return [f"**{name} was {why}**: {', '.join(problems)}" for (name, why), problems in places.items()]


def _time(record: Record, name: str, target: float) -> Time | None:
    solver = record["solvers"].get(name)
    if solver is None or not solver.get("runs"):
        return None
    return Time(**solver["times"][named(target)])


def _outruns(record: Record, fast: str, slow: str) -> bool:
    """Whether `fast` was sooner at the finest target that either reached; nobody outruns a peer that does not run."""
    for target in reversed(TARGETS):
        first, second = _time(record, fast, target), _time(record, slow, target)
        if first is None or second is None:
            return False
        if not (first.bound and second.bound):
            return not first.bound and first.seconds < second.seconds
    return False


def _open(record: Record, names: Iterable[str]) -> bool:
    """Whether nobody was given the time for the last target."""
    return all((time := _time(record, name, TARGETS[-1])) is None or time.bound for name in names)
