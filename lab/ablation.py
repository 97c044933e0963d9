"""What each accelerator is worth: the same fits with all of them, and with each one off in turn.

Run with ``python -m lab ablation``. On the problems of ``bench peers``, with an intercept and without, on paths of
strengths and on a set of many rows, to a certified gap. An accelerator is timed where it was taken; on the others it is
the same fit, and counts as no difference. One that is worth less than 3 % overall and less than 10 % on its best
problem is marked: it should go.

Covers: choosing problems, timing in turn, the table. Does not cover: what an accelerator does
(``dboost.problem.accelerators``), comparing commits (``lab bench ab``).
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from dboost.boosting.fit import Fitting
from dboost.boosting.path import path
from dboost.data.plan import build_plan
from dboost.engine.local import LocalEngine
from dboost.problem.accelerators import ACCELERATORS, EVERY
from dboost.problem.state import FitResult, FitSettings
from lab import tables
from lab.benchmarks.problems import KINDS, SETS
from lab.oracle.problems import Encoded

OVERALL = 1.03
"""Time without over time with an accelerator, the geometric mean over all problems, below which it is worth little."""
BEST = 1.10
"""The same on the problem where it is worth most. Below both it should go."""
TASKS = {"log": "binary", "multinomial": "multiclass", "multitask": "multitask"}
COLUMNS = ("accelerator", "taken on", "overall", "most", "on", "verdict")


@dataclass(frozen=True)
class Case:
    """One problem to fit."""

    # Key of ``SETS``.
    data: str
    penalty: str
    # Strength, as a share of the smallest at which W = 0.
    ratio: float
    intercept: bool
    # Above one, a path of so many that ends there.
    strengths: int = 1

    @property
    def name(self) -> str:
        """As it is shown."""
        along = f" path of {self.strengths}" if self.strengths > 1 else ""
        return f"{self.data} {self.penalty} {self.ratio:g}{along}{' b' if self.intercept else ''}"


BEYOND = (
    Case("imdb", "l1", 0.02, True, 20),
    Case("stackoverflow20k", "l1/l2", 0.02, True, 20),
    Case("arxiv-archives", "l1/linf", 0.02, True, 20),
    Case("arxiv-titles", "l1/l2", 0.1, True),
    Case("arxiv-titles", "l1/linf", 0.1, True),
)
"""What the problems of the benchmark do not reach: paths, and many rows."""


def cases() -> list[Case]:
    """All of them, those of one data set together."""
    every = [
        Case(one.data, one.penalty, one.ratio, intercept)
        for kind in KINDS.values()
        for one in kind.problems()
        for intercept in (False, True)
    ]
    return sorted([*every, *BEYOND], key=lambda case: list(SETS).index(case.data))


@dataclass(frozen=True)
class Timed:
    """One fit, or one path."""

    # Processor time of the whole process, its threads included.
    seconds: float
    # At the last strength.
    found: FitResult
    # How often each accelerator was, at all strengths.
    taken: Counter[str]


def timed(data: Encoded, case: Case, tol: float, names: Sequence[str]) -> Timed:
    """Plan and fit one problem with the accelerators of those names, on one thread."""
    settings = FitSettings(
        data.loss, case.penalty, fit_intercept=case.intercept, tol=tol, accelerators=tuple(names), max_seconds=600.0
    )
    with warnings.catch_warnings(), LocalEngine(1) as engine:
        warnings.simplefilter("ignore")
        began = time.process_time()
        plan = build_plan(data.X, data.y, task=TASKS[data.loss], engine=engine)
        if case.strengths > 1:
            found = path(plan, engine, settings, n_alphas=case.strengths, eps=case.ratio)
        else:
            fitting = Fitting(plan, engine, settings)
            found = [fitting.fit(case.ratio * fitting.alpha_max())]
    taken = sum((Counter(one.taken) for one in found), Counter[str]())
    if len(found) > 1:
        # Fits do not count what they are begun with.
        taken.update(name for name in ("path_start", "path_predictor") if name in names)
    return Timed(time.process_time() - began, found[-1], taken)


@dataclass(frozen=True)
class Worth:
    """What an accelerator is worth on one problem."""

    name: str
    problem: str
    # Time without it over time with it.
    ratio: float
    # Whether both fits end at the same optimum, within what their gaps allow.
    agrees: bool


def compared(data: Encoded, case: Case, tol: float, turns: int) -> Iterator[Worth]:
    """Every accelerator that a fit took, switched off by itself; in every turn all of them, after a fit with all."""
    # The first fit of a process reads what is compiled from disk, and is not measured.
    first = timed(data, case, tol, EVERY)
    whole = [timed(data, case, tol, EVERY).seconds]
    without: dict[str, list[Timed]] = {name: [] for name in EVERY if first.taken[name]}
    for _ in range(turns):
        for name, fits in without.items():
            fits.append(timed(data, case, tol, [other for other in EVERY if other != name]))
        whole.append(timed(data, case, tol, EVERY).seconds)
    for name, fits in without.items():
        one, other = first.found, fits[0].found
        room = max(one.gap, 0.0) * abs(one.objective) + max(other.gap, 0.0) * abs(other.objective)
        ratio = statistics.median(
            fit.seconds / math.sqrt(whole[turn] * whole[turn + 1]) for turn, fit in enumerate(fits)
        )
        yield Worth(name, case.name, ratio, abs(one.objective - other.objective) <= room)


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
    parser.add_argument("--beyond", action="store_true", help="paths and many rows only")
    parser.add_argument("--quick", action="store_true", help="made-up data, a minute")
    parser.add_argument("--out", type=Path, default=Path("runs/ablation.md"))
    given = parser.parse_args(arguments)
    chosen = [
        case
        for case in cases()
        if (not given.only or case.data in given.only)
        and (not given.ratios or case.ratio in given.ratios)
        and (not given.beyond or case in BEYOND)
    ]
    found: list[Worth] = []
    for name, group in groupby(chosen, key=lambda case: case.data):
        data = SETS[name].twin() if given.quick else SETS[name].load()
        for case in group:
            worths = list(compared(data, case, given.tol, given.turns))
            found += worths
            print(f"{case.name}: {', '.join(f'{one.name} {one.ratio:.2f}' for one in worths)}", flush=True)
    rows = lines(found, len(chosen))
    table = tables.markdown(rows, COLUMNS)
    print(table)
    spread = statistics.median(one.ratio for one in found) if found else math.nan
    tables.write(given.out, "Ablation", [(__doc__ or "").strip(), table, f"Median of all ratios: {spread:.3f}."])
    return int(any(not one.agrees for one in found))
