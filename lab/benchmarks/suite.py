"""``python -m lab bench peers``: measure, print the tables, write page, JSON and plots into one folder."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dboost.errors import UsageError
from lab.benchmarks import output, plots
from lab.benchmarks.against import Options, measure_all
from lab.benchmarks.measure import Limits
from lab.benchmarks.peers import PEERS
from lab.benchmarks.problems import Problem, chosen

QUICK_SECONDS = 60.0
SECONDS = 2200.0
"""Of the hour that all benchmarks together may take; our own runs and starting processes are in it."""


def options_of(settings: Any, quick: bool, peers: tuple[str, ...] | None = None) -> Options:
    """How much to measure, from the settings of the command.

    Raises
    ------
    UsageError
        For a peer that is not known.
    """
    asked = settings.peers if peers is None else peers
    unknown = [name for name in asked or () if name not in PEERS and name != "none"]
    if unknown:
        raise UsageError(f"unknown peer {unknown[0]!r}", hint=f"known: {', '.join(PEERS)}, or none")
    seconds = settings.time_limit or (QUICK_SECONDS if quick else SECONDS)
    limits = Limits(factor=10.0, floor=0.5, ceiling=3.0) if quick else Limits()
    names = tuple(PEERS) if not asked else tuple(name for name in PEERS if name in asked)
    return Options(
        names,
        repeats=settings.repeats or (1 if quick else 2),
        seconds=seconds,
        least=5.0 if quick else 6.0,
        threads=settings.threads,
        twins=quick,
        limits=limits,
    )


def problems_of(settings: Any) -> list[Problem]:
    """The problems that are asked for.

    Raises
    ------
    UsageError
        When no problem fits.
    """
    found = chosen(tuple(settings.problems or ()))
    if not found:
        raise UsageError(
            f"no problem is named like {', '.join(settings.problems)}",
            hint="see `python -m lab bench --list` for the names",
        )
    return found


def run(out: Path, quick: bool, settings: Any) -> int:
    """Measure every problem that is asked for; `quick` takes the tiny synthetic twins."""
    options = options_of(settings, quick)
    began = time.perf_counter()
    failed: dict[str, str] = {}
    records = list(measure_all(problems_of(settings), options, _say, failed))
    seconds = time.perf_counter() - began

    def show() -> None:
        folder = out / "plots"
        folder.mkdir()
        drawn = [plots.draw(record, folder) for record in records]
        text = output.write(out, records, options, seconds, drawn, failed)
        print(text.split("## Peers")[0])

    return kept_and_shown(out, records, options, seconds, failed, show)


def kept_and_shown(
    out: Path,
    records: Sequence[output.Record],
    options: Options,
    seconds: float,
    failed: Mapping[str, str],
    show: Callable[[], None],
) -> int:
    """Keep what was measured, then show it; 1 if something failed.

    Measuring takes up to an hour, so no fault of a page or a plot may lose it: the fault is printed, and the folder
    appears without what could not be made.
    """
    output.keep(out, records, options, seconds, failed)
    try:
        show()
    except Exception:
        traceback.print_exc()
        print(f"Not everything could be shown; all that was measured is in {output.MARKER}.", file=sys.stderr)
        return 1
    return 1 if failed else 0


def _say(line: str) -> None:
    print(f"  {line}", flush=True)
