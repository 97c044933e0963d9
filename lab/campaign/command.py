"""``python -m lab campaign [--part NAME] [--share F] [--out FILE]``: run the parts, and write their table.

Covers: which parts run and at what size, the table, the exit code. Does not cover: the parts (``parts``).
"""

from __future__ import annotations

import argparse
import importlib
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab import tables
from lab.campaign.parts import PARTS
from lab.campaign.tally import Tally


def main(arguments: Sequence[str] = ()) -> int:
    """Run the campaign; 1 where a trial failed or a part was left out."""
    parser = argparse.ArgumentParser(prog="python -m lab campaign", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--part", choices=PARTS, action="append", help="one part, or several (default: all)")
    parser.add_argument("--share", type=float, default=1.0, help="of the trials of each part (default: all, 1.0)")
    parser.add_argument("--out", type=Path, default=Path("runs/campaign.md"))
    given = parser.parse_args(list(arguments))
    found: list[dict[str, Any]] = []
    sound = True
    for name in given.part or PARTS:
        part = PARTS[name]
        print(f"{name}: {part.summary}", flush=True)
        begun, tally = time.monotonic(), Tally(lambda line: print(line, flush=True))
        with tempfile.TemporaryDirectory(prefix="dboost-campaign-") as folder:
            importlib.import_module(part.module).run(max(1, round(part.count * given.share)), Path(folder), tally)
        seconds = round(time.monotonic() - begun)
        passed = tally.tried - tally.failed
        sound &= not tally.failed and not tally.left_out
        found.append({"part": name, "tried": tally.tried, "passed": passed, "seconds": seconds, "how": tally.words})
        print(f"  {passed:,} of {tally.tried:,} passed, {seconds} s; {tally.words}", flush=True)
        # Written after each part: a campaign that is ended early has told of those that were over.
        tables.write(given.out, "The campaign of faults", [tables.markdown(found, list(found[0]))])
    return 0 if sound else 1
