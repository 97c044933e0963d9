"""One problem measured in processes of its own: objectives, cut-offs, peers that are missing or fail."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.benchmarks.against import Budget
from lab.benchmarks.climb import again, climb, crossings
from lab.benchmarks.curve import TARGETS, suboptimality
from lab.benchmarks.groups import Group
from lab.benchmarks.measure import BEYOND, Case, Limits
from lab.benchmarks.peers import OURS, PEERS, base
from lab.benchmarks.peers.base import Answer, Task
from lab.benchmarks.process import Failed, Missing, PeerProcess, TimeUp, environment, interpreter
from lab.benchmarks.sets import SETS
from lab.benchmarks.worker import Worker
from lab.oracle import plain
from lab.oracle.peers import PEER_PYTHON_VARIABLE, store

OWN_PYTHON = (PEER_PYTHON_VARIABLE, "DBOOST_LIGHTNING_PYTHON")


@pytest.fixture(autouse=True)
def this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OWN_PYTHON:
        monkeypatch.delenv(name, raising=False)


class Stored:
    """A twin on disk."""

    def __init__(self, folder: Path, name: str, penalty: str) -> None:
        self.data = SETS[name].twin()
        self.folder = folder
        self.penalty = penalty
        self.high = plain.alpha_max(self.data.X, self.data.y, penalty, self.data.loss, False)
        store(folder, self.data.X, self.data.y)

    def process(self, name: str) -> PeerProcess:
        peer = OURS if name == OURS.name else PEERS[name]
        opening = {"loss": self.data.loss, "penalty": self.penalty, "alpha_max": self.high, "threads": 2}
        return PeerProcess(peer, self.folder, opening, self.folder / f"{name}.log")

    def case(self, ratio: float = 0.1, intercept: bool = False) -> Case:
        return Case(self.data, self.penalty, ratio * self.high, intercept, self.folder / "answer.npz")


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    return Stored(tmp_path_factory.mktemp("binary"), "imdb", "l1")


@pytest.fixture(scope="module")
def ours(binary: Stored) -> Iterator[tuple[PeerProcess, Case]]:
    with binary.process(OURS.name) as process:
        case = binary.case()
        case.optimum(process)
        case.curve(process)
        case.certificate(process)
        yield process, case


def test_the_objective_is_dboosts_own(ours: tuple[PeerProcess, Case]) -> None:
    process, case = ours
    reply = case.ours(process, 1e-9, keep=False)
    assert case.objective() == pytest.approx(reply["facts"]["objective"], rel=1e-12)
    assert 0.0 <= case.best - case.lower <= 1e-8 * case.best


def test_the_trace_is_a_falling_curve_with_the_planning_inside(ours: tuple[PeerProcess, Case]) -> None:
    _, case = ours
    passes, seconds, values = np.array(case.traces[-1]).T
    assert np.all(np.diff(seconds) >= 0.0) and np.all(np.diff(passes) >= 0.0)
    assert 0.0 < case.planning[-1] < seconds[0]
    assert values[-1] == pytest.approx(case.best, rel=1e-6)
    times = [case.our_time(target) for target in TARGETS]
    assert not any(time.bound for time in times)
    assert times[0].seconds <= times[1].seconds <= times[2].seconds
    assert case.our_passes(1e-6) is not None


def test_the_certificate_is_one_of_the_whole_fit(ours: tuple[PeerProcess, Case]) -> None:
    _, case = ours
    assert case.certified[-1]["gap"] <= 1e-4
    assert case.certified[-1]["suboptimality"] <= 1e-4
    assert case.certified[-1]["seconds"] > 0.0


@pytest.mark.full
@pytest.mark.parametrize("name", ["liblinear", "saga"])
def test_a_peer_climbs_its_ladder_to_the_optimum(binary: Stored, ours: tuple[PeerProcess, Case], name: str) -> None:
    case = ours[1]
    with binary.process(name) as process:
        peer = PEERS[name]
        ladder = [dict(rung) for rung in peer.ladder(_task(binary))]
        found = climb(peer, process, case, ladder, 20.0, float("inf"))
        assert not found.note and found.version
        assert min(run.objective for run in found.runs) <= case.best * (1.0 + 1e-6)
        assert not found.time(case.best, 1e-6).bound
        again(found, process, case, float("inf"))
    # one in the climb, then one more, or three where they are short
    assert {len(found.runs[i].seconds) for i in crossings(found, case.best)} <= {2, 4}


def test_our_run_ends_when_it_is_beyond_the_last_target_or_its_time(ours: tuple[PeerProcess, Case]) -> None:
    process, case = ours
    certified = case.ours(process, 1e-9, keep=False)["facts"]
    case.curve(process)
    reached = case.traces[-1][-1][2]
    assert suboptimality(reached, case.best) <= BEYOND * TARGETS[-1]
    assert len(case.traces[-1]) < len(certified["trace"])
    first = Case(case.data, case.penalty, case.alpha, False, case.answer)
    first.curve(process)
    assert suboptimality(first.best, case.best) <= 1e-7
    stopped = case.ours(process, 1e-9, keep=False, limits={"seconds": 0.0})["facts"]
    assert stopped["stop"] == "callback" and stopped["rounds"] == 1


def test_a_short_run_is_the_median_of_three(binary: Stored) -> None:
    taken = iter((0.06, 0.0, 0.02, 0.3))
    seen: list[float] = []

    def work(prepared: Any, task: Task, rung: Any) -> Answer:
        seen.append(next(taken))
        time.sleep(seen[-1])
        return Answer(np.full((1, 1), seen[-1]), np.zeros(1))

    worker = Worker(replace(PEERS["liblinear"], solve=work), base, binary.folder)
    worker.task = _task(binary)
    order = {"alpha": binary.high, "rung": {}, "answer": str(binary.folder / "short.npz"), "repeat": True}
    short = worker.run(order)
    assert len(seen) == 3 and 0.02 <= short["seconds"] < 0.06
    with np.load(order["answer"]) as answer:
        assert answer["W"][0, 0] == 0.02
    assert worker.run(order)["seconds"] >= 0.3 and len(seen) == 4


def test_a_peer_that_needs_an_intercept_has_its_own_optimum(binary: Stored, ours: tuple[PeerProcess, Case]) -> None:
    process, without = ours
    case = binary.case(intercept=True)
    case.ours(process, 1e-9)
    assert case.best < without.best


def test_a_process_is_ended_at_its_limit_and_starts_again(binary: Stored, ours: tuple[PeerProcess, Case]) -> None:
    with binary.process("saga") as process:
        process.ready()
        child = process.child
        with pytest.raises(TimeUp, match=r"no answer in 0\.3 s"):
            process.order(0.3, do="run", alpha=1e-6, rung={"max_iter": 1 << 22}, answer=str(binary.folder / "a.npz"))
        assert child is not None and child.poll() is not None
        reply = process.order(60.0, do="run", alpha=1.0, rung={"max_iter": 1}, answer=str(binary.folder / "a.npz"))
        assert reply["seconds"] > 0.0 and reply["peak"] >= 0.0


def test_an_error_of_a_peer_is_told_and_leaves_it_running(binary: Stored) -> None:
    with binary.process("liblinear") as process:
        with pytest.raises(Failed, match="InvalidParameterError"):
            process.order(60.0, do="run", alpha=1.0, rung={"tol": -1.0}, answer=str(binary.folder / "a.npz"))
        process.order(60.0, do="run", alpha=1.0, rung={"tol": 1.0}, answer=str(binary.folder / "a.npz"))


def test_a_peer_that_is_not_installed_is_named(binary: Stored) -> None:
    absent = replace(PEERS["liblinear"], name="lightning", module="lightning")
    with PeerProcess(absent, binary.folder, {"threads": 2}, binary.folder / "absent.log") as process:
        with pytest.raises(Missing, match="lightning is not installed"):
            process.ready()


def test_the_child_gets_its_threads_and_no_path_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    theirs, own = environment(PEERS["saga"], 2), environment(OURS, 2)
    assert {theirs[name] for name in theirs if name.endswith("_NUM_THREADS")} == {"2"}
    assert "PYTHONPATH" not in theirs and own["PYTHONPATH"]
    assert "OMP_WAIT_POLICY" not in theirs, "how its threads wait is a peer's own choice"
    assert interpreter(OURS) == interpreter(PEERS["saga"]) == sys.executable


# ---- without processes ---------------------------------------------------------------------------------------------


def _task(stored: Stored) -> Any:
    from lab.benchmarks.peers.base import Task

    return Task(stored.data.X, stored.data.y, stored.data.loss, stored.penalty, 0.1 * stored.high, stored.high)


def test_limits_follow_our_time_and_the_best_peer() -> None:
    limits = Limits(factor=60.0, floor=2.0, ceiling=50.0, of_best=4.0)
    assert limits.of(0.001, None) == 2.0
    assert limits.of(0.5, None) == 30.0
    assert limits.of(5.0, None) == 50.0
    assert limits.of(0.5, 3.0) == 12.0
    assert limits.of(0.5, 0.1) == 2.0


def test_time_that_is_not_used_goes_to_the_later_problems() -> None:
    now = [0.0]
    budget = Budget(30.0, [1.0, 2.0, 6.0, 1.0], clock=lambda: now[0])
    assert budget.next() == 3.0
    now[0] = 12.0
    assert budget.next() == 12.0 + 18.0 * 2.0 / 9.0
    now[0] = 16.0
    assert budget.next() == 16.0 + 14.0 * 6.0 / 7.0
    now[0] = 40.0
    assert budget.next() == 40.0


def test_what_is_not_needed_is_for_all() -> None:
    budget = Budget(100.0, [2.0, 2.0, 1.0], clock=lambda: 0.0)
    budget.shrink(2, 0.5)
    assert budget.next() == pytest.approx(100.0 / 3.0)


def test_large_data_and_weak_penalties_get_more_of_the_time() -> None:
    from lab.benchmarks.problems import chosen

    parts = {problem.name: problem.part for problem in chosen(())}
    assert all(part > 0.0 for part in parts.values())
    assert parts["imdb l1 0.3"] < parts["arxiv-archives l1 0.3"] < parts["arxiv-categories l1 0.3"]
    assert parts["mnist l1 0.3"] < parts["mnist l1 0.1"] < parts["mnist l1 0.02"]


def test_a_failure_of_our_own_leaves_the_other_problems() -> None:
    from lab.benchmarks import against
    from lab.benchmarks.problems import chosen

    def measure(group: Group, *_: Any) -> Iterator[dict[str, Any]]:
        yield {"problem": group.problems[0].name, "solvers": {}}
        if group.penalty == "l1/l2":
            raise Failed("DataError: no")
        yield from ({"problem": problem.name, "solvers": {}} for problem in group.problems[1:])

    failed: dict[str, str] = {}
    said: list[str] = []
    options = against.Options((), twins=True)
    records = list(against.measure_all(chosen(("bibtex",)), options, said.append, failed, measure))
    assert [r["problem"] for r in records] == ["bibtex l1/l2 0.3", *[f"bibtex l1/linf {r}" for r in (0.3, 0.1, 0.02)]]
    assert failed == {f"bibtex l1/l2 {ratio}": "DataError: no" for ratio in (0.1, 0.02)}
    assert any("dboost failed" in line for line in said)


@pytest.mark.full
def test_the_layout_of_a_peer_is_charged_to_every_run(binary: Stored) -> None:
    def slowly(task: Task) -> Any:
        time.sleep(0.05)
        return task.X

    peer = replace(PEERS["liblinear"], prepare=slowly, warm=1)
    opening = {"loss": "log", "penalty": "l1", "alpha_max": binary.high, "threads": 1}
    order = {"alpha": 0.5 * binary.high, "rung": {"tol": 1e-2}, "answer": str(binary.folder / "layout.npz")}
    for charged, least in ((peer, 0.05), (replace(peer, loads=True), 0.0)):
        worker = Worker(charged, base, binary.folder)
        layout = worker.open(opening)["layout"]
        assert layout >= least and (layout > 0.0) == (least > 0.0)
        assert layout <= worker.run(order)["seconds"]
