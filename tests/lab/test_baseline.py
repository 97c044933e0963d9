"""Stored measurements of our own speed: files, ratios, verdicts, and one real session on made-up data.

Does not cover: figures of real data (``python -m lab bench record``), or compiling other commits (``bench ab``).
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dboost.errors import DataError, UsageError
from lab.benchmarks import command
from lab.benchmarks.baseline import stored, trees
from lab.benchmarks.baseline.ratios import changes, geometric_mean, one_sided, verdict
from lab.benchmarks.baseline.stored import Cost, Measurement, accuracy_key
from lab.benchmarks.baseline.turns import cost_of
from lab.benchmarks.peers import yardstick

ROOT = Path(__file__).resolve().parents[2]
PLAIN = Cost(seconds=2.0, cpu=3.0, passes=20.0, gap=9e-5, spread=1.1, yardstick=0.5, yardstick_cpu=1.0)


def measurement(commit: str = "abc", **of_problem: Cost) -> Measurement:
    costs = {name: {"1e-4": cost} for name, cost in of_problem.items()}
    return Measurement(commit, costs, settings={"threads": 2, "twins": False}, machine={"cores": "2"})


def saved(path: Path, found: Measurement) -> str:
    stored.write(found, path)
    return str(path)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    found = measurement(a=PLAIN, b=replace(PLAIN, gap=0.0))
    stored.write(found, tmp_path / "deeper" / "a.json")
    assert stored.read(tmp_path / "deeper" / "a.json") == found


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": 99}, "has schema 99, expected 1"),
        ({"schema": None}, "has schema None"),
        ({"costs": {"a": {"1e-4": {"seconds": 1.0}}}}, "incomplete"),
        ({"more": 1}, "incomplete"),
        ({"costs": {"a": {"1e-4": {"seconds": "x", "cpu": 1, "passes": 1, "gap": 0}}}}, "no number"),
        ({"costs": {"a": {"1e-4": {"seconds": -1, "cpu": 1, "passes": 1, "gap": 0}}}}, "no number"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = tmp_path / "a.json"
    stored.write(measurement(a=PLAIN), path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(DataError, match=said):
        stored.read(path)


def test_a_measurement_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(UsageError, match="no measurement .*absent.json.*names in lab/baselines"):
        stored.read(stored.place("absent"))


def test_what_is_committed_can_be_read_and_names_no_place() -> None:
    for path in stored.FOLDER.glob("*.json"):
        found = stored.read(path)
        assert found.costs and found.settings["twins"] is False
        assert "/" not in "".join([*found.machine.values(), *found.versions.values(), found.commit])


def test_accuracies_are_keys() -> None:
    assert [accuracy_key(value) for value in (1e-4, 1e-6, 2.5e-3)] == ["1e-4", "1e-6", "2.5e-3"]


def test_ratios_are_in_units_of_the_yardstick() -> None:
    """A machine that is twice as slow makes fit and yardstick twice as slow, which is no change."""
    slow = replace(PLAIN, seconds=4.0, cpu=6.0, yardstick=1.0, yardstick_cpu=2.0)
    (change,) = changes(measurement(a=PLAIN), measurement(a=slow))
    assert (change.seconds, change.cpu, change.passes) == (1.0, 1.0, 1.0)
    (change,) = changes(measurement(a=PLAIN), measurement(a=replace(PLAIN, seconds=3.0, passes=10.0)))
    assert (change.seconds, change.cpu, change.passes) == (1.5, 1.0, 0.5)


def test_only_what_both_have_is_compared() -> None:
    old, new = measurement(a=PLAIN, b=PLAIN), measurement(b=PLAIN, c=PLAIN)
    assert [change.problem for change in changes(old, new)] == ["b"]
    assert one_sided(old, new) == ["a", "c"]
    with pytest.raises(DataError, match="no problem in common"):
        changes(measurement(a=PLAIN), measurement(c=PLAIN))
    with pytest.raises(DataError, match="threads=2 and threads=4"):
        changes(old, replace(new, settings={"threads": 4, "twins": False}))


@pytest.mark.parametrize(
    ("seconds", "complaints"),
    [((2.0, 2.0), 0), ((2.06, 2.05), 0), ((2.1, 2.1), 1), ((2.31, 1.7), 1), ((2.4, 2.4), 2)],
)
def test_a_verdict_is_on_the_mean_and_on_the_worst(seconds: tuple[float, float], complaints: int) -> None:
    new = measurement(a=replace(PLAIN, seconds=seconds[0]), b=replace(PLAIN, seconds=seconds[1]))
    judged = verdict(changes(measurement(a=PLAIN, b=PLAIN), new))
    assert len(judged.complaints) == complaints
    assert judged.worst.problem == "a"
    assert judged.mean == pytest.approx((seconds[0] * seconds[1] / 4.0) ** 0.5)


def test_the_geometric_mean_of_a_ratio_and_its_inverse_is_one() -> None:
    assert geometric_mean([4.0, 0.25]) == pytest.approx(1.0)
    assert geometric_mean([1.0, float("inf")]) == float("inf")


def test_costs_are_medians_and_the_gap_is_the_largest() -> None:
    replies = [
        {"seconds": s, "cpu": 2 * s, "facts": {"passes": p, "gap": g}}
        for s, p, g in ((1.0, 10, 1e-5), (4.0, 12, 9e-5), (2.0, 11, 2e-5))
    ]
    beats = [{"seconds": 0.5, "cpu": 1.0}, {"seconds": 0.7, "cpu": 1.2}, {"seconds": 0.6, "cpu": 1.1}]
    assert cost_of(replies, beats) == Cost(2.0, 4.0, 11.0, 9e-5, 4.0, 0.6, 1.1)
    assert cost_of(replies).yardstick == 1.0


def test_the_command_says_the_verdict_with_its_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = saved(tmp_path / "old.json", measurement("abc", a=PLAIN, b=PLAIN))
    new = saved(tmp_path / "new.json", measurement("def", a=PLAIN, b=replace(PLAIN, seconds=2.5)))
    assert command.main(["compare", old, old]) == 0
    assert "too much" not in capsys.readouterr().out
    assert command.main(["compare", old, new]) == 1
    out = capsys.readouterr().out
    assert "worst: b to 1e-4, 1.250 times" in out and "too much: b to 1e-4 with 1.250 is above 1.15" in out
    assert command.main(["compare", old, new, "--worst", "1.3", "--mean", "1.2"]) == 0
    assert command.main(["compare", old, new, "--by", "cpu"]) == 0
    assert command.main(["compare", old]) == 2


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


def test_the_yardstick_does_the_same_work_every_time() -> None:
    found = yardstick.PEER.prepare(None)  # type: ignore[arg-type]  # It looks at no task.
    W = yardstick.work(*found)
    assert W.shape == (yardstick.COLUMNS, yardstick.OUTPUTS + 1)
    assert abs(W).max() > 0.0 and (yardstick.work(*found) == W).all()


@pytest.mark.full
def test_a_session_on_made_up_data_is_recorded_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "twin.json"
    wanted = ["record", str(path), "--quick", "--problems", "imdb l1 0.3", "--repeats", "1", "--accuracies", "1e-3"]
    assert command.main(wanted) == 0
    found = stored.read(path)
    cost = found.costs["imdb l1 0.3"]["1e-3"]
    assert cost.seconds > 0.0 and cost.passes >= 1.0 and cost.gap <= 1e-3 and 0.0 < cost.yardstick < 100.0
    assert command.main(wanted) == 2
    assert "give --force" in capsys.readouterr().err
    assert command.main(["compare", str(path), str(path)]) == 0
