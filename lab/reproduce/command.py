"""``python -m lab reproduce``: the papers' experiments, each with figures, numbers and a verdict per claim."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dboost.errors import DboostError, UsageError
from dboost.files.paths import local_path
from lab.reproduce import REGISTRY, SEEDS, STRUCTURAL
from lab.reproduce.base import Context
from lab.reproduce.output import MARKER, Done, reproduce, write_index
from pipelines import cli
from pipelines.config import LogSettings, OutputSettings, boolean, key, near, string
from pipelines.console import Console
from pipelines.inputs import refuse_existing
from pipelines.report import Grid

DEFAULT_OUT = "runs/reproduce"
ALL = "all"
# What is run together, by the name it is asked for, and the series in it.
TOGETHER = {STRUCTURAL: (STRUCTURAL,), SEEDS: (SEEDS,), ALL: (STRUCTURAL, SEEDS)}


@dataclass(frozen=True, kw_only=True)
class ReproduceSettings(OutputSettings, LogSettings):
    """What `python -m lab reproduce` takes; without ``out`` the folder is ``runs/reproduce/NAME``."""

    out: str | None = key(string, None, "folder to write; it must not exist (default: runs/reproduce/NAME)")
    name: str | None = key(string, None, "an experiment, structural, seeds or all; see --list", positional=1)
    list: bool = key(boolean, False, "list the experiments")
    checkpoint: str | None = key(
        string, None, "folder for the checkpoints of the fits of one experiment: the same command goes on from them"
    )
    quick: bool = key(boolean, False, "a version of about a minute, to see that it runs; its verdicts say nothing")


SETTINGS = ReproduceSettings


def main(arguments: Sequence[str]) -> int:
    """Run the command with the arguments after its name, as the command line of dboost runs its own."""
    summary = "the papers' experiments: figures, numbers, whether each claim holds"
    return cli.run(cli.Command("python -m lab reproduce", summary, lambda: sys.modules[__name__]), arguments)


def run(settings: ReproduceSettings, console: Console) -> int:
    """Run one experiment, or all of them with an index page."""
    if settings.list:
        rows = [(name, entry.figures, entry.summary) for name, entry in REGISTRY.items()]
        values = {
            name: {"series": entry.series, "figures": entry.figures, "summary": entry.summary}
            for name, entry in REGISTRY.items()
        }
        headings = ("name", "paper", "question")
        # The name is what the command wants, and the figure what is looked up in the paper, so that neither is cut.
        grid = Grid(headings, rows, left=frozenset({0, 1, 2}), code=frozenset({0, 1}), sentences=frozenset({2}))
        console.page("experiments", [grid.renderable()], values)
        return 0
    known = [*REGISTRY, *TOGETHER]
    if settings.name is None:
        raise UsageError("which experiment?", hint=f"one of {', '.join(known)}; see `python -m lab reproduce --list`")
    if settings.name not in known:
        raise UsageError(
            f"unknown experiment {settings.name!r}{near(settings.name, known)}", hint=f"known: {', '.join(known)}"
        )
    if settings.checkpoint is not None and not (settings.name in REGISTRY and REGISTRY[settings.name].resumes):
        raise UsageError(
            f"{settings.name} keeps no checkpoints, but --checkpoint names the folder {settings.checkpoint}",
            hint=f"those that do: {', '.join(name for name, entry in REGISTRY.items() if entry.resumes)}",
        )
    checkpoints = None if settings.checkpoint is None else local_path(settings.checkpoint, "checkpoint")
    context = Context(console, settings.quick, checkpoints)
    if settings.name in TOGETHER:
        return run_together(settings.name, local_path(settings.out or DEFAULT_OUT, "out"), settings.force, context)
    out = settings.out or f"{DEFAULT_OUT}/{settings.name}"
    refuse_existing(out, MARKER, settings.force)
    show(reproduce(settings.name, out, context, force=settings.force), out, console)
    return 0


def run_together(which: str, out: Path, force: bool, context: Context) -> int:
    """Run every experiment of a name in ``TOGETHER`` into a folder of its own below `out`, but for those of hours.

    One that fails does not keep the others from running.

    Raises
    ------
    DboostError
        The first error, after all have run and the index is written.
    """
    names = [name for name, entry in REGISTRY.items() if entry.series in TOGETHER[which] and not entry.long]
    for name in names:
        refuse_existing(str(out / name), MARKER, force)
    failed: dict[str, str] = {}
    first: DboostError | None = None
    for name in names:
        context.console.say(f"{name}: {REGISTRY[name].summary}")
        try:
            show(reproduce(name, out / name, context, force=force), str(out / name), context.console)
        except DboostError as error:
            failed[name] = str(error)
            first = first or error
            context.console.warning(f"{name} did not run: {error}")
    context.console.say(f"{which} experiments: {write_index(out, failed)}")
    if first is not None:
        raise first
    return 0


def show(done: Done, out: str, console: Console) -> None:
    """Print the verdicts."""
    rows = [(v.outcome, c.name, c.where) for c, v in zip(done.report.claims, done.verdicts, strict=True)]
    # Where a terminal is narrow, the place in the paper is cut, and the verdict and the claim never.
    grid = Grid(
        ("verdict", "claim", "paper"),
        rows,
        left=frozenset({0, 1, 2}),
        code=frozenset({0}),
        sentences=frozenset({1}),
        widest={2: 24},
    )
    values = {
        "experiment": done.name,
        "out": out,
        "seconds": done.seconds,
        "verdicts": {c.name: v.outcome for c, v in zip(done.report.claims, done.verdicts, strict=True)},
    }
    console.page("reproduction", [grid.renderable()], values)
    console.say(f"page: {out}/{done.name}.md   {done.seconds:.0f} s")
