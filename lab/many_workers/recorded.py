"""Seconds that real passes take on a real partition, and what follows for partitions of any number of documents.

Covers: passes over one partition of documents of the full width (features, classes, active rows), timed on one thread;
the two constants of each (``Work``); how fast sums are added.
Does not cover: what scheduler, driver and network add (``model``).

A leaf takes time for what is stored, in every class, and time for its sums, which are as many however few documents
there are. Two partitions of different size tell the two apart.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dboost.engine.local import LocalEngine
from dboost.partition import Partition, Sums
from dboost.penalties import get_penalty
from dboost.problem.shards import column_shards, score_shard
from dboost.problem.stored import StoredProblem
from lab.many_workers.sizes import Question

ACTIVE_SHARE = 0.3
"""Share of the stored values that lie in the columns of active rows: these are the frequent words."""

PASSES = ("score", "gradient", "hessian", "grid")
DOCUMENTS = (5_000, 40_000)
REPEATS = 3


@dataclass(frozen=True)
class Work:
    """Seconds of a leaf: ``per_document`` for each document, ``per_partition`` for the sums.

    Parameters
    ----------
    per_document, per_partition : float
    """

    per_document: float
    per_partition: float

    def seconds(self, documents: float) -> float:
        """Seconds of a leaf on a partition of so many documents."""
        return self.per_document * documents + self.per_partition


def documents_of(question: Question, rows: int, seed: int) -> Partition:
    """A partition of random documents: a share of what is stored lies in the first columns, those of active rows."""
    rng = np.random.default_rng(seed)
    common = int(ACTIVE_SHARE * question.stored)
    columns = np.concatenate([
        rng.integers(0, question.active, (rows, common)),
        rng.integers(question.active, question.features, (rows, question.stored - common)),
    ], axis=1)  # fmt: skip
    order = np.argsort(columns.ravel(), kind="stable")
    counts = np.bincount(columns.ravel(), minlength=question.features)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    values = rng.random(order.shape, np.float32)
    y = rng.integers(0, question.classes, rows).astype(np.int32)
    return Partition(indptr, (order // question.stored).astype(np.int32), values, y, np.ones(rows), f"real-{seed}")


def taken(total: Sums, shard: Any) -> float:
    """What is left of the sums of a shard: nothing but that they were formed."""
    return float(total.add["G"][0, 0])


def seconds_of(question: Question, rows: int) -> dict[str, float]:
    """Median seconds of each pass over one partition of so many documents, on one thread."""
    part = documents_of(question, rows, 0)
    found: dict[str, list[float]] = {name: [] for name in PASSES}
    # Processor seconds: with one thread they are those of the pass, whatever else the machine is doing.
    with LocalEngine(1) as engine:
        engine.set_plan([part], [rows], "recorded")
        problem = StoredProblem(
            engine, "multinomial", get_penalty("l1/l2"), question.features, question.classes, True, "recorded"
        )
        active = np.arange(question.active, dtype=np.int64)
        W = 0.1 * np.random.default_rng(0).standard_normal((question.active, question.classes))
        at = replace(problem.null(), active=active, W=W)
        product = problem.curvature_at(at)
        # as a worker cuts the columns, which are smaller where driver and data share a memory
        shards = column_shards(question.features, 8 * question.classes)
        point = problem.point(active, W, at.intercept)
        runs: dict[str, Callable[[], object]] = {
            "score": lambda: engine.map_reduce(
                score_shard, None, point, False, False, name="score", shards=shards, finish=taken
            ),
            "gradient": lambda: problem.evaluate(active, W, at.intercept),
            "hessian": lambda: product(W, at.intercept),
            "grid": lambda: problem.losses_along(at, W, at.intercept, np.array([0.5, 0.25, 0.1])),
        }
        for turn in range(REPEATS + 1):
            for name, run in runs.items():
                began = time.process_time()
                run()
                if turn:
                    found[name].append(time.process_time() - began)
    return {name: statistics.median(seconds) for name, seconds in found.items()}


def work_of(question: Question, documents: tuple[int, int] = DOCUMENTS) -> dict[str, Work]:
    """The two constants of each pass, from partitions of two sizes."""
    few, many = (seconds_of(question, rows) for rows in documents)
    found = {}
    for name in PASSES:
        slope = max(0.0, (many[name] - few[name]) / (documents[1] - documents[0]))
        found[name] = Work(slope, max(0.0, few[name] - slope * documents[0]))
    return found


def adding_rate(nbytes: int = 64_000_000) -> float:
    """Bytes of sums that a worker adds to others in a second."""
    mine, other = (Sums(add={"G": np.ones(nbytes // 8)}) for _ in range(2))
    times = []
    for _ in range(5):
        began = time.process_time()
        mine.merge(other)
        times.append(time.process_time() - began)
    return nbytes / statistics.median(times)
