"""``python -m lab campaign [--part NAME] [--share F] [--out FILE]``: run the parts, and write their table.

Covers: which parts run and at what size, a process for each, the table, the exit code.
Does not cover: the parts (``parts``).
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import tempfile
import time
from collections.abc import Sequence
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
    found: list[dict[str, Any]] = []
    sound = True
    for name in given.part or PARTS:
        part = PARTS[name]
        print(f"{name}: {part.summary}", flush=True)
        begun = time.monotonic()
        told = _apart(name, max(1, round(part.count * given.share)))
        seconds = round(time.monotonic() - begun)
        sound &= told["sound"]
        found.append({"part": name, **told["counts"], "seconds": seconds, "how": told["words"]})
        print(f"  {told['counts']['passed']:,} of {told['counts']['tried']:,} passed, {seconds} s; {told['words']}",
              flush=True)  # fmt: skip
        # Written after each part: a campaign that is ended early has told of those that were over.
        tables.write(given.out, "The campaign of faults", [tables.markdown(found, list(found[0]))])
    return 0 if sound else 1


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
