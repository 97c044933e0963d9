"""Short passes as calls to the workers: the bits of tasks, and tasks again wherever a call gives nothing."""

from __future__ import annotations

import asyncio
import os
import signal

import numpy as np
import pytest

from dboost.engine.dask.direct import CALL_BYTES, REACHED
from dboost.engine.dask.engine import DaskEngine
from dboost.errors import DataError, DboostWarning
from tests.engine import leaves
from tests.engine.conftest import ROWS, pids, same_bits, scheduler_keys, undisturbed, wait_until

pytestmark = pytest.mark.timeout(60)


def of_pass(client, name):
    """The tasks of passes of that name that the scheduler knows."""
    return {key for key in scheduler_keys(client) if f"dboost-{name}-" in key}


@pytest.fixture(params=["described", "in memory"])
def engine(request, two_processes):
    specs, rows = leaves.make_specs(ROWS)
    with DaskEngine(two_processes, silent_timeout=1.5) as opened:
        opened.set_plan(specs if request.param == "described" else [spec.load() for spec in specs], rows, "run")
        yield opened


def until_called(engine, client, name="plain"):
    """Repeat a pass until one was no task: a machine under load may take long for a short one."""

    def called():
        before = of_pass(client, name)
        engine.map_reduce(leaves.plain, 1.0, name=name)
        return before and of_pass(client, name) <= before

    wait_until(called)


def test_a_short_pass_is_no_task_the_second_time(engine, two_processes):
    until_called(engine, two_processes)
    moved = engine.bytes_moved
    for scale in (2.0, 3.0):
        assert same_bits(engine.map_reduce(leaves.plain, scale, name="plain"), undisturbed(leaves.plain, scale))
    assert engine.bytes_moved > moved
    assert engine.seconds.kernels > 0.0


def test_workers_that_cannot_be_reached_are_called_through_the_scheduler(engine, two_processes, monkeypatch):
    connect, scheduler = two_processes.rpc.connect, two_processes.scheduler.address

    async def connect_to_scheduler(address, timeout=None):
        if address != scheduler:
            raise OSError(f"no route to {address}")
        return await connect(address, timeout)

    monkeypatch.setattr(two_processes.rpc, "connect", connect_to_scheduler)
    until_called(engine, two_processes)
    assert same_bits(engine.map_reduce(leaves.plain, 2.0, name="plain"), undisturbed(leaves.plain, 2.0))


def test_connections_that_take_long_are_made_to_their_end(engine, two_processes, monkeypatch):
    """One that is given up on its way stays open."""
    connect, scheduler, ended = two_processes.rpc.connect, two_processes.scheduler.address, []

    async def connect_late(address, timeout=None):
        if address != scheduler:
            try:
                await asyncio.sleep(2 * REACHED)
            except asyncio.CancelledError:
                ended.append("given up")
                raise
            ended.append("made")
        return await connect(address, timeout)

    monkeypatch.setattr(two_processes.rpc, "connect", connect_late)
    until_called(engine, two_processes)
    wait_until(lambda: ended)
    assert set(ended) == {"made"}


def test_large_arguments_are_tasks(engine, two_processes):
    small, large = np.ones(3), np.ones(CALL_BYTES // 8)
    engine.map_reduce(leaves.with_state, small, name="state")
    before = of_pass(two_processes, "state")
    total = engine.map_reduce(leaves.with_state, large, name="state")
    assert of_pass(two_processes, "state") - before
    assert same_bits(total, undisturbed(leaves.with_state, large))


def test_an_error_of_a_leaf_is_that_of_tasks(engine, two_processes):
    until_called(engine, two_processes)
    with pytest.raises(DataError, match="a value is not finite"):
        engine.map_reduce(leaves.bad_block, "block-3", name="plain")
    with pytest.raises(ZeroDivisionError, match="a mistake in the leaf"):
        engine.map_reduce(leaves.broken, name="plain")


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_that_does_not_answer_is_done_without(engine, two_processes, ending):
    until_called(engine, two_processes)
    victim = min(pids(two_processes).values())
    os.kill(victim, ending)
    try:
        if ending == signal.SIGSTOP:
            with pytest.warns(DboostWarning, match="showed no sign of life"):
                total = engine.map_reduce(leaves.plain, 1.0, name="plain")
        else:
            total = engine.map_reduce(leaves.plain, 1.0, name="plain")
    finally:
        if ending == signal.SIGSTOP:
            os.kill(victim, signal.SIGCONT)
    assert same_bits(total, undisturbed(leaves.plain, 1.0))
    # what it was asked then, it answers now, and nobody takes that for the answer to a later call
    for scale in (2.0, 3.0):
        assert same_bits(engine.map_reduce(leaves.plain, scale, name="plain"), undisturbed(leaves.plain, scale))
