"""What runs the passes of one fit: it names what they are about, counts them and knows their seconds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dboost.engine.base import Engine


class PassRunner:
    """Passes over the data of one fit.

    `engine`: where partitions are mapped and reduced; its plan is set. `run_id`: makes the tokens of this fit unique in
    a process. `count`: passes that were done for the fit before, and then all that are done.
    """

    def __init__(self, engine: Engine, run_id: str, count: int = 0) -> None:
        self.engine = engine
        self.count = count
        self._run_id = run_id
        self._tokens = 0
        self._seconds_marked = replace(engine.seconds)

    def token(self) -> str:
        """A name that nothing else has: engines keep what they have made of it under that name."""
        self._tokens += 1
        return f"{self._run_id}:{self._tokens}"

    def run(self, leaf: Any, *args: Any, name: str, at_once: int | None = None, **kwargs: Any) -> Any:
        """One pass: leaf(partition, memo, *args) over every partition, reduced (``Engine.map_reduce``).

        `name`: the name under which the pass is counted. `at_once`: at most so many shards are summed at a
        time: a process may hold its sums of all of them until they are added up. It is one pass all the same.
        `**kwargs`: `shards`, `finish` and `finish_args` of ``Engine.map_reduce``.
        """
        self.count += 1
        shards = kwargs.get("shards")
        if at_once is not None and shards is not None and len(shards) > at_once:
            found: Any = []
            for first in range(0, len(shards), at_once):
                some: Any = kwargs | {"shards": shards[first : first + at_once]}
                found += self.engine.map_reduce(leaf, *args, name=name, **some)
            return found
        return self.engine.map_reduce(leaf, *args, name=name, **kwargs)

    def count_on_driver(self) -> None:
        """Count a pass of which the driver does all but fetching what it lacks."""
        self.count += 1

    def seconds(self) -> tuple[float, float, float]:
        """Seconds of scheduler, network and kernels in the passes since the last call."""
        now, before = self.engine.seconds, self._seconds_marked
        self._seconds_marked = replace(now)
        return now.scheduler - before.scheduler, now.network - before.network, now.kernels - before.kernels
