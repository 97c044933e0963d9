"""``python -m lab campaign [--part NAME] [--share F] [--out FILE]``: run the parts, and write their table.

Covers: which parts run and at what size, a process for each, the table, the exit code.
Does not cover: the parts (``parts``).
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from lab import tables
from lab.campaign.parts import PARTS
from lab.campaign.tally import Tally

# A part starts without threads, compiled code or audit hooks of another, and cannot end the campaign with itself.
PROCESSES = multiprocessing.get_context("spawn")


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
    return 0 if Campaign(list(given.part or PARTS), given.share, given.out).run() else 1


class Campaign:
    """Parts that run one after the other, and beside them those that mostly wait.

    Parameters
    ----------
    names : list of str
        The parts.
    share : float
        Of the trials of each.
    out : pathlib.Path
        Where their table goes.
    """

    def __init__(self, names: list[str], share: float, out: Path) -> None:
        self.names, self.share, self.out = names, share, out
        self._found: dict[str, dict[str, Any]] = {}
        self._sound: set[str] = set()
        self._noting = threading.Lock()

    def run(self) -> bool:
        """Run them all; whether every trial of every part passed."""
        begun = time.monotonic()
        with ThreadPoolExecutor(2) as lanes:
            for lane in [lanes.submit(self._one_after_the_other, waits) for waits in (True, False)]:
                lane.result()
        minutes = (time.monotonic() - begun) / 60
        print(f"{len(self._sound)} of {len(self.names)} parts passed, {minutes:.0f} minutes", flush=True)
        return len(self._sound) == len(self.names)

    def _one_after_the_other(self, waits: bool) -> None:
        for name in self.names:
            part = PARTS[name]
            if part.waits == waits:
                print(f"{name}: {part.summary}", flush=True)
                begun = time.monotonic()
                told = _apart(name, max(1, round(part.count * self.share)))
                self._note(name, told, round(time.monotonic() - begun))

    def _note(self, name: str, told: dict[str, Any], seconds: int) -> None:
        counts = told["counts"]
        with self._noting:
            if told["sound"]:
                self._sound.add(name)
            self._found[name] = {"part": name, **counts, "seconds": seconds, "how": told["words"]}
            passed = f"{counts['passed']:,} of {counts['tried']:,} passed"
            print(f"{name}: {passed}, {seconds} s; {told['words']}", flush=True)
            # Written after each part: a campaign that is ended early has told of those that were over.
            rows = [self._found[known] for known in self.names if known in self._found]
            tables.write(self.out, "The campaign of faults", [tables.markdown(rows, list(rows[0]))])


def _apart(name: str, count: int) -> dict[str, Any]:
    """Run a part in a process of its own; one that dies has failed."""
    mine, its = PROCESSES.Pipe()
    process = PROCESSES.Process(target=_part, args=(name, count, its))
    process.start()
    its.close()
    try:
        told: dict[str, Any] = mine.recv()
    except EOFError:
        process.join()
        words = f"its process ended with {process.exitcode}"
        told = {"sound": False, "counts": {"tried": 1, "passed": 0}, "words": words}
    process.join()
    return told


def _part(name: str, count: int, pipe: Connection) -> None:
    tally = Tally(lambda line: print(line, flush=True))
    with tempfile.TemporaryDirectory(prefix="dboost-campaign-") as folder:
        importlib.import_module(PARTS[name].module).run(count, Path(folder).resolve(), tally)
    counts = {"tried": tally.tried, "passed": tally.tried - tally.failed}
    pipe.send({"sound": not tally.failed and not tally.left_out, "counts": counts, "words": tally.words})
