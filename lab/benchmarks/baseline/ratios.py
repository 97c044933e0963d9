"""New over old, problem by problem: ratios of time and passes, their geometric mean, and whether that is too much.

Covers: numbers and the table on the terminal. Does not cover: measuring (``turns``), files (``stored``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dboost.errors import DataError
from lab.benchmarks.baseline.stored import Cost, Measurement
from pipelines.console import Console
from pipelines.report import Grid

MEAN, WORST = 1.03, 1.15
"""Ratios that are too much: of the geometric mean, and of any one problem. Less is lost in what a machine does else."""
BY = ("seconds", "cpu")


@dataclass(frozen=True)
class Change:
    """One problem to one accuracy, before and after.

    Parameters
    ----------
    problem, accuracy : str
    old, new : Cost
    """

    problem: str
    accuracy: str
    old: Cost
    new: Cost

    @property
    def seconds(self) -> float:
        """New over old of the seconds on the clock, each in units of the yardstick beside it."""
        return _over(self.new.seconds / self.new.yardstick, self.old.seconds / self.old.yardstick)

    @property
    def cpu(self) -> float:
        """New over old of the processor's time, likewise."""
        return _over(self.new.cpu / self.new.yardstick_cpu, self.old.cpu / self.old.yardstick_cpu)

    @property
    def passes(self) -> float:
        """New over old of the passes over the data."""
        return _over(self.new.passes, self.old.passes)

    @property
    def spread(self) -> float:
        """The longest turn over the shortest of the side that was less steady."""
        return max(self.old.spread, self.new.spread)


def _over(new: float, old: float) -> float:
    return new / old if old > 0.0 else math.inf if new > 0.0 else 1.0


def changes(old: Measurement, new: Measurement) -> list[Change]:
    """All problems and accuracies that both have, in the order of `new`.

    Raises
    ------
    DataError
        When they have none in common, or were measured in ways that cannot be compared.
    """
    for name in ("threads", "twins"):
        before, after = old.settings.get(name), new.settings.get(name)
        if before != after:
            raise DataError(
                f"the two were measured with {name}={before} and {name}={after}", hint="record both in the same way"
            )
    found = [
        Change(problem, accuracy, old.costs[problem][accuracy], cost)
        for problem, by_accuracy in new.costs.items()
        for accuracy, cost in by_accuracy.items()
        if accuracy in old.costs.get(problem, {})
    ]
    if not found:
        raise DataError("the two measurements have no problem in common", hint="record both with the same problems")
    return found


def one_sided(old: Measurement, new: Measurement) -> list[str]:
    """Problems that only one of the two has, which no ratio is of."""
    return sorted(set(old.costs) ^ set(new.costs))


def geometric_mean(values: Iterable[float]) -> float:
    """exp of the mean logarithm; infinite where one of the values is."""
    logs = [math.log(value) if value > 0.0 else -math.inf for value in values]
    return math.exp(sum(logs) / len(logs))


@dataclass(frozen=True)
class Verdict:
    """Whether a change costs too much.

    Parameters
    ----------
    mean : float
        Geometric mean of the ratios that are judged.
    worst : Change
        That with the largest of them.
    by : {"seconds", "cpu"}
        Which ratios are judged.
    mean_limit, worst_limit : float
    """

    mean: float
    worst: Change
    by: str = "seconds"
    mean_limit: float = MEAN
    worst_limit: float = WORST

    @property
    def complaints(self) -> list[str]:
        """What is too much, in words; empty when nothing is."""
        found = []
        if not self.mean <= self.mean_limit:
            found.append(f"the mean of {self.mean:.3f} is above {self.mean_limit:g}")
        largest = float(getattr(self.worst, self.by))
        if not largest <= self.worst_limit:
            where = f"{self.worst.problem} to {self.worst.accuracy}"
            found.append(f"{where} with {largest:.3f} is above {self.worst_limit:g}")
        return found


def verdict(found: Sequence[Change], by: str = "seconds", mean: float = MEAN, worst: float = WORST) -> Verdict:
    """Judge changes by their seconds on the clock, or by the processor's time."""
    ratios = [float(getattr(change, by)) for change in found]
    return Verdict(geometric_mean(ratios), found[ratios.index(max(ratios))], by, mean, worst)


def show(console: Console, old: Measurement, new: Measurement, judged: Verdict, found: Sequence[Change]) -> int:
    """Print the table, the means by accuracy and the verdict; 1 when something is too much, else 0."""
    names = ("problem", "gap", "old s", "new s", "time", "cpu", "passes", "spread")
    rows = [_row(change) for change in found]
    accuracies = list(dict.fromkeys(change.accuracy for change in found))
    for accuracy in (*accuracies, *(("all",) if len(accuracies) > 1 else ())):
        of_it = [change for change in found if accuracy in (change.accuracy, "all")]
        means = [geometric_mean(getattr(change, what) for change in of_it) for what in ("seconds", "cpu", "passes")]
        rows.append(("geometric mean", accuracy, "", "", *(f"{mean:.3f}" for mean in means), ""))
    lines = [
        f"old: {_origin(old)}",
        f"new: {_origin(new)}",
        f"worst: {judged.worst.problem} to {judged.worst.accuracy}, {getattr(judged.worst, judged.by):.3f} times",
        *(f"only one of the two has {problem}" for problem in one_sided(old, new)),
        *(f"another machine: {what} {a} and {b}" for what, a, b in _differing(old, new)),
        *(f"too much: {complaint}" for complaint in judged.complaints),
    ]
    values: dict[str, Any] = {
        "old": old.commit,
        "new": new.commit,
        "mean": judged.mean,
        "by": judged.by,
        "worst": {"problem": judged.worst.problem, "accuracy": judged.worst.accuracy},
        "changes": [
            {"problem": c.problem, "accuracy": c.accuracy, "seconds": c.seconds, "cpu": c.cpu, "passes": c.passes}
            for c in found
        ],
        "too_much": judged.complaints,
    }
    grid = Grid(names, rows, left=frozenset({0, 1}))
    console.page("compare", [grid.renderable(), "", *lines], values)
    return 1 if judged.complaints else 0


def _row(change: Change) -> tuple[str, ...]:
    return (
        change.problem,
        change.accuracy,
        f"{change.old.seconds:.3f}",
        f"{change.new.seconds:.3f}",
        f"{change.seconds:.3f}",
        f"{change.cpu:.3f}",
        f"{change.passes:.3f}",
        f"{change.spread:.2f}",
    )


def _origin(measurement: Measurement) -> str:
    when = f" of {measurement.written}" if measurement.written else ""
    return f"{measurement.commit}{when}"


def _differing(old: Measurement, new: Measurement) -> list[tuple[str, str, str]]:
    """Facts of machine and software that both state, and state differently."""
    facts = ({**side.machine, **side.versions} for side in (old, new))
    before, after = facts
    return [(name, before[name], after[name]) for name in before if name in after and before[name] != after[name]]
