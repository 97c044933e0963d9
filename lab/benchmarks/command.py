"""``python -m lab bench``: how fast the library is, beside peers, the stored baseline and other commits."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dboost.errors import DboostError, UsageError
from dboost.files.paths import local_path
from dboost.files.storage import write_folder
from lab.benchmarks import REGISTRY, ab, kept
from lab.benchmarks.ab import MEAN, WORST
from lab.benchmarks.peers import PEERS
from lab.benchmarks.problems import KINDS, chosen
from lab.benchmarks.suite import problems_of
from pipelines.inputs import refuse_existing

DEFAULT_OUT = "runs/bench"
MARKER = "bench.json"
ALL = "all"
WORDS = {
    "record": "measure ten small made-up problems, and store the baseline lab/benchmarks/baseline.json",
    "compare": "measure them again beside the stored baseline: which is slower, and by how much",
    "ab": "two commits, OLD NEW, in turn in one session: ratios of time and passes",
}


def main(arguments: Sequence[str]) -> int:
    """Run one benchmark, or all of those that have a page, each into a folder of its own."""
    given = _parser().parse_args(list(arguments))
    if given.list:
        print(_listed())
        return 0
    known = [*REGISTRY, ALL, *WORDS]
    if given.name not in known:
        what = "which benchmark?" if given.name is None else f"unknown benchmark {given.name!r}"
        raise UsageError(what, hint=f"known: {', '.join(known)}; see `python -m lab bench --list`")
    if given.commits and given.name != "ab":
        raise UsageError(f"{given.name} takes no commits, but got {' '.join(given.commits)}")
    if given.name == "record":
        return kept.record()
    if given.name == "compare":
        return kept.compare()
    if given.name == "ab":
        if len(given.commits) != 2:
            raise UsageError(f"{len(given.commits)} commits, expected two: bench ab OLD NEW")
        old, new = given.commits
        return ab.compare(old, new, problems_of(given), given)
    names = list(REGISTRY) if given.name == ALL else [given.name]
    folder = local_path(given.out or DEFAULT_OUT, "out")
    outs = {name: str(folder / name if given.name == ALL or given.out is None else folder) for name in names}
    for out in outs.values():
        refuse_existing(out, MARKER, given.force)
    first: DboostError | None = None
    codes = [0]
    for name, out in outs.items():
        try:
            codes.append(_one(name, out, given))
        except DboostError as error:
            first = first or error
            print(f"{name} did not run: {error}", file=sys.stderr)
    if first is not None:
        raise first
    return max(codes)


def _one(name: str, out: str, given: Any) -> int:
    """Run one benchmark into its folder, which appears when everything is in it."""
    entry = REGISTRY[name]
    print(f"{name}: {entry.summary}", flush=True)
    began = time.perf_counter()
    with write_folder(out, marker=MARKER, force=given.force) as folder:
        arguments = (given,) if entry.options else ()
        code = int(entry.load().run(Path(folder), given.quick, *arguments))
        text = f'{{"benchmark": "{name}", "quick": {str(given.quick).lower()}, "exit_code": {code}}}\n'
        Path(folder, MARKER).write_text(text, encoding="utf-8")
    print(f"folder: {out}   {time.perf_counter() - began:.0f} s")
    return code


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _gaps(text: str) -> tuple[float, ...]:
    gaps = tuple(float(word) for word in _words(text))
    if not gaps or not all(0.0 < gap < 1.0 for gap in gaps):
        raise argparse.ArgumentTypeError("expected certified gaps between 0 and 1, separated by commas")
    return gaps


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab bench", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", nargs="?", help="which benchmark, or all; --list names them")
    parser.add_argument("commits", nargs="*", help="of ab: the commits of before and of after")
    parser.add_argument("--list", action="store_true", help="list the benchmarks, problems and peers")
    parser.add_argument("--quick", action="store_true", help="a minute on made-up data, to see that it runs")
    parser.add_argument("--out", help=f"folder to write; it must not exist (default: {DEFAULT_OUT}/NAME)")
    parser.add_argument("--force", action="store_true", help="replace the folder of an earlier run")
    parser.add_argument("--problems", type=_words, help="problems: a kind, or a part of a name (imdb, l1/l2, mnist l1)")
    parser.add_argument("--peers", type=_words, help="peers, or none")
    parser.add_argument("--time-limit", type=float, help="seconds for all problems of one benchmark")
    parser.add_argument("--threads", type=int, default=2, help="threads of every solver (default: 2)")
    parser.add_argument("--accuracies", type=_gaps, default=(1e-4, 1e-6), help="of ab: certified gaps to fit to")
    parser.add_argument("--repeats", type=int, default=3, help="of ab: turns on each problem (default: 3)")
    parser.add_argument("--by", choices=ab.BY, default="seconds", help="of ab: what is judged")
    parser.add_argument("--mean", type=float, default=MEAN, help=f"of ab: largest mean of new over old ({MEAN})")
    parser.add_argument("--worst", type=float, default=WORST, help=f"of ab: largest of one problem ({WORST})")
    return parser


def _listed() -> str:
    lines = [f"{name}: {entry.summary}" for name, entry in REGISTRY.items()]
    lines += [f"{name}: {summary}" for name, summary in WORDS.items()]
    lines += [f"problems {kind.name}: {', '.join(kind.data)}; {', '.join(kind.penalties)}" for kind in KINDS.values()]
    lines += [f"problem {problem.name}" for problem in chosen()]
    lines += [f"peer {peer.name}: {peer.note or peer.layout}" for peer in PEERS.values()]
    return "\n".join(lines)
