"""Pure functions that the engine tests send to workers."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dboost.errors import DataError
from dboost.partition import Partition, Sums


def make_partition(key: str, n_rows: int, n_features: int = 6) -> Partition:
    """A dense block with values that depend on the key only."""
    rng = np.random.default_rng(abs(int.from_bytes(key.encode(), "little")) % 2**32)
    return Partition(
        indptr=np.arange(n_features + 1, dtype=np.int64) * n_rows,
        rows=np.tile(np.arange(n_rows, dtype=np.int32), n_features),
        values=rng.standard_normal(n_rows * n_features) * 10.0 ** rng.integers(-1, 2),
        y=np.ones((n_rows, 1), dtype=np.int8),
        weight=rng.random(n_rows),
        key=key,
    )


@dataclass(frozen=True)
class Spec:
    """Describes a block; reading it may leave a mark, wait, or end the process."""

    key: str
    n_rows: int
    reads: str = ""
    nbytes_estimate: int = 10_000

    def load(self) -> Partition:
        if self.reads:
            with open(self.reads, "a") as log:
                log.write(f"{self.key} {os.getpid()}\n")
        return make_partition(self.key, self.n_rows)


def make_specs(sizes: list[int], reads: str = "") -> tuple[list[Spec], list[int]]:
    """Descriptions of blocks of the given sizes, and their rows."""
    return [Spec(f"block-{i}", size, reads) for i, size in enumerate(sizes)], list(sizes)


def column_sums(partition: Partition) -> np.ndarray:
    return partition.values.reshape(partition.n_features, -1) @ partition.weight


def unremembered(partition: Partition, memo: Any) -> Sums:
    """Sums of features, which are not put into the memo."""
    return Sums(add={"column": column_sums(partition)})


def plain(partition: Partition, memo: Any, scale: float) -> Sums:
    """Sums whose bits depend on the order of addition."""
    sums = memo.get("column", "fixed", lambda: column_sums(partition))
    return Sums(
        add={"column": sums * scale, "rows": float(partition.n_rows), "weight": float(partition.weight.sum())},
        peak={"top": np.abs(sums)},
        parts={"keys": [partition.key]},
    )


def sharded(partition: Partition, memo: Any, shard: tuple[int, int], scale: float) -> Sums:
    """The same, for a range of columns."""
    lo, hi = shard
    whole = plain(partition, memo, scale)
    return Sums(
        add={"column": whole.add["column"][lo:hi], "rows": whole.add["rows"]},
        peak={"top": whole.peak["top"][lo:hi]},
        parts=whole.parts,
    )


def finish(total: Sums, shard: Any, offset: float) -> tuple[Any, list[float], int]:
    return shard, (total.add["column"] + offset).tolist(), os.getpid()


def with_state(partition: Partition, memo: Any, W: np.ndarray) -> Sums:
    return Sums(add={"dot": float(partition.weight.sum() * W.sum()), "rows": float(partition.n_rows)})


class Number:
    """A number that every worker gets once."""

    sent_once = True

    def __init__(self, value: float) -> None:
        self.value = value


def with_numbers(partition: Partition, memo: Any, numbers: list[Number]) -> Sums:
    return Sums(add={"all": partition.n_rows * sum(number.value for number in numbers)})


def bad_block(partition: Partition, memo: Any, key: str) -> Sums:
    if partition.key == key:
        raise DataError("a value is not finite", file=key, column="price", hint="clean the file")
    return Sums(add={"rows": 1.0})


def broken(partition: Partition, memo: Any) -> Sums:
    raise ZeroDivisionError("a mistake in the leaf")


def flaky(partition: Partition, memo: Any, marks: str, *keys: str) -> Sums:
    """Fails the first time in each block, or in those of some keys."""
    mark = Path(marks) / partition.key
    if partition.key in (keys or (partition.key,)) and not mark.exists():
        mark.touch()
        raise OSError(f"storage hiccup at {partition.key}")
    return Sums(add={"rows": float(partition.n_rows)})


def slow(partition: Partition, memo: Any, seconds: float, marks: str) -> Sums:
    """Leaves its process id, then takes its time."""
    with open(marks, "a") as log:
        log.write(f"{os.getpid()}\n")
    time.sleep(seconds)
    return Sums(add={"column": column_sums(partition), "rows": float(partition.n_rows)})


def poison(partition: Partition, memo: Any, key: str) -> Sums:
    """One block kills every process that touches it."""
    if partition.key == key:
        os.kill(os.getpid(), signal.SIGKILL)
    return Sums(add={"rows": float(partition.n_rows)})


def describe(item: Any, suffix: str) -> str:
    return f"{item.key}{suffix}"


def refuse(item: Any, key: str) -> str:
    if item.key == key:
        raise DataError("unreadable", file=key)
    return str(item.key)


def bad_shard(partition: Partition, memo: Any, shard: int, key: str) -> Sums:
    if partition.key == key and shard == 1:
        raise DataError("a value is not finite", file=key)
    return Sums(add={"rows": 1.0})


def bad_finish(total: Sums, shard: int) -> float:
    if shard == 1:
        raise DataError(f"finish refused shard {shard}")
    return total.add["rows"]


def gated(partition: Partition, memo: Any, W: np.ndarray, gate: str, marks: str) -> Sums:
    """Leaves its process id, then waits for a file: what has to happen meanwhile does not race with it."""
    with open(marks, "a") as log:
        log.write(f"{os.getpid()}\n")
    end = time.monotonic() + 40
    while not os.path.exists(gate):
        if time.monotonic() > end:
            raise TimeoutError(f"nobody opened {gate}")
        time.sleep(0.01)
    return Sums(add={"column": column_sums(partition), "dot": float(partition.weight.sum() * W.sum())})


def sharded_suicide(partition: Partition, memo: Any, shard: tuple[int, int], key: str, mark: str = "") -> Sums:
    """One block kills every process that touches it, in the second shard; only one where it leaves a mark."""
    if partition.key == key and shard[0] > 0 and not os.path.exists(mark):
        if mark:
            Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return Sums(add={"column": column_sums(partition)[shard[0] : shard[1]]})


def poison_item(item: Any, key: str) -> str:
    if item.key == key:
        os.kill(os.getpid(), signal.SIGKILL)
    return str(item.key)


def remembered_runs(dask_worker: Any) -> list[str]:
    """Runs that the worker process remembers something of."""
    from dboost.engine.dask.tasks import memo_budget
    from dboost.engine.memo import process_store

    return sorted(process_store(lambda: memo_budget(dask_worker, None)).runs())


def chained(partition: Partition, state: tuple[float, tuple[str, ...]], factor: float) -> tuple[float, tuple[str, ...]]:
    """A state whose value depends on the order of the partitions."""
    if not np.isfinite(state[0]):
        raise DataError("the state is not finite", column=partition.key)
    return factor * state[0] + float(partition.weight.sum()), (*state[1], partition.key)
