"""``python -m lab bench ab OLD NEW``: two commits, A B A B in one session; exit code 1 when NEW is too slow.

A fit is that of the estimator, as a user calls it, from the data as loaded to the certified gap that is asked for: it
needs nothing of a checkout but public names, so that any two commits can be measured by the same program.

Covers: the order of the runs, medians, ratios of time and passes, the verdict. Does not cover: checking out a commit
(``trees``).
"""

from __future__ import annotations

import contextlib
import math
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dboost.errors import DataError, UsageError
from lab import tables
from lab.benchmarks import trees
from lab.benchmarks.peers import OURS
from lab.benchmarks.problems import Group, Problem, laid_out
from lab.benchmarks.process import COMPILE, PeerProcess

RUN_LIMIT = 900.0
"""Seconds that one fit may take before its process is ended."""
ENOUGH = 1.0 + 1e-6
"""A certified gap of at most so many times the one that is asked for is what was asked for."""
MEAN, WORST = 1.03, 1.15
"""Ratios that are too much: of the geometric mean, and of any one problem. Less is lost in what a machine does else."""
COLUMNS = ("problem", "gap", "old s", "new s", "time", "cpu", "passes", "spread")
BY = {"seconds": "time", "cpu": "cpu"}


@dataclass(frozen=True)
class Cost:
    """What it costs to fit one problem to one certified gap; medians over the turns."""

    # Of a whole ``fit``: on the clock, and of all threads of the process.
    seconds: float
    cpu: float
    # Over the data.
    passes: float
    # The longest turn over the shortest one: below it a ratio says nothing.
    spread: float = 1.0

    @staticmethod
    def of(replies: Sequence[Mapping[str, Any]]) -> Cost:
        """From what a worker answered in every turn."""
        seconds = [float(reply["seconds"]) for reply in replies]
        cpu = statistics.median(float(reply["cpu"]) for reply in replies)
        passes = statistics.median(float(reply["facts"]["passes"]) for reply in replies)
        return Cost(statistics.median(seconds), cpu, passes, max(seconds) / min(seconds))


@dataclass(frozen=True)
class Change:
    """One problem to one accuracy, before and after."""

    problem: str
    accuracy: float
    old: Cost
    new: Cost

    @property
    def ratios(self) -> dict[str, float]:
        """New over old, by column."""
        pairs = {"time": "seconds", "cpu": "cpu", "passes": "passes"}
        return {column: _over(getattr(self.new, name), getattr(self.old, name)) for column, name in pairs.items()}


def _over(new: float, old: float) -> float:
    return new / old if old > 0.0 else math.inf if new > 0.0 else 1.0


def measured(
    folders: Mapping[str, Path], problems: Sequence[Problem], accuracies: Sequence[float], *, repeats: int = 3,
    threads: int = 2, twins: bool = False, say: Callable[[str], None] = print,
) -> list[Change]:  # fmt: skip
    """Fit every problem in both checkouts in turn."""
    found = []
    with tempfile.TemporaryDirectory(prefix="dboost-turns-") as scratch:
        for group in laid_out(problems, Path(scratch), twins):
            for change in _of_group(group, folders, accuracies, repeats, threads):
                found.append(change)
                parts = ", ".join(f"{name} {ratio:.3f}" for name, ratio in change.ratios.items())
                say(f"{change.problem} to {change.accuracy:g}: {parts}")
    return found


def _of_group(
    group: Group, folders: Mapping[str, Path], accuracies: Sequence[float], repeats: int, threads: int
) -> list[Change]:
    """All strengths of one data set and penalty, in processes that stay open between them."""
    rungs = [{"tol": accuracy, "estimator": True} for accuracy in accuracies]
    opening = {**group.opening(threads), "rungs": rungs}
    order = {"do": "run", "answer": str(group.folder / "answer.npz"), "repeat": True}
    changes = []
    with contextlib.ExitStack() as stack:
        sides = []
        for at, (side, tree) in enumerate(folders.items()):
            log = group.folder / f"side{at}.log"
            process = stack.enter_context(PeerProcess(OURS, group.folder, opening, log, root=tree))
            process.ready(COMPILE)
            _check_home(process, side, tree)
            # What only a problem of this size compiles or touches first is not the first problem's cost.
            process.order(RUN_LIMIT, alpha=group.problems[0].ratio * opening["alpha_max"], rung=rungs[0], **order)
            sides.append((side, process))
        for problem in group.problems:
            runs: dict[tuple[str, float], list[dict[str, Any]]] = {}
            for _ in range(repeats):
                for rung in rungs:
                    for side, process in sides:
                        alpha = problem.ratio * opening["alpha_max"]
                        reply = process.order(RUN_LIMIT, alpha=alpha, rung=rung, **order)
                        _check_gap(reply, problem, side, rung["tol"])
                        runs.setdefault((side, rung["tol"]), []).append(reply)
            for accuracy in accuracies:
                old, new = (Cost.of(runs[side, accuracy]) for side, _ in sides)
                changes.append(Change(problem.name, accuracy, old, new))
    return changes


def _check_home(process: PeerProcess, side: str, tree: Path) -> None:
    """Refuse a process that runs another checkout than the one it is measured as."""
    file = Path(process.about["file"])
    if not file.resolve().is_relative_to(tree.resolve()):
        raise DataError(
            f"{side} was to run from its own checkout, but dboost was imported from elsewhere",
            file=str(file),
            hint="an installed dboost came before it on the path of imports",
        )


def _check_gap(reply: dict[str, Any], problem: Problem, side: str, accuracy: float) -> None:
    gap, stop = float(reply["facts"]["gap"]), reply["facts"]["stop"]
    if not gap <= ENOUGH * accuracy:
        raise DataError(
            f"{problem.name}: {side} ended with a certified gap of {gap:.1e} ({stop}), expected {accuracy:.0e}",
            hint="leave the problem out (--problems), or ask for less (--accuracies)",
        )


def geometric_mean(values: Sequence[float]) -> float:
    """exp of the mean logarithm; infinite where one of the values is."""
    return math.exp(sum(math.log(value) if value > 0.0 else -math.inf for value in values) / len(values))


def show(found: Sequence[Change], by: str, mean: float, worst: float, say: Callable[[str], None] = print) -> int:
    """Print the table, the means by accuracy and the verdict; 1 when something is too much, else 0."""
    rows: list[dict[str, Any]] = [
        {"problem": one.problem, "gap": f"{one.accuracy:g}", "old s": f"{one.old.seconds:.3f}",
         "new s": f"{one.new.seconds:.3f}", **{name: f"{ratio:.3f}" for name, ratio in one.ratios.items()},
         "spread": f"{max(one.old.spread, one.new.spread):.2f}"}
        for one in found
    ]  # fmt: skip
    for accuracy in dict.fromkeys(one.accuracy for one in found):
        of_it = [one.ratios for one in found if one.accuracy == accuracy]
        means = {name: f"{geometric_mean([ratios[name] for ratios in of_it]):.3f}" for name in of_it[0]}
        rows.append({"problem": "geometric mean", "gap": f"{accuracy:g}", **means})
    say(tables.markdown(rows, COLUMNS))
    judged = [one.ratios[BY[by]] for one in found]
    largest = found[judged.index(max(judged))]
    complaints = []
    if not geometric_mean(judged) <= mean:
        complaints.append(f"the mean of {geometric_mean(judged):.3f} is above {mean:g}")
    if not max(judged) <= worst:
        complaints.append(f"{largest.problem} to {largest.accuracy:g} with {max(judged):.3f} is above {worst:g}")
    say(f"worst: {largest.problem} to {largest.accuracy:g}, {max(judged):.3f} times")
    for complaint in complaints:
        say(f"too much: {complaint}")
    return 1 if complaints else 0


def compare(old: str, new: str, problems: Sequence[Problem], given: Any) -> int:
    """Check both out, compile both, measure in turn, print the table; 1 when something is too much."""
    commits = [trees.commit_of(name) for name in (old, new)]
    if commits[0] == commits[1]:
        raise UsageError(f"both names stand for {commits[0]}", hint="name two commits")
    with tempfile.TemporaryDirectory(prefix="dboost-commits-") as scratch:
        folders = {commit: trees.check_out(commit, Path(scratch, commit)) for commit in commits}
        print("compiling both", flush=True)
        trees.compile_all(folders)
        found = measured(folders, problems, given.accuracies, repeats=given.repeats, threads=given.threads,
                         twins=given.quick)  # fmt: skip
    return show(found, given.by, given.mean, given.worst)
