"""What each accelerator is worth: the same fits with all of them, and with each one off in turn.

Run with ``python -m lab ablation``. On the problems of ``bench peers``, with an intercept and without, to a certified
gap. An accelerator is timed where it was taken; on the others it is the same fit, and counts as no difference. One that
is worth less than 3 % overall and less than 10 % on its best problem is marked: it should go.

Covers: choosing problems, timing in turn, the table. Does not cover: what an accelerator does
(``dboost.problem.accelerators``), comparing commits (``lab bench ab``).
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from dboost.boosting.fit import Fitting
from dboost.data.plan import build_plan
from dboost.engine.local import LocalEngine
from dboost.problem.accelerators import ACCELERATORS, EVERY
from dboost.problem.state import FitResult, FitSettings
from lab import tables
from lab.benchmarks.problems import KINDS, Problem
from lab.benchmarks.sets import SETS
from lab.oracle.problems import Encoded

OVERALL = 1.03
"""Time without over time with an accelerator, the geometric mean over all problems, below which it is worth little."""
BEST = 1.10
"""The same on the problem where it is worth most. Below both it should go."""
TASKS = {"log": "binary", "multinomial": "multiclass", "multitask": "multitask"}
COLUMNS = ("accelerator", "taken on", "overall", "most", "on", "verdict")


@dataclass(frozen=True)
class Timed:
    """One fit.

    Parameters
    ----------
    seconds : float
        Processor time of the whole process, its threads included.
    found : FitResult
    """

    seconds: float
    found: FitResult


def timed(data: Encoded, problem: Problem, intercept: bool, tol: float, names: Sequence[str]) -> Timed:
    """Plan and fit one problem with the accelerators of those names, on one thread."""
    settings = FitSettings(
        data.loss, problem.penalty, fit_intercept=intercept, tol=tol, accelerators=tuple(names), max_seconds=600.0
    )
    with warnings.catch_warnings(), LocalEngine(1) as engine:
        warnings.simplefilter("ignore")
        began = time.process_time()
        plan = build_plan(data.X, data.y, task=TASKS[data.loss], engine=engine)
        fitting = Fitting(plan, engine, settings)
        found = fitting.fit(problem.ratio * fitting.alpha_max())
    return Timed(time.process_time() - began, found)


def middle(data: Encoded, problem: Problem, intercept: bool, tol: float, names: Sequence[str], turns: int) -> Timed:
    """The fit of median time out of some."""
    return sorted((timed(data, problem, intercept, tol, names) for _ in range(turns)), key=lambda one: one.seconds)[
        turns // 2
    ]


@dataclass(frozen=True)
class Worth:
    """What an accelerator is worth on one problem.

    Parameters
    ----------
    name, problem : str
    ratio : float
        Time without it over time with it.
    agrees : bool
        Whether both fits end at the same optimum, within what their gaps allow.
    """

    name: str
    problem: str
    ratio: float
    agrees: bool


def compared(data: Encoded, problem: Problem, intercept: bool, tol: float, turns: int) -> Iterator[Worth]:
    """Every accelerator that a fit took, switched off by itself; the fit with all runs in turn with each."""
    label = f"{problem.name}{' b' if intercept else ''}"
    # The first fit of a process reads what is compiled from disk, and is not measured.
    timed(data, problem, intercept, tol, EVERY)
    everything = middle(data, problem, intercept, tol, EVERY, turns)
    for name in EVERY:
        if not everything.found.taken.get(name):
            continue
        without = middle(data, problem, intercept, tol, [other for other in EVERY if other != name], turns)
        again = middle(data, problem, intercept, tol, EVERY, turns)
        whole = math.sqrt(everything.seconds * again.seconds)
        one, other = everything.found, without.found
        room = max(one.gap, 0.0) * abs(one.objective) + max(other.gap, 0.0) * abs(other.objective)
        yield Worth(name, label, without.seconds / whole, abs(one.objective - other.objective) <= room)


def lines(found: Iterable[Worth], problems: int) -> list[dict[str, Any]]:
    """The table: an accelerator counts with a ratio of one on each of the problems where it was not taken."""
    rows: list[dict[str, Any]] = []
    by_name = {name: list(group) for name, group in groupby(sorted(found, key=lambda w: w.name), lambda w: w.name)}
    for name in ACCELERATORS:
        taken = by_name.get(name, [])
        if not taken:
            rows.append({"accelerator": name, "taken on": f"0 of {problems}", "verdict": "not taken here"})
            continue
        overall = math.exp(sum(math.log(one.ratio) for one in taken) / problems)
        best = max(taken, key=lambda one: one.ratio)
        worthless = overall < OVERALL and best.ratio < BEST
        wrong = [one.problem for one in taken if not one.agrees]
        rows.append(
            {
                "accelerator": name,
                "taken on": f"{len(taken)} of {problems}",
                "overall": overall,
                "most": best.ratio,
                "on": best.problem,
                "verdict": f"another optimum on {wrong[0]}" if wrong else "worth little" if worthless else "stays",
            }
        )
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Print and write the table; 1 if an accelerator changed an optimum."""
    parser = argparse.ArgumentParser(prog="python -m lab ablation", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tol", type=float, default=1e-6, help="certified gap to fit to")
    parser.add_argument("--turns", type=int, default=3, help="fits of each kind, of which the median counts")
    parser.add_argument("--only", nargs="*", default=[], help="data sets (default: all that are there)")
    parser.add_argument("--ratios", nargs="*", type=float, default=[], help="strengths (default: all of the problems)")
    parser.add_argument("--quick", action="store_true", help="made-up data, a minute")
    parser.add_argument("--out", type=Path, default=Path("runs/ablation.md"))
    given = parser.parse_args(arguments)
    problems = [
        problem
        for kind in KINDS.values()
        for problem in kind.problems()
        if (not given.only or problem.data in given.only) and (not given.ratios or problem.ratio in given.ratios)
    ]
    found: list[Worth] = []
    count = 0
    for name, group in groupby(problems, key=lambda problem: problem.data):
        data = SETS[name].twin() if given.quick else SETS[name].load()
        for problem in group:
            for intercept in (False, True):
                count += 1
                worths = list(compared(data, problem, intercept, given.tol, given.turns))
                found += worths
                said = ", ".join(f"{one.name} {one.ratio:.2f}" for one in worths)
                print(f"{problem.name}{' b' if intercept else ''}: {said}", flush=True)
    rows = lines(found, count)
    table = tables.markdown(rows, COLUMNS)
    print(table)
    spread = statistics.median(one.ratio for one in found) if found else math.nan
    tables.write(given.out, "Ablation", [(__doc__ or "").strip(), table, f"Median of all ratios: {spread:.3f}."])
    return int(any(not one.agrees for one in found))
