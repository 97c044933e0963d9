"""Whether a training can begin, and what would serve it better.

Covers: ``preflight``, its line and its advice, what is refused. Does not cover: the estimates (``needs``).

Only what no worker could ever do is refused. Data that does not fit the memory of all workers together is no such
thing: blocks that do not stay are read again in every pass, which takes longer and gives the same bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import dboost
from dboost.data.budget import most_of_a_block
from dboost.data.parquet.plan import refuse_giants
from dboost.engine.memo import SHARE_OF_MEMORY
from dboost.errors import ClusterError, DataError, DboostError

from ..asynchronous import serves_asynchronous
from .needs import MIB, Memory, Needs, Room, Shape, least_in_work, needs_of, room_of, shape_of

ENDED_AT = 0.95
"""Share of its limit at which a worker is ended by its nanny (Dask's ``distributed.worker.memory.terminate``)."""

BARE_WORKER = 125 * MIB
"""Bytes. A worker with its libraries and without any data or loop (measured); what is refused is counted from it."""

WHOLE_BLOCKS = 4
"""A pass of so many blocks' worth of values on each thread, which has fewer blocks than threads, leaves threads idle
long enough to say so."""

VALUES_OF_A_BLOCK = 1_000_000
"""Stored values that row groups are joined up to (``dboost.data.parquet.plan``)."""


@dataclass(frozen=True)
class Preflight:
    """What a training is estimated to take, beside what there is."""

    shape: Shape
    outputs: int  # columns of W
    room: Room
    needs: Needs
    advice: str  # one sentence; empty where there is nothing to say

    @property
    def fullest(self) -> Memory:
        """The process that has least to spare of the memory it may use."""
        return _fullest(self.needs, self.room)

    @property
    def lines(self) -> tuple[str, ...]:
        """What the data is, what it takes, and the advice where there is some: a line each."""
        shape, needs = self.shape, self.needs
        columns = "columns unknown" if shape.features is None else f"{shape.features:,} columns"
        parts = _counted(len(shape.blocks), "block")
        what = f"{shape.rows:,} rows, {shape.values:,} values, {columns}, {_counted(self.outputs, 'output')} in {parts}"
        if not shape.all_labels:
            what += f" (at least {self.outputs:,}: the labels of the first rows)"
        passes = f"about {needs.seconds:.2g} s"
        if self.room.cluster:
            passes += f" and {in_words(needs.network)} between driver and workers"
        takes = f"memory {self.memory}; {passes} a pass"
        return (f"pre-flight: {what}", takes, self.advice) if self.advice else (f"pre-flight: {what}", takes)

    @property
    def line(self) -> str:
        """All of it in one line."""
        return "; ".join(self.lines)

    @property
    def memory(self) -> str:
        """The memory of the fullest process, in words."""
        fullest = self.fullest
        there = next(place.memory for place in self.room.places if place.name == fullest.name)
        words = f"{in_words(fullest.total)} of {in_words(there)}"
        return f"{words} on the fullest of {len(self.room.places)} workers" if self.room.cluster else words

    def values(self) -> dict[str, Any]:
        """All of it as plain values, for an event."""
        shape, needs, room = self.shape, self.needs, self.room
        places = [
            {
                "name": place.name,
                "memory": place.memory,
                "threads": place.threads,
                "needed": round(need.total),
                "libraries": round(need.libraries),
                "held": round(need.held),
                "in_work": round(need.in_work),
                "streams": need.streams,
            }
            for place, need in zip(room.places, needs.places, strict=True)
        ]
        return {
            "rows": shape.rows,
            "values": shape.values,
            "features": shape.features,
            "outputs": self.outputs,
            "blocks": len(shape.blocks),
            "all_labels": shape.all_labels,
            "cluster": room.cluster,
            "places": places,
            "driver_needed": round(needs.driver),
            "driver_memory": room.driver,
            "seconds_per_pass": needs.seconds,
            "bytes_per_pass": round(needs.network),
            "advice": self.advice,
            "text": self.line,
        }


@serves_asynchronous
def preflight(data: Any, *, client: Any = None, kind: str | None = None) -> Preflight:
    """Estimate what a training takes, before it begins; of the features nothing is read.

    Parameters
    ----------
    data : ParquetData or path
    client : distributed.Client, optional
        Default: the threads of this process. Of an asynchronous client the call is awaited.
    kind : str, optional
        Name of the class of the estimator. Default: one that suits the labels.

    Returns
    -------
    Preflight
        ``line`` says it, ``advice`` what would be better, ``values()`` gives the numbers.

    Raises
    ------
    ClusterError
        The cluster has no worker.
    DataError
        The files are not there or not what was said, or a block fits no worker.

    Examples
    --------
    >>> import tempfile, numpy, pyarrow, pyarrow.parquet
    >>> from dboost_pipelines import preflight
    >>> file = tempfile.mkdtemp() + "/rows.parquet"
    >>> table = pyarrow.table({"x": numpy.arange(6.0), "y": ["no", "yes"] * 3})
    >>> pyarrow.parquet.write_table(table, file)
    >>> found = preflight(dboost.ParquetData(file, label="y"))
    >>> found.shape.rows, found.shape.values, found.outputs, found.advice
    (6, 6, 1, '')
    """
    found = dboost.ParquetData(data) if not isinstance(data, dboost.ParquetData) else data
    return judged(shape_of(found), room_of(client), kind)


def judged(shape: Shape, room: Room, kind: str | None = None) -> Preflight:
    """What follows from a shape and a room."""
    if not room.places:
        raise ClusterError("the cluster has no worker, so there is nothing to compare with", hint="start workers first")
    outputs = shape.outputs(kind)
    _refuse(shape, outputs, room)
    needs = needs_of(shape, outputs, room)
    return Preflight(shape, outputs, room, needs, _advice(shape, needs, room))


def announce(data: Any, client: Any, kind: str, console: Any) -> None:
    """Say it as one line and one event, at the start of a training."""
    try:
        shape = shape_of(data)
    except (DboostError, OSError):
        # What cannot be read or has no meaning is refused by the fit, which is next, and knows file and row group.
        return
    room = room_of(client)
    if not room.places:
        # The workers of a cluster may come later: the fit waits for them, and says so.
        return
    found = judged(shape, room, kind)
    console.event("preflight", **found.values())
    if console.mode != "json":
        # A line of a terminal each; what follows the first belongs to it.
        console.say("\n  ".join(found.lines))


def _refuse(shape: Shape, outputs: int, room: Room) -> None:
    """Refuse blocks that no process can hold once; the fit refuses some of them too, after it has begun."""
    limits = [place.memory if place.limited else 0 for place in room.places]
    if not room.cluster:
        refuse_giants(shape.blocks, int(SHARE_OF_MEMORY * room.driver))
    elif limits and all(limits):
        refuse_giants(shape.blocks, most_of_a_block(limits))
    if room.cluster and not all(limits):
        # A worker without a limit is ended by nobody, and its machine may have swap that is not known here.
        return
    most = max(limits) * ENDED_AT - BARE_WORKER if room.cluster else room.driver + room.swap
    for block in shape.blocks:
        least = least_in_work(block.nbytes_estimate, block.n_rows, outputs)
        if least > most:
            ref, groups = block.spans[0]
            whose = "no worker has as much" if room.cluster else "this process has less"
            more = "or give the workers more memory (--memory-limit)" if room.cluster else "or use a larger machine"
            raise DataError(
                f"the row groups of one block have {block.n_rows:,} rows, which take at least {in_words(least)} with "
                f"{outputs:,} outputs, and {whose}: at most {in_words(max(most, 0.0))} beside its libraries",
                file=ref.path,
                row_group=groups[0],
                hint=f"write the file again with smaller row groups, {more}",
            )


def _fullest(needs: Needs, room: Room) -> Memory:
    shares = [need.total / place.memory for need, place in zip(needs.places, room.places, strict=True)]
    return needs.places[shares.index(max(shares))]


def _advice(shape: Shape, needs: Needs, room: Room) -> str:
    """What would serve the training best, in one sentence."""
    fullest = _fullest(needs, room)
    place = next(one for one in room.places if one.name == fullest.name)
    limit = "more memory for each worker (--memory-limit)" if room.cluster else "a machine of more memory"
    if fullest.total > place.memory:
        if fullest.libraries > 0.5 * place.memory:
            return f"libraries alone may take {in_words(fullest.libraries)}: fewer workers, or {limit}"
        return f"memory may run out: smaller row groups, fewer threads for each process, or {limit}"
    if room.cluster and needs.driver > room.driver:
        return "the memory of the driver may run out: prepare with fewer columns (--max-features, --min-df)"
    if any(need.streams for need in needs.places):
        return _to_hold_all(needs, room, limit)
    if needs.travelling > max(needs.seconds, 1.0):
        return "sums travel longer than a pass computes: fewer workers, or prepare with fewer columns (--max-features)"
    idle = len(shape.blocks) < room.threads
    if idle and shape.values > WHOLE_BLOCKS * VALUES_OF_A_BLOCK * max(1, len(shape.blocks)):
        keep = "block keeps" if len(shape.blocks) == 1 else "blocks keep"
        busy = f"{len(shape.blocks)} {keep} {len(shape.blocks)} of {room.threads} threads busy"
        return f"{busy}: smaller row groups"
    return ""


def _to_hold_all(needs: Needs, room: Room, limit: str) -> str:
    """What it takes that nothing is read again."""
    again = "data that does not fit is read again in every pass"
    wanted = sum(need.decoded for need in needs.places)
    if not room.cluster:
        return f"{again}: {limit}, a cluster, or prepare with fewer columns (--max-features, --min-df)"
    each = min(need.kept for need in needs.places)
    if each <= 0.0:
        return f"{again}, and these workers have no memory to keep any: {limit}"
    count = max(len(room.places) + 1, math.ceil(wanted / each))
    return f"{again}: {count} workers like these would hold it, or give {limit}"


def _counted(count: int, thing: str) -> str:
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def in_words(count: float) -> str:
    """Bytes, in words."""
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1000:
            break
        size, unit = size / 1024, larger
    return f"{size:.3g} {unit}"
