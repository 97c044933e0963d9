"""``dboost demo``: documents that this machine has, three models, one page, and a run file that goes the same way.

Covers: the whole way from documents to a certified model on an embedded cluster, and the page about it.
Does not cover: where documents come from (``sources``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dboost
from dboost import metrics
from dboost.files.storage import write_folder
from dboost.model.fitted import Model

from . import pages
from .cluster import connect
from .commands.evaluate import evaluate
from .commands.prepare import PrepareSettings, prepare
from .commands.train import fit
from .config import ClusterSettings, LogSettings, OutputSettings, key, one_of, string
from .console import Console, finite
from .inputs import refuse_existing
from .model_settings import TrainedSettings
from .report import Block, Commands, Grid, Heading, Paragraph, to_markdown, to_rich
from .sources import arxiv, installed
from .toml import to_toml
from .training import plan_training

MARKER = "demo.json"
# The run file, and the held-out documents without their labels, which its model labels.
RUN, NEW = "topics.toml", "new.parquet"
REPORT = "report.md"
PENALTIES = ("l1", "l1/l2", "l1/linf")
# Up to so many classes, a map leaves room for the classes that a feature speaks against.
NARROW_MAP = 16
# Documents in a file and in a row group: a few tasks for each worker, each of some megabytes.
FILE_ROWS, GROUP_ROWS = 50_000, 5_000


@dataclass(frozen=True)
class Source:
    """A kind of documents.

    Parameters
    ----------
    load : function without arguments
        Gives a table with ``text``, ``label``, ``split``, ``source``.
    tokenizer : str
        How a text becomes terms.
    documents, source, label : str
        What a document, its source and its label are, in words.
    strength : float, optional
        alpha of the models, as a share of the smallest one at which no feature is used; the fit at "auto" (0.05) tells
        that one, and is where the second fit starts from. None: the models at "auto".
    """

    load: Any
    tokenizer: str
    documents: str
    source: str
    label: str
    strength: float | None = None


SOURCES = {
    "installed": Source(
        installed.load,
        "identifiers",
        "functions, methods and classes of the installed packages",
        "file",
        "package",
        strength=0.01,
    ),
    "arxiv": Source(arxiv.load, "words", "titles of papers on arXiv", "paper", "archive"),
}


@dataclass(frozen=True, kw_only=True)
class DemoSettings(ClusterSettings, OutputSettings, LogSettings):
    """What `dboost demo` takes."""

    out: str | None = key(string, None, "folder to write; it must not exist (default: runs/demo)")
    data: str = key(one_of(*SOURCES), "installed", "installed (source code of packages) or arxiv (titles)")


SETTINGS = DemoSettings


@dataclass(frozen=True)
class Judged:
    """One trained model, and what held-out documents say about it."""

    penalty: str
    model: Model
    found: metrics.Evaluation
    rounds: int
    passes: int
    seconds: float


def run(settings: DemoSettings, console: Console) -> int:
    """Documents, features, three models, one page; everything lies in ``out`` (default ``runs/demo``)."""
    out = settings.out or "runs/demo"
    refuse_existing(out, MARKER, settings.force)
    source = SOURCES[settings.data]
    with write_folder(out, marker=MARKER, force=settings.force) as folder, connect(settings, console) as client:
        with console.stage("documents"):
            documents = source.load()
            counts = write_documents(documents, Path(folder, "documents"))
            write_run(documents, source, Path(folder))
        with console.stage("prepare"):
            manifest = prepare_features(folder, source, client)
        judged = [judge(penalty, source, Path(folder), client, console) for penalty in PENALTIES]
        blocks = page(out, source, counts, manifest, judged, console)
        Path(folder, REPORT).write_text(to_markdown(blocks), encoding="utf-8")
        values = {"out": out, "models": [summary(one) for one in judged], "seconds": dict(console.seconds)}
        text = json.dumps(finite(values), indent=1, default=str) + "\n"
        Path(folder, MARKER).write_text(text, encoding="utf-8")
    console.page("demo", to_rich(blocks), values)
    console.say(f"This page: {out}/{REPORT}")
    return 0


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
        "model": {"penalty": "l1/linf", "tol": 1e-3},
        "predict": {"data": NEW, "keep": ["source"], "top": 3},
        "report": {"top": 30},
    }
    lines = [f"# dboost run {RUN}: from documents to a report, and labels for documents that nobody has seen"]
    for name, values in tables.items():
        lines += ["", f"[{name}]", *(f"{key} = {to_toml(value)}" for key, value in values.items())]
    (folder / RUN).write_text("\n".join(lines) + "\n", encoding="utf-8")


def prepare_features(folder: Path, source: Source, client: Any) -> Any:
    """Vocabulary and tf-idf, on the cluster."""
    how = PrepareSettings(
        data=str(folder / "documents"),
        out=str(folder / "prepared"),
        label="label",
        split="split",
        keep=("source",),
        tokenizer=source.tokenizer,
    )
    return prepare(how, client)


def judge(penalty: str, source: Source, folder: Path, client: Any, console: Console) -> Judged:
    """Train one model, save it, and evaluate it on the held-out documents."""
    settings = TrainedSettings(penalty=penalty, tol=1e-3)
    name = f"train {penalty}"
    prepared = folder / "prepared"
    with console.stage(name):
        train = dboost.ParquetData(prepared, split="train")
        title = f"penalty {penalty}, alpha auto (0.05 of alpha_max)"
        estimator = fit(plan_training(settings), train, client, console, title).estimator
        work = [estimator.model_.certificate]
        if source.strength is not None:
            with console.rounds(f"penalty {penalty}, from there to alpha {source.strength:g} of alpha_max") as show:
                alpha = source.strength * estimator.alpha_max_
                estimator.set_params(alpha=alpha, warm_start=True, callbacks=[show]).fit(train)
            work.append(estimator.model_.certificate)
    estimator.save(model_folder(folder, penalty))
    with console.stage("evaluate"):
        found = evaluate(estimator.model_, dboost.ParquetData(prepared, split="test"), client)
    rounds, passes = sum(one.n_iter for one in work), sum(one.passes for one in work)
    return Judged(penalty, estimator.model_, found, rounds, passes, console.seconds[name])


def model_folder(folder: Path, penalty: str) -> Path:
    """Where the demo keeps a model."""
    return folder / "models" / penalty.replace("/", "-")


def summary(one: Judged) -> dict[str, Any]:
    """The figures of a model as plain values."""
    values = pages.evaluation_values(one.found, one.model)
    keep = ("error", "log_loss", "coverage", "features_used", "n_features", "zero_entries", "zero_rows")
    return {
        "penalty": one.penalty,
        "gap": one.model.certificate.gap,
        "rounds": one.rounds,
        "passes": one.passes,
        "seconds": one.seconds,
        **{name: values[name] for name in keep},
    }


def page(
    out: str, source: Source, counts: dict[str, Any], manifest: Any, judged: list[Judged], console: Console
) -> list[Block]:
    """The page as blocks."""
    offered = manifest.features["n_features"]
    last = judged[-1]
    blocks = pages.blocks_for(console.rich.encoding)
    middle = judged[1]
    return [
        Heading("dboost demo", level=1),
        Paragraph(
            f"{counts['train'] + counts['test']:,} documents: {source.documents}. The label is the {source.label}, "
            f"{len(counts['classes'])} of them. They come from {counts['sources']:,} {source.source}s, none of which "
            f"is in both parts: {counts['train']:,} documents to learn from, {counts['test']:,} held out. "
            f"{offered:,} terms are offered as features. Saying the most frequent {source.label} always has "
            f"{pages.percent(counts['blind_error'])} error."
        ),
        Heading("Three penalties"),
        comparison(judged),
        Paragraph(
            "Error and coverage are of held-out documents; coverage is how many classes rank above the right one on "
            "average. Gap: the objective is certified to be at most this share above the best possible one."
        ),
        Heading("Who shares a feature"),
        sharing(judged),
        Heading("The strongest features of the l1 model, and who shares them"),
        strongest(judged[0].model, 12, blocks),
        Heading(f"The strongest features of the {last.penalty} model, and who shares them"),
        strongest(last.model, 12, blocks),
        *([Paragraph(legend(last.model, blocks))] if len(counts["classes"]) <= pages.WIDEST_MAP else []),
        Heading(f"What speaks for each {source.label} in the {last.penalty} model"),
        by_class(last.model),
        Heading("Seconds"),
        Grid(("stage", "seconds"), [(name, f"{seconds:.1f}") for name, seconds in console.seconds.items()]),
        Heading("Next steps"),
        Commands(
            [
                (f"dboost run {out}/{RUN}", "the same way as one run file, with a report"),
                (f"dboost inspect {model_folder(Path(out), 'l1/l2')}", "the whole map of a model"),
                (f"dboost evaluate {model_folder(Path(out), 'l1')} {out}/prepared", "every figure, with the confusion"),
                (
                    f"dboost train {out}/prepared --penalty {middle.penalty} "
                    f"--alpha {middle.model.certificate.alpha / 4:.2g} --out runs/model",
                    "more features, fewer errors",
                ),
                (
                    "dboost prepare YOUR.parquet --text text --label label --out runs/yours",
                    "the same with documents of your own",
                ),
            ]
        ),
    ]


def comparison(judged: list[Judged]) -> Grid:
    """One line per model."""
    rows = []
    for one in judged:
        found, model = one.found, one.model
        rows.append(
            (
                one.penalty,
                pages.percent(found.error),
                f"{found.coverage:.3f}",
                f"{model.n_hypotheses:,} of {model.n_features:,}",
                f"{np.count_nonzero(model.W):,}",
                f"{model.certificate.gap:.1e}",
                f"{one.rounds}",
                f"{one.passes}",
                f"{one.seconds:.1f}",
            )
        )
    return Grid(
        ("penalty", "error", "coverage", "features used", "weights", "certified gap", "rounds", "passes", "seconds"),
        rows,
    )


def sharing(judged: list[Judged]) -> Grid:
    """How many features are used by one class, by some, by all."""
    k = len(judged[0].model.classes)
    edges = [1, 2, 4, k - 1, k]
    rows = []
    for one in judged:
        counts = np.count_nonzero(pages.both_sides(one.model), axis=1)
        cells, low = [one.penalty], 1
        for high in edges:
            cells.append(f"{np.count_nonzero((counts >= low) & (counts <= high)):,}")
            low = high + 1
        rows.append(tuple(cells))
    return Grid(("features used by", "1 class", "2", "3-4", f"5-{k - 1}", f"all {k}"), rows)


def strongest(model: Model, top: int, blocks: tuple[str, ...]) -> Grid:
    """The features with the largest weights, and who shares them; what does not fit beside a wide map is left out."""
    W, labels, words = pages.both_sides(model), pages.labels_of(model), model.hypotheses.words()
    drawn, narrow = len(labels) <= pages.WIDEST_MAP, len(labels) <= NARROW_MAP
    headings = ["feature", "weight", pages.LETTERS[: len(labels)] if drawn else "classes", "for"]
    rows = []
    for j in np.argsort(-pages.strength(W), kind="stable")[:top].tolist():
        row = [words[j], f"{pages.strength(W[j : j + 1])[0]:.2f}"]
        row.append(pages.map_row(W[j], blocks) if drawn else f"{np.count_nonzero(W[j])}")
        row.append(pages.named(labels, W[j], +1, 3 if narrow else 2))
        rows.append((*row, pages.named(labels, W[j], -1, 1)) if narrow else tuple(row))
    return Grid(
        (*headings, "against") if narrow else tuple(headings),
        rows,
        left=frozenset({0, 2, 3, 4} if drawn else {0, 3, 4}),
        widest={0: 16, 3: 30, 4: 18},
        code=frozenset({2} if drawn else ()),
    )


def legend(model: Model, blocks: tuple[str, ...]) -> str:
    """What the characters of the map mean."""
    strong, weak, against, slightly, unused = blocks
    classes = ", ".join(f"{letter} {label}" for letter, label in zip(pages.LETTERS, pages.labels_of(model)))
    return (
        f"{strong} speaks for the class, {weak} with less than half of the largest weight; {against} and {slightly} "
        f"against it; {unused} not used. Classes: {classes}."
    )


def by_class(model: Model) -> Grid:
    """The strongest features for each class."""
    W, labels, words = pages.both_sides(model), pages.labels_of(model), model.hypotheses.words()
    used = np.count_nonzero(W, axis=0)
    rows = []
    for r, label in enumerate(labels):
        best = [words[j] for j in np.argsort(-W[:, r], kind="stable")[:7].tolist() if W[j, r] > 0]
        rows.append((label, f"{used[r]:,}", ", ".join(best)))
    return Grid(("class", "features", "the strongest"), rows, left=frozenset({0, 2}), widest={0: 16, 2: 70})
