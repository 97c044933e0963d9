"""``dboost demo``: documents that this machine has, and one run: a certified model, a page, labels for new ones."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.text import Text as Words

from dboost.files.storage import write_file, write_folder

from . import pages
from .cluster import cluster_overrides
from .commands.train import NOT_CONVERGED
from .config import ClusterSettings, LogSettings, OneOf, OutputSettings, Text, key, tables_to_toml
from .console import Console, finite
from .fitting_table import FittingTable, grid
from .inputs import read_model, refuse_existing
from .runs.execute import run as execute
from .sources import arxiv, installed

MARKER = "demo.json"
# The run file, and the held-out documents without their labels, which its model labels.
RUN, NEW = "topics.toml", "new.parquet"
# New documents of the page, with what the model says of each.
LABELLED = 5
# Documents in a file and in a row group: a few tasks for each worker, each of some megabytes.
FILE_ROWS, GROUP_ROWS = 50_000, 5_000


@dataclass(frozen=True)
class Source:
    """A kind of documents."""

    load: Any  # gives a table with ``text``, ``label``, ``split``, ``source``
    tokenizer: str  # how a text becomes terms
    documents: str  # what a document, its source and its label are, in words
    source: str
    label: str


SOURCES = {
    "installed": Source(
        installed.load, "identifiers", "functions, methods and classes of the installed packages", "file", "package"
    ),
    "arxiv": Source(arxiv.load, "words", "titles of papers on arXiv", "paper", "archive"),
}


@dataclass(frozen=True, kw_only=True)
class DemoSettings(ClusterSettings, OutputSettings, LogSettings):
    """What `dboost demo` takes."""

    out: Text | None = key(None, "folder to write; it must not exist (default: runs/demo)")
    data: Annotated[str, OneOf(SOURCES.keys)] = key(
        "installed", "installed (source code of packages) or arxiv (titles)"
    )


def do_demo(settings: DemoSettings, console: Console) -> int:
    """Documents, a run file, its run, one page; everything lies in ``out`` (default ``runs/demo``)."""
    out = settings.out or "runs/demo"
    refuse_existing(out, MARKER, settings.force)
    source = SOURCES[settings.data]
    with write_folder(out, marker=MARKER, force=settings.force) as folder:
        with console.stage("documents"):
            documents = source.load()
            counts = write_documents(documents, Path(folder, "documents"))
            write_run(documents, source, Path(folder))
        Path(folder, MARKER).write_text(json.dumps({"documents": counts}) + "\n", encoding="utf-8")
    console.say(f"dboost run {out}/{RUN}")
    done = execute(Path(out, RUN), overrides=cluster_overrides(settings), console=console)
    shown = page(out, source, counts, Path(done.folder), done.evaluation or {}, console)
    values = {"documents": counts, "evaluation": done.evaluation, "seconds": dict(console.seconds)}
    write_file(Path(out, MARKER), (json.dumps(finite(values), indent=1, default=str) + "\n").encode())
    console.page("demo", shown, values)
    for what, command in next_steps(out, done.folder):
        console.say(f"{what}:\n  {command}")
    console.say(f"the report of the run: {done.folder / 'report.html'}")
    return 0 if done.converged else NOT_CONVERGED


def write_documents(table: pa.Table, folder: Path) -> dict[str, Any]:
    """Write the documents as Parquet files; returns what the page says about them."""
    folder.mkdir()
    for number, start in enumerate(range(0, table.num_rows, FILE_ROWS)):
        part = table.slice(start, FILE_ROWS)
        file = folder / f"part-{number:05d}.parquet"
        pq.write_table(part, file, row_group_size=GROUP_ROWS, compression="zstd", write_page_checksum=True)
    held_out = np.array(table["split"].to_pylist()) == "test"
    labels = np.array(table["label"].to_pylist())
    names, totals = np.unique(labels[held_out], return_counts=True)
    return {
        "train": int((~held_out).sum()),
        "test": int(held_out.sum()),
        "sources": len(set(table["source"].to_pylist())),
        "classes": sorted(set(labels.tolist())),
        # The error of a model without features: it says the most frequent class.
        "blind_error": 1.0 - totals.max() / totals.sum(),
    }


def write_run(table: pa.Table, source: Source, folder: Path) -> None:
    """Write a run file for these documents, and the held-out ones as whoever asks for their labels has them."""
    held_out = table.filter(pa.array(np.array(table["split"].to_pylist()) == "test")).select(["text", "source"])
    pq.write_table(held_out, folder / NEW, row_group_size=GROUP_ROWS, compression="zstd", write_page_checksum=True)
    tables: dict[str, dict[str, Any]] = {
        "data": {"data": "documents", "label": "label"},
        "prepare": {"split": "split", "tokenizer": source.tokenizer},
        # rows of one file resemble each other: a model is judged on files that it has not seen
        # and at most so many terms, which a person can look through
        "model": {"penalty": "l1/l2", "alpha": "auto", "groups": "source", "max_features": 1000, "tol": 1e-3},
        "predict": {"data": NEW, "keep": ["source"], "top": 3},
        "report": {"top": 30},
    }
    head = f"# dboost run {RUN}: from documents to a report, and labels for documents that nobody has seen\n\n"
    (folder / RUN).write_text(head + tables_to_toml(tables), encoding="utf-8")


def page(
    out: str, source: Source, counts: dict[str, Any], run: Path, found: dict[str, Any], console: Console
) -> list[Any]:
    """The page as renderables: a heading, what came out in a few sentences, the map, labels of new documents."""
    model = read_model(str(run / "model"))
    seconds = grid(("stage", "seconds"), [(name, f"{spent:.1f}") for name, spent in console.seconds.items()])
    return [
        Words(
            f"\n{counts['train'] + counts['test']:,} documents: {source.documents}. The label is the {source.label}, "
            f"{len(counts['classes'])} of them. They come from {counts['sources']:,} {source.source}s, none of which "
            f"is in both parts: {counts['train']:,} documents to learn from, {counts['test']:,} held out."
        ),
        Words(
            f"\nThe {model.penalty} model uses {model.n_hypotheses:,} of {model.n_features:,} terms and labels "
            f"{pages.percent(1.0 - found['error'])} of the held-out documents right; saying the most frequent "
            f"{source.label} always, {pages.percent(1.0 - counts['blind_error'])}. Its objective is certified to be "
            f"at most {model.certificate.gap:.1e} (relative) above the best possible one.\n"
        ),
        *pages.sparsity_map(model, 12, pages.blocks_for(console.rich.encoding)),
        Words(""),
        pages.titled("Documents without labels, and what the model says", labelled(run / "predictions", source)),
        Words(""),
        pages.titled("Seconds", seconds),
    ]


def next_steps(out: str, run: Path) -> list[tuple[str, str]]:
    """What may be done next, and how it is typed."""
    return [
        ("the same again: finds nothing to do", f"dboost run {out}/{RUN}"),
        ("the whole map of the model", f"dboost inspect {run}/model"),
        ("label raw documents", f"dboost predict {run}/model {out}/{NEW} --keep source --out {out}/labelled"),
        (
            "more features, fewer errors",
            f"dboost train {run}/prepared --split train --alpha auto --prefer accurate --out {out}/more",
        ),
        (
            "the same with documents of your own",
            "dboost prepare YOUR.parquet --text text --label label --out runs/yours",
        ),
    ]


def labelled(predictions: Path, source: Source) -> FittingTable:
    """A few of the documents that the run labelled, from the first to the last one."""
    table = pq.read_table(predictions, columns=["source", "prediction"])
    rows = table.take(np.linspace(0, table.num_rows - 1, LABELLED).astype(int)).to_pylist()
    shown = [(str(row["source"]), str(row["prediction"])) for row in rows]
    return grid((source.source, source.label), shown, left={0, 1})


COMMANDS = {"demo": (DemoSettings, do_demo)}
