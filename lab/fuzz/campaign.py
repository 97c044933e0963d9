"""``python -m lab fuzz [--paths] [--fits N] [--first SEED] [--only SEED]``: many cases, counted by how they ended.

The exit code is 1 where a certificate was false, or an error or a warning came that is not the library's own.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence

from lab.fuzz import judge, paths
from lab.fuzz.cases import FAR, draw
from lab.fuzz.judge import BAD, Outcome
from lab.fuzz.workers import Run, outcomes

_FITS = 2000
_PROCESSES = 2
_SECONDS = 10.0
"""A fit takes some hundredths of a second; one that takes this long goes round in circles."""
_SHOWN = 6


def main(arguments: Sequence[str]) -> int:
    """Run the fuzz; returns the exit code."""
    given = _parser().parse_args(list(arguments))
    run = paths.run if given.paths else judge.run
    if given.only is not None:
        return _one(given.only, given.seconds, run)
    first = given.first + FAR * given.far
    seeds = range(first, first + given.fits)
    started = time.perf_counter()
    found: list[Outcome] = []
    for outcome in outcomes(seeds, min(_PROCESSES, given.fits), given.seconds, run):
        found.append(outcome)
        if outcome.kind in BAD:
            print(f"{outcome.seed}: {outcome.kind}: {outcome.detail}", file=sys.stderr, flush=True)
    found.sort(key=lambda outcome: outcome.seed)
    print(table(found))
    print(f"{len(found)} fits in {time.perf_counter() - started:.0f} s")
    return int(any(outcome.kind in BAD for outcome in found))


def _one(seed: int, seconds: float, run: Run) -> int:
    if run is judge.run:
        case = draw(seed)
        print(f"case {seed}: X {case.X.shape} {case.X.dtype}; {', '.join(case.words) or 'ordinary'}")
        print(f"{case.estimator}({', '.join(f'{name}={value!r}' for name, value in case.params.items())})")
    (outcome,) = outcomes([seed], 1, seconds, run)
    print(f"{outcome.kind}: {outcome.detail} ({outcome.seconds:.2f} s)\n{outcome.note}")
    return int(outcome.kind in BAD)


def table(found: Sequence[Outcome]) -> str:
    """Counts by outcome, with the seeds of some."""
    counts = Counter((outcome.kind, outcome.detail) for outcome in found)
    kinds = Counter(outcome.kind for outcome in found)
    lines = []
    for kind, total in sorted(kinds.items(), key=lambda item: (item[0] in BAD, -item[1])):
        lines.append(f"{total:>5}  {kind}")
        for (mine, detail), count in sorted(counts.items(), key=lambda item: -item[1]):
            if mine == kind and detail:
                seeds = [str(o.seed) for o in found if (o.kind, o.detail) == (mine, detail)][:_SHOWN]
                lines.append(f"{count:>11}  {detail}   [{', '.join(seeds)}]")
    for kind in BAD:
        if not kinds[kind]:
            lines.append(f"{0:>5}  {kind}")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=_FITS, help=f"number of cases (default {_FITS})")
    parser.add_argument("--first", type=int, default=0, help="seed of the first case (default 0)")
    parser.add_argument("--paths", action="store_true", help="paths and cross-validations of tables of any unit")
    parser.add_argument("--far", action="store_true", help="data far from zero and from each other, judged exactly")
    parser.add_argument("--only", type=int, metavar="SEED", help="run one case and show what it is and says")
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="limit of each fit (default %(default)g)")
    return parser
