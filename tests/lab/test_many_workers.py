"""The simulation of many workers: it runs, what it notes is what is planned, and the model adds up."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dboost.engine.dask.engine import DaskEngine
from dboost.engine.local import LocalEngine
from dboost.penalties import get_penalty
from dboost.problem.stored import StoredProblem
from lab.benchmarks.overhead import kinds
from lab.many_workers import cluster
from lab.many_workers.command import main
from lab.many_workers.ledger import Entry
from lab.many_workers.model import Line, Model, fitted, predicted
from lab.many_workers.planned import kinds_of
from lab.many_workers.recorded import Work
from lab.many_workers.replay import Network, played
from lab.many_workers.sizes import SMALLER, Question, smaller_limits
from lab.many_workers.thin import Few, ThinEngine


@pytest.mark.full
def test_it_runs_on_four_workers(tmp_path, monkeypatch) -> None:
    assert main(["--quick", "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "many_workers.json").read_text())
    assert {line["pass"] for line in found["measured"]} == {"score", "gradient", "hessian", "grid"}
    for line in found["measured"]:
        assert line["workers"] == 4 and line["scheduler"] > 0.0 and line["driver"] > 0.0 and line["from_workers"] > 0
    # what the scheduler noted is what the model counts
    assert all(line["as planned"] and line["tasks"] == line["planned"] for line in found["checks"])
    assert all(0.0 <= line["at their place"] <= 1.0 for line in found["checks"])
    for line in found["curve"]:
        assert line["seconds"] == pytest.approx(sum(line[part] for part in ("work", "network", "scheduler", "driver")))
    assert (tmp_path / "many-workers.png").stat().st_size > 10_000
    assert "## The curve at the full size" in (tmp_path / "many_workers.md").read_text()


@pytest.mark.full
def test_thin_workers_give_the_bits_of_this_process() -> None:
    question = Question(features=100 * SMALLER, classes=20, active=4 * SMALLER)

    def sums_of(engine) -> list[bytes]:
        engine.set_plan([Few(i, 100, 20) for i in range(10)], [1] * 10, "bits")
        problem = StoredProblem(engine, "multinomial", get_penalty("l1/l2"), 100, 20, True, "bits")
        passes = kinds(problem, question.few_active)
        at, product, score = passes["gradient"](), passes["hessian"](), passes["score"]()
        found = [at.G, *product, passes["grid"](), score.norms, score.best_G, score.iterate.G]
        return [one.tobytes() for one in found]

    with LocalEngine(1) as engine:
        expected = sums_of(engine)
    with cluster.running(3) as there, smaller_limits(), DaskEngine(there.client) as engine:
        assert sums_of(ThinEngine(engine, {"gradient": 0.01})) == expected


def test_leaves_answer_after_the_recorded_time() -> None:
    seconds = {"gradient": 0.2}
    with LocalEngine(1) as engine:
        thin = ThinEngine(engine, seconds)
        thin.set_plan([Few(0, 50, 5)], [1], "time")
        problem = StoredProblem(thin, "multinomial", get_penalty("l1/l2"), 50, 5, True, "time")
        before = engine.seconds.kernels
        problem.evaluate(np.zeros(0, np.int64), np.zeros((0, 5)), np.zeros(5))
        assert engine.seconds.kernels - before >= 0.8 * seconds["gradient"]


def test_links_take_one_transfer_after_the_other() -> None:
    # Two results of 100 bytes for the third worker, then one of 10 for the driver, at 100 bytes in a second.
    entries = [Entry("a", "w0", 100, ()), Entry("b", "w1", 100, ()), Entry("c", "w2", 10, ("a", "b"))]
    found = played(entries, lambda one: one.nbytes, lambda one: 5.0, Network(100.0, 0.5))
    assert found.seconds == pytest.approx(5 + 1.5 + 1.5 + 5 + 0.5 + 0.1)
    assert found.without_network == pytest.approx(10.0)
    assert (found.moved, found.gathered, found.busiest, found.depth) == (200, 10, 200, 2)


def test_a_result_is_brought_to_a_worker_once() -> None:
    entries = [Entry("a", "w0", 100, ()), Entry("b", "w1", 0, ("a",)), Entry("c", "w1", 0, ("a",))]
    found = played(entries, lambda one: one.nbytes, lambda one: 1.0, Network(100.0, 0.0))
    assert found.moved == 100 and found.seconds == pytest.approx(1 + 1 + 2)


def test_the_line_that_was_measured_is_found_again() -> None:
    line = Line(0.02, 0.001)
    tasks = [10, 100, 1000]
    found = fitted(tasks, [line.seconds(count) for count in tasks], 1e-9)
    assert (found.per_pass, found.per_task, found.per_byte) == pytest.approx((0.02, 0.001, 1e-9))


def test_more_workers_take_the_work_and_cost_the_scheduler() -> None:
    work = {name: Work(1e-6, 0.1) for name in ("score", "gradient", "hessian", "grid")}
    model = Model(Question(), work, 1e10, Line(0.0, 1e-3), Line(0.0, 1e-5))
    for kind in kinds_of(model.question):
        few, many = (predicted(model, kind, workers) for workers in (4, 256))
        assert many.work < few.work / 10 and many.scheduler > few.scheduler
        assert few.binds == "work"


def test_limits_are_smaller_only_inside() -> None:
    from dboost.engine.dask import submission

    held = submission.HOLD_BYTES
    with smaller_limits():
        assert held // SMALLER == submission.HOLD_BYTES
    assert held == submission.HOLD_BYTES
