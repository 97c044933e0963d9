"""Passes of the real engine over many thin workers, and what each costs.

Covers: starting the cluster, running each kind of pass a few times, noting one of each; one record a kind.
Does not cover: the model (``model``), or what the records are drawn as (``page``).
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dboost.engine.dask.engine import DaskEngine
from dboost.penalties import get_penalty
from dboost.problem.stored import StoredProblem
from lab.benchmarks.overhead import kinds
from lab.many_workers import cluster
from lab.many_workers.cluster import Spent
from lab.many_workers.ledger import Entry, noted
from lab.many_workers.recorded import PASSES, Work
from lab.many_workers.sizes import Question, smaller_limits
from lab.many_workers.thin import Few, ThinEngine

FASTER = 100.0
"""Workers of the simulation answer so many times sooner than is recorded: what scheduler and driver do for a pass does
not depend on it, and 16 workers alone would take minutes for 10^8 documents."""


@dataclass
class Record:
    """A kind of pass on so many workers.

    Parameters
    ----------
    name : str
    workers, per_worker : int
        Workers, and partitions of each.
    spent : Spent
        Of one pass, the median of several.
    seconds : float
        Wall seconds of one on this machine, which its two cores share.
    entries : list of Entry
        The tasks of one pass.
    """

    name: str
    workers: int
    per_worker: int
    spent: Spent
    seconds: float
    entries: list[Entry] = field(repr=False)

    @property
    def tasks(self) -> int:
        """Tasks of the pass."""
        return len(self.entries)

    def roles(self) -> Counter[str]:
        """How many tasks of each role there are."""
        return Counter(role_of(entry.key, self.name) for entry in self.entries)


def role_of(key: str, name: str) -> str:
    """What a task of a pass does, from its key: ``bundle`` where the name of the pass comes first."""
    words = key.split("-")
    return "bundle" if words[1] == name else words[1]


def records(
    question: Question,
    workers: int,
    per_worker: int,
    work: Mapping[str, Work],
    repeats: int,
    names: tuple[str, ...] = PASSES,
) -> list[Record]:
    """Run each kind of pass `repeats` times after a first one that does not count, then note one more."""
    count = workers * per_worker
    seconds = {name: one.seconds(question.documents / count) / FASTER for name, one in work.items()}
    with cluster.running(workers) as there, smaller_limits(), DaskEngine(there.client) as engine:
        thin = ThinEngine(engine, seconds)
        parts = [Few(i, question.few_features, question.classes) for i in range(count)]
        thin.set_plan(parts, [-(-question.documents // count)] * count, "many-workers")
        penalty = get_penalty("l1/l2")
        shape = (question.few_features, question.classes)
        problem = StoredProblem(thin, "multinomial", penalty, *shape, True, "many-workers")
        passes = kinds(problem, question.few_active)
        for name in names:
            passes[name]()
        return [_record(there, passes[name], name, (workers, per_worker), repeats) for name in names]


def _record(there: cluster.Cluster, run: Any, name: str, size: tuple[int, int], repeats: int) -> Record:
    spent, walls = [], []
    for _ in range(repeats):
        before, began = there.spent(), time.perf_counter()
        run()
        walls.append(time.perf_counter() - began)
        spent.append(there.spent().since(before))
    middle = Spent(**{key: statistics.median(getattr(one, key) for one in spent) for key in vars(spent[0])})
    return Record(name, *size, middle, statistics.median(walls), noted(there.client, run))
