"""Where helpers may run, with the threads' own account of it; and that they do what any pool does."""

from __future__ import annotations

import os
import threading
from concurrent.futures import wait

import pytest

from dboost.engine.helping_threads import Helpers, give_back, helpers

several = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="one processor, or no calls"
)


@pytest.fixture
def on():
    """Moves the thread of the test to a processor."""
    before = os.sched_getaffinity(0)
    yield lambda processor: os.sched_setaffinity(0, {processor})
    os.sched_setaffinity(0, before)


def mask(*_):
    return os.sched_getaffinity(0)


@pytest.fixture
def woken_on(monkeypatch):
    """The processors on which helpers were allowed to wake, in turn."""
    found, place = [], os.sched_setaffinity

    def noted(thread, processors):
        if thread != 0:
            found.append(set(processors))
        place(thread, processors)

    monkeypatch.setattr(os, "sched_setaffinity", noted)
    return found


@several
def test_helpers_wake_off_the_caller_wherever_it_is_and_then_run_anywhere(on, woken_on):
    first, second, *_ = allowed = sorted(os.sched_getaffinity(0))
    with Helpers(1) as pool:
        for caller in (first, second, first):
            on(caller)
            assert done_by(pool, mask) == set(allowed)
            assert woken_on[-1] == set(allowed) - {caller}


def done_by(pool, job):
    """The result of a job, once the pool has noted that it is done: callbacks are called in their order."""
    go, noted = threading.Event(), threading.Event()
    given = pool.submit(lambda: go.wait(20) and job())
    given.add_done_callback(lambda _: noted.set())
    go.set()
    assert noted.wait(20)
    return given.result()


def test_a_system_without_such_calls(monkeypatch):
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    with Helpers(2) as pool:
        assert pool.submit(sum, [1, 2]).result() == 3


@several
def test_processors_that_are_taken_away_are_no_error(monkeypatch):
    """As when the container of a running process is given others."""

    def refused(*_):
        raise OSError(22, "Invalid argument")

    with Helpers(1) as pool:
        monkeypatch.setattr(os, "sched_setaffinity", refused)
        assert pool.submit(sum, [1, 2]).result() == 3
        assert pool.submit(sum, [3, 4]).result() == 7


def test_a_pool_that_is_given_back_is_taken_again_where_it_is_the_same_that_is_asked_for():
    pool = helpers(1)
    give_back(pool)
    assert helpers(1) is pool
    give_back(pool)
    with helpers(2) as other:
        assert other is not pool
        assert other.submit(sum, [1, 2]).result() == 3
    with pytest.raises(RuntimeError):
        pool.submit(sum, [1])


def test_a_pool_that_is_shut_refuses_work_and_holds_none():
    pool = Helpers(1)
    done = [pool.submit(sum, [i]) for i in range(5)]
    pool.shutdown()
    assert sorted(future.result() for future in wait(done).done) == [0, 1, 2, 3, 4]
    with pytest.raises(RuntimeError):
        pool.submit(sum, [1])
