"""Runs in a folder, and how each stands."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from ..fitting_table import FittingTable, grid
from .folder import RUN_FILE, read_events, read_records
from .lock import holder_of

_ENDED = {"run_done": "done", "run_stopped": "stopped", "run_failed": "failed"}


@dataclass(frozen=True)
class Listed:
    """A run."""

    name: str  # of its folder, relative to the one that was listed
    state: str  # "running", "done", "stopped" (by a signal), "failed" or "killed"
    stage: str  # the last that was begun or done
    rounds: int | None  # of the last training
    gap: float | None  # certified relative gap of its last round that has one
    age: float  # seconds since the last event


def list_runs(folder: str | Path = "runs") -> list[Listed]:
    """The runs in a folder and below it, the latest first."""
    root = Path(folder)
    found = [listed(path.parent, root) for path in root.rglob(RUN_FILE)] if root.is_dir() else []
    return sorted(found, key=lambda one: one.age)


def listed(path: Path, root: Path) -> Listed:
    """How one run stands."""
    events = read_events(path)
    last = next((e["event"] for e in reversed(events) if e.get("event") in (*_ENDED, "run_start")), "")
    held = holder_of(path)
    state = "running" if held is not None else _ENDED.get(last, "killed" if last else "not begun")
    stages = [e for e in events if e.get("event") in ("stage_start", "stage_done", "stage_skipped")]
    rounds = [e for e in events if e.get("event") == "round"]
    gaps = [e["gap"] for e in rounds if e.get("gap") is not None]
    facts = read_records(path).get("train", {}).get("facts", {})
    ended = events[-1].get("time", 0.0) if events else (path / RUN_FILE).stat().st_mtime
    return Listed(
        name=str(path.relative_to(root)) if path != root else path.name,
        state=state,
        stage=str(stages[-1]["stage"]) if stages else "",
        rounds=rounds[-1].get("round") if rounds else facts.get("rounds"),
        gap=gaps[-1] if gaps else facts.get("gap"),
        age=max(0.0, time.time() - ended),
    )


def table(runs: list[Listed]) -> FittingTable:
    """The runs as a table."""
    rows = [
        (
            one.name,
            one.state,
            one.stage,
            "" if one.rounds is None else f"{one.rounds:,}",
            "" if one.gap is None else f"{one.gap:.1e}",
            ago(one.age),
        )
        for one in runs
    ]
    return grid(("run", "state", "stage", "rounds", "gap", "last event"), rows, left={0, 1, 2})


def ago(seconds: float) -> str:
    """A time in words."""
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"
