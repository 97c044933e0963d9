"""The words after ``python -m lab bench`` that are commands of their own: ``record``, ``compare`` and ``ab``."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dboost.errors import UsageError
from lab.benchmarks.baseline.ratios import MEAN, WORST
from pipelines import cli
from pipelines.config import Expected, LogSettings, boolean, key, names, one_of, real, whole

WORDS = {
    "record": "measure this checkout beside a yardstick and store the figures",
    "compare": "two stored measurements: ratios of time and passes, too much or not",
    "ab": "two commits, A B A B in one session: ratios of time and passes",
}


def run(word: str, arguments: Sequence[str]) -> int:
    """Run one of the words with the arguments after it."""
    module = f"lab.benchmarks.baseline.{word}"
    return cli.run(
        cli.Command(f"python -m lab bench {word}", WORDS[word], lambda: importlib.import_module(module)), arguments
    )


def accuracies(value: object) -> tuple[float, ...]:
    """Certified gaps: a TOML array, or one flag with commas; each is above 0 and below 1."""
    wanted = "certified gaps between 0 and 1, separated by commas"
    found = value.split(",") if isinstance(value, str) else value
    if not isinstance(found, list | tuple) or not found:
        raise Expected(wanted)
    read = real(0.0, open_end=True)
    gaps = tuple(float(read(one)) for one in found)
    if not all(gap < 1.0 for gap in gaps):
        raise Expected(wanted)
    return gaps


@dataclass(frozen=True, kw_only=True)
class TurnSettings(LogSettings):
    """How much is measured."""

    problems: tuple[str, ...] | None = key(names, None, "problems: a kind, or a part of a name (default: all)")
    accuracies: tuple[float, ...] = key(accuracies, (1e-4, 1e-6), "certified gaps to fit to")
    repeats: int = key(whole(1), 3, "turns on each problem")
    threads: int = key(whole(1), 2, "threads of every fit")
    quick: bool = key(boolean, False, "made-up data in place of the data sets, to see that it runs")


@dataclass(frozen=True, kw_only=True)
class LimitSettings(LogSettings):
    """When a change is too much."""

    by: str = key(one_of("seconds", "cpu"), "seconds", "what is judged: time on the clock, or of the processor")
    mean: float = key(real(0.0, open_end=True), MEAN, "largest geometric mean of new over old")
    worst: float = key(real(0.0, open_end=True), WORST, "largest new over old of one problem")


def wanted(settings: Any, *keys: str) -> list[str]:
    """The values of keys without which a word does nothing.

    Raises
    ------
    UsageError
        When one is missing.
    """
    for name in keys:
        if getattr(settings, name) is None:
            raise UsageError(f"{name} is missing", hint=f"expected {' '.join(k.upper() for k in keys)}")
    return [str(getattr(settings, name)) for name in keys]
