"""``python -m lab bench peers``: seconds to 1e-2, 1e-4 and 1e-6 of the optimum, our solver against every peer.

On each problem our solver runs before and after every peer (A B A C A), and the median of its runs counts; a peer runs
its settings from coarse to fine. Everyone starts from the data as loaded and is charged with bringing it into the
layout that suits it. A peer has its share of the seconds that are left, and no run more than `FACTOR` times our time.

Covers: who runs when, records, ratios and their means, the page. Does not cover: one problem (``measure``).
"""

from __future__ import annotations

import contextlib
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dboost.errors import UsageError
from lab import machine, tables
from lab.benchmarks.curve import TARGETS, Ratio, Time, fastest, geometric_mean, named, ratio, short
from lab.benchmarks.measure import Case, Found, climb
from lab.benchmarks.peers import OURS, PEERS, in_turn
from lab.benchmarks.peers.base import Task
from lab.benchmarks.problems import KINDS, Group, Problem, chosen, laid_out
from lab.benchmarks.process import COMPILE, Failed, Missing, PeerProcess, TimeUp
from pipelines.console import finite

Record = dict[str, Any]
MARKER, PAGE = "peers.json", "peers.md"
JUDGED = TARGETS[1:]
SECONDS, QUICK_SECONDS = 2200.0, 60.0
"""For all peers on all problems; our own runs and starting processes come on top."""
FACTOR, LEAST, MOST = 32.0, 1.0, 300.0
"""A run of a peer may take this many times our own time to 1e-6, at least and at most so many seconds."""


@dataclass(frozen=True)
class Options:
    """How much to measure."""

    # Keys of ``PEERS``.
    peers: tuple[str, ...]
    # For all peers on all problems.
    seconds: float = SECONDS
    threads: int = 2
    # The tiny synthetic twin of each data set in its place.
    twins: bool = False


def options_of(settings: Any, quick: bool) -> Options:
    """How much to measure, from the settings of the command."""
    unknown = [name for name in settings.peers or () if name not in PEERS and name != "none"]
    if unknown:
        raise UsageError(f"unknown peer {unknown[0]!r}", hint=f"known: {', '.join(PEERS)}, or none")
    names = tuple(name for name in PEERS if not settings.peers or name in settings.peers)
    seconds = settings.time_limit or (QUICK_SECONDS if quick else SECONDS)
    return Options(names, seconds, settings.threads, quick)


def problems_of(settings: Any) -> list[Problem]:
    """The problems that are asked for."""
    found = chosen(tuple(settings.problems or ()))
    if not found:
        raise UsageError(
            f"no problem is named like {', '.join(settings.problems)}",
            hint="see `python -m lab bench --list` for the names",
        )
    return found


class Budget:
    """Seconds for what is left to do: who is fast leaves its time to those after it."""

    def __init__(self, seconds: float, items: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left = seconds
        self._items = items

    @contextlib.contextmanager
    def share(self) -> Iterator[float]:
        """The seconds of the next item; what it does not use is for the others."""
        began = self._clock()
        yield max(self._left / max(1, self._items), LEAST)
        self._left -= self._clock() - began
        self._items -= 1


Measure = Callable[[Group, Options, Budget], Iterator[Record]]


def measure_all(
    problems: Sequence[Problem], options: Options, say: Callable[[str], None], failed: dict[str, str],
    measure: Measure | None = None,
) -> Iterator[Record]:  # fmt: skip
    """Measure the problems in their order; yields a record as soon as a problem is done.

    Where our own solver fails, the other problems are measured all the same; `failed` gets the problem and why.
    """
    budget = Budget(options.seconds, sum(len(in_turn(options.peers, p.loss, p.penalty)) for p in problems))
    with tempfile.TemporaryDirectory(prefix="dboost-bench-") as scratch:
        for group in laid_out(problems, Path(scratch), options.twins):
            waiting = list(group.problems)
            try:
                for record in (measure or measure_group)(group, options, budget):
                    waiting.pop(0)
                    say(line_of(record))
                    yield record
            except (Missing, Failed, TimeUp) as error:
                failed |= {problem.name: str(error) for problem in waiting}
                say(f"{group.data.name} {group.penalty}: dboost failed: {error}")


def measure_group(group: Group, options: Options, budget: Budget) -> Iterator[Record]:
    """All strengths of one data set and penalty, in processes that stay open between them."""
    data, opening = group.data, group.opening(options.threads)
    with contextlib.ExitStack() as stack:
        own, *processes = (
            stack.enter_context(PeerProcess(peer, group.folder, opening, group.folder / f"{peer.name}.log"))
            for peer in (OURS, *in_turn(options.peers, data.loss, group.penalty))
        )
        for problem in group.problems:
            own.ready(COMPILE)
            alpha = problem.ratio * float(opening["alpha_max"])
            task = Task(data.X, data.y, data.loss, group.penalty, alpha, float(opening["alpha_max"]), options.threads)
            case = Case(data, group.penalty, alpha, group.folder / "answer.npz")
            case.optimum(own)
            case.curve(own)
            case.certificate(own)
            found = []
            for process in processes:
                most = min(max(FACTOR * case.our_time(TARGETS[-1]).seconds, LEAST), MOST)
                with budget.share() as seconds:
                    found.append(_climbed(process, case, task, seconds, most))
                case.curve(own)
            yield record_of(problem, case, found)


def _climbed(process: PeerProcess, case: Case, task: Task, seconds: float, most: float) -> Found:
    try:
        process.ready()
    except (Missing, Failed, TimeUp) as error:
        return Found(process.peer.name, note=str(error))
    return climb(process.peer, process, case, process.peer.ladder(task), seconds, most=most)


def record_of(problem: Problem, case: Case, found: Sequence[Found]) -> Record:
    """Everything that is kept of a problem, as plain values."""
    times = {OURS.name: [case.our_time(target) for target in TARGETS]}
    times |= {one.name: [one.time(case.best, target) for target in TARGETS] for one in found}
    m, n = case.data.X.shape
    return {
        "problem": problem.name,
        "kind": problem.kind,
        "rows": int(m),
        "columns": int(n),
        "alpha": case.alpha,
        "best": case.best,
        "certified": max(0.0, (case.best - case.lower) / case.best),
        "seconds to a certified 1e-4": statistics.median(case.certified),
        "passes to 1e-6": case.our_passes(TARGETS[-1]),
        "times": {
            name: {named(target): asdict(one) for target, one in zip(TARGETS, three, strict=True)}
            for name, three in times.items()
        },
        "curves": case.traces,
        "peers": {one.name: asdict(one) for one in found},
    }


def time_of(record: Record, name: str, target: float) -> Time:
    """The time of a solver."""
    return Time(**record["times"][name][named(target)])


def line_of(record: Record) -> str:
    """One line of progress: everyone's seconds to 1e-4 and 1e-6."""
    parts = (f"{name} {' / '.join(str(time_of(record, name, t)) for t in JUDGED)}" for name in record["times"])
    return f"{record['problem']}: {', '.join(parts)}"


def versus(record: Record, target: float) -> tuple[str, Time, Ratio] | None:
    """The fastest peer on a problem, its time and how many times as long it takes; None where none is known."""
    best = fastest((name, time_of(record, name, target)) for name in record["times"] if name != OURS.name)
    found = ratio(best[1], time_of(record, OURS.name, target)) if best is not None else None
    return None if best is None or found is None else (*best, found)


def means(records: Sequence[Record]) -> list[dict[str, Any]]:
    """The geometric means of each kind, as lines of the table.

    Where a peer was stopped before our own time, nothing is known: such problems are in no mean. A lower bound above
    the goal suffices, one below it does not judge.
    """
    rows = []
    for kind in KINDS.values():
        mine = [record for record in records if record["kind"] == kind.name]
        for target in JUDGED if mine else ():
            ratios = [found[2] for record in mine if (found := versus(record, target)) is not None]
            known = [one for one in ratios if not (one.bound and one.value < 1.0)]
            mean = geometric_mean(known)
            met = "cannot be judged"
            if mean is not None and (mean.value >= kind.goal or not mean.bound):
                met = "yes" if mean.value >= kind.goal else "NO"
            rows.append(
                {
                    "kind": kind.title,
                    "to": named(target),
                    "geometric mean": "-" if mean is None else str(mean),
                    "goal": f"{kind.goal:g}",
                    "met": met,
                    "problems": len(mine),
                    "a peer is faster": sum(one.value < 1.0 for one in known),
                    "not known": len(mine) - len(known),
                }
            )
    return rows


def losses(records: Sequence[Record]) -> list[str]:
    """The problems on which a peer is faster, the worst first: what is read before anything else."""
    found = [(record, target, best) for record in records for target in JUDGED if (best := versus(record, target))]
    slower = [one for one in found if not one[2][2].bound and one[2][2].value < 1.0]
    slower.sort(key=lambda one: one[2][2].value)
    rows = [
        {"problem": record["problem"], "to": named(target), "dboost (s)": str(time_of(record, OURS.name, target)),
         "peer": name, "peer (s)": str(time), "ratio": str(ratio)}
        for record, target, (name, time, ratio) in slower
    ]  # fmt: skip
    return ["**A peer is faster:**", tables.markdown(rows, tuple(rows[0]))] if rows else []


def page(records: Sequence[Record], options: Options, seconds: float, failed: Mapping[str, str]) -> list[str]:
    """The paragraphs and tables."""
    parts = ["**Tiny twins of the data sets: that it runs, not how fast anything is.**"] if options.twins else []
    parts += losses(records)
    rows = means(records)
    if rows:
        parts += ["Seconds of the fastest peer over ours, per kind:", tables.markdown(rows, tuple(rows[0]))]
    parts += [f"**Not measured, because our solver failed:** {name}: {why}" for name, why in failed.items()]
    names = [name for name in (OURS.name, *PEERS) if any(name in record["times"] for record in records)]
    for target in JUDGED:
        lines = []
        for record in records:
            found = versus(record, target)
            there = {name: time_of(record, name, target) for name in names if name in record["times"]}
            line = {"problem": record["problem"], **{name: str(one) for name, one in there.items()}}
            lines.append(line | {"ratio": "-" if found is None else str(found[2])})
        parts += [f"## Seconds to {named(target)}", tables.markdown(lines, ("problem", *names, "ratio"))]
    certified = [
        {
            "problem": record["problem"],
            "fit to a certified 1e-4 (s)": short(record["seconds to a certified 1e-4"]),
            "true 1e-6 (s)": str(time_of(record, OURS.name, TARGETS[-1])),
            "passes to 1e-6": record["passes to 1e-6"],
            "P* certified to": f"{record['certified']:.0e}",
        }
        for record in records
    ]
    if certified:
        parts += ["## The certificate", tables.markdown(certified, tuple(certified[0]))]
    used = [OURS, *(PEERS[name] for name in names if name in PEERS)]
    about = [{"peer": peer.name, "layout": peer.layout, "note": peer.note} for peer in used]
    facts = "; ".join(f"{what} {value}" for what, value in machine.describe().items())
    how = " ".join((__doc__ or "").split("\n\n")[1].split())
    bound = '">" marks a lower bound: the longest run of a peer that ended was not good enough.'
    return [*parts, "## How", f"{how} {bound} {seconds:.0f} s in all, {options.threads} threads.",
            tables.markdown(about, ("peer", "layout", "note")), facts]  # fmt: skip


def run(out: Path, quick: bool, settings: Any) -> int:
    """Measure every problem that is asked for; 1 where our own solver failed. `quick` takes the tiny twins."""
    options, began = options_of(settings, quick), time.perf_counter()
    records: list[Record] = []
    failed: dict[str, str] = {}
    for record in measure_all(problems_of(settings), options, lambda line: print(f"  {line}", flush=True), failed):
        records.append(record)
        # Written after each problem: measuring takes up to an hour, and no fault of a page may lose it.
        kept = {"records": records, "failed": failed, "machine": machine.describe(), "options": asdict(options)}
        (out / MARKER).write_text(json.dumps(finite(kept), indent=1) + "\n", encoding="utf-8")
    parts = page(records, options, time.perf_counter() - began, failed)
    print("\n\n".join(parts[:4]))
    tables.write(out / PAGE, "dboost against its peers", parts)
    return 1 if failed else 0
