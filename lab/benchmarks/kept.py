"""The stored baseline: the file ``lab/benchmarks/baseline.json``, written by ``record`` and judged by ``compare``.

Covers: the file, what is printed, the exit code. Does not cover: measuring and judging (``beside``).
"""

from __future__ import annotations

import datetime
import json
import math
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import dboost
from dboost.engine.machine import available_cores
from dboost.errors import DataError, UsageError
from lab import tables
from lab.benchmarks import beside, trees
from lab.benchmarks.beside import Measuring, Ratio, Standing
from lab.benchmarks.process import ROOT
from lab.machine import processor

SCHEMA = 1
"""Version of the file's layout; a change of it makes files of before unreadable, and says so."""
FILE = ROOT / "lab" / "benchmarks" / "baseline.json"
PACKAGES = ("dask", "llvmlite", "numba", "numpy", "scikit-learn", "scipy")
Say = Callable[[str], None]


@dataclass(frozen=True)
class Baseline:
    """What is stored."""

    # Of which commit, ``+`` at its end where files differed from it, and on which day, as YYYY-MM-DD.
    commit: str
    written: str
    # Processor and cores; versions of the software.
    machine: Mapping[str, str]
    versions: Mapping[str, str]
    # By problem.
    ratios: Mapping[str, Ratio]


def here(ratios: Mapping[str, Ratio]) -> Baseline:
    """A measurement with the facts of this checkout and machine."""
    software = {"dboost": dboost.__version__, "python": platform.python_version()}
    return Baseline(
        commit=trees.current(),
        written=datetime.datetime.now(datetime.UTC).date().isoformat(),
        machine={"processor": processor(), "cores": str(available_cores())},
        versions=software | {package: version(package) for package in PACKAGES},
        ratios=ratios,
    )


def write(found: Baseline, path: Path) -> None:
    """Write the file; its keys have a fixed order, so that a diff of two shows what differs."""
    text = json.dumps({"schema": SCHEMA, **asdict(found)}, indent=1, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def read(path: Path) -> Baseline:
    """Read what `write` wrote."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found.pop("schema") != SCHEMA:
            raise DataError(f"a schema other than {SCHEMA}", file=str(path), hint="record it again")
        ratios = {name: Ratio(**one) for name, one in found.pop("ratios").items()}
        values = [value for one in ratios.values() for value in asdict(one).values()]
        if not values or not all(math.isfinite(value) and value >= 0.0 for value in values):
            raise DataError("a ratio that is no number above zero", file=str(path), hint="record it again")
        return Baseline(ratios=ratios, **found)
    except FileNotFoundError:
        raise UsageError("there is no stored baseline", file=str(path), hint="python -m lab bench record") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"this is no baseline: {error}", file=str(path), hint="record it again") from None


def record(say: Say = print, path: Path = FILE) -> int:
    """Measure every problem and store the ratios."""
    found = here(beside.measured(visits=beside.MOST, say=say))
    write(found, path)
    say(f"{len(found.ratios)} problems of {found.commit}: {path}")
    return 0


def compare(say: Say = print, path: Path = FILE) -> int:
    """Measure again and set it beside what is stored; 1 when a ratio is worse by more than noise."""
    stored = read(path)
    measured = beside.compared(stored.ratios, Measuring(say=say), say=say)
    return show(say, stored, here(measured), beside.standings(stored.ratios, measured))


def show(say: Say, stored: Baseline, now: Baseline, found: Sequence[Standing]) -> int:
    """Print the table and what is worse, and by how much; 1 when something is."""
    rows = [
        {
            "problem": one.problem,
            "stored": f"{one.stored.ratio:.3f}",
            "now": f"{one.now.ratio:.3f}",
            "change": f"{one.change:.3f}",
            "at most": f"{1.0 + one.margin:.3f}",
            "": "worse" if one.worse else "better" if one.better else "",
        }
        for one in found
    ]
    say(tables.markdown(rows, list(rows[0])))
    say(f"stored: {stored.commit} of {stored.written}; now: {now.commit}")
    before, after = ({**side.machine, **side.versions} for side in (stored, now))
    for what in before:
        if before[what] != after.get(what):
            say(f"otherwise than stored: {what} {before[what]}, now {after.get(what)}")
    worse = [one for one in found if one.worse]
    for one in worse:
        noise = f"up to {1.0 + one.margin:.2f} may be noise"
        say(f"too slow: {one.problem} takes {one.change:.2f} times as long as stored; {noise}")
    return 1 if worse else 0
