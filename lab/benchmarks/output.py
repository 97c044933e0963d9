"""The page of ``python -m lab bench peers``: tables in Markdown, everything in JSON, one plot per problem.

Covers: what is shown and its words. Does not cover: the numbers (``verdicts``), drawing (``plots``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dboost.data.manifest import write_atomically
from lab import tables
from lab.benchmarks import outrun
from lab.benchmarks.against import WITH_INTERCEPT, Options, time_of
from lab.benchmarks.curve import TARGETS, Ratio, named, short
from lab.benchmarks.measure import BEST_SECONDS
from lab.benchmarks.peers import OURS, PEERS
from lab.benchmarks.problems import KINDS
from lab.benchmarks.verdicts import JUDGED, LAG, Mean, lags, means, versus
from lab.benchmarks.worker import SHORT, SHORT_RUNS
from lab import machine
from pipelines.console import finite

Record = dict[str, Any]
MARKER = "peers.json"
PAGE = "peers.md"
MIB = float(2**20)


def page(
    records: Sequence[Record],
    options: Options,
    seconds: float,
    plots: Sequence[str] = (),
    failed: Mapping[str, str] | None = None,
) -> str:
    """The page in Markdown."""
    parts = ["# dboost against its peers"]
    if options.twins:
        parts.append("**Tiny synthetic twins of the data sets: that it runs, not how fast anything is.**")
    parts += [
        "## Ratios to the fastest peer",
        summary(records),
        "Geometric means over the problems of a kind of (seconds of the fastest peer) / (our seconds), peers that "
        'solve the same problem only. ">" marks a lower bound: the longest run of a peer was not good enough, and it '
        'would have taken longer. "Not known" are those where that run took less time than ours: they say nothing, '
        "and are in no mean. Everyone starts from the data as loaded and is charged with "
        'bringing it into the layout that suits it; under "solvers alone" that is taken off for everyone.',
        *slower(records),
        *outrun.said(records),
        *[f"**Not measured, because our solver failed:** {name}: {why}" for name, why in (failed or {}).items()],
        "## Every problem",
        per_problem(records),
        *[part for target in JUDGED for part in seconds_table(records, target)],
        "## The certificate",
        certificate(records),
        "## Memory",
        memory(records),
        "## Peers",
        peers(records, options),
        "## How it was measured",
        method(options, seconds),
        "## Machine",
        tables.markdown([{"what": k, "value": v} for k, v in machine.describe().items()], ("what", "value")),
    ]
    if plots:
        parts += ["## Plots", *[f"![{name.removesuffix('.png')}](plots/{name})" for name in plots]]
    return "\n\n".join(parts) + "\n"


def summary(records: Sequence[Record]) -> str:
    """Means per kind."""
    rows = [
        {
            "kind": KINDS[mean.kind].title,
            "to": named(mean.target),
            "geometric mean": _ratio(mean.mean),
            "solvers alone": _ratio(mean.alone),
            "goal": f"{mean.goal:g}",
            "met": mean.met,
            "problems": mean.problems,
            "with a peer": mean.compared,
            "a peer is faster": mean.slower,
            "not known": mean.unknown,
        }
        for mean in means(records)
    ]
    return tables.markdown(rows, tuple(rows[0])) if rows else "No problem was measured."


def slower(records: Sequence[Record]) -> list[str]:
    """One line for each problem and target where a peer is faster."""
    lines = []
    for record in records:
        for target in JUDGED:
            found = versus(record, target)
            if found.ratio is not None and found.ratio.value < 1.0 and not found.ratio.bound:
                lines.append(
                    f"- {found.problem} to {named(target)}: {found.peer} {found.theirs} s, dboost {found.ours} s "
                    f"({short(found.ratio.value)})"
                )
    return ["A peer is faster:\n\n" + "\n".join(lines)] if lines else ["No peer is faster on any problem."]


def per_problem(records: Sequence[Record]) -> str:
    """Our seconds and passes, and the fastest peer to each of the judged targets."""
    rows = []
    for record in records:
        ours = record["solvers"][OURS.name]
        row: dict[str, Any] = {
            "problem": record["problem"],
            "rows of W": record["rows of W"],
            "layout": short(ours["layout"]),
            "dboost to 1e-2": str(time_of(ours, TARGETS[0])),
            "1e-4": str(time_of(ours, TARGETS[1])),
            "1e-6": str(time_of(ours, TARGETS[2])),
            "passes to 1e-6": ours["passes"]["1e-6"],
            "P* certified to": f"{record['certified']:.0e}",
        }
        for target in JUDGED:
            found = versus(record, target)
            row[f"fastest peer to {named(target)}"] = found.peer or "none takes it"
            row[f"seconds, {named(target)}"] = str(found.theirs) if found.theirs else "-"
            row[f"its layout, {named(target)}"] = short(record["solvers"][found.peer]["layout"]) if found.peer else "-"
            row[f"ratio, {named(target)}"] = _ratio(found.ratio)
        rows.append(row)
    return tables.markdown(rows, tuple(rows[0])) if rows else ""


def seconds_table(records: Sequence[Record], target: float) -> list[str]:
    """Seconds of everyone to one target, a table per kind."""
    parts = []
    for kind in KINDS.values():
        mine = [record for record in records if record["kind"] == kind.name]
        names = [name for name in (OURS.name, *PEERS, WITH_INTERCEPT) if any(name in r["solvers"] for r in mine)]
        if not mine or len(names) < 2:
            continue
        rows = []
        for record in mine:
            row: dict[str, Any] = {"problem": record["problem"]}
            for name in names:
                solver = record["solvers"].get(name)
                row[name] = "-" if solver is None else str(time_of(solver, target))
            rows.append(row)
        parts += [f"## Seconds to {named(target)}: {kind.title}", tables.markdown(rows, ("problem", *names))]
    return parts


def certificate(records: Sequence[Record]) -> str:
    """Show 7."""
    found = lags(records)
    rows = [
        {
            "problem": lag.problem,
            "fit to a certified 1e-4 (s)": short(lag.certified),
            "true 1e-6 (s)": str(lag.true),
            "share": short(lag.share),
            f"at most {LAG}": "yes" if lag.share <= LAG else "NO",
            "certified gap": f"{lag.gap:.1e}",
            "true suboptimality": f"{lag.suboptimality:.1e}",
        }
        for lag in found
    ]
    if not rows:
        return "Not measured."
    within = sum(lag.share <= LAG for lag in found)
    worst = max(found, key=lambda lag: lag.share)
    said = (
        f"The whole `fit` of the estimator with `tol=1e-4` against the time at which its objective is within 1e-6 of "
        f"the optimum: within {LAG} on {within} of {len(found)} problems, the worst {short(worst.share)} "
        f"({worst.problem})."
    )
    return f"{said}\n\n{tables.markdown(rows, tuple(rows[0]))}"


def memory(records: Sequence[Record]) -> str:
    """Peak memory above the loaded state."""
    names = [name for name in (OURS.name, *PEERS) if any(name in r["solvers"] for r in records)]
    rows = []
    for record in records:
        # the other strengths of a data set and penalty run in the same process
        row: dict[str, Any] = {"problem": record["problem"]}
        for name in names:
            peak = record["solvers"].get(name, {}).get("peak", math.nan)
            row[name] = f"{peak / MIB:.0f}" if math.isfinite(peak) else "-"
        rows.append(row)
    said = (
        "MiB: the largest resident size of the process (with its children) during a run, less its resident size once "
        "the data was loaded in the peer's layout and a small problem had been solved. Memory that an earlier run of "
        "the same process kept counts. For our solver the CSC blocks it makes of the data are in it."
    )
    return f"{said}\n\n{tables.markdown(rows, ('problem', *names))}"


def peers(records: Sequence[Record], options: Options) -> str:
    """What each peer is and how it was used."""
    rows = []
    for peer in (OURS, *(PEERS[name] for name in options.peers)):
        solvers = [record["solvers"][peer.name] for record in records if peer.name in record["solvers"]]
        versions = [solver["version"] for solver in solvers if solver["version"]]
        absent = next((s["note"] for s in solvers if "not installed" in s["note"]), "")
        takes: dict[str, list[str]] = {}
        for loss, penalty in peer.solves:
            takes.setdefault(loss, []).append(penalty)
        rows.append(
            {
                "peer": peer.name,
                "version": versions[0] if versions else absent or "-",
                "takes": "; ".join(f"{loss}: {', '.join(penalties)}" for loss, penalties in takes.items()),
                "data given as": peer.layout,
                "note": peer.note,
            }
        )
    notes = sorted(
        {
            f"- {record['problem']}, {name}: {solver['note']}"
            for record in records
            for name, solver in record["solvers"].items()
            if solver["note"] and "cut off" not in solver["note"] and "stopped after" not in solver["note"]
        }
    )
    text = tables.markdown(rows, tuple(rows[0]))
    return text + ("\n\nWhat else was noted:\n\n" + "\n".join(notes) if notes else "")


def method(options: Options, seconds: float) -> str:
    """How the figures came about."""
    limits = options.limits
    return "\n".join(
        f"- {line}"
        for line in (
            "The objective is mean loss + alpha sum_j omega(W_j) without an intercept, evaluated for everyone by our "
            "plain code in float64. alpha is the given share of alpha_max.",
            f"Every solver runs in a process of its own, {options.threads} threads in every pool it may use. Data is "
            "in memory as loaded, CSR or C-contiguous, before the clock starts. The layout named above is made twice "
            "at the beginning, and the shorter time is added to each run of the peer; ours is made anew in every run. "
            "What is compiled at first use was compiled on a small problem of the same kind.",
            "P* is the best objective that anyone reached; the dual bound of our own run to a certified gap of 1e-9, "
            f'of {BEST_SECONDS:g} s at most, bounds its error (column "P* certified to").',
            "Our curve is the trace of one fit; planning (checks, CSR to blocks of CSC) is our layout. The digest of "
            "the data is made on one of our threads while the fit goes on. The first step that is good enough counts. "
            "A peer's curve is whole runs with finer and finer settings, each timed on its own; between two of them "
            "the logarithm of the suboptimality is taken as linear in the seconds, which favours the peer.",
            f"{options.repeats} rounds in turn (ours, each peer, ours, each peer ...), medians; later rounds repeat "
            f"the settings on both sides of each target. There, and in every run of ours, one of less than {SHORT:g} s "
            f"is done {SHORT_RUNS} times: the first after a pause finds a cold machine.",
            f"A peer's run may take {limits.factor:g} times our own time to 1e-6, not less than {limits.floor:g} s "
            f"nor more than {limits.ceiling:g} s, {limits.of_best:g} times the best peer's so far, and what is left of "
            "the problem's share of the whole time. As many iterations are run as fit into that. What is not "
            "reached then takes longer than the longest run that ended: that is a lower bound.",
            f'Peers that cannot do without an intercept are compared with "{WITH_INTERCEPT}": our fit and optimum of '
            "the problem that has one. They are in no ratio above.",
            f"The whole run took {seconds / 60.0:.1f} minutes.",
        )
    )


def keep(
    folder: Path,
    records: Sequence[Record],
    options: Options,
    seconds: float,
    failed: Mapping[str, str],
    found: Sequence[Mean] = (),
) -> None:
    """Write what was measured as JSON, with the means over kinds once they are known.

    To be called as soon as the measuring ends: a page or a plot that fails must not lose it.
    """
    whole = {
        "records": list(records),
        "means": [_mean(mean) for mean in found],
        "failed": dict(failed),
        "seconds": seconds,
        "repeats": options.repeats,
        "threads": options.threads,
        "twins": options.twins,
        "machine": machine.describe(),
    }
    text = json.dumps(finite(whole), indent=1, ensure_ascii=False) + "\n"
    write_atomically(folder / MARKER, text.encode())


def write(
    folder: Path,
    records: Sequence[Record],
    options: Options,
    seconds: float,
    plots: Sequence[str],
    failed: Mapping[str, str],
) -> str:
    """Write page and JSON; returns the page."""
    text = page(records, options, seconds, plots, failed)
    (folder / PAGE).write_text(text, encoding="utf-8")
    keep(folder, records, options, seconds, failed, means(records))
    return text


def _mean(mean: Mean) -> dict[str, Any]:
    value = None if mean.mean is None else {"value": mean.mean.value, "bound": mean.mean.bound}
    return {
        "kind": mean.kind,
        "target": mean.target,
        "mean": value,
        "alone": None if mean.alone is None else {"value": mean.alone.value, "bound": mean.alone.bound},
        "goal": mean.goal,
        "met": mean.met,
        "problems": mean.problems,
        "compared": mean.compared,
        "slower": mean.slower,
        "unknown": mean.unknown,
    }


def _ratio(found: Ratio | None) -> str:
    return "-" if found is None else str(found)
