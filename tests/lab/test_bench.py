"""``python -m lab bench``: processes, cut-offs, records, means, the page, two commits in turn.

Does not cover: reading times from curves (``test_curve``), the stored baseline (``test_stored_baseline``), figures.
"""

from __future__ import annotations

import ast
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dboost.errors import UsageError
from lab.__main__ import main
from lab.benchmarks import REGISTRY, ab, overhead, suite, trees
from lab.benchmarks.ab import Change, Cost
from lab.benchmarks.curve import TARGETS, Time, suboptimality
from lab.benchmarks.measure import BEYOND, Case, Found, climb
from lab.benchmarks.peers import OURS, PEERS, base, in_turn
from lab.benchmarks.peers.base import Answer, Task, doubling, small, tightening
from lab.benchmarks.problems import KINDS, SETS, Problem, chosen, largest
from lab.benchmarks.process import (
    PEER_PYTHON_VARIABLE,
    Failed,
    Missing,
    PeerProcess,
    TimeUp,
    environment,
    interpreter,
    store,
)
from lab.benchmarks.suite import Budget, Options
from lab.benchmarks.worker import Worker
from lab.oracle import plain

EVERY = {**PEERS, OURS.name: OURS}


@pytest.fixture(autouse=True)
def this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (PEER_PYTHON_VARIABLE, "DBOOST_LIGHTNING_PYTHON"):
        monkeypatch.setenv(name, sys.executable)


def twin_task(name: str, penalty: str, ratio: float = 0.1) -> Task:
    data = SETS[name].twin()
    high = largest(data, penalty)
    return Task(data.X, data.y, data.loss, penalty, ratio * high, high)


# ---- problems and peers ----------------------------------------------------------------------------------------------


def test_problems_are_chosen_by_kind_and_by_part_of_a_name() -> None:
    found = chosen()
    of_kinds = 4 * 3 + 4 * 3 + 4 * 2 * 3 + 2 * 2 * 3 + 2 * 4 + 4 * 3 + 3 * 3 + 3 * 3
    assert len({problem.name for problem in found}) == len(found) == of_kinds
    assert {p.kind for p in chosen(("binary-l1",))} == {"binary-l1"}
    assert [p.name for p in chosen(("imdb l1 0.1",))] == ["imdb l1 0.1"]
    assert chosen(("no such thing",)) == []
    assert all((problem.loss, problem.penalty) in OURS.solves for problem in found)
    for name, one in SETS.items():
        data = one.twin()
        assert data.loss == one.loss and data.y.shape[0] == data.X.shape[0] and data.y.dtype == np.int64, name
        wanted = np.arange(data.y.max() + 1) if data.loss == "multinomial" else [-1, 1]
        assert np.array_equal(np.unique(data.y), wanted), name
    assert isinstance(SETS["mnist"].twin().X, np.ndarray), "a dense set stays dense"


def test_every_peer_declares_what_it_can_do_and_lies_in_the_file_that_its_process_reads() -> None:
    folder = Path(base.__file__).parent
    names = {"log": "imdb", "multinomial": "stackoverflow20k", "multitask": "bibtex"}
    for name, peer in EVERY.items():
        assert (folder / f"{'ours' if peer is OURS else name.replace('-', '_')}.py").exists(), name
        assert peer.solves and peer.layout and peer.environment in ("own", "peers", "lightning"), name
        for loss, penalty in peer.solves:
            ladder = list(peer.ladder(twin_task(names[loss], penalty)))
            assert ladder and len({str(sorted(rung.items())) for rung in ladder}) == len(ladder), name
    assert [peer.name for peer in in_turn(tuple(PEERS), "multinomial", "l1")][0] == "saga"
    assert in_turn(("liblinear",), "multinomial", "l1") == [] and in_turn(("liblinear",), "log", "l1")


def test_peers_import_nothing_of_the_project_but_one_another() -> None:
    """They run in environments that need not have it; their own packages are imported inside functions only."""
    allowed = {"__future__", "collections", "dataclasses", "functools", "importlib", "json", "math", "numpy", "os",
               "time", "typing", "warnings"}  # fmt: skip
    for path in Path(base.__file__).parent.glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.level:
                assert path.name == "__init__.py" or node.module in ("base", None), f"{path.name} imports {node.module}"
            elif isinstance(node, ast.Import | ast.ImportFrom):
                top = (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name) or ""
                assert top.split(".")[0] in allowed, f"{path.name} imports {top} when it is read"


def test_ladders_go_from_coarse_to_fine_and_the_small_problem_has_every_class() -> None:
    assert doubling("max_iter", 1, 8) == [{"max_iter": i} for i in (1, 2, 4, 8)]
    levels = [rung["tol"] for rung in tightening("tol", -1, -3)]
    assert levels == pytest.approx([1e-1, 10**-1.5, 1e-2, 10**-2.5, 1e-3])
    falling = (task := twin_task("imdb", "l1", ratio=0.02)).falling()
    assert falling[0] == pytest.approx(task.alpha_max) and falling[-1] == pytest.approx(task.alpha)
    for name in ("imdb", "mnist", "arxiv-categories", "bibtex"):
        task = twin_task(name, "l1")
        tiny = small(task, rows=20)
        assert tiny.X.shape[0] < task.X.shape[0] and tiny.X.shape[1] == task.X.shape[1]
        for mine, whole in zip(tiny.y.reshape(len(tiny.y), -1).T, task.y.reshape(len(task.y), -1).T, strict=True):
            assert set(np.unique(mine)) == set(np.unique(whole))


# ---- one problem, in processes ---------------------------------------------------------------------------------------


class Stored:
    """A twin on disk."""

    def __init__(self, folder: Path, name: str, penalty: str) -> None:
        self.data = SETS[name].twin()
        self.folder = folder
        self.high = plain.alpha_max(self.data.X, self.data.y, penalty, self.data.loss, False)
        self.task = Task(self.data.X, self.data.y, self.data.loss, penalty, 0.1 * self.high, self.high)
        self.opening = {"loss": self.data.loss, "penalty": penalty, "alpha_max": self.high, "threads": 2}
        store(folder, self.data.X, self.data.y)

    def process(self, peer: Any) -> PeerProcess:
        return PeerProcess(peer, self.folder, self.opening, self.folder / f"{peer.name}.log")

    def case(self) -> Case:
        return Case(self.data, self.task.penalty, self.task.alpha, self.folder / "answer.npz")


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    return Stored(tmp_path_factory.mktemp("binary"), "imdb", "l1")


@pytest.mark.full
def test_our_runs_have_the_optimum_a_falling_curve_and_a_certificate(binary: Stored) -> None:
    case = binary.case()
    with binary.process(OURS) as process:
        case.optimum(process)
        case.curve(process)
        case.certificate(process)
        reply = case.order(process, {"tol": 1e-9}, 60.0)
        assert case.objective() == pytest.approx(reply["facts"]["objective"], rel=1e-12)
        stopped = case.order(process, {"tol": 1e-9, "seconds": 0.0}, 60.0)["facts"]
        assert stopped["stop"] == "callback" and stopped["rounds"] == 1
        with pytest.raises(Failed):
            case.order(process, {"tol": -1.0}, 60.0)
        assert case.order(process, {"tol": 1e-2}, 60.0)["peak"] >= 0.0, "an error of its own leaves it running"
    assert 0.0 <= case.best - case.lower <= 1e-8 * case.best
    passes, seconds, values = np.array(case.traces[-1]).T
    assert np.all(np.diff(seconds) >= 0.0) and np.all(np.diff(passes) >= 0.0)
    assert suboptimality(values[-1], case.best) <= BEYOND * TARGETS[-1]
    times = [case.our_time(target) for target in TARGETS]
    assert not any(time.bound for time in times) and times[0].seconds <= times[1].seconds <= times[2].seconds
    assert case.our_passes(1e-6) is not None and case.certified[0] > 0.0


@pytest.mark.full
def test_a_process_is_ended_at_its_limit_and_one_that_cannot_start_says_why(binary: Stored) -> None:
    order = {"do": "run", "answer": str(binary.folder / "a.npz")}
    with binary.process(PEERS["saga"]) as process:
        process.ready()
        child = process.child
        with pytest.raises(TimeUp, match=r"no answer in 0\.3 s"):
            process.order(0.3, alpha=1e-6, rung={"max_iter": 1 << 22}, **order)
        assert child is not None and child.poll() is not None
        assert process.order(60.0, alpha=1.0, rung={"max_iter": 1}, **order)["seconds"] > 0.0, "it starts again"
    absent = replace(PEERS["liblinear"], name="lightning", module="lightning")
    with binary.process(absent) as process, pytest.raises(Missing, match="lightning is not installed"):
        process.ready()


def test_the_child_gets_its_threads_and_no_path_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    theirs, own = environment(PEERS["saga"], 2), environment(OURS, 2)
    assert {theirs[name] for name in theirs if name.endswith("_NUM_THREADS")} == {"2"}
    assert "PYTHONPATH" not in theirs and own["PYTHONPATH"]
    assert "OMP_WAIT_POLICY" not in theirs, "how its threads wait is a peer's own choice"
    assert interpreter(OURS) == interpreter(PEERS["saga"]) == sys.executable


@pytest.mark.full
def test_a_short_run_is_the_median_of_three_and_the_layout_is_charged(binary: Stored) -> None:
    taken = iter((0.06, 0.0, 0.02, 0.3))
    seen: list[float] = []

    def work(prepared: Any, task: Task, rung: Any) -> Answer:
        seen.append(next(taken))
        time.sleep(seen[-1])
        return Answer(np.full((1, 1), seen[-1]), np.zeros(1))

    worker = Worker(replace(PEERS["liblinear"], solve=work), base, binary.folder)
    worker.task = binary.task
    order = {"alpha": binary.high, "rung": {}, "answer": str(binary.folder / "short.npz"), "repeat": True}
    short = worker.run(order)
    assert len(seen) == 3 and 0.02 <= short["seconds"] < 0.06
    with np.load(order["answer"]) as answer:
        assert answer["W"][0, 0] == 0.02
    worker.layout = 0.5
    assert worker.run(order)["seconds"] >= 0.8 and len(seen) == 4


# ---- a peer on its ladder, without processes -------------------------------------------------------------------------


class Simulated:
    """A process whose runs take what `seconds` says of a setting, and leave the suboptimality that `level` says."""

    def __init__(self, seconds: Callable[[Any], float], level: Callable[[Any], float]) -> None:
        self.seconds, self.level = seconds, level
        self.about = {"version": "1"}
        self.now, self.last = 0.0, 0.0

    def order(self, allowed: float, **order: Any) -> dict[str, Any]:
        taken = self.seconds(order["rung"])
        self.now += min(taken, allowed)
        if taken > allowed:
            raise TimeUp(f"no answer in {allowed:.1f} s")
        self.last = 1.0 + self.level(order["rung"])
        return {"seconds": taken, "times": [taken], "peak": 0.0}

    def climbed(self, seconds: float, most: float = math.inf) -> Found:
        case = Case.__new__(Case)
        case.alpha, case.best, case.answer = 1.0, 1.0, Path("nowhere")
        case.objective = lambda: self.last  # type: ignore[method-assign]
        ladder = doubling("epochs", 1, 64)
        return climb(PEERS["saga"], self, case, ladder, seconds, most=most, clock=lambda: self.now)  # type: ignore[arg-type]


def test_a_climb_ends_at_the_last_target_or_where_its_time_is_over() -> None:
    fast = Simulated(lambda r: 0.01 * r["epochs"], lambda r: math.exp(-r["epochs"])).climbed(10.0)
    assert [rung["epochs"] for rung, _, _ in fast.runs] == [1, 2, 4, 8, 16] and not fast.note and fast.version == "1"
    # the error is linear in the logarithm, as it is read
    assert fast.time(1.0, 1e-4).seconds == pytest.approx(0.01 * math.log(1e4))
    slow = Simulated(lambda r: 1.0 * r["epochs"], lambda r: 0.1)
    found = slow.climbed(10.0)
    assert [rung["epochs"] for rung, _, _ in found.runs] == [1, 2, 4] and "used up" in found.note
    assert found.time(1.0, 1e-4) == Time(4.0, bound=True), "no more than what ended"
    cut = Simulated(lambda r: 99.0, lambda r: 0.1).climbed(10.0)
    assert cut.time(1.0, 1e-2) == Time(10.0, bound=True) and "cut off at 10 s" in cut.note
    most = Simulated(lambda r: 1.0 * r["epochs"], lambda r: 0.1).climbed(100.0, most=3.0)
    assert len(most.runs) == 2 and "cut off at 3 s" in most.note
    assert "finest" in Simulated(lambda r: 0.0, lambda r: 0.1).climbed(10.0).note


def test_time_that_is_not_used_goes_to_the_later_problems() -> None:
    now = [0.0]
    budget = Budget(30.0, 3, clock=lambda: now[0])
    with budget.share() as first:
        now[0] += 2.0
    with budget.share() as second:
        now[0] += 20.0
    with budget.share() as third:
        pass
    assert (first, second, third) == (10.0, 14.0, 8.0)


# ---- records, means and the page -------------------------------------------------------------------------------------


def record(problem: Problem, ours: float, **peers: Time) -> dict[str, Any]:
    three = {name: {target: vars(one) for target in ("1e-2", "1e-4", "1e-6")} for name, one in peers.items()}
    return {
        "problem": problem.name, "kind": problem.kind, "certified": 1e-9, "passes to 1e-6": 12.0,
        "seconds to a certified 1e-4": 0.5,
        "times": {OURS.name: {target: vars(Time(ours)) for target in ("1e-2", "1e-4", "1e-6")}, **three},
    }  # fmt: skip


def test_means_are_of_the_fastest_peer_and_what_is_not_known_is_in_none() -> None:
    first, second, third = list(KINDS["binary-l1"].problems())[:3]
    records = [
        record(first, 1.0, liblinear=Time(8.0), skglm=Time(9.0)),
        record(second, 1.0, liblinear=Time(2.0, bound=True)),
        record(third, 1.0, liblinear=Time(0.5, bound=True)),
    ]
    (to_4, _) = suite.means(records)
    assert to_4["geometric mean"] == "> 4.00" and to_4["met"] == "yes" and to_4["not known"] == 1
    (slow, _) = suite.means([record(first, 1.0, liblinear=Time(0.5))])
    assert slow["met"] == "NO" and slow["a peer is faster"] == 1
    (open_, _) = suite.means([record(first, 1.0, liblinear=Time(1.5, bound=True))])
    assert open_["met"] == "cannot be judged"
    text = "\n".join(suite.page(records, Options(("liblinear",)), 60.0, {"w8a l1 0.1": "no memory"}))
    for said in ("> 4.00", "> 0.50", "no memory", "12", "Seconds to 1e-6"):
        assert said in text


def test_a_failure_of_our_own_leaves_the_other_problems() -> None:
    def measure(group: Any, *_: Any) -> Iterator[dict[str, Any]]:
        for problem in group.problems:
            yield record(problem, 1.0)
            if group.penalty == "l1/l2":
                raise Failed("DataError: no")

    failed: dict[str, str] = {}
    said: list[str] = []
    records = list(suite.measure_all(chosen(("bibtex",)), Options((), twins=True), said.append, failed, measure))
    assert [r["problem"] for r in records] == ["bibtex l1/l2 0.3", *[f"bibtex l1/linf {r}" for r in (0.3, 0.1, 0.02)]]
    assert failed == {f"bibtex l1/l2 {ratio}": "DataError: no" for ratio in (0.1, 0.02)}
    assert any("dboost failed" in line for line in said)


@pytest.mark.full
def test_a_whole_run_on_made_up_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["bench", "peers", "--quick", "--problems", "imdb l1 0.1", "--peers", "liblinear"]
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 0
    assert "imdb l1 0.1" in (tmp_path / "out" / suite.PAGE).read_text(encoding="utf-8")
    stored = json.loads((tmp_path / "out" / suite.MARKER).read_text(encoding="utf-8"))
    (one,) = stored["records"]
    assert not one["times"][OURS.name]["1e-6"]["bound"] and one["certified"] <= 1e-8 and one["peers"]["liblinear"]
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 2
    assert "--force" in capsys.readouterr().err


def test_what_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, word in (
        (["nothing"], "known: peers"),
        ([], "which benchmark"),
        (["peers", "--problems", "no-such"], "no-such"),
        (["peers", "--peers", "no-such"], "no-such"),
        (["ab", "HEAD"], "expected two"),
        (["ab", "HEAD", "HEAD"], "both names stand for"),
        (["compare", "HEAD"], "takes no commits"),
    ):
        assert main(["bench", *arguments, "--out", str(tmp_path / "out")]) == 2, arguments
        assert word in capsys.readouterr().err, arguments
        assert not (tmp_path / "out").exists()
    assert main(["bench", "--list"]) == 0
    out = capsys.readouterr().out
    assert all(f"\n{name}: " in f"\n{out}" for name in REGISTRY) and "problem imdb l1 0.1" in out
    assert all(callable(entry.load().run) for entry in REGISTRY.values())


# ---- passes ----------------------------------------------------------------------------------------------------------


def test_the_shares_of_a_pass_add_up_and_a_missed_goal_is_shown() -> None:
    from dboost.engine.local import LocalEngine
    from dboost.penalties import get_penalty
    from dboost.problem.problem import ProblemSettings
    from dboost.problem.stored import StoredProblem

    parts = [overhead.Drawn(i, 50, 200, 4) for i in range(3)]
    assert parts[0].load().values.tobytes() == overhead.Drawn(0, 50, 200, 4).load().values.tobytes()
    with LocalEngine(2) as engine:
        watched = overhead.Stopwatch(engine)
        watched.set_plan(parts, [part.n_rows for part in parts], "test")
        problem = StoredProblem(watched, ProblemSettings("multinomial", get_penalty("l1/l2"), 200, 4), "test")
        for run in overhead.kinds(problem, 10).values():
            run()
    assert {"labels", "statistics", "score", "gradient", "grid", "hessian", "sample"} <= {
        one["name"] for one in watched.passes
    }
    for one in watched.passes:
        assert one["wall"] == pytest.approx(sum(one[share] for share in overhead.SHARES[1:]))
        assert one["kernels"] > 0.0 and one["network"] == one["scheduler"] == 0.0
    line = {"workers": 64, "pass": "score", "overhead": 0.2, "wall": 0.3}
    assert overhead.in_ms(line)["goal"] == "150: MISSED" and "goal" not in overhead.in_ms(line | {"workers": 8})


# ---- two commits -----------------------------------------------------------------------------------------------------


def test_a_verdict_is_on_the_mean_and_on_the_worst() -> None:
    plain_ = Cost(seconds=2.0, cpu=3.0, passes=10.0)
    for (a, b), complaints in (((2.0, 2.0), 0), ((2.06, 2.05), 0), ((2.1, 2.1), 1), ((2.31, 1.7), 1), ((2.4, 2.4), 2)):
        new = [replace(plain_, seconds=a), replace(plain_, seconds=b, cpu=3.0)]
        found = [Change(name, 1e-4, plain_, one) for name, one in zip("ab", new, strict=True)]
        said: list[str] = []
        assert ab.show(found, "seconds", ab.MEAN, ab.WORST, said.append) == min(1, complaints)
        assert sum(line.startswith("too much") for line in said) == complaints and "worst: a" in "".join(said)
        assert ab.show(found, "cpu", ab.MEAN, ab.WORST, said.append) == 0
    assert ab.geometric_mean([4.0, 0.25]) == pytest.approx(1.0)
    replies = [{"seconds": s, "cpu": 2 * s, "facts": {"passes": p}} for s, p in ((1.0, 10), (4.0, 12), (2.0, 11))]
    assert Cost.of(replies) == Cost(2.0, 4.0, 11.0, 4.0)


def test_a_commit_is_named_and_checked_out_without_a_trace(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    for step in (["init", "-q"], ["config", "user.name", "n"], ["config", "user.email", "e@example.org"]):
        subprocess.run(["git", *step], cwd=repository, check=True)
    for text in ("one", "two"):
        (repository / "file").write_text(text)
        subprocess.run(["git", "add", "file"], cwd=repository, check=True)
        subprocess.run(["git", "commit", "-q", "-m", text], cwd=repository, check=True)
    commit = trees.commit_of("HEAD~1", repository)
    assert (trees.check_out(commit, tmp_path / "tree", repository) / "file").read_text() == "one"
    assert trees.current(repository) == trees.commit_of("HEAD", repository)
    (repository / "file").write_text("three")
    assert trees.current(repository).endswith("+")
    assert trees.git("worktree", "list", "--porcelain", repository=repository).count(b"worktree ") == 1
    with pytest.raises(UsageError, match="'nothing' names no commit"):
        trees.commit_of("nothing", repository)


@pytest.mark.full
def test_two_checkouts_are_measured_in_turn(capsys: pytest.CaptureFixture[str]) -> None:
    root = Path(__file__).resolve().parents[2]
    (change,) = ab.measured({"old": root, "new": root}, chosen(("imdb l1 0.3",)), (1e-3,), repeats=1, twins=True)
    assert change.ratios["passes"] == 1.0 and change.old.seconds > 0.0
