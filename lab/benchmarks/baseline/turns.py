"""Measure whole fits of one or two checkouts in turn: A B A B, on every problem, with the yardstick between.

Covers: processes, the order of the runs, medians. Does not cover: checking out a commit (``trees``), ratios
(``ratios``), files (``stored``).

A fit is that of the estimator, as a user calls it, from the data as loaded to the certified gap that is asked for: it
needs nothing of a checkout but public names, so that any two commits can be measured by the same program.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dboost.errors import DataError
from lab.benchmarks.baseline.stored import Cost, accuracy_key
from lab.benchmarks.groups import Group, laid_out
from lab.benchmarks.peers import OURS, yardstick
from lab.benchmarks.problems import Problem
from lab.benchmarks.process import COMPILE, PeerProcess

RUN_LIMIT = 900.0
"""Seconds that one fit may take before its process is ended."""
ENOUGH = 1.0 + 1e-6
"""A certified gap of at most so many times the one that is asked for is what was asked for."""

Costs = dict[str, dict[str, Cost]]


@dataclass(frozen=True)
class Turns:
    """How to measure.

    Parameters
    ----------
    accuracies : tuple of float
        Certified relative duality gaps to fit to.
    repeats : int
        Turns of all sides on each problem.
    threads : int
    twins : bool
        The tiny synthetic twin of each data set in its place.
    yardstick : bool
        Whether the yardstick is measured in each turn too.
    """

    accuracies: tuple[float, ...] = (1e-4, 1e-6)
    repeats: int = 2
    threads: int = 2
    twins: bool = False
    yardstick: bool = False


def measured(
    trees: Mapping[str, Path], problems: Sequence[Problem], turns: Turns, say: Callable[[str], None]
) -> dict[str, Costs]:
    """The costs of every problem in every checkout.

    Parameters
    ----------
    trees : dict of name to folder
        The sides, in the order in which they take turns.
    problems : sequence of Problem
    turns : Turns
    say : function of one line
        Progress.

    Raises
    ------
    Missing, Failed, TimeUp
        When a fit ends with an error, or not in time.
    DataError
        When a fit ends before the accuracy that was asked for: its time would say nothing.
    """
    found: dict[str, Costs] = {side: {} for side in trees}
    with tempfile.TemporaryDirectory(prefix="dboost-turns-") as scratch, contextlib.ExitStack() as stack:
        beside = None
        for group in laid_out(problems, Path(scratch), turns.twins):
            if turns.yardstick and beside is None:
                # Its data are its own: one process serves all groups.
                log = Path(scratch, "yardstick.log")
                beside = PeerProcess(yardstick.PEER, group.folder, group.opening(turns.threads), log)
                stack.enter_context(beside)
            for problem, costs in _of_group(group, trees, turns, beside):
                for side, by_accuracy in costs.items():
                    found[side][problem.name] = by_accuracy
                say(_line(problem, costs))
    return found


def _of_group(
    group: Group, trees: Mapping[str, Path], turns: Turns, beside: PeerProcess | None
) -> list[tuple[Problem, dict[str, dict[str, Cost]]]]:
    """All strengths of one data set and penalty, in processes that stay open between them."""
    rungs = [_rung(accuracy) for accuracy in turns.accuracies]
    opening = {**group.opening(turns.threads), "rungs": rungs}
    high = float(opening["alpha_max"])
    answer = group.folder / "answer.npz"
    results = []
    with contextlib.ExitStack() as stack:
        sides = {
            side: stack.enter_context(
                PeerProcess(OURS, group.folder, opening, group.folder / f"side{at}.log", root=tree)
            )
            for at, (side, tree) in enumerate(trees.items())
        }
        for side, process in sides.items():
            process.ready(COMPILE)
            _check_home(process, side, trees[side])
            # What only a problem of this size compiles or touches first is not the first problem's cost.
            _fit(process, group.problems[0].ratio * high, rungs[0], answer)
        for problem in group.problems:
            runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
            beats: list[dict[str, Any]] = []
            for _ in range(turns.repeats):
                if beside is not None:
                    beats.append(beside.order(RUN_LIMIT, do="run", alpha=1.0, rung={}, answer=str(answer), repeat=True))
                for accuracy, rung in zip(turns.accuracies, rungs):
                    for side, process in sides.items():
                        reply = _fit(process, problem.ratio * high, rung, answer)
                        _check_gap(reply, problem, side, accuracy)
                        runs.setdefault((side, accuracy_key(accuracy)), []).append(reply)
            costs: dict[str, dict[str, Cost]] = {side: {} for side in sides}
            for (side, key), replies in runs.items():
                costs[side][key] = cost_of(replies, beats)
            results.append((problem, costs))
    return results


def _rung(accuracy: float) -> dict[str, Any]:
    return {"tol": accuracy, "intercept": False, "estimator": True}


def _fit(process: PeerProcess, alpha: float, rung: dict[str, Any], answer: Path) -> dict[str, Any]:
    return process.order(RUN_LIMIT, do="run", alpha=alpha, rung=rung, answer=str(answer), repeat=True)


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


def cost_of(replies: Sequence[Mapping[str, Any]], beats: Sequence[Mapping[str, Any]] = ()) -> Cost:
    """Medians of what a worker answered in every turn.

    Parameters
    ----------
    replies : sequence of answers to ``run``
        One a turn, of one side, problem and accuracy.
    beats : sequence of answers to ``run``
        Of the yardstick, in the same turns.
    """

    def middle(answers: Sequence[Mapping[str, Any]], key: str) -> float:
        return float(statistics.median(float(answer[key]) for answer in answers))

    seconds = [float(reply["seconds"]) for reply in replies]
    return Cost(
        seconds=middle(replies, "seconds"),
        cpu=middle(replies, "cpu"),
        passes=float(statistics.median(float(reply["facts"]["passes"]) for reply in replies)),
        gap=max(float(reply["facts"]["gap"]) for reply in replies),
        spread=max(seconds) / min(seconds),
        yardstick=middle(beats, "seconds") if beats else 1.0,
        yardstick_cpu=middle(beats, "cpu") if beats else 1.0,
    )


def _line(problem: Problem, costs: Mapping[str, Mapping[str, Cost]]) -> str:
    keys = list(next(iter(costs.values())))
    parts = [f"{side} " + " / ".join(f"{by[key].seconds:.3f}" for key in keys) + " s" for side, by in costs.items()]
    return f"{problem.name} to {' / '.join(keys)}: " + ", ".join(parts)
