"""What a training is estimated to take, of the data it has and in the processes there are.

A process holds its libraries with the compiled loops, the blocks it works on with what is derived from them, as far as
the memo of the engine goes, and besides, for each thread, a block that is being decoded, its residuals and its sums.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import psutil

import dboost
from dboost.data.budget import most_of_a_block, workers_of
from dboost.data.parquet.block import ParquetBlock
from dboost.data.parquet.plan import footers_of, looked_at, refuse_giants
from dboost.data.parquet.read import FileInfo, open_file
from dboost.data.parquet.summary import MOST_LABELS, count_labels
from dboost.data.parquet.summary import size_in_words as in_words
from dboost.engine.dask.assignment import assign
from dboost.engine.local import LocalEngine
from dboost.engine.machine import available_cores, available_memory
from dboost.engine.memo import SHARE_OF_MEMORY
from dboost.errors import ClusterError, DataError, DboostError

from .asynchronous import serves_asynchronous

MIB = 2**20

LIBRARIES = 400 * MIB
"""Bytes. A worker, or the process of a command, with its libraries and the compiled loops of a fit, before the data
weighs anything: 290 to 380 MiB were measured (`python -m lab preflight` with ``--scale 0.02``)."""

AN_OUTPUT, MOST_OUTPUTS = 4 * MIB, 80
"""Bytes for each output beside that where the rounds run, and outputs from which on it is no more: samples of examples
with their curvature, whose size has bounds of its own (``dboost.problem.tuning``). Measured: nothing at 4 outputs, 120
MiB at 50, 340 MiB at 100."""

HELD = 4.0
"""Bytes for each byte of a decoded block that stays: the block, the columns of the model cut from it, and what the
allocator does not give back after decoding. Between 1.2 (sparse rows) and 3.6 (a table) were measured."""

DECODING = 3.0
"""Bytes for each byte of a block that is being decoded: the columns of Arrow, the rows, and the rows turned into
columns, which are there at once."""

SUMS_ALIVE = 3
"""Sums of all columns that a thread holds at once: those of a block, and partial ones on the way up the tree."""

MOST_SUMS = 64_000_000
"""Bytes. Larger sums are cut into shards of so many (``dboost.problem.shards``)."""

READING, WORK = 2e-9, 0.8e-9
"""Seconds of one thread for each stored value in a pass, and beside that for each of its outputs; measured in fits of
ten million values on two cores of 2.9 GHz that others used too."""

TURN = 0.02
"""Seconds that a pass on a cluster takes beside computing: a message to each worker, and its answer."""

NETWORK = 125e6
"""Bytes a second between driver and workers: a network of one gigabit, the slowest that clusters are built with.
Workers in one machine are faster."""

ACTIVE_SHARE = 0.1
"""Share of the columns that is taken to be in the model, where it travels to the workers; structural penalties are for
models of few columns."""


@dataclass(frozen=True)
class Worker:
    """A process that works on partitions."""

    name: str  # address of a worker; of this process "this process"
    memory: int  # bytes it may use
    # Whether it is ended when it takes more. A worker without a limit of its own, and this process, share what the
    # machine has.
    limited: bool
    threads: int


@dataclass(frozen=True)
class Room:
    """All of them."""

    places: tuple[Worker, ...]  # the workers; without a cluster this process alone
    cluster: bool
    driver: int  # bytes that this process may use
    swap: int  # bytes of swap of this machine

    @property
    def threads(self) -> int:
        """Threads of all places together."""
        return sum(place.threads for place in self.places)


@dataclass(frozen=True)
class Memory:
    """Bytes that one process takes, by what they are for."""

    place: Worker
    libraries: float  # libraries and compiled loops
    held: float  # blocks that stay, and what is derived from them
    in_work: float  # blocks that are being decoded, residuals and sums of all threads
    decoded: float  # its share of the data, decoded
    kept: float  # decoded blocks that the engine keeps at most; beyond, blocks are read again in every pass

    @property
    def total(self) -> float:
        """All of it."""
        return self.libraries + self.held + self.in_work

    @property
    def streams(self) -> bool:
        """Whether blocks are read again in every pass."""
        return self.decoded > self.kept


@dataclass(frozen=True)
class Needs:
    """What a training takes."""

    places: tuple[Memory, ...]  # as the places of the room
    driver: float  # bytes that this process takes; without a cluster those of its place
    seconds: float  # of a pass, without what is read again
    network: float  # bytes between this process and all workers in a pass; 0 without a cluster

    @property
    def fullest(self) -> Memory:
        """The process that has least to spare of the memory it may use."""
        return max(self.places, key=lambda one: one.total / one.place.memory)


def needs_of(shape: Shape, outputs: int, room: Room) -> Needs:
    """Estimate."""
    several = AN_OUTPUT * min(outputs, MOST_OUTPUTS) if outputs > 1 else 0
    sums = min(8.0 * (shape.features or 0) * outputs, MOST_SUMS)
    model = 8.0 * (shape.features or 0) * (2 + ACTIVE_SHARE * outputs)
    # first block, one past the last, and nodes of the tree of each place that gets some
    rows, threads = [block.n_rows for block in shape.blocks], [(place.name, place.threads) for place in room.places]
    bundles = {one.address: (one.lo, one.hi, len(one.nodes)) for one in (assign(rows, threads) if rows else ())}
    places, nodes = [], 0
    for place in room.places:
        lo, hi, count = bundles.get(place.name, (0, 0, 0))
        nodes += count
        blocks = shape.blocks[lo:hi]
        decoded, kept = float(sum(one.nbytes_estimate for one in blocks)), kept_by(place)
        # Margins, residuals or curvature of the examples, of which the engine keeps one set.
        held = min(HELD * decoded + 8.0 * outputs * sum(one.n_rows for one in blocks), kept)
        # a thread decodes a block and forms its residuals
        largest = sorted((DECODING * one.nbytes_estimate + 16.0 * one.n_rows * outputs for one in blocks), reverse=True)
        work = sum(largest[: place.threads]) + SUMS_ALIVE * sums * min(place.threads, len(blocks))
        places.append(Memory(place, LIBRARIES, held, work, decoded, kept))
    if not room.cluster:
        whole = replace(places[0], libraries=LIBRARIES + several, in_work=places[0].in_work + model)
        return Needs((whole,), whole.total, _seconds(shape, outputs, room), 0.0)
    # the examples of the columns of the model are sent to the driver, to form curvature from
    driver = LIBRARIES + several + sums * (nodes + 1) + model + float(shape.nbytes)
    # The model goes to every worker, and sums come back from every node of the tree that a worker has to itself.
    network = 8.0 * ACTIVE_SHARE * (shape.features or 0) * outputs * len(bundles) + sums * nodes
    return Needs(tuple(places), driver, _seconds(shape, outputs, room) + TURN, network)


def kept_by(place: Worker) -> float:
    """Bytes of blocks, and of what is derived from them, that the engine keeps in a process (``MemoStore``)."""
    kept = SHARE_OF_MEMORY * place.memory
    if not place.limited:
        return kept
    # loads Dask, which a fit in one process does without
    from dboost.engine.dask.tasks import SHARE_IN_USE

    # A worker that would be paused for what it remembers remembers less.
    return max(0.0, min(kept, SHARE_IN_USE * place.memory - LIBRARIES))


def _seconds(shape: Shape, outputs: int, room: Room) -> float:
    busy = max(1, min(room.threads, len(shape.blocks)))
    return shape.values * (READING + WORK * outputs) / busy


def room_of(client: Any = None) -> Room:
    """What a Dask client has, or this process where there is none."""
    memory, cores, swap = available_memory(), available_cores(), int(psutil.swap_memory().total)
    if client is None:
        return Room((Worker("this process", memory, False, cores),), False, memory, swap)
    places = []
    for address, worker in sorted(workers_of(client).items()):
        threads, limit = int(worker["nthreads"]), int(worker["memory_limit"] or 0)
        # As the engine counts: workers without a limit share the memory of a machine like this one.
        share = memory // max(1, cores // max(1, threads))
        places.append(Worker(address, limit or share, limit > 0, threads))
    return Room(tuple(places), True, memory, swap)


@dataclass(frozen=True)
class Shape:
    """How large the data is."""

    rows: int  # rows, and values of features that are stored; of a table all of them
    values: int
    features: int | None  # columns; None where only the rows tell
    # Classes that were seen; None where labels are no classes, or were not there to be seen. One that is only in rows
    # beyond the first ones that are looked at is not counted, and the estimates are then of a fit with fewer classes.
    classes: int | None
    tasks: int  # label columns
    all_labels: bool  # whether the labels of all rows were looked at
    dense: bool  # whether the features are columns of a table or lists of one length
    blocks: tuple[ParquetBlock, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of all blocks, decoded."""
        return sum(block.nbytes_estimate for block in self.blocks)

    def outputs(self, kind: str | None = None) -> int:
        """Columns of W in a fit by this estimator, or by one that suits the labels; two classes share one."""
        if self.tasks > 1:
            return self.tasks
        if self.classes is None or (kind is not None and kind.endswith(("Regressor", "RegressorCV"))):
            return 1
        return 1 if self.classes <= 2 else self.classes


def shape_of(data: Any) -> Shape:
    """Look at ``ParquetData``."""
    data = data.opened()
    _, manifest, split = data.resolve()
    with LocalEngine() as engine, warnings.catch_warnings():
        # What a fit would say of columns it says itself.
        warnings.simplefilter("ignore")
        infos = footers_of(data, engine)
        blocks, layout, label = looked_at(data, infos, manifest)
        if layout.n_features < 0:
            found = engine.on_driver(lambda info: _largest_index(info, layout.columns[0]), infos)
            if all(one is not None for one in found):
                width = 1 + max((one for one in found if one is not None), default=0)
                blocks, layout, label = looked_at(data, infos, manifest, width)
    counts, all_labels = count_labels(label, infos, manifest, split, MOST_LABELS)
    return Shape(
        rows=sum(block.n_rows for block in blocks),
        values=sum(block.stored for block in blocks),
        features=layout.n_features if layout.n_features >= 0 else None,
        classes=None if counts is None else len(counts.keys() - {None}),
        tasks=len(label),
        all_labels=all_labels,
        dense=layout.kind != "lists",
        blocks=tuple(blocks),
    )


def _largest_index(info: FileInfo, column: str) -> int | None:
    """The largest index in a list column, by the statistics of the footer; None where it has none."""
    metadata = open_file(info.ref.path).metadata
    most = -1
    for group in range(metadata.num_row_groups):
        chunks = [metadata.row_group(group).column(c) for c in range(metadata.num_columns)]
        for chunk in chunks:
            if chunk.path_in_schema.split(".")[0] != column:
                continue
            known = chunk.statistics
            if known is not None and known.has_min_max:
                most = max(most, int(known.max))
            elif info.leaves[group][column]:
                return None
    return most


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
    def lines(self) -> tuple[str, ...]:
        """What the data is, what it takes, and the advice where there is some: a line each."""
        shape, needs = self.shape, self.needs
        columns = "columns unknown" if shape.features is None else f"{shape.features:,} columns"
        parts = _counted(len(shape.blocks), "block")
        what = f"{shape.rows:,} rows, {shape.values:,} values, {columns}, {_counted(self.outputs, 'output')} in {parts}"
        if not shape.all_labels:
            what += f" (at least {self.outputs:,}: the labels of the first rows)"
        passes = in_seconds(needs.seconds)
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
        fullest = self.needs.fullest
        words = f"{in_words(fullest.total)} of {in_words(fullest.place.memory)}"
        return f"{words} on the fullest of {len(self.room.places)} workers" if self.room.cluster else words

    def values(self) -> dict[str, Any]:
        """All of it as plain values, for an event."""
        shape, needs, room = self.shape, self.needs, self.room
        places = [
            {name: getattr(need.place, name) for name in ("name", "memory", "threads")}
            | {"needed": round(need.total), "streams": need.streams}
            | {name: round(getattr(need, name)) for name in ("libraries", "held", "in_work")}
            for need in needs.places
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
    say(judged(shape, room, kind), console)


def say(found: Any, console: Any) -> None:
    """Say an estimate as some lines and one event."""
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
        # its columns, and one table of residuals in float32
        least = block.nbytes_estimate + (4.0 * block.n_rows * outputs if outputs > 1 else 0.0)
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


def _advice(shape: Shape, needs: Needs, room: Room) -> str:
    """What would serve the training best, in one sentence."""
    fullest = needs.fullest
    limit = "more memory for each worker (--memory-limit)" if room.cluster else "a machine of more memory"
    if fullest.total > fullest.place.memory:
        if fullest.libraries > 0.5 * fullest.place.memory:
            return f"libraries alone may take {in_words(fullest.libraries)}: fewer workers, or {limit}"
        return f"memory may run out: smaller row groups, fewer threads for each process, or {limit}"
    if room.cluster and needs.driver > room.driver:
        return "the memory of the driver may run out: prepare with fewer columns (--max-features, --min-df)"
    if any(need.streams for need in needs.places):
        return _to_hold_all(needs, room, limit)
    if needs.network / NETWORK > max(needs.seconds, 1.0):
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


def in_seconds(count: float) -> str:
    """Seconds, in words."""
    return f"about {count:.2g} s" if count >= 0.01 else "less than 0.01 s"
