"""Pages and the command: tables from records, means with bounds, plots, one tiny run."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from lab.__main__ import main
from lab.benchmarks import output, plots, suite
from lab.benchmarks.against import Options
from lab.benchmarks.verdicts import lags, means, versus


def solver(seconds: float, bound: bool = False, intercept: bool = False, note: str = "") -> dict[str, Any]:
    times = {name: {"seconds": seconds, "bound": bound} for name in ("1e-2", "1e-4", "1e-6")}
    runs = [{"rung": {}, "seconds": [0.5 * seconds, 0.6 * seconds], "objective": 1.1}]
    if not bound:
        runs.append({"rung": {}, "seconds": [seconds], "objective": 1.0 + 1e-8})
    return {
        "times": times, "runs": runs, "best": 1.0, "layout": 0.05 * seconds, "peak": 2.0**21, "limit": seconds,
        "intercept": intercept, "version": "1.0", "note": note,
    }  # fmt: skip


def record(problem: str, kind: str, ours: float, **peers: dict[str, Any]) -> dict[str, Any]:
    own = {
        "times": solver(ours)["times"], "passes": {"1e-2": 3.0, "1e-4": 5.0, "1e-6": 9.0}, "layout": 0.1 * ours,
        "curves": [[[0.5 * ours, 1.2, 3.0], [ours, 1.0 + 1e-9, 9.0]]], "best": 1.0, "peak": 2.0**20, "version": "0",
        "certified": 1e-10, "tol": 1e-7, "note": "",
    }  # fmt: skip
    certificate = [{"seconds": 1.5 * ours, "cpu": ours, "gap": 5e-5, "passes": 12, "suboptimality": 1e-9}]
    return {
        "problem": problem, "kind": kind, "data": problem, "rows": 10, "columns": 5, "nonzeros": 20, "outputs": 1,
        "alpha": 0.1, "alpha_max": 1.0, "best": 1.0, "certified": 1e-10, "rows of W": 4, "certificate": certificate,
        "solvers": {"dboost": own, **peers},
    }  # fmt: skip


RECORDS = [
    record("imdb l1 0.3", "binary-l1", 1.0, liblinear=solver(4.0), skglm=solver(3.0), saga=solver(9.0, bound=True)),
    record("imdb l1 0.1", "binary-l1", 1.0, liblinear=solver(0.5), gblinear=solver(0.1, intercept=True)),
    record("mnist l1/l2 0.1", "multinomial-groups", 1.0, cyanure=solver(20.0, bound=True, note="cut off at 20 s")),
    record("bibtex l1/l2 0.1", "multitask-groups", 1.0),
]


def test_our_solver_is_compared_with_the_fastest_peer_of_the_same_problem() -> None:
    found = versus(RECORDS[0], 1e-4)
    assert found.peer == "skglm" and found.ratio is not None and found.ratio.value == 3.0
    alone = versus(RECORDS[0], 1e-4, layout=False)
    assert alone.ratio is not None and alone.ratio.value == pytest.approx(3.0 * 0.95 / 0.9)
    other = versus(RECORDS[1], 1e-6)
    # the peer with an intercept solves another problem
    assert other.peer == "liblinear" and other.ratio is not None and other.ratio.value == 0.5
    assert versus(RECORDS[3], 1e-6).peer is None


def test_means_say_what_they_stand_on() -> None:
    found = {(mean.kind, mean.target): mean for mean in means(RECORDS)}
    binary = found["binary-l1", 1e-4]
    assert binary.mean is not None and binary.mean.value == pytest.approx(math.sqrt(1.5)) and not binary.mean.bound
    assert (binary.problems, binary.compared, binary.slower, binary.met) == (2, 2, 1, "NO")
    assert binary.alone is not None and binary.alone.value == pytest.approx(math.sqrt(1.5) * 0.95 / 0.9)
    groups = found["multinomial-groups", 1e-6]
    assert groups.mean is not None and groups.mean.bound and groups.met == "yes"
    assert found["multitask-groups", 1e-6].met == "cannot be judged"
    assert ("multinomial-l1", 1e-4) not in found


def test_a_bound_below_the_goal_decides_nothing() -> None:
    bound = [record("mnist l1/l2 0.1", "multinomial-groups", 1.0, cyanure=solver(3.0, bound=True))]
    assert {mean.met for mean in means(bound)} == {"cannot be judged"}


def test_a_peer_that_was_stopped_before_our_time_says_nothing() -> None:
    told = record("mnist l1/l2 0.3", "multinomial-groups", 1.0, cyanure=solver(20.0, bound=True))
    untold = record("mnist l1/l2 0.1", "multinomial-groups", 1.0, cyanure=solver(0.5, bound=True))
    for mean in means([told, untold]):
        assert mean.mean is not None and mean.mean.value == pytest.approx(20.0)
        assert (mean.compared, mean.unknown, mean.slower, mean.met) == (1, 1, 0, "yes, 1 left out")
    assert {(mean.mean, mean.met) for mean in means([untold])} == {(None, "cannot be judged")}


def test_a_layout_that_took_longer_than_a_run_is_no_error() -> None:
    """A layout is measured by itself, and a peer may be stopped before it would have ended."""
    slow = record("imdb l1 0.3", "binary-l1", 1.0, celer={**solver(2.0, bound=True), "layout": 2.5})
    told = record("imdb l1 0.1", "binary-l1", 1.0, skglm=solver(3.0))
    for mean in means([told, slow]):
        assert mean.compared == 2 and mean.mean is not None and mean.mean.value == pytest.approx(math.sqrt(6.0))
        # of the solvers alone the one that was stopped says nothing
        assert mean.alone is not None and mean.alone.value == pytest.approx(3.0 * 0.95 / 0.9)
    ended = record("imdb l1 0.02", "binary-l1", 1.0, skglm={**solver(2.0), "layout": 2.0})
    alone = versus(ended, 1e-4, layout=False).theirs
    assert alone is not None and 0.0 < alone.seconds <= 1e-3


def test_the_lag_of_the_certificate() -> None:
    found = lags(RECORDS)
    assert [lag.share for lag in found] == pytest.approx([1.5] * 4)
    assert "within 1.3 on 0 of 4 problems" in output.certificate(RECORDS)


def test_the_page_has_every_table(tmp_path: Path) -> None:
    options = Options(("liblinear", "skglm", "cyanure"), repeats=2)
    text = output.write(tmp_path, RECORDS, options, 90.0, ["imdb-l1-0.1.png"], {"w8a l1 0.3": "DataError: none"})
    for part in (
        "imdb l1 0.1 to 1e-4: liblinear 0.50 s, dboost 1.00 s (0.50)", "> 20.0", "none takes it", "cannot be judged",
        "2 threads", "## Machine", "w8a l1 0.3: DataError: none", "(plots/imdb-l1-0.1.png)",
        "The whole run took 1.5 minutes",
    ):  # fmt: skip
        assert part in text, part
    stored = json.loads((tmp_path / output.MARKER).read_text(encoding="utf-8"))
    assert len(stored["records"]) == 4 and stored["means"][0]["mean"]["bound"] is False
    assert (tmp_path / output.PAGE).read_text(encoding="utf-8") == text


def test_a_page_of_twins_says_so() -> None:
    assert "not how fast anything is" in output.page(RECORDS, Options((), twins=True), 1.0)


def test_curves_are_drawn(tmp_path: Path) -> None:
    assert plots.series(RECORDS[0]["solvers"]["liblinear"]) == (pytest.approx([2.2, 4.0]), pytest.approx([0.1, 1e-8]))
    assert plots.series(RECORDS[0]["solvers"]["dboost"])[1][-1] == pytest.approx(1e-9)
    name = plots.draw(RECORDS[2], tmp_path)
    assert (tmp_path / name).stat().st_size > 5000


def test_the_command_runs_on_a_twin_with_our_solver_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["bench", "peers", "--quick", "--peers", "none", "--problems", "bibtex l1/l2 0.1", "--repeats", "1"]
    assert main([*arguments, "--out", str(tmp_path / "out"), "--log-format", "plain"]) == 0
    text = (tmp_path / "out" / output.PAGE).read_text(encoding="utf-8")
    assert "bibtex l1/l2 0.1" in text and "bibtex l1/l2 0.1" in capsys.readouterr().out
    stored = json.loads((tmp_path / "out" / output.MARKER).read_text(encoding="utf-8"))
    own = stored["records"][0]["solvers"]["dboost"]
    assert own["times"]["1e-6"]["bound"] is False and own["certified"] <= 1e-8
    assert [path.name for path in (tmp_path / "out" / "plots").iterdir()] == ["bibtex-l1-l2-0.1.png"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["nothing"], "known: peers"),
        ([], "which benchmark"),
        (["peers", "--problems", "no-such"], "no-such"),
        (["peers", "--peers", "no-such"], "no-such"),
    ],
)
def test_what_is_not_there_is_refused(
    arguments: list[str], word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *arguments, "--out", str(tmp_path / "out")]) == 2
    assert word in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_list_names_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--list", "--log-format", "json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert "peers" in found["benchmarks"] and "imdb l1 0.1" in found["problems"] and "liblinear" in found["peers"]


def test_a_page_that_fails_loses_nothing_of_what_was_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> None:
        raise ValueError("math domain error")

    options = Options(("liblinear",), twins=False)
    assert suite.kept_and_shown(tmp_path, RECORDS, options, 60.0, {}, broken) == 1
    told = capsys.readouterr().err
    assert "math domain error" in told and output.MARKER in told
    kept = json.loads((tmp_path / output.MARKER).read_text())
    assert [record["problem"] for record in kept["records"]] == [record["problem"] for record in RECORDS]
    assert suite.kept_and_shown(tmp_path, RECORDS, options, 60.0, {}, lambda: None) == 0
    assert suite.kept_and_shown(tmp_path, RECORDS, options, 60.0, {"imdb": "no memory"}, lambda: None) == 1
