"""The tasks of one pass, as one graph.

Covers: bundles, handing what they share from worker to worker, the merging of their sums by a tree of tasks, one
reduction per shard, and what a pass tells about its tasks in words.
Does not cover: submitting and waiting (``dask``), or what the tasks do (``tasks``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from distributed import Future

from dboost.engine.base import EnginePlan, Finish, FinishArgs, finishing_args
from dboost.engine.dask import submission, tasks
from dboost.engine.dask.assignment import Bundle
from dboost.engine.dask.holdings import Holdings
from dboost.engine.dask.submission import Graph, names
from dboost.engine.dask.wire_format import pack_whole
from dboost.engine.tree import Node, coalesce

FAN_IN = 8
"""A task merges the sums of at most so many others. What arrives at one worker, or at the driver, is then independent
of the number of workers; up to this number a tree would only be another turn through the scheduler. So is what a worker
that holds a large argument passes on."""

PICKS = 1024
"""A pass has at most so many tasks that pick a shard out of the sums of a worker. A pick costs the scheduler nearly a
millisecond, and with many workers there are more picks than all else: pairs of neighbours then merge all shards first.
Each such step costs the time in which a worker receives the sums of another one, and saves half of the picks; at this
number the two are alike for sums of 800 MB (docs/how/many_workers.md)."""

TREE_BYTES = 8 * 2**20
"""Sums of all bundles that are together larger than this reach the driver through a tree of tasks."""

TREE_WORKERS = 64
"""How large the sums of a pass are is known once there was a pass of its name. Before, they are merged by a tree where
there are more bundles than this: of sums as large as W the driver would get one from each of a thousand workers."""


@dataclass(frozen=True)
class Branch:
    """A task whose result holds sums."""

    key: str
    nodes: tuple[Node, ...]  # What the sums are of.
    address: str  # Where the task runs, most likely.


class PassTasks:
    """The graph of one pass.

    `name`: name of the pass. `mark`: makes keys unique: the engine's token and the number of the pass, after what the
    pass is for ("round12"). `described`: what a task works on, in words, by key.
    """

    def __init__(self, name: str, mark: str, held: Holdings) -> None:
        self.name = name
        self.graph = Graph()
        self.described: dict[str, str] = {}
        self._mark = mark
        self._held = held

    def _key(self, role: str) -> str:
        """Return a key that is readable and unique; the scheduler groups tasks by its first words."""
        words = ["dboost", *([role] if role else []), self.name, self._mark, str(len(self.graph))]
        return "-".join(words)

    def common(self, value: Any, copies: int, address: str | None) -> tuple[Any, list[Any]]:
        """Return a value as an argument of that many tasks, and the constants in it."""
        blob, constants = self._held.pack(value)
        if blob.nbytes * copies <= submission.HOLD_BYTES:
            self._held.count(blob.nbytes * copies)
            return blob, constants
        self._held.count(blob.nbytes)
        return self._hold(blob, address), constants

    def _hold(self, value: Any, address: str | None) -> str:
        """Add a task that returns what it is given: bytes, or the key of another such task."""
        return self.graph.add(self._key("hold"), address, tasks.hold, value)

    def handed_on(self, key: str, addresses: Sequence[str]) -> list[str]:
        """Return, for each address, the key of the task from which it gets what task `key` at the first one holds.

        A worker that holds it gives it to the first workers of up to so many groups, and these do so in their groups.
        One worker alone would have to send it to all others, one after the other.
        """
        span = FAN_IN
        while span * FAN_IN < len(addresses):
            span *= FAN_IN
        holders = [key] * len(addresses)
        while span >= FAN_IN:
            for first in range(0, len(addresses), span):
                if first % (span * FAN_IN):
                    copy = self._hold(holders[first], addresses[first])
                    holders[first : first + span] = [copy] * len(holders[first : first + span])
            span //= FAN_IN
        return holders

    def map(self, fn: Callable[..., Any], pieces: Sequence[list[Any]], args: tuple[Any, ...]) -> None:
        """Add one task for each list of items, wherever there is room."""
        common, constants = self.common((fn, args), len(pieces), None)
        resident = self._held.constants(constants, None)
        for piece in pieces:
            given = piece if any(isinstance(item, Future) for item in piece) else pack_whole(piece)
            key = self.graph.add(self._key("map"), None, tasks.map_task, common, given, resident)
            self.described[key] = names(piece)

    def bundles(self, plan: EnginePlan, bundles: Sequence[Bundle], value: Any) -> list[Branch]:
        """Add one task per bundle; `value` is what they share (``tasks.bundle_task``)."""
        common, constants = self.common(value, len(bundles), bundles[0].address)
        places = [bundle.address for bundle in bundles]
        shared = self.handed_on(common, places) if isinstance(common, str) else [common] * len(bundles)
        branches = []
        for bundle, given in zip(bundles, shared, strict=True):
            part, partitions = self._held.of_bundle(plan, bundle)
            resident = self._held.constants(constants, bundle.address)
            key = self.graph.add(self._key(""), bundle.address, tasks.bundle_task, given, part, resident, partitions)
            self.described[key] = names(plan.items[bundle.lo : bundle.hi])
            branches.append(Branch(key, bundle.nodes, bundle.address))
        return branches

    def scan(self, plan: EnginePlan, bundles: Sequence[Bundle], value: Any) -> str:
        """Add a chain of tasks, one per bundle, and return the key of the last; `value` is what they share."""
        common, constants = self.common(value, len(bundles), bundles[0].address)
        key: Any = None
        for bundle in bundles:
            part, partitions = self._held.of_bundle(plan, bundle)
            resident = self._held.constants(constants, bundle.address)
            given = (common, part, resident, partitions, key)
            key = self.graph.add(self._key("scan"), bundle.address, tasks.scan_task, *given)
            self.described[key] = names(plan.items[bundle.lo : bundle.hi])
        return str(key)

    def merged(self, plan: EnginePlan, branches: list[Branch], turn: int = 0) -> list[Branch]:
        """Add tasks that merge neighbours until few branches are left.

        They run at a worker whose sums are among those that they merge; at which one, goes by `turn`. The shards of a
        pass have a turn each: the same few workers would otherwise receive all shards of all others.
        """
        while len(branches) > FAN_IN:
            branches = self._merged_by(plan, branches, FAN_IN, turn)
        return branches

    def _merged_by(self, plan: EnginePlan, branches: list[Branch], count: int, turn: int) -> list[Branch]:
        groups = [branches[i : i + count] for i in range(0, len(branches), count)]
        return [self._merge(plan, group, turn) for group in groups]

    def _merge(self, plan: EnginePlan, group: list[Branch], turn: int) -> Branch:
        if len(group) == 1:
            return group[0]
        nodes = [node for branch in group for node in branch.nodes]
        wanted = coalesce(plan.rows, nodes)
        # Only the rows below these nodes shape the merging.
        lo, hi = nodes[0][0], nodes[-1][1]
        rows = plan.rows[lo:hi]
        shifted = [[(a - lo, b - lo) for a, b in given] for given in (nodes, wanted)]
        key = self._key("merge")
        given = ([branch.key for branch in group], self._held.pack((rows, *shifted))[0])
        address = group[turn % len(group)].address
        self.graph.add(key, address, tasks.merge_task, *given)
        self.described[key] = "a part of the sum"
        return Branch(key, tuple(wanted), address)

    def reductions(
        self,
        plan: EnginePlan,
        branches: list[Branch],
        shards: Sequence[Any],
        finish: Finish | None,
        finish_args: FinishArgs | None,
    ) -> list[str]:
        """Add one reduction per shard; return their keys."""
        while len(shards) > 1 and len(branches) * len(shards) > PICKS and len(branches) > FAN_IN:
            branches = self._merged_by(plan, branches, 2, 0)
        wanted = []
        for number, shard in enumerate(shards):
            mine = branches if len(shards) == 1 else [self._pick(branch, number) for branch in branches]
            mine = self.merged(plan, mine, number)
            # The reductions are spread over the workers.
            address = branches[number * len(branches) // len(shards)].address
            nodes = [node for branch in mine for node in branch.nodes]
            value = (plan.rows, nodes, finish, shard, finishing_args(finish_args, shard))
            blob, constants = self.common(value, 1, address)
            keys = [branch.key for branch in mine]
            resident = self._held.constants(constants, address)
            key = self.graph.add(self._key("reduce"), address, tasks.reduce_task, keys, blob, resident)
            self.described[key] = f"the sum of shard {number}"
            wanted.append(key)
        return wanted

    def _pick(self, branch: Branch, number: int) -> Branch:
        key = self.graph.add(self._key("pick"), branch.address, tasks.pick, branch.key, number)
        return Branch(key, branch.nodes, branch.address)


class SumSizes:
    """Bytes of the sums that one task gives, by name of the pass."""

    def __init__(self) -> None:
        self._bytes: dict[str, int] = {}

    def note(self, name: str, nbytes: int, results: int) -> None:
        """A pass gave so many bytes in so many results.

        What one result takes is the same with and without a tree. What arrives in all is less with one: if that were
        noted, every other pass would go without.
        """
        self._bytes[name] = nbytes // max(1, results)

    def by_tree(self, name: str, bundles: int) -> bool:
        """Whether the sums of so many bundles are merged by tasks."""
        size = self._bytes.get(name)
        return bundles > TREE_WORKERS if size is None else size * bundles > TREE_BYTES
