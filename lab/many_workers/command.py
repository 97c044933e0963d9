"""``python -m lab many-workers``: where a pass over 10^8 documents binds, on up to 1,024 workers.

Runs the engine's own passes over a real scheduler and thin workers (``measure``), fits the constants of the model
(``model``), checks it at numbers of workers that it was not fitted on, and draws the curve at the full size. Writes
``many_workers.md``, ``many_workers.json`` and ``many-workers.png`` into a folder; docs/how/many_workers.md says what
came of it.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lab.many_workers import wire
from lab.many_workers.bytes_through import LARGE, per_byte
from lab.many_workers.measure import Record, records, role_of
from lab.many_workers.model import Model, Predicted, lines_of, predicted
from lab.many_workers.page import draw, write
from lab.many_workers.planned import kinds_of, planned
from lab.many_workers.recorded import DOCUMENTS, Work, adding_rate, work_of
from lab.many_workers.sizes import Question

WORKERS = (4, 16, 32, 64, 128, 1024)
CHECKED = (16, 64)
"""Numbers of workers that the model is checked at, and is not fitted on."""

CURVE = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
REPEATS = 3
MANY = 256
"""From so many workers on each kind of pass is timed once: they all share the cores of one machine."""


def model_of(question: Question, work: Mapping[str, Work], found: Sequence[Record], large: int) -> Model:
    """The constants, measured and fitted; numbers of workers that are checked are left out where others are there."""
    given = [record for record in found if record.workers not in CHECKED] or list(found)
    scheduler, driver = lines_of(given, per_byte(large))
    return Model(question, work, adding_rate(), scheduler, driver)


def checks(model: Model, found: Sequence[Record]) -> list[dict[str, Any]]:
    """What was measured at the numbers of workers that are checked, beside what the model says of them."""
    kinds = {kind.name: kind for kind in kinds_of(model.question)}
    lines = []
    for record in found:
        entries = planned(kinds[record.name], record.workers, record.per_worker)
        roles = Counter(role_of(entry.key, record.name) for entry in entries)
        lines.append(
            {
                "workers": record.workers,
                "per worker": record.per_worker,
                "pass": record.name,
                "tasks": record.tasks,
                "planned": len(entries),
                "as planned": roles == record.roles(),
                "at their place": placed(record),
                "scheduler": record.spent.scheduler,
                "scheduler by the model": model.scheduler.seconds(len(entries)),
                "driver": record.spent.driver,
                "driver by the model": model.driver.seconds(len(entries)),
                "fitted": record.workers not in CHECKED,
            }
        )
    return lines


def placed(record: Record) -> float:
    """The share of merges and picks that ran at a worker that had some of what they took."""
    at = {entry.key: entry.worker for entry in record.entries}
    some = [e for e in record.entries if role_of(e.key, record.name) in ("merge", "pick")]
    near = sum(any(at.get(need) == entry.worker for need in entry.needs) for entry in some)
    return near / len(some) if some else 1.0


def measured(record: Record) -> dict[str, Any]:
    """What is written of a record."""
    return {
        "workers": record.workers,
        "per worker": record.per_worker,
        "pass": record.name,
        "tasks": record.tasks,
        "roles": dict(record.roles()),
        "wall": record.seconds,
        **{key: value for key, value in asdict(record.spent).items() if key != "workers"},
        "workers_seconds": record.spent.workers,
    }


def curve_line(one: Predicted) -> dict[str, Any]:
    """What is written of a point of the curve."""
    return {
        "workers": one.workers,
        "per worker": one.per_worker,
        "pass": one.name,
        "tasks": one.tasks,
        "depth": one.played.depth,
        "work": one.work,
        "network": one.network,
        "scheduler": one.scheduler,
        "driver": one.driver,
        "seconds": one.seconds,
        "binds": one.binds,
        "busiest link": one.played.busiest,
        "between workers": one.played.moved,
        "through the driver": one.through,
    }


def main(arguments: Sequence[str] = ()) -> int:
    """Measure, fit, check, draw; 0 always: what the page says is for its reader."""
    about = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m lab many-workers", description=about)
    parser.add_argument("--workers", type=int, nargs="+", default=list(WORKERS), help="numbers of workers that run")
    parser.add_argument("--per-worker", type=int, default=1, help="partitions of each worker")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="passes of each kind that are timed")
    parser.add_argument("--quick", action="store_true", help="4 workers and a small problem, to see that it runs")
    parser.add_argument("--out", type=Path, default=Path("runs/many-workers"))
    given = parser.parse_args(list(arguments))
    curve: tuple[int, ...]
    question, documents, large, curve = Question(), DOCUMENTS, LARGE, CURVE
    if given.quick:
        question, documents, large, curve = Question(10**6, 10**5, 20, 20, 10**4), (200, 1000), 200_000, (4, 64)
        given.workers, given.repeats = [4], 1
    wire.count_bytes()
    work = work_of(question, documents)
    found: list[Record] = []
    for workers in given.workers:
        repeats = given.repeats if workers < MANY else 1
        found += records(question, workers, given.per_worker, work, repeats)
        print(f"{workers} workers: {', '.join(f'{r.name} {r.tasks} tasks' for r in found[-4:])}", flush=True)
    model = model_of(question, work, found, large)
    points = [predicted(model, kind, workers) for kind in kinds_of(question) for workers in curve]
    given.out.mkdir(parents=True, exist_ok=True)
    result = {
        "question": asdict(question),
        "constants": {
            "scheduler": asdict(model.scheduler),
            "driver": asdict(model.driver),
            "network": asdict(model.network),
            "adding": model.adding,
            "work": {name: asdict(work) for name, work in model.work.items()},
        },
        "measured": [measured(record) for record in found],
        "checks": checks(model, found),
        "curve": [curve_line(one) for one in points],
    }
    (given.out / "many_workers.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    write(given.out / "many_workers.md", result)
    draw(given.out / "many-workers.png", result)
    return 0
