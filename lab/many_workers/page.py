"""The tables and the picture of a run.

Covers: ``write`` and ``draw``. Does not cover: the page in docs/how, which is written by hand from these.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab import tables
from lab.reproduce.figures import BLACK, BLUE, GREEN, ORANGE, VERMILION

BEFORE = Path(__file__).with_name("before.json")
"""The curve of the engine as it was when the simulation first ran: see docs/how/many_workers.md."""

MEASURED = ("workers", "per worker", "pass", "tasks", "scheduler", "driver", "workers' processes",
            "kB from driver", "kB from scheduler", "kB from workers")  # fmt: skip
CHECKS = ("workers", "pass", "tasks", "planned", "as planned", "at their place", "scheduler", "scheduler by the model",
          "driver", "driver by the model", "fitted")  # fmt: skip
CURVE = ("workers", "pass", "tasks", "depth", "work", "network", "scheduler", "driver", "seconds", "binds",
         "GB on the busiest link", "MB through the driver")  # fmt: skip
LOOK = {
    "work": (GREEN, "s", "-"),
    "network": (BLUE, "^", "-"),
    "scheduler": (ORANGE, "o", "-"),
    "driver": (VERMILION, "D", "-"),
    "seconds": (BLACK, "", "-"),
}
SHOWN = {"score": "A pass over all columns (score)", "hessian": "A pass over the rows in use (hessian)"}


def write(path: Path, result: Mapping[str, Any]) -> None:
    """Write all tables."""
    shown = [
        "Seconds of a pass. " + ", ".join(f"{name} {value:,}" for name, value in result["question"].items()) + ".",
        "Constants: `" + json.dumps(result["constants"]) + "`.",
        "## Measured, with a thousandth of the features and rows of W",
        tables.markdown([_measured(line) for line in result["measured"]], MEASURED),
        "## The model beside it",
        tables.markdown(_rounded(result["checks"]), CHECKS),
        "## The curve at the full size",
        tables.markdown(_rounded([_curve(line) for line in result["curve"]]), CURVE),
    ]
    tables.write(path, "Many workers", shown)


def _measured(line: Mapping[str, Any]) -> dict[str, Any]:
    kB = {f"kB from {who}": round(line[f"from_{who}"] / 1e3) for who in ("driver", "scheduler", "workers")}
    seconds = {"workers' processes": line["workers_seconds"], **{who: line[who] for who in ("scheduler", "driver")}}
    return dict(line) | kB | {who: f"{value:.3f}" for who, value in seconds.items()}


def _curve(line: Mapping[str, Any]) -> dict[str, Any]:
    through = round(line["through the driver"] / 1e6)
    return dict(line) | {"GB on the busiest link": line["busiest link"] / 1e9, "MB through the driver": through}


def _rounded(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: f"{value:.3f}" if isinstance(value, float) else value for name, value in line.items()} for line in lines
    ]


def draw(path: Path, result: Mapping[str, Any]) -> None:
    """Draw seconds against workers, each part and their sum, for a pass of each of two kinds."""
    from matplotlib.figure import Figure

    before = json.loads(BEFORE.read_text(encoding="utf-8")) if BEFORE.exists() else []
    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    for axis, (name, title) in zip(figure.subplots(1, 2, sharey=True), SHOWN.items(), strict=True):
        mine, old = ([line for line in lines if line["pass"] == name] for lines in (result["curve"], before))
        for part, (color, marker, style) in LOOK.items():
            width = 2.4 if part == "seconds" else 1.2
            label = "all, added" if part == "seconds" else part
            at, values = [line["workers"] for line in mine], [line[part] for line in mine]
            axis.plot(at, values, style, color=color, marker=marker, markersize=4, linewidth=width, label=label)
        if old:
            at, values = [line["workers"] for line in old], [line["seconds"] for line in old]
            axis.plot(at, values, "--", color=BLACK, linewidth=1.8, label="all, before")
        axis.set(xscale="log", yscale="log", xlabel="workers", title=title)
        axis.set_xticks([4, 16, 64, 256, 1024], ["4", "16", "64", "256", "1,024"])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    figure.axes[0].set_ylabel("seconds of a pass, at the full size")
    figure.axes[1].legend(frameon=False, fontsize=9)
    figure.savefig(path, dpi=80)
