"""Which engine is opened."""

from __future__ import annotations

import asyncio

import pytest
from distributed import Client

from dboost.engine.dask.engine import DaskEngine
from dboost.engine.local import LocalEngine
from dboost.engine.select import open_engine
from dboost.errors import UsageError

pytestmark = pytest.mark.timeout(60)


def kind(*args, **options):
    with open_engine(*args, **options) as engine:
        return type(engine)


def test_the_engine_is_that_of_the_client_and_a_current_one_serves_distributed_input_only(one_worker):
    assert kind() is kind(distributed_input=True) is LocalEngine
    assert kind(one_worker) is kind(one_worker, stall_timeout=5.0) is DaskEngine
    with one_worker.as_current():
        assert kind(distributed_input=True) is DaskEngine
        assert kind(distributed_input=False) is LocalEngine
    with pytest.raises(UsageError, match=r"client is a str.*Client\(address\)"):
        open_engine("tcp://127.0.0.1:8786")


def test_an_asynchronous_client_is_refused(one_worker):
    async def main():
        async with Client(one_worker.scheduler.address, asynchronous=True, set_as_default=False) as client:
            with pytest.raises(UsageError, match=r"asynchronous; .* asyncio.to_thread"):
                open_engine(client)

    asyncio.run(main())
