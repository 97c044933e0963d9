"""What the rest of dboost knows about the place where functions run.

Covers: the ``Engine`` protocol, the plan an engine works on, and the seconds it keeps.
Does not cover: the engines (``local``, ``dask``), what most of them share (``defaults``), or mathematics of any kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, overload

from dboost.errors import UsageError
from dboost.partition import Partition, Sums

Leaf = Callable[..., Sums]
Finish = Callable[..., Any]
Step = Callable[..., Any]
FinishArgs = Callable[[Any], tuple[Any, ...]]

T = TypeVar("T")
S = TypeVar("S")


@dataclass(frozen=True)
class EnginePlan:
    """The partitions an engine sums over.

    Parameters
    ----------
    items : tuple
        Partitions, descriptions with ``key`` and ``load()``, or (Dask only) futures of partitions.
    rows : tuple of int
        Rows of each partition; they fix the summation tree.
    run_id : str
        Unique id of the run.
    """

    items: tuple[Any, ...]
    rows: tuple[int, ...]
    run_id: str

    def __post_init__(self) -> None:
        if len(self.items) != len(self.rows):
            raise UsageError(
                f"the plan names {len(self.items)} partitions and the rows of {len(self.rows)}; expected one each"
            )
        if not self.items:
            raise UsageError("the plan holds no partition; expected at least one")
        if min(self.rows) < 0:
            raise UsageError(f"the plan gives partition {self.rows.index(min(self.rows))} a negative number of rows")


@dataclass
class Seconds:
    """Seconds since an engine was opened; those of passes that failed are not in them."""

    driver: float = 0.0  # The driver itself, inside the engine: planning a pass and packing its arguments.
    # The rest of the wait for passes: turns through the scheduler and the queues of workers. 0 in-process.
    scheduler: float = 0.0
    # Arguments on the way to a worker (receiving from other workers, decoding), and results on the way back, once all
    # of a pass were ready. What the scheduler copies beside its other work is not told apart from it. 0 in-process.
    network: float = 0.0
    kernels: float = 0.0  # The work itself: reading, leaves, merging and finishing, of the worker that took longest.

    def add(self, driver: float, wait: float, kernels: float, network: float) -> None:
        """Count a pass: `wait` is all the time between handing it over and having its results."""
        # Clocks of several workers overlap: together the shares never exceed the wait.
        kernels = min(kernels, wait)
        network = min(network, wait - kernels)
        self.driver += driver
        self.kernels += kernels
        self.network += network
        self.scheduler += wait - kernels - network


class View(Protocol):
    """A way to see partitions: without some rows or columns, or less a number. It travels with every pass."""

    @property
    def lane(self) -> int | str | None:
        """What leaves remember of partitions seen so is kept apart from the rest by this; None shares the plain one."""
        ...

    def seen(self, partition: Any, memo: Any) -> Any:
        """A partition as it is seen: one itself, or what stands for it."""
        ...


class Engine(Protocol):
    """Where functions run. Use it as a context manager, or call `close`.

    These are all the members that the rest of dboost asks of an engine. ``defaults.EngineDefaults`` has all of them
    but `map_reduce`.

    Attributes
    ----------
    n_workers : int
        Processes that share the work (1 in-process).
    bytes_moved : int
        Bytes sent to and received from workers since the engine was opened; 0 in-process.
    seconds : Seconds
        Where the time of the passes so far went: driver, scheduler, network, kernels.
    """

    @property
    def seconds(self) -> Seconds: ...

    @property
    def n_workers(self) -> int: ...

    @property
    def bytes_moved(self) -> int: ...

    def set_plan(self, items: Sequence[Any], rows: Sequence[int], run_id: str) -> None:
        """Name the partitions that `map_reduce` sums over."""
        ...

    def label(self, *words: str) -> None:
        """Say what the next passes are for, from the whole to the part: ``"alpha 0.01", "round 3"``.

        An engine whose work others can watch shows it there. Without words they are for the whole again.
        """
        ...

    def through(self, view: View, *words: str) -> Engine:
        """An engine that sees the partitions of this one in another way; `words` come before those of its labels.

        To close it does nothing: this engine stays open, and other fits may use it meanwhile.
        """
        ...

    def resident_partitions(self) -> tuple[Partition, ...] | None:
        """The partitions of the plan where all of them lie in the memory of this process, else None."""
        ...

    def map(self, fn: Callable[..., T], items: Sequence[Any], *args: Any, name: str) -> list[T]:
        """Return ``[fn(item, *args) for item in items]``, in order.

        Parameters
        ----------
        fn : callable
            A pure function defined at module level.
        name : str
            A short word that shows up in task names.
        """
        ...

    def on_driver(self, fn: Callable[[S], T], items: Sequence[S]) -> list[T]:
        """Return ``[fn(item)]``, in order, computed in this process on the threads that the engine may use in it.

        For the driver's own work on arrays that are here; it is no pass, and its seconds are the driver's.
        """
        ...

    def run_in_background(self, fn: Callable[[], T]) -> Callable[[], T]:
        """Begin ``fn()`` in this process beside what the caller does next, where the engine has a thread for it.

        Returns
        -------
        callable
            Waits for the end of `fn`, and gives what it returned or raises what it raised.
        """
        ...

    @overload
    def map_reduce(self, leaf: Leaf, *args: Any, name: str) -> Sums: ...

    @overload
    def map_reduce(
        self,
        leaf: Leaf,
        *args: Any,
        name: str,
        shards: Sequence[Any] | None = None,
        finish: Finish | None = None,
        finish_args: FinishArgs | None = None,
    ) -> Any: ...

    def map_reduce(
        self,
        leaf: Leaf,
        *args: Any,
        name: str,
        shards: Sequence[Any] | None = None,
        finish: Finish | None = None,
        finish_args: FinishArgs | None = None,
    ) -> Any:
        """Sum `leaf` over the partitions of the plan along the fixed tree.

        Parameters
        ----------
        leaf : callable
            ``leaf(partition, memo, *args) -> Sums``, or with shards ``leaf(partition, memo, shard, *args) -> Sums``.
            A pure function defined at module level. The sums belong to the engine afterwards: arrays in them are
            added to in place, so they must not be remembered in the memo.
        args : objects
            Handed to every leaf; picklable, some megabytes at most.
        name : str
            A short word that shows up in task names, for example ``"score-r12"``.
        shards : sequence, optional
            Pieces of the sum, for example ranges of columns. Each is summed on its own, so that on Dask no process
            holds all pieces of the total.
        finish : callable, optional
            ``finish(total, shard, *finish_args(shard))`` runs where the total is; only its value is returned. Without
            shards, `shard` is None.
        finish_args : callable, optional
            Gives the further arguments of `finish`; called on the driver.

        Returns
        -------
        Sums, or the value of `finish`; with shards a list of these, one for each shard

        Raises
        ------
        DataError and other errors of a leaf, unchanged
        ClusterError
            Workers or scheduler are lost or silent (Dask only).
        """
        ...

    def scan(self, step: Step, state: Any, *args: Any, name: str) -> Any:
        """Carry `state` through the partitions of the plan, one after the other, in their order.

        For what cannot be summed because each row depends on those before it. Only one thread of one process works at
        a time; the state moves to the data.

        Parameters
        ----------
        step : callable
            ``step(partition, state, *args) -> state``. A pure function defined at module level.
        state, args : objects
            Picklable, and not changed by `step`.
        name : str
            A short word that shows up in task names.

        Returns
        -------
        The state after the last partition.

        Raises
        ------
        As `map_reduce`.
        """
        ...

    def close(self) -> None:
        """Release everything that belongs to this engine; a second call does nothing."""
        ...

    def __enter__(self) -> Engine: ...

    def __exit__(self, *exc: object) -> None: ...


def finishing_args(finish_args: FinishArgs | None, shard: Any) -> tuple[Any, ...]:
    """Return the further arguments of `finish` for a shard."""
    return () if finish_args is None else tuple(finish_args(shard))
