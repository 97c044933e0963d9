"""Results that cannot be fetched: the task's own error is told as it is, an ended connection as a lost scheduler."""

from __future__ import annotations

import asyncio

from distributed.comm.core import CommClosedError

from dboost.engine.dask.gathering import Arrivals, CancelledTask, gather


class Future:
    """A future of Dask whose task has ended, and whose result raises."""

    def __init__(self, status, error):
        self.status = status
        self._error = error

    async def exception(self):
        return self._error if self.status == "error" else None

    def __await__(self):
        raise self._error
        yield


def found(status, error):
    return asyncio.run(gather([Future(status, error)], Arrivals()))


def test_a_connection_that_ends_on_the_way_is_no_error_of_the_task():
    """Before, a client that somebody closed during a fit ended it with an error of Dask's own."""
    told = found("finished", CommClosedError("Stream is closed"))
    assert isinstance(told, CancelledTask) and "connection" in str(told)


def test_an_error_of_the_task_is_told_as_it_is():
    error = CommClosedError("in the task")
    assert found("error", error) is error
