"""A measurement of our own speed as a value, and as a JSON file that later measurements are compared with.

Covers: what is kept, reading and writing, refusing a file that is something else. Does not cover: measuring
(``turns``), ratios (``ratios``).

A file says which software and which kind of machine it was measured with, and names no host, user or folder.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dboost.errors import DataError, UsageError
from dboost.files.paths import local_path
from lab.benchmarks.process import ROOT

SCHEMA = 1
"""Version of the file's layout; a change of it makes files of before unreadable, and says so."""
FOLDER = ROOT / "lab" / "baselines"


@dataclass(frozen=True)
class Cost:
    """What it costs to fit one problem to one certified gap; medians over the turns.

    Parameters
    ----------
    seconds, cpu : float
        Of a whole ``fit``: on the clock, and of all threads of the process.
    passes : float
        Over the data.
    gap : float
        The relative duality gap that was certified, the largest of all turns.
    spread : float
        The longest turn over the shortest one: below it a ratio says nothing.
    yardstick, yardstick_cpu : float
        Seconds of the yardstick beside it; 1 where both sides were measured in turn, which needs none.
    """

    seconds: float
    cpu: float
    passes: float
    gap: float
    spread: float = 1.0
    yardstick: float = 1.0
    yardstick_cpu: float = 1.0


@dataclass(frozen=True)
class Measurement:
    """All costs of one commit.

    Parameters
    ----------
    commit : str
        Abbreviated; with ``+`` at its end where files of the checkout differed from it.
    costs : dict
        By problem, then by accuracy as ``accuracy_key`` writes it.
    settings, machine, versions : dict
        What was asked for, processor and cores, versions of the software.
    written : str
        The day, as YYYY-MM-DD.
    """

    commit: str
    costs: Mapping[str, Mapping[str, Cost]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    machine: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    written: str = ""


def accuracy_key(accuracy: float) -> str:
    """An accuracy as a key of a file: 1e-4."""
    digits, exponent = f"{accuracy:e}".split("e")
    return f"{float(digits):g}e{int(exponent)}"


def place(name: str) -> Path:
    """The file of a measurement: a name stands for one in ``lab/baselines``, anything else is a path.

    Raises
    ------
    UsageError
        For a path that is not of this machine.
    """
    if name.endswith(".json") or "/" in name:
        return local_path(name, "baseline")
    return FOLDER / f"{name}.json"


def write(measurement: Measurement, path: Path) -> None:
    """Write a measurement as JSON, its keys in a fixed order so that a diff of two shows what differs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"schema": SCHEMA, **asdict(measurement)}, indent=1, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def read(path: Path) -> Measurement:
    """Read what ``write`` wrote.

    Raises
    ------
    UsageError
        When there is no such file.
    DataError
        When it is of another schema, or holds something else than costs.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        known = ", ".join(sorted(found.stem for found in FOLDER.glob("*.json"))) or "none yet"
        raise UsageError(f"there is no measurement {path}", hint=f"names in lab/baselines: {known}") from None
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"this is no JSON: {error}", file=str(path), hint="write it with `bench record`") from None
    schema = found.get("schema") if isinstance(found, dict) else None
    if schema != SCHEMA:
        raise DataError(
            f"the measurement has schema {schema!r}, expected {SCHEMA}", file=str(path), hint="record it again"
        )
    try:
        costs = {
            problem: {accuracy: Cost(**cost) for accuracy, cost in by_accuracy.items()}
            for problem, by_accuracy in found.pop("costs").items()
        }
        measurement = Measurement(costs=costs, **{key: value for key, value in found.items() if key != "schema"})
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"the measurement is incomplete: {error}", file=str(path), hint="record it again") from None
    for problem, by_accuracy in costs.items():
        for accuracy, cost in by_accuracy.items():
            if not all(isinstance(v, int | float) and math.isfinite(v) and v >= 0 for v in asdict(cost).values()):
                raise DataError(
                    f"{problem} to {accuracy} has a cost that is no number", file=str(path), hint="record again"
                )
    return measurement
