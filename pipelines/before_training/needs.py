"""What a training is estimated to take: memory of each process, seconds of a pass, bytes of a round.

Covers: the estimates, each with its parts, and the figures of measurements they rest on. Does not cover: what there is
(``room``), and what follows from both (``verdict``).

A process holds its libraries with the compiled loops, the blocks it works on with what is derived from them, as far as
the memo of the engine goes, and besides, for each thread, a block that is being decoded, its residuals and its sums.
"""

from __future__ import annotations

from dataclasses import dataclass

from dboost.engine.dask.assignment import assign
from dboost.engine.dask.tasks import SHARE_IN_USE
from dboost.engine.memo import SHARE_OF_MEMORY

from .room import Place, Room
from .shape import Shape

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
class Memory:
    """Bytes that one process takes, by what they are for."""

    name: str  # as in ``Place``
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
    def travelling(self) -> float:
        """Seconds that the bytes of a pass take on the network."""
        return self.network / NETWORK


def needs_of(shape: Shape, outputs: int, room: Room) -> Needs:
    """Estimate."""
    several = AN_OUTPUT * min(outputs, MOST_OUTPUTS) if outputs > 1 else 0
    sums = min(8.0 * (shape.features or 0) * outputs, MOST_SUMS)
    model = 8.0 * (shape.features or 0) * (2 + ACTIVE_SHARE * outputs)
    bundles = _bundles(shape, room)
    places, nodes = [], 0
    for place in room.places:
        lo, hi, count = bundles.get(place.name, (0, 0, 0))
        nodes += count
        blocks = shape.blocks[lo:hi]
        decoded, kept = float(sum(one.nbytes_estimate for one in blocks)), kept_by(place)
        # Margins, residuals or curvature of the examples, of which the engine keeps one set.
        held = min(HELD * decoded + 8.0 * outputs * sum(one.n_rows for one in blocks), kept)
        largest = sorted((in_work(one.nbytes_estimate, one.n_rows, outputs) for one in blocks), reverse=True)
        work = sum(largest[: place.threads]) + SUMS_ALIVE * sums * min(place.threads, len(blocks))
        places.append(Memory(place.name, LIBRARIES, held, work, decoded, kept))
    if not room.cluster:
        (here,) = places
        whole = Memory(here.name, LIBRARIES + several, here.held, here.in_work + model, here.decoded, here.kept)
        return Needs((whole,), whole.total, _seconds(shape, outputs, room), 0.0)
    driver = LIBRARIES + several + sums * (nodes + 1) + model + _of_examples(shape)
    # The model goes to every worker, and sums come back from every node of the tree that a worker has to itself.
    network = 8.0 * ACTIVE_SHARE * (shape.features or 0) * outputs * len(bundles) + sums * nodes
    return Needs(tuple(places), driver, _seconds(shape, outputs, room) + TURN, network)


def kept_by(place: Place) -> float:
    """Bytes of blocks, and of what is derived from them, that the engine keeps in a process (``MemoStore``)."""
    kept = SHARE_OF_MEMORY * place.memory
    # A worker that would be paused for what it remembers remembers less.
    return max(0.0, min(kept, SHARE_IN_USE * place.memory - LIBRARIES)) if place.limited else kept


def in_work(decoded: float, rows: int, outputs: int) -> float:
    """Bytes for a block while a thread decodes it and forms its residuals."""
    return DECODING * decoded + 2 * 8.0 * rows * outputs


def least_in_work(decoded: float, rows: int, outputs: int) -> float:
    """Bytes below which a block cannot be worked on: its columns, and one table of residuals in float32."""
    return decoded + (4.0 * rows * outputs if outputs > 1 else 0.0)


def _of_examples(shape: Shape) -> float:
    """Bytes of the examples that a driver is sent to form curvature from: those of the columns of the model."""
    return float(shape.nbytes)


def _bundles(shape: Shape, room: Room) -> dict[str, tuple[int, int, int]]:
    """First block, one past the last, and nodes of the tree of each place that gets some."""
    if not shape.blocks:
        return {}
    rows = [block.n_rows for block in shape.blocks]
    cut = assign(rows, [(place.name, place.threads) for place in room.places])
    return {bundle.address: (bundle.lo, bundle.hi, len(bundle.nodes)) for bundle in cut}


def _seconds(shape: Shape, outputs: int, room: Room) -> float:
    busy = max(1, min(room.threads, len(shape.blocks)))
    return shape.values * (READING + WORK * outputs) / busy
