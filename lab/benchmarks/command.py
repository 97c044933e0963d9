"""``python -m lab bench``: how fast the library is, one benchmark or all of them, each into a folder of its own."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dboost.errors import DboostError, UsageError
from dboost.files.paths import local_path
from dboost.files.storage import write_folder
from lab.benchmarks import REGISTRY
from lab.benchmarks.baseline import words
from lab.reproduce.figures import require_matplotlib
from pipelines import cli
from pipelines.config import LogSettings, OutputSettings, boolean, key, names, near, real, string, whole
from pipelines.console import Console
from pipelines.inputs import refuse_existing
from pipelines.report import Grid

DEFAULT_OUT = "runs/bench"
MARKER = "bench.json"
ALL = "all"


@dataclass(frozen=True, kw_only=True)
class BenchSettings(OutputSettings, LogSettings):
    """What `python -m lab bench` takes; without ``out`` the folder is ``runs/bench/NAME``."""

    out: str | None = key(string, None, "folder to write; it must not exist (default: runs/bench/NAME)")
    name: str | None = key(
        string,
        None,
        "which benchmark, or all; --list names them, and record, compare and ab, which have arguments of their own",
        positional=1,
    )
    list: bool = key(boolean, False, "list the benchmarks, problems and peers")
    quick: bool = key(boolean, False, "a version of about a minute on made-up data, to see that it runs")
    problems: tuple[str, ...] | None = key(names, None, "problems: a kind, or a part of a name (imdb, l1/l2, mnist l1)")
    peers: tuple[str, ...] | None = key(names, None, "peers, or none")
    repeats: int | None = key(whole(1), None, "rounds in turn (default: 2)")
    time_limit: float | None = key(real(0.0, open_end=True), None, "seconds for all problems of one benchmark")
    threads: int = key(whole(1), 2, "threads of every solver")


SETTINGS = BenchSettings


def main(arguments: Sequence[str]) -> int:
    """Run the command with the arguments after its name, as the command line of dboost runs its own.

    Where the first is ``record``, ``compare`` or ``ab``, the command of that name runs with the others.
    """
    if arguments and arguments[0] in words.WORDS:
        return words.run(arguments[0], arguments[1:])
    summary = "how fast the library is, against peers and on a cluster, to a given accuracy"
    return cli.run(cli.Command("python -m lab bench", summary, lambda: sys.modules[__name__]), arguments)


def run(settings: BenchSettings, console: Console) -> int:
    """Run one benchmark, or all of them."""
    if settings.list:
        return _list(console)
    known = [*REGISTRY, ALL, *words.WORDS]
    if settings.name is None:
        raise UsageError("which benchmark?", hint=f"one of {', '.join(known)}; see `python -m lab bench --list`")
    if settings.name not in known:
        raise UsageError(
            f"unknown benchmark {settings.name!r}{near(settings.name, known)}", hint=f"known: {', '.join(known)}"
        )
    require_matplotlib()
    if settings.name != ALL:
        return _one(settings.name, settings.out or f"{DEFAULT_OUT}/{settings.name}", settings, console)
    out = local_path(settings.out or DEFAULT_OUT, "out")
    for name in REGISTRY:
        refuse_existing(str(out / name), MARKER, settings.force)
    first: DboostError | None = None
    codes = []
    for name in REGISTRY:
        if REGISTRY[name].part_of is not None:
            continue
        try:
            codes.append(_one(name, str(out / name), settings, console))
        except DboostError as error:
            first = first or error
            console.warning(f"{name} did not run: {error}")
    if first is not None:
        raise first
    return max(codes)


def _one(name: str, out: str, settings: BenchSettings, console: Console) -> int:
    """Run one benchmark into its folder, which appears when everything is in it."""
    refuse_existing(out, MARKER, settings.force)
    entry = REGISTRY[name]
    console.say(f"{name}: {entry.summary}")
    began = time.perf_counter()
    with write_folder(out, marker=MARKER, force=settings.force) as folder:
        module = entry.load()
        arguments = (settings,) if entry.options else ()
        code = int(module.run(Path(folder), settings.quick, *arguments))
        text = f'{{"benchmark": "{name}", "quick": {str(settings.quick).lower()}, "exit_code": {code}}}\n'
        Path(folder, MARKER).write_text(text, encoding="utf-8")
    console.say(f"folder: {out}   {time.perf_counter() - began:.0f} s")
    return code


def _list(console: Console) -> int:
    from lab.benchmarks.peers import PEERS
    from lab.benchmarks.problems import KINDS, all_problems

    rows = [("benchmark", name, entry.summary) for name, entry in REGISTRY.items()]
    rows += [("command", name, summary) for name, summary in words.WORDS.items()]
    rows += [("problems", kind.name, f"{', '.join(kind.data)}: {', '.join(kind.penalties)}") for kind in KINDS.values()]
    rows += [("peer", peer.name, peer.note or peer.layout) for peer in PEERS.values()]
    values = {
        "benchmarks": {name: entry.summary for name, entry in REGISTRY.items()},
        "problems": [problem.name for problem in all_problems()],
        "peers": list(PEERS),
    }
    grid = Grid(("what", "name", ""), rows, left=frozenset({0, 1, 2}), code=frozenset({0, 1}), sentences=frozenset({2}))
    console.page("benchmarks", [grid.renderable()], values)
    return 0
