"""Handing tasks to the Dask scheduler.

Covers: the one form in which dboost submits tasks, alone or as the graph of a pass, and releasing futures.
Does not cover: which tasks a pass has (``dask``), or what outlives it (``holdings``).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

import dask
import dask.config
import numpy as np
from dask.base import normalize_token
from distributed import Future, span

from dboost.engine.dask import tasks

HOLD_BYTES = 16 * 2**20
"""Arguments that would put more than this into the tasks of a pass reach one worker, which passes them on.

That costs another turn among the workers, about 10 ms, which copies sent by the scheduler undercut up to this size."""

PLAN_HOLD_BYTES = 64 * 1024
"""Descriptions of a bundle's partitions that are larger than this are not sent again in every pass."""

NAMES_SHOWN = 8
"""Names of partitions in a message, and of tasks that were beside the one that it is about."""


class Graph(dict[str, Any]):
    """The tasks of a pass. All travel in one message, and what several of them share is in it once.

    `places`: key to the address of the worker that should do the task; another one may. Tasks without a place run
    anywhere.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.places: dict[str, str] = {}

    def add(self, key: str, address: str | None, fn: Callable[..., Any], *args: Any) -> str:
        """Add a task and return its key; arguments that are keys of the graph, or futures, stand for results."""
        self[key] = (fn, *args)
        if address is not None:
            self.places[key] = address
        return key

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


@normalize_token.register(Graph)  # type: ignore[untyped-decorator]
def _name_of(graph: Graph) -> str:
    # Keys are unique; Dask would read through all arguments to name the graph after its contents.
    return uuid.uuid4().hex


class _Places:
    """Tells Dask where each task of a graph should run: at its place, or else on any of `others`."""

    def __init__(self, places: dict[str, str], others: Sequence[str] = ()) -> None:
        self.places = places
        self.others = list(others)

    def __call__(self, key: str) -> list[str]:
        return [self.places[key]] if key in self.places else self.others


class Submission:
    """Submit tasks that the scheduler may run again, and elsewhere.

    `token`: part of every key, unique to the engine. `retries`: times a task is run again after an error. `bytes_sent`:
    bytes of arguments sent so far. `confined`: addresses of the only workers that may do the tasks. A task whose worker
    dies then waits for it, until the driver sees that and submits the pass again; so this is for clusters with workers
    that must not be used.
    """

    def __init__(self, client: Any, token: str, retries: int) -> None:
        self.client = client
        self.token = token
        self.retries = retries
        self.bytes_sent = 0
        self.confined: tuple[str, ...] | None = None
        with span("dboost"):
            self._span = dask.get_annotations()["span"]
        self._around: dict[tuple[str, ...], Any] = {(): self._span}

    def label(self, words: Sequence[str]) -> None:
        """Put the tasks that follow into a span of Dask, which is inside of that of all but the last word."""
        self._span = _inside(self._opened(tuple(words[:-1])), words[-1]) if words else self._around[()]

    def _opened(self, words: tuple[str, ...]) -> Any:
        """What the tasks of a span carry; made once, since a span that is opened again counts as another one."""
        if words not in self._around:
            self._around[words] = _inside(self._opened(words[:-1]), words[-1])
        return self._around[words]

    def submit(self, fn: Callable[..., Any], *args: Any, key: str, address: str | None = None) -> Future[Any]:
        """Submit one task, for the worker at `address` if that is still there, otherwise for any."""
        workers = None if address is None else [address]
        if self.confined is not None and address not in self.confined:
            workers = list(self.confined)
        # Dask's advice against large graphs is to make them the result of a task, which is what is done here.
        with (
            dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PiB"}),
            dask.annotate(span=self._span),
        ):
            future: Future[Any] = self.client.submit(
                fn,
                *args,
                key=key,
                workers=workers,
                allow_other_workers=workers is not None and self.confined is None,
                retries=self.retries,
                pure=False,
            )
        return future

    def run(self, graph: Graph, wanted: Sequence[str]) -> list[Future[Any]]:
        """Submit the tasks of a pass at once; return the futures of those that are wanted.

        A graph is one turn through the scheduler, and one message; tasks that are submitted one by one are one each.
        """
        annotations: dict[str, Any] = {"span": self._span, "retries": self.retries}
        if self.confined is not None:
            annotations |= {"workers": _Places(graph.places, self.confined), "allow_other_workers": False}
        elif graph.places:
            annotations |= {"workers": _Places(graph.places), "allow_other_workers": True}
        with (
            dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PiB"}),
            dask.annotate(**annotations),
        ):
            futures: list[Future[Any]] = self.client.get(graph, list(wanted), sync=False)
        return futures

    def fresh_key(self, role: str) -> str:
        """Return a key for a task that outlives its pass."""
        return f"dboost-{role}-{self.token}-{uuid.uuid4().hex[:12]}"

    def hold(self, value: Any, role: str, address: str | None) -> Future[Any]:
        """Submit a value as a task that returns it."""
        return self.submit(tasks.hold, value, key=self.fresh_key(role), address=address)


def _inside(around: Any, word: str) -> Any:
    """What the tasks of a new span inside another carry."""
    with dask.annotate(span=around), span(word):
        return dask.get_annotations()["span"]


def release(values: Sequence[Any]) -> None:
    """Release those of the values that are futures."""
    for value in values:
        if isinstance(value, Future):
            value.release()


def names(items: Sequence[Any]) -> str:
    """Name partitions, or the first few of many.

    An item is named by its key or by the file that it reads, and else by its number: what it holds is data, which no
    message repeats.
    """
    shown = ", ".join(_name(item, number) for number, item in enumerate(items[:NAMES_SHOWN]))
    if len(items) == 1:
        return f"partition {shown}"
    more = f" and {len(items) - NAMES_SHOWN} more" if len(items) > NAMES_SHOWN else ""
    return f"one of the partitions {shown}{more}"


def _name(item: Any, number: int) -> str:
    if hasattr(item, "spans"):
        return f"{item.spans[0][0].path} from row group {np.min(item.spans[0][1])} on"
    if isinstance(item, tuple) and item:
        # A file with its name, or the bounds of something.
        return str(item[0]) if isinstance(item[0], str) else "-".join(str(one) for one in item if isinstance(one, int))
    found = getattr(item, "key", getattr(item, "path", item if isinstance(item, int) else number))
    return str(found)
