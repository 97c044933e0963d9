"""What ``dask.annotate`` around a fit asks of workers."""

from __future__ import annotations

import time

import dask
import pytest
from distributed import Worker

from dboost.engine.dask.engine import DaskEngine
from dboost.engine.dask.restrictions import Restrictions, restrictions_here
from dboost.errors import ClusterError
from tests.conftest import workers_here
from tests.engine import leaves
from tests.engine.conftest import ROWS, same_bits, undisturbed, wait_until

pytestmark = pytest.mark.timeout(60)

WORKERS = {
    "tcp://10.0.0.1:1": {"name": "a", "host": "10.0.0.1", "resources": {"GPU": 2}},
    "tcp://10.0.0.2:2": {"name": 1, "host": "10.0.0.2", "resources": {}},
}
FIRST, SECOND = sorted(WORKERS)


@pytest.mark.parametrize(
    "annotations, allowed",
    [
        ({}, {FIRST, SECOND}),
        ({"priority": 3, "retries": 1}, {FIRST, SECOND}),
        ({"resources": {"GPU": 1}}, {FIRST}),
        ({"resources": {"GPU": 3}}, set()),
        ({"resources": {"GPU": 1, "RAM": 1}}, set()),
        ({"workers": [FIRST]}, {FIRST}),
        ({"workers": "10.0.0.2:2"}, {SECOND}),
        ({"workers": ("10.0.0.1", 1)}, {FIRST, SECOND}),
        ({"workers": "a"}, {FIRST}),
        ({"workers": "gone"}, set()),
        ({"workers": "gone", "allow_other_workers": True}, {FIRST, SECOND}),
        ({"workers": SECOND, "resources": {"GPU": 1}}, set()),
    ],
)
def test_workers_that_meet_an_annotation(annotations, allowed):
    with dask.annotate(**annotations):
        assert restrictions_here().allowed(WORKERS) == allowed
    assert restrictions_here() == Restrictions()


@pytest.fixture(scope="module")
def with_one_gpu():
    """Two workers, of which the second one offers a resource; yields the client and its address."""
    with workers_here(1) as client:

        async def start():
            return await Worker(client.cluster.scheduler_address, nthreads=1, resources={"GPU": 1}, memory_limit=0)

        worker = client.sync(start)
        try:
            wait_until(lambda: len(client.nthreads()) == 2)
            yield client, worker.address
        finally:
            client.sync(worker.close)


@pytest.mark.parametrize("annotation", [{"resources": {"GPU": 2}}, {"workers": ["tcp://127.0.0.1:9"]}])
def test_an_annotation_that_no_worker_meets_is_one_error_in_time(with_one_gpu, annotation):
    # Dask leaves such tasks in its state `no-worker` for ever, and so did fits.
    client, _ = with_one_gpu
    specs, rows = leaves.make_specs(ROWS)
    with DaskEngine(client, no_worker_timeout=1) as engine:
        engine.set_plan(specs, rows, "run")
        start = time.monotonic()
        with dask.annotate(**annotation):
            for work in (
                lambda: engine.map(leaves.describe, specs, "!", name="describe"),
                lambda: engine.map_reduce(leaves.plain, 1.0, name="plain"),
                lambda: DaskEngine(client, no_worker_timeout=1),
            ):
                with pytest.raises(ClusterError, match="no running worker met dask.annotate") as caught:
                    work()
                assert str(next(iter(annotation.values()))) in str(caught.value)
        assert time.monotonic() - start < 10
        assert same_bits(engine.map_reduce(leaves.plain, 1.0, name="plain"), undisturbed(leaves.plain, 1.0))


def test_an_annotation_that_a_worker_meets_puts_the_work_there(with_one_gpu):
    client, able = with_one_gpu
    specs, rows = leaves.make_specs(ROWS)

    def busy(dask_scheduler):
        return [
            str(ws.address)
            for key, ts in dask_scheduler.tasks.items()
            if str(key).startswith("dboost") and "gpu" in str(key)
            for ws in ts.who_has or ()
        ]

    for annotation in ({"resources": {"GPU": 1}}, {"workers": able}):
        with DaskEngine(client, no_worker_timeout=5) as engine, dask.annotate(**annotation):
            engine.set_plan([spec.load() for spec in specs], rows, "run")
            total = engine.map_reduce(leaves.plain, 1.0, name="gpu")
            assert same_bits(total, undisturbed(leaves.plain, 1.0))
            assert engine.map(leaves.describe, specs, "!", name="gpu-map")[0] == "block-0!"
            assert engine.map_reduce(leaves.sharded, 1.0, name="gpu-sharded", shards=[(0, 2), (2, 6)])
            assert set(client.run_on_scheduler(busy)) == {able}
