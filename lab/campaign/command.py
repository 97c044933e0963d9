"""``python -m lab campaign [--part NAME] [--share F] [--out FILE]``: run the parts, and write their table.

Covers: the parts and their trials, counts, a process for each part, the table, the exit code.
Does not cover: what is tried (the modules of the parts).
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from lab import tables

# A part starts without threads, compiled code or audit hooks of another, and cannot end the campaign with itself.
PROCESSES = multiprocessing.get_context("spawn")
SHOWN = 20
"""Failures that are printed as they come; of a broken part, more would say the same."""


@dataclass(frozen=True)
class Part:
    """A part."""

    # Its module, with ``run(count, folder, tally)``.
    module: str
    # Trials of a whole campaign.
    count: int
    # What must hold, in one line.
    summary: str
    # Whether most of its time is waiting, so that others may run beside it.
    waits: bool = False


PARTS: dict[str, Part] = {
    "cluster-faults": Part(
        "lab.campaign.cluster_faults", 150, "workers and schedulers killed or silent: the bits or one error", waits=True
    ),
    "addresses": Part("lab.campaign.addresses", 150, "whoever answers at it, it is refused in time", waits=True),
    "driver-kills": Part("lab.run_kills", 200, "drivers killed and called again: the same models"),
    "torn-writes": Part("lab.campaign.torn_writes", 200, "every call that writes fails once, or is the last one"),
    "bit-flips": Part("lab.campaign.bit_flips", 3000, "no changed bit of the data is taken for data"),
    "mutants": Part("lab.campaign.mutants", 20_000, "changed files never run, write or predict something else"),
    "attacks": Part("lab.campaign.attacks", 40, "model folders made to do harm do none"),
    "sharing": Part("lab.campaign.sharing", 6, "jobs and threads on one cluster: the bits of each alone"),
}


class Tally:
    """Counts of one part.

    `say`: takes a line that somebody reads while the part runs. `outcomes`: how trials ended that passed, in words of
    the part. `figures`: what a part has measured beside. `left_out`: why the part could not be run here; empty where it
    was.
    """

    def __init__(self, say: Callable[[str], None] = print) -> None:
        self._say = say
        self.tried = 0
        self.failed = 0
        self.outcomes: Counter[str] = Counter()
        self.figures: dict[str, str] = {}
        self.left_out = ""

    def passed(self, outcome: str, count: int = 1) -> None:
        """Count trials that ended as they may."""
        self.tried += count
        self.outcomes[outcome] += count

    def broke(self, what: str) -> None:
        """Count a trial that did not, and say what was seen."""
        self.tried += 1
        self.failed += 1
        if self.failed <= SHOWN:
            self._say(f"  FAILED {what}")

    def check(self, good: bool, outcome: str, what: str) -> None:
        """Count a trial as what it is."""
        if good:
            self.passed(outcome)
        else:
            self.broke(what)

    @property
    def words(self) -> str:
        """How the trials ended, with their counts, and the figures."""
        if self.left_out:
            return f"left out: {self.left_out}"
        counted = [f"{outcome} {count}" for outcome, count in sorted(self.outcomes.items())]
        return "; ".join([*counted, *(f"{name} {value}" for name, value in self.figures.items())])


def main(arguments: Sequence[str] = ()) -> int:
    """Run the campaign; 1 where a trial failed or a part was left out."""
    width = max(map(len, PARTS))
    listed = "\n".join(f"  {name.ljust(width)}  {part.count:>6}  {part.summary}" for name, part in PARTS.items())
    parser = argparse.ArgumentParser(
        prog="python -m lab campaign",
        description=(__doc__ or "").splitlines()[0],
        epilog=f"parts, with their trials:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--part", choices=PARTS, action="append", metavar="NAME", help="one part, or several (default: all)"
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the trials of each part (default: all, 1.0)")
    parser.add_argument("--out", type=Path, default=Path("runs/campaign.md"))
    given = parser.parse_args(list(arguments))
    names, begun = list(given.part or PARTS), time.monotonic()
    found: dict[str, dict[str, Any]] = {}

    def lane(waits: bool) -> None:
        for name in names:
            part = PARTS[name]
            if part.waits != waits:
                continue
            print(f"{name}: {part.summary}", flush=True)
            started = time.monotonic()
            told = _apart(part.module, max(1, round(part.count * given.share)))
            found[name] = {"part": name, **told, "seconds": round(time.monotonic() - started)}
            print(f"{name}: {told['passed']:,} of {told['tried']:,} passed; {told['how']}", flush=True)
            # Written after each part: a campaign that is ended early has told of those that were over.
            rows = [found[known] for known in names if known in found]
            columns = ("part", "tried", "passed", "seconds", "how")
            tables.write(given.out, "The campaign of faults", [tables.markdown(rows, columns)])

    # Those that mostly wait run beside the others.
    with ThreadPoolExecutor(2) as lanes:
        for running in [lanes.submit(lane, waits) for waits in (True, False)]:
            running.result()
    sound = sum(one["sound"] for one in found.values())
    print(f"{sound} of {len(names)} parts passed, {(time.monotonic() - begun) / 60:.0f} minutes", flush=True)
    return 0 if sound == len(names) else 1


def _apart(module: str, count: int) -> dict[str, Any]:
    """Run a part in a process of its own; one that dies has failed."""
    mine, its = PROCESSES.Pipe()
    process = PROCESSES.Process(target=_part, args=(module, count, its))
    process.start()
    its.close()
    try:
        told: dict[str, Any] = mine.recv()
    except EOFError:
        process.join()
        told = {"sound": False, "tried": 1, "passed": 0, "how": f"its process ended with {process.exitcode}"}
    process.join()
    return told


def _part(module: str, count: int, pipe: Connection) -> None:
    tally = Tally(lambda line: print(line, flush=True))
    with tempfile.TemporaryDirectory(prefix="dboost-campaign-") as folder:
        importlib.import_module(module).run(count, Path(folder).resolve(), tally)
    sound = not tally.failed and not tally.left_out
    pipe.send({"sound": sound, "tried": tally.tried, "passed": tally.tried - tally.failed, "how": tally.words})
