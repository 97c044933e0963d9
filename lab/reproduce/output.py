"""Files of a reproduction: one folder with the page, the figures and their numbers, and the index over several.

Covers: running one reproduction into a folder that appears whole or not at all; tables written, read back, judged and
drawn; the page; the index. Does not cover: measuring (the modules), or the command line (``reproduce.command``).
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dboost.files.storage import write_file, write_folder
from lab.reproduce import REGISTRY, Entry, figures, machine
from lab.reproduce.base import Context, Report
from lab.reproduce.claims import Claim, Verdict
from lab.reproduce.rows import Rows, Tables
from pipelines.console import finite
from pipelines.report import escape

MARKER = "reproduction.json"
INDEX = "index.md"
SMALL = "This is the quick version: small samples, few repeats. Its verdicts say nothing about the paper."


@dataclass(frozen=True)
class Done:
    """A reproduction that has run.

    Parameters
    ----------
    name : str
    report : Report
    verdicts : tuple of Verdict
        One per claim.
    seconds : float
        Of the whole run, figures included.
    """

    name: str
    report: Report
    verdicts: tuple[Verdict, ...]
    seconds: float

    def summary(self, context: Context) -> dict[str, Any]:
        """What the marker file holds."""
        return {
            "name": self.name,
            "title": self.report.title,
            "quick": context.quick,
            "seconds": self.seconds,
            "stages": dict(context.console.seconds),
            "claims": [
                {
                    "name": claim.name,
                    "where": claim.where,
                    "verdict": verdict.outcome,
                    "checks": [{"said": check.said, "met": check.met} for check in verdict.checks],
                }
                for claim, verdict in zip(self.report.claims, self.verdicts, strict=True)
            ],
            "machine": machine.describe(),
        }


def reproduce(name: str, out: str | Path, context: Context, *, force: bool = False) -> Done:
    """Run one reproduction and write its folder.

    Parameters
    ----------
    name : str
        Key of ``REGISTRY``.
    out : path
        The folder; it appears when everything is in it.
    context : Context
    force : bool
        Replace the folder of an earlier run.

    Raises
    ------
    UsageError
        When matplotlib is missing, or the folder exists.
    DataError
        When the data set is not there.
    StorageError
        When the folder cannot be written.
    """
    figures.require_matplotlib()
    began = time.perf_counter()
    context.console.seconds.clear()
    with write_folder(out, marker=MARKER, force=force) as folder:
        report = REGISTRY[name].run(context)
        with context.stage("figures and page"):
            tables = written(report.tables, Path(folder))
            verdicts = tuple(claim.judge(tables) for claim in report.claims)
            for figure in report.figures:
                figure.draw(tables).savefig(Path(folder, f"{figure.name}.png"))
        done = Done(name, report, verdicts, time.perf_counter() - began)
        summary = done.summary(context)
        Path(folder, f"{name}.md").write_text(page(done, context, REGISTRY[name]), encoding="utf-8")
        text = json.dumps(finite(summary), indent=1, ensure_ascii=False) + "\n"
        Path(folder, MARKER).write_text(text, encoding="utf-8")
    return done


def written(tables: Tables, folder: Path) -> dict[str, Rows]:
    """Write each table as CSV and return what a reader of the files finds."""
    for name, rows in tables.items():
        (folder / f"{name}.csv").write_text(rows.to_csv(), encoding="utf-8")
    return read_tables(folder)


def read_tables(folder: str | Path) -> dict[str, Rows]:
    """The tables of a folder, by name."""
    return {path.stem: Rows.from_csv(path.read_text(encoding="utf-8")) for path in sorted(Path(folder).glob("*.csv"))}


# ---- the page ------------------------------------------------------------------------------------------------------


def page(done: Done, context: Context, entry: Entry) -> str:
    """The page in Markdown."""
    report = done.report
    parts = [f"# {escape(report.title)}"]
    if context.quick:
        parts.append(f"**{SMALL}**")
    parts += [
        escape(report.about),
        f"{entry.source}.",
        "## Verdicts",
        _table(
            ("claim", "paper", "verdict"),
            [(c.name, c.where, f"**{v.outcome}**") for c, v in zip(report.claims, done.verdicts, strict=True)],
        ),
        "Verdicts are computed from the CSV files beside this page.",
    ]
    for claim, verdict in zip(report.claims, done.verdicts, strict=True):
        parts += _claim(claim, verdict)
    if report.findings:
        parts += ["## What else the numbers show", _bullets(report.findings)]
    parts.append("## Figures")
    for figure in report.figures:
        parts += [f"![{escape(figure.name)}]({figure.name}.png)", escape(figure.caption)]
    parts += ["## Protocol", _bullets(report.protocol), "## Differences from the paper", _bullets(report.differences)]
    parts += ["## Numbers", _table(("file", "rows", "columns"), [
        (f"[{name}.csv]({name}.csv)", f"{len(rows)}", ", ".join(escape(c) for c in rows.columns))
        for name, rows in report.tables.items()
    ])]  # fmt: skip
    stages = [(escape(name), f"{seconds:.1f}") for name, seconds in context.console.seconds.items()]
    facts = [(escape(name), escape(value)) for name, value in machine.describe().items()]
    parts += [
        "## Time and machine",
        _table(("stage", "seconds"), [*stages, ("whole run", f"{done.seconds:.1f}")]),
        _table(("what", "value"), facts),
        f"`python -m lab reproduce {done.name}{' --quick' if context.quick else ''}` makes this page again.",
    ]
    return "\n\n".join(parts) + "\n"


def _claim(claim: Claim, verdict: Verdict) -> list[str]:
    marks = {True: "agrees", False: "disagrees", None: "undecided"}
    return [
        f"### {escape(claim.name)}: {verdict.outcome}",
        f"The paper ({escape(claim.where)}): {escape(claim.statement)}",
        f"Test: {escape(claim.test)}",
        "\n".join(f"- {marks[check.met]}: {escape(check.said)}" for check in verdict.checks),
    ]


def _bullets(sentences: tuple[str, ...]) -> str:
    return "\n".join(f"- {escape(sentence)}" for sentence in sentences)


def _table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [headings, tuple("---" for _ in headings), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


# ---- the index -----------------------------------------------------------------------------------------------------


def write_index(folder: str | Path, failed: dict[str, str] | None = None) -> Path:
    """Write the page over all reproductions that lie below a folder; returns its path.

    Parameters
    ----------
    folder : path
        Holds one folder per reproduction.
    failed : mapping of name to sentence, optional
        Those that ended with an error.
    """
    rows, seconds, quick = [], 0.0, False
    for name in REGISTRY:
        marker = Path(folder, name, MARKER)
        if failed and name in failed:
            rows.append((name, "", "not run", escape(failed[name])))
        elif marker.is_file():
            found = json.loads(marker.read_text(encoding="utf-8"))
            seconds += found["seconds"]
            quick |= found["quick"]
            for claim in found["claims"]:
                link = f"[{name}]({name}/{name}.md)"
                where = escape(claim["where"])
                rows.append((link, f"{escape(claim['name'])} ({where})", f"**{claim['verdict']}**", _gist(claim)))
    count = len({row[0] for row in rows})
    parts = [
        "# Experiments of the papers, repeated",
        *([f"**{SMALL}**"] if quick else []),
        f"{count} reproduction{'' if count == 1 else 's'}, {seconds / 60:.1f} minutes together. Every verdict is "
        "computed from the CSV files of its page.",
        _table(("reproduction", "claim", "verdict", "measured"), rows),
    ]
    path = Path(folder, INDEX)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, ("\n\n".join(parts) + "\n").encode())
    return path


def _gist(claim: dict[str, Any]) -> str:
    return "; ".join(escape(check["said"]) for check in claim["checks"])
