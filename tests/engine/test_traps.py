"""Lost workers, silence and poison: every trap ends with the same bits or with one clear error.

Each test names the trap in what Dask does by itself. Processes that are killed here were started here.
"""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest
from distributed import Client

from dboost.engine.dask.engine import DaskEngine
from dboost.engine.dask.spent_results import LONG_PASS, SHORT_PASSES
from dboost.errors import ClusterError
from tests.engine import leaves
from tests.engine.conftest import ROWS, meanwhile, pids, same_bits, scheduler_keys, struck, undisturbed, wait_until

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def engine(two_processes):
    with DaskEngine(two_processes, no_worker_timeout=20) as opened:
        specs, rows = leaves.make_specs(ROWS)
        opened.set_plan(specs, rows, "run")
        yield opened


@pytest.mark.full
def test_a_worker_killed_by_a_leaf_is_survived_with_shards(engine, tmp_path):
    expected = undisturbed(leaves.plain, 1.0)
    shards = [(0, 2), (2, 6)]
    pieces = engine.map_reduce(leaves.sharded_suicide, "block-3", str(tmp_path / "mark"), name="suicide", shards=shards)
    assert (tmp_path / "mark").exists()
    column = np.concatenate([p.add["column"] for p in pieces])
    assert column.tobytes() == expected.add["column"].tobytes()


def test_a_worker_killed_in_a_pass_costs_its_part_only_and_no_argument_that_it_held(
    engine, two_processes, tmp_path, monkeypatch
):
    # Worker attributes and actors die with their worker, and so does scattered data, even with broadcast=True.
    monkeypatch.setattr("dboost.engine.dask.submission.HOLD_BYTES", 1000)
    marks, gate, opened = tmp_path / "marks", tmp_path / "gate", tmp_path / "opened"
    opened.touch()
    W = np.random.default_rng(0).random(50_000)
    expected = undisturbed(leaves.gated, W, str(opened), str(tmp_path / "other"))

    def holder():
        return two_processes.run_on_scheduler(
            lambda dask_scheduler: [
                ws.address
                for key, ts in dask_scheduler.tasks.items()
                if str(key).startswith("dboost-hold")
                for ws in ts.who_has or ()
            ]
        )

    alive = pids(two_processes)

    def working():
        # the other worker may hold a copy by now, and have begun nothing
        begun = marks.read_text().split() if marks.exists() else []
        return [alive[a] for a in holder() if str(alive[a]) in begun]

    kill = meanwhile(lambda: wait_until(working), lambda: os.kill(working()[0], signal.SIGKILL), gate.touch)
    with kill:
        total = engine.map_reduce(leaves.gated, W, str(gate), str(marks), name="state")
    assert same_bits(total, expected)
    assert len(marks.read_text().splitlines()) > len(ROWS), "nothing was computed again: the worker died too late"
    # The next pass runs on whatever workers there are then.
    assert same_bits(engine.map_reduce(leaves.gated, W, str(opened), str(marks), name="state"), expected)


def test_a_poisonous_partition_is_named_with_shards_and_in_map(engine, two_processes):
    # Dask's KilledWorker names a task and never mentions memory; retries do not cover dead workers.
    with pytest.raises(ClusterError, match=r"'poison'.*block-3.*memory") as caught:
        engine.map_reduce(leaves.sharded_suicide, "block-3", name="poison", shards=[(0, 2), (2, 6)])
    assert "dboost-" not in str(caught.value) and caught.value.exit_code == 4
    wait_until(lambda: len(two_processes.nthreads()) == 2)
    specs, _ = leaves.make_specs([1] * 8)
    with pytest.raises(ClusterError, match=r"block-6.*memory"):
        engine.map(leaves.poison_item, specs, "block-6", name="poison")


def test_passing_failures_are_tried_again(engine, tmp_path):
    assert engine.map_reduce(leaves.flaky, str(tmp_path), "block-0", "block-7", name="flaky").add["rows"] == sum(ROWS)
    assert len(list(tmp_path.iterdir())) == 2


def test_lasting_failures_are_not_tried_for_ever(two_processes, tmp_path):
    with DaskEngine(two_processes, retries=1) as engine:
        engine.set_plan(*leaves.make_specs([5] * 8), "run")
        with pytest.raises(OSError, match="storage hiccup"):
            engine.map_reduce(leaves.flaky, str(tmp_path), name="flaky")


@pytest.mark.full
def test_lineage_stays_short(engine, two_processes):
    # Chained results made 1,608 scheduler records in 200 rounds of 8 partitions. Of two bundles, the last pass and the
    # few short ones before it are kept, and those that went by while the message to let go of others was on its way.
    few = 2 * (1 + SHORT_PASSES + 3)
    most = 0
    for i in range(50):
        engine.map_reduce(leaves.plain, float(i), name=f"plain-r{i}")
        if i % 5 == 0:
            most = max(most, len(scheduler_keys(two_processes)))
    engine.map_reduce(leaves.sharded, 1.0, name="sharded", shards=[(0, 3), (3, 6)])
    assert most <= few
    # Two bundles, four picks and two reductions.
    assert len(scheduler_keys(two_processes)) <= 8 + few
    for _ in range(2 + SHORT_PASSES):
        engine.map_reduce(leaves.plain, 1.0, name="plain")
    wait_until(lambda: len(scheduler_keys(two_processes)) <= few)


def test_what_is_left_of_a_pass_goes_while_a_long_one_runs(engine, two_processes, tmp_path):
    engine.map_reduce(leaves.plain, 1.0, name="plain")
    for _ in range(2):
        engine.map_reduce(leaves.slow, 2.0 * LONG_PASS, str(tmp_path / "marks"), name="slow")
    wait_until(lambda: len(scheduler_keys(two_processes)) <= 2)


def test_a_long_pass_is_not_kept_to_be_done_again(engine, two_processes, tmp_path):
    # A worker that is lost has what is kept of it computed once more: not the reading of all data, whatever follows.
    engine.map_reduce(leaves.slow, 0.2, str(tmp_path / "marks"), name="slow")
    engine.map_reduce(leaves.plain, 1.0, name="plain")
    wait_until(lambda: not any("slow" in key for key in scheduler_keys(two_processes)))


def test_nothing_is_left_behind(two_processes):
    specs, rows = leaves.make_specs(ROWS)
    engine = DaskEngine(two_processes)
    engine.set_plan([s.load() for s in specs], rows, "leftover")
    engine.map_reduce(leaves.plain, 1.0, name="plain")
    assert any("leftover" in run for runs in two_processes.run(leaves.remembered_runs).values() for run in runs)
    engine.close()
    wait_until(lambda: scheduler_keys(two_processes) == [])
    assert not any("leftover" in run for runs in two_processes.run(leaves.remembered_runs).values() for run in runs)
    assert two_processes.status == "running"
    assert [k for k in two_processes.futures if str(k).startswith("dboost")] == []


def test_an_interrupt_cancels_the_pass(engine, two_processes, tmp_path):
    # Running tasks would go on to their last partition.
    marks = tmp_path / "marks"
    engine.set_plan(*leaves.make_specs([5] * 100), "run")
    interrupt = struck(marks.exists, lambda: [os.getpid()], signal.SIGINT)
    with interrupt, pytest.raises(KeyboardInterrupt):
        engine.map_reduce(leaves.slow, 0.1, str(marks), name="slow")
    wait_until(lambda: [k for k in scheduler_keys(two_processes) if "slow" in k] == [])
    wait_until(lambda: not any(two_processes.run(at_work).values()))
    assert len(marks.read_text().splitlines()) < 60


def at_work(dask_worker):
    """Keys of the tasks whose threads have not ended, cancelled or not."""
    return [str(key) for key in dask_worker.active_threads.values()]


def test_two_fits_share_a_client(two_processes):
    # Equal keys would be computed once, and pure=True makes them equal.
    expected = {scale: undisturbed(leaves.plain, scale) for scale in (1.0, 2.0)}
    wrong = []

    def fit(scale):
        with DaskEngine(two_processes) as engine:
            engine.set_plan(*leaves.make_specs(ROWS), "same-run-id")
            for _ in range(5):
                if not same_bits(engine.map_reduce(leaves.plain, scale, name="plain"), expected[scale]):
                    wrong.append(scale)
        wrong.append(None)

    threads = [threading.Thread(target=fit, args=(scale,)) for scale in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
    assert wrong == [None, None]


@pytest.mark.full
def test_a_restart_by_someone_else_is_an_error(engine, two_processes, tmp_path):
    # Client.restart() cancels the tasks of everybody; a pass would report a bare CancelledError.
    marks = tmp_path / "marks"
    engine.set_plan(*leaves.make_specs([5] * 40), "run")

    def restart():
        with Client(two_processes.scheduler.address, set_as_default=False) as other:
            other.restart(wait_for_workers=False)

    restarted = meanwhile(lambda: wait_until(marks.exists), restart)
    with restarted, pytest.raises(ClusterError, match="cancelled from outside"):
        engine.map_reduce(leaves.slow, 0.1, str(marks), name="slow")
    engine.set_plan(*leaves.make_specs(ROWS), "run")
    assert same_bits(engine.map_reduce(leaves.plain, 1.0, name="plain"), undisturbed(leaves.plain, 1.0))


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:pass 'slow'")
def test_long_tasks_that_make_progress_do_not_stall(two_processes, tmp_path):
    with DaskEngine(two_processes, silent_timeout=2, stall_timeout=3.5) as engine:
        engine.set_plan(*leaves.make_specs([5] * 10), "run")
        total = engine.map_reduce(leaves.slow, 0.9, str(tmp_path / "marks"), name="slow")
    assert total.add["rows"] == 50
