"""What workers hold for longer than one pass: partitions, their descriptions, and constants.

Covers: sending each to the worker that needs it once, as the result of a task, and letting go of it.
Does not cover: which worker sums which bundle (``assignment``), or the tasks of a pass (``dask``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from distributed import Future

from dboost.engine.base import EnginePlan
from dboost.engine.dask import submission
from dboost.engine.dask.assignment import Bundle
from dboost.engine.dask.submission import Submission, release
from dboost.engine.dask.wire_format import Blob, pack, pack_whole, unpack
from dboost.partition import Partition

CONSTANTS_KEPT = 8


class Holdings:
    """Futures that outlive a pass.

    `names`: what the tasks hold, in words, by key.
    """

    def __init__(self, tasks: Submission) -> None:
        self.names: dict[str, str] = {}
        self._tasks = tasks
        self._parts: dict[Bundle, tuple[Any, Any]] = {}
        self._homes: dict[int, tuple[str, Future[Any]]] = {}
        # one future of all partitions of a bundle: as the arguments of a task they would cost the scheduler one each
        self._lists: dict[Bundle, Future[Any]] = {}
        # by identity; the value itself is kept with it, so that no other gets its id
        self._constants: OrderedDict[int, tuple[Any, Blob, dict[str | None, Future[Any]]]] = OrderedDict()

    def of_bundle(self, plan: EnginePlan, bundle: Bundle) -> tuple[Any, Any]:
        """Return the arguments `part` and `partitions` of a bundle's tasks (``tasks.bundle_task``)."""
        if bundle not in self._parts:
            items = plan.items[bundle.lo : bundle.hi]
            held = any(isinstance(item, Future | Partition) for item in items)
            nodes = [(lo - bundle.lo, hi - bundle.lo) for lo, hi in bundle.nodes]
            value = (None if held else items, plan.rows[bundle.lo : bundle.hi], nodes)
            part: Any = pack_whole(value)
            self._tasks.bytes_sent += part.nbytes
            if part.nbytes > submission.PLAN_HOLD_BYTES:
                part = self._tasks.hold(part, "hold-plan", bundle.address)
            self._parts[bundle] = (part, held)
        part, held = self._parts[bundle]
        if not held:
            return part, None
        if bundle not in self._lists:
            homes = [self._home(i, plan.items[i], bundle.address) for i in range(bundle.lo, bundle.hi)]
            self._lists[bundle] = self._tasks.hold(homes, "partitions", bundle.address)
        return part, self._lists[bundle]

    def keep_only(self, bundles: Sequence[Bundle]) -> None:
        """Let go of what belongs to bundles and workers that are no more."""
        for bundle in [known for known in self._parts if known not in bundles]:
            release([self._parts.pop(bundle)[0], self._lists.pop(bundle, None)])
        present: set[str | None] = {None} | {bundle.address for bundle in bundles}
        for _, _, copies in self._constants.values():
            for address in [known for known in copies if known not in present]:
                release([copies.pop(address)])

    def _home(self, i: int, item: Any, address: str) -> Any:
        """Return a partition's future at the worker that sums it.

        A bundle's partitions may lie anywhere at first. A task that merely returns its input gives them a home:
        mere copies would be dropped again by the scheduler, which keeps one of each result.
        """
        if not isinstance(item, Future | Partition):
            return item
        if i not in self._homes or self._homes[i][0] != address:
            release([self._homes.pop(i)[1]] if i in self._homes else [])
            home = self._tasks.hold(item, "home", address)
            self._homes[i] = (address, home)
            self.names[str(home.key)] = f"partition {getattr(item, 'key', i)}"
            if isinstance(item, Partition):
                self._tasks.bytes_sent += item.nbytes
        return self._homes[i][1]

    def keys(self) -> list[str]:
        """Return the keys of everything that is held."""
        return [str(future.key) for future in self._all()]

    def _all(self) -> list[Future[Any]]:
        held: list[Any] = [part for part, _ in self._parts.values()]
        held += self._lists.values()
        held += [future for _, future in self._homes.values()]
        held += [future for _, _, copies in self._constants.values() for future in copies.values()]
        return [future for future in held if isinstance(future, Future)]

    def count(self, nbytes: int) -> None:
        """Note bytes that are sent."""
        self._tasks.bytes_sent += nbytes

    def pack(self, value: Any) -> tuple[Blob, list[Any]]:
        """Return a value as bytes, and the constants that are held apart from it."""
        blob, constants = pack(value)
        for constant in constants:
            if id(constant) not in self._constants:
                self._constants[id(constant)] = (constant, pack_whole(constant), {})
            self._constants.move_to_end(id(constant))
        while len(self._constants) > max(CONSTANTS_KEPT, len(constants)):
            release(list(self._constants.popitem(last=False)[1][2].values()))
        return blob, constants

    def constants(self, values: Sequence[Any], address: str | None) -> list[Any]:
        """Return the futures of constants at a worker, or anywhere."""
        futures = []
        for value in values:
            _, blob, copies = self._constants[id(value)]
            if address not in copies:
                # a worker decodes it once
                key = self._tasks.fresh_key("hold-constant")
                copies[address] = self._tasks.submit(unpack, blob, key=key, address=address)
                self._tasks.bytes_sent += blob.nbytes
            futures.append(copies[address])
        return futures

    def release(self) -> None:
        """Let go of everything."""
        release(self._all())
        self._parts, self._lists, self._homes, self.names = {}, {}, {}, {}
        self._constants.clear()
