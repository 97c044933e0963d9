"""Waiting for tasks without ever waiting for ever.

Covers: collecting the results of futures while watching scheduler, workers, the states of tasks and progress; turning
Dask's errors into `ClusterError`.
Does not cover: what is submitted, submitting it again (``dask``), or resuming afterwards.

Left alone, Dask waits for ever when no worker is left, for five minutes when one is silent, and for ever when all
workers were gone for a moment (``docs/upstream/no-worker-tasks.md``). These limits are the scheduler's, which a client
cannot set; so the driver watches for itself, from here.
"""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dboost import interruption
from dboost.engine.dask.gathering import Arrivals, CancelledTask, gather
from dboost.engine.dask.questions import Answers, Questions, address_of, scheduler_lost
from dboost.engine.dask.restrictions import Restrictions
from dboost.errors import ClusterError
from dboost.notices import warn_user

LONGEST_STEP = 2.5
"""Seconds of silence that two looks can show at most. The driver itself may have been stopped between them (Ctrl-Z, a
laptop that slept), and must not take its own absence for the silence of every worker."""


@dataclass(frozen=True)
class Signs:
    """What the driver knows of the workers' heartbeats."""

    looked: float = float("-inf")  # When it looked last, by its own clock.
    # Time of the last heartbeat of each worker, by the scheduler's clock. Clocks of machines differ, so this number is
    # only compared with itself.
    last: Mapping[str, float] = field(default_factory=dict)
    # Seconds for which that number has not changed, by worker.
    quiet: Mapping[str, float] = field(default_factory=dict)

    def after(self, seen: Mapping[str, float], now: float) -> Signs:
        """Return what is known after a look: `seen` are the heartbeats by worker, `now` is the driver's clock.

        Only looks that were answered may be counted: a scheduler that answers late has also heard its workers late.
        """
        step = min(now - self.looked, LONGEST_STEP)
        quiet = {a: self.quiet[a] + step if self.last.get(a) == at else 0.0 for a, at in seen.items()}
        return Signs(now, dict(seen), quiet)

    def silent(self, seconds: float) -> frozenset[str]:
        """Return the workers that have been silent for longer than that."""
        return frozenset(address for address, quiet in self.quiet.items() if quiet > seconds)


@dataclass(frozen=True)
class Limits:
    """How long to wait for what, in seconds."""

    no_worker: float = 30.0  # Without any worker that may be used.
    silent: float = 10.0  # Until a worker without a sign of life is left out.
    stall: float = 600.0  # Without one finished task or partition.


class Stuck(Exception):
    """Tasks of a pass wait for workers that will not do them; others may, once it is submitted again.

    `reason`: what happened to which worker. `key`: a task that waits for a worker that is gone; None where a worker is
    merely silent.
    """

    def __init__(self, reason: str, key: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.key = key


@dataclass(frozen=True)
class Watched:
    """The tasks of a pass, and what they need."""

    name: str  # Name of the pass, for messages.
    wanted: Sequence[Any]  # Whose results are collected.
    keys: Sequence[str]  # All tasks: each that is wanted and finishes, and each leaf in any, counts as progress.
    # Returns tasks of earlier passes whose results these need; they are submitted anew with the pass. It is called when
    # the pass makes no progress, as is `given`: there may be one for each partition.
    held: Callable[[], list[str]] = list
    # Returns tasks of others whose results these need, and what each is, in words.
    given: Callable[[], dict[str, str]] = dict
    places: Collection[str] = ()  # Workers that the tasks were meant for.
    left_out: frozenset[str] = frozenset()  # Silent workers that were left out.
    restrictions: Restrictions = Restrictions()  # What the caller asks of workers.
    # Is told, while the pass is waited for, how many of the wanted tasks are done and how many there are.
    tell: Callable[[int, int], None] | None = None


TICK = 0.5
"""Seconds between looks at the cluster; a pass that is shorter than this is never looked at."""

INQUIRY = 1.0
"""Seconds without progress before the tasks and workers themselves are looked at, and between such looks."""

RECONNECT_SECONDS = 3.0

HEARTBEATS = 5
"""A worker is not silent before it has missed so many heartbeats; of many workers each sends one in several seconds."""

NAMES_SHOWN = 5


@dataclass
class _Lookout:
    """What the driver has seen since it began to wait."""

    progress: float
    restrictions: Restrictions
    inquired: float = 0.0
    finished: int = 0
    leaves: dict[str, int] = field(default_factory=dict)
    unplaced: bool = False
    blocked: float | None = None
    without_workers: float | None = None
    without_answer: float | None = None
    disconnected: float | None = None
    warned: bool = False


class Watchdog:
    """Ask and wait, with limits.

    `silent`: workers that have shown no sign of life, at the last look.
    """

    def __init__(self, client: Any, limits: Limits) -> None:
        self.client = client
        self.limits = limits
        self.questions = Questions(client)
        self.silent: frozenset[str] = frozenset()
        self._signs = Signs()

    def workers(self, restrictions: Restrictions, wake: Callable[[], Any]) -> dict[str, int]:
        """Return address and threads of the running workers that may be used; wait for the first one.

        `restrictions`: what the caller asks of workers. `wake`: submits a task that any worker can do, and returns its
        future. It is called where there is no worker: a cluster that adapts to its load starts the first one when there
        is something to do. Raises ClusterError: no worker within the limit, or no scheduler.
        """
        lookout = _Lookout(time.monotonic(), restrictions)
        waiting: Any = None
        try:
            while True:
                interruption.check()
                found = self._look_for_workers(lookout)
                if found:
                    return found
                if waiting is None and lookout.without_workers is not None:
                    waiting = wake()
                time.sleep(0.1)
        finally:
            if waiting is not None:
                waiting.release()

    def collect(self, watched: Watched, describe: Callable[[str], str], arrivals: Arrivals | None = None) -> list[Any]:
        """Return the results of the futures that are wanted, in order.

        `describe`: ``describe(key)`` says in words what a task worked on. `arrivals`: is told how long the results
        travelled. Raises Stuck: no worker that is there will do the tasks. Raises ClusterError: scheduler or workers
        are lost, silent, or killed by a task. Raises Exception: what a task raised, unchanged.
        """
        from distributed import KilledWorker

        job = self.questions.start(gather(list(watched.wanted), arrivals or Arrivals()))
        lookout = _Lookout(time.monotonic(), watched.restrictions)
        try:
            while True:
                interruption.check()
                concurrent.futures.wait([job], timeout=TICK)
                if job.done():
                    outcome = job.result()
                    break
                if watched.tell is not None:
                    watched.tell(sum(one.status == "finished" for one in watched.wanted), len(watched.wanted))
                self._look(lookout, watched)
        except concurrent.futures.CancelledError as error:
            raise scheduler_lost(self.client, "the client was closed") from error
        finally:
            job.cancel()
        if isinstance(outcome, CancelledTask):
            raise self._cancelled(str(outcome), watched.name) from outcome
        if isinstance(outcome, KilledWorker):
            times, last = outcome.allowed_failures + 1, f", the last one {outcome.last_worker.address}"
            raise killed(watched.name, describe(str(outcome.task)), times, last) from outcome
        if isinstance(outcome, BaseException):
            raise outcome
        return list(outcome)

    def _cancelled(self, reason: str, name: str) -> ClusterError:
        if self.client.status != "running" or "connection" in reason:
            return scheduler_lost(self.client, reason)
        return ClusterError(
            f"the tasks of pass {name!r} were cancelled from outside ({reason})",
            hint="another program restarted the cluster, or data that was scattered to a lost worker cannot be rebuilt",
        )

    def _look_for_workers(self, lookout: _Lookout) -> dict[str, int]:
        """Return the workers, and raise when there has been none, or no answer, for too long."""
        now = time.monotonic()
        if self.client.status == "running":
            lookout.disconnected = None
        else:
            lookout.disconnected = lookout.disconnected or now
            if self.client.status == "closed" or now - lookout.disconnected > RECONNECT_SECONDS:
                raise scheduler_lost(self.client, f"the client is {self.client.status}")
            return {}
        about: Mapping[str, Any] | None = None
        try:
            running = self.questions.running()
            if self.silent or lookout.restrictions:
                about = self.questions.workers()
        except (TimeoutError, OSError) as error:
            lookout.without_answer = lookout.without_answer or now
            if now - lookout.without_answer > self.limits.no_worker:
                reason = f"no answer for {self.limits.no_worker:g} s"
                raise scheduler_lost(self.client, reason) from error
            return {}
        lookout.without_answer = None
        if about is not None:
            self._hear(about)
        able = lookout.restrictions.allowed(about) if about is not None and lookout.restrictions else set(running)
        found = {a: threads for a, threads in running.items() if a in able - self.silent}
        if found:
            lookout.without_workers = None
            return found
        lookout.without_workers = lookout.without_workers or now
        if now - lookout.without_workers > self.limits.no_worker:
            raise self._no_worker(lookout.restrictions, set(running), able)
        return {}

    def _no_worker(self, restrictions: Restrictions, running: set[str], able: set[str]) -> ClusterError:
        """Return the error for a cluster that has had no worker to use for too long."""
        where = f"for {self.limits.no_worker:g} s at scheduler {address_of(self.client)}"
        if running and not able & running:
            return ClusterError(
                f"no running worker met {restrictions.words()} {where}; there are {_listed(running)}",
                hint="start workers that meet what is annotated around this call, or take the annotation away",
            )
        if running:
            return ClusterError(
                f"no worker that answers {where}; without a sign of life: {_listed(running & self.silent)}",
                hint="look at these workers: they are stopped, cut off, or busy with what lets nothing else run",
            )
        return ClusterError(
            f"no running worker {where}",
            hint="start workers, or look at the logs of those that ended or were paused for lack of memory",
        )

    def _hear(self, about: Mapping[str, Any]) -> None:
        """Note the heartbeats of all workers."""
        from distributed.scheduler import heartbeat_interval

        self._signs = self._signs.after({a: worker["last_seen"] for a, worker in about.items()}, time.monotonic())
        self.silent = self._signs.silent(max(self.limits.silent, HEARTBEATS * heartbeat_interval(len(about))))

    def _look(self, lookout: _Lookout, watched: Watched) -> None:
        found = self._look_for_workers(lookout)
        now = time.monotonic()
        finished = sum(f.status == "finished" for f in watched.wanted)
        if finished > lookout.finished:
            lookout.finished, lookout.progress = finished, now
        if now - max(lookout.progress, lookout.inquired) < INQUIRY:
            return
        lookout.inquired = now
        mine = set(watched.keys) - {f.key for f in watched.wanted if f.done()}
        held, given = watched.held(), watched.given()
        holders: dict[str, list[str]] = {}
        try:
            answers = self.questions.tasks(sorted(mine))
            states = dict(answers.states)
            self._hear(answers.workers)
            if found and not answers.busy:
                states |= self.questions.states([*held, *given])
            if self.silent:
                holders = self.questions.holders([*watched.keys, *held, *given])
        except (TimeoutError, OSError):
            # A scheduler that does not answer is counted by _look_for_workers at the next tick.
            return
        for key, count in answers.leaves.items():
            if count > lookout.leaves.get(key, 0):
                lookout.leaves[key], lookout.progress = count, now
        self._look_for_silence(watched, answers, holders)
        if found:
            self._look_for_unplaced(lookout, watched, [*sorted(mine), *held], states, set(found))
            self._look_at_given(lookout, watched.name, given, states, holders, now)
        waited = now - lookout.progress
        who = _listed(answers.busy) or "no worker"
        if waited > self.limits.stall:
            raise ClusterError(
                f"pass {watched.name!r}: no task finished for {waited:.0f} s; busy with it: {who}",
                hint="look at this worker, or raise stall_timeout when one partition takes that long",
            )
        if waited > self.limits.stall / 2 and not lookout.warned:
            lookout.warned = True
            warn_user(
                f"pass {watched.name!r}: no task or partition finished for {waited:.0f} s, busy with it: {who}; "
                f"the run ends after {self.limits.stall:g} s"
            )

    def _look_for_silence(self, watched: Watched, answers: Answers, holders: Mapping[str, list[str]]) -> None:
        """Raise where a worker that the pass needs has shown no sign of life since it was submitted."""
        needed = answers.busy | set(watched.places) | {a for some in holders.values() for a in some}
        silent = (self.silent - watched.left_out) & needed
        if silent:
            raise Stuck(f"{_listed(silent)} showed no sign of life for {self.limits.silent:g} s")

    def _look_for_unplaced(
        self,
        lookout: _Lookout,
        watched: Watched,
        keys: Sequence[str],
        states: Mapping[str, str | None],
        found: set[str],
    ) -> None:
        """Raise where tasks wait for a worker though some are there, for two looks: a new one may just be coming."""
        unplaced = [key for key in keys if states.get(key) == "no-worker"]
        if unplaced and lookout.unplaced:
            gone = set(watched.places) - found
            ended = "are gone, and tasks waited for them" if len(gone) > 1 else "is gone, and tasks waited for it"
            raise Stuck(f"{_listed(gone) or 'a worker'} {ended}", unplaced[0])
        lookout.unplaced = bool(unplaced)

    def _look_at_given(
        self,
        lookout: _Lookout,
        name: str,
        given: Mapping[str, str],
        states: Mapping[str, str | None],
        holders: Mapping[str, list[str]],
        now: float,
    ) -> None:
        """Raise where results that are not the engine's own stay out of reach: it cannot submit their tasks anew."""
        unplaced = [key for key in given if states.get(key) == "no-worker"]
        silent = [key for key in given if holders.get(key) and self.silent.issuperset(holders[key])]
        if not unplaced and not silent:
            lookout.blocked = None
            return
        lookout.blocked = lookout.blocked or now
        if now - lookout.blocked <= self.limits.no_worker:
            return
        if silent:
            where = {address for key in silent for address in holders[key]}
            what = f"{given[silent[0]]} lies on {_listed(where)} only, without a sign of life"
        else:
            what = f"the task of {given[unplaced[0]]} is bound to workers that are not there"
        raise ClusterError(
            f"pass {name!r}: {what}; waited {self.limits.no_worker:g} s",
            hint="persist the data again on workers that are there, or let Dask put its tasks on any worker",
        )


def _listed(workers: Collection[str]) -> str:
    """Name workers, or the first few of many."""
    shown = ", ".join(sorted(workers)[:NAMES_SHOWN])
    more = f" and {len(workers) - NAMES_SHOWN} more" if len(workers) > NAMES_SHOWN else ""
    word = "worker" if len(workers) == 1 else "workers"
    return f"{word} {shown}{more}" if workers else ""


def killed(name: str, what: str, times: int, last: str = "") -> ClusterError:
    """Return the error for a task that ends its worker again and again."""
    return ClusterError(
        f"pass {name!r}: {what} ended {times} workers{last}; the usual cause is that the worker ran out of memory",
        hint="give workers more memory or write smaller partitions; the worker's log says more",
    )
