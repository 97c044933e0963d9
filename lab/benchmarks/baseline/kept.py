"""The stored baseline: the file ``lab/benchmarks/baseline.json``, written by ``record`` and judged by ``compare``.

``python -m lab bench record`` and ``python -m lab bench compare`` without a name come here; with names they measure and
compare the problems of the peers (``record``, ``compare``). Covers: the file, its words and the exit code. Does not
cover: measuring and judging (``beside``).
"""

from __future__ import annotations

import datetime
import json
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import dboost
from dboost.engine.machine import available_cores
from dboost.errors import DataError, UsageError
from lab.benchmarks.baseline import beside, trees
from lab.benchmarks.baseline.beside import Measuring, Ratio, Standing
from lab.benchmarks.process import ROOT
from lab.machine import processor
from pipelines.console import Console
from pipelines.report import Grid

SCHEMA = 1
"""Version of the file's layout; a change of it makes files of before unreadable, and says so."""
FILE = ROOT / "lab" / "benchmarks" / "baseline.json"
PACKAGES = ("dask", "llvmlite", "numba", "numpy", "scikit-learn", "scipy")


@dataclass(frozen=True)
class Baseline:
    """What is stored.

    Parameters
    ----------
    commit, written : str
        Of which commit, ``+`` at its end where files differed from it, and on which day, as YYYY-MM-DD.
    machine, versions : dict
        Processor and cores; versions of the software.
    ratios : dict of str to Ratio
        By problem.
    """

    commit: str
    written: str
    machine: Mapping[str, str]
    versions: Mapping[str, str]
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
    """Read what `write` wrote.

    Raises
    ------
    UsageError
        When there is no such file.
    DataError
        When it holds something else.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError("there is no stored baseline", file=str(path), hint="python -m lab bench record") from None
    except json.JSONDecodeError as error:
        raise DataError(f"this is no JSON: {error}", file=str(path), hint="record it again") from None
    schema = found.pop("schema", None) if isinstance(found, dict) else None
    if schema != SCHEMA:
        raise DataError(f"schema {schema!r}, expected {SCHEMA}", file=str(path), hint="record it again")
    try:
        ratios = {name: Ratio(**one) for name, one in found.pop("ratios").items()}
        known = all(
            isinstance(v, int | float) and math.isfinite(v) and v >= 0.0
            for one in ratios.values()
            for v in asdict(one).values()
        )
        if not ratios or not known or not all(one.ratio > 0.0 for one in ratios.values()):
            raise DataError("a ratio that is no number above zero", file=str(path), hint="record it again")
        return Baseline(ratios=ratios, **found)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"the baseline is incomplete: {error}", file=str(path), hint="record it again") from None


def record(console: Console, path: Path = FILE) -> int:
    """Measure every problem and store the ratios."""
    found = here(beside.measured(visits=beside.MOST, say=console.say))
    write(found, path)
    console.say(f"{len(found.ratios)} problems of {found.commit}: {path}")
    return 0


def compare(console: Console, path: Path = FILE) -> int:
    """Measure again and set it beside what is stored; 1 when a ratio is worse by more than noise."""
    stored = read(path)
    measured = beside.compared(stored.ratios, Measuring(say=console.say), say=console.say)
    return show(console, stored, here(measured), beside.standings(stored.ratios, measured))


def show(console: Console, stored: Baseline, now: Baseline, found: Sequence[Standing]) -> int:
    """Print the table and what is worse, and by how much; 1 when something is."""
    rows = [
        (
            one.problem,
            f"{one.stored.ratio:.3f}",
            f"{one.now.ratio:.3f}",
            f"{one.change:.3f}",
            f"{1.0 + one.margin:.3f}",
            "worse" if one.worse else "better" if one.better else "",
        )
        for one in found
    ]
    complaints = [
        f"{one.problem} takes {one.change:.2f} times as long as stored; up to {1.0 + one.margin:.2f} may be noise"
        for one in found
        if one.worse
    ]
    before, after = ({**side.machine, **side.versions} for side in (stored, now))
    lines = [
        f"stored: {stored.commit} of {stored.written}",
        f"now: {now.commit}",
        *(f"otherwise than stored: {what} {before[what]}, now {after.get(what)}" for what in before
          if before[what] != after.get(what)),
        *(f"too slow: {complaint}" for complaint in complaints),
    ]  # fmt: skip
    values = {
        "stored": stored.commit,
        "now": now.commit,
        "changes": {one.problem: {"change": one.change, "margin": one.margin} for one in found},
        "too_slow": complaints,
    }
    grid = Grid(("problem", "stored", "now", "change", "at most", ""), rows, left=frozenset({0}))
    console.page("compare", [grid.renderable(), "", *lines], values)
    return 1 if complaints else 0
