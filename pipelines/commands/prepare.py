"""``dboost prepare``: documents in Parquet, CSV or JSON lines in, features in Parquet with a manifest out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator

from dboost import Features, TextFeatures
from dboost.data import prepare_text
from dboost.data.manifest import MANIFEST
from dboost.data.sources import look_at_files
from dboost.errors import UsageError
from dboost.estimators.features import FIND, Kinds
from dboost.estimators.transform_files import FeaturesOfFiles
from dboost.files.stores import any_path

from .. import pages
from ..before_preparing import announce
from ..cluster import ClusterSession, engine_on
from ..config import (
    ClusterSettings,
    FromOne,
    FromTwo,
    LogSettings,
    Names,
    OutputSettings,
    Says,
    Switch,
    Text,
    dialect_of,
    key,
)
from ..console import Console
from ..inputs import refuse_existing
from ..registries import parameters_of


def _documents(value: object) -> object:
    """A number of documents (an integer), or a share of them (a number with a point, from 0.0 to 1.0)."""
    if isinstance(value, str):
        value = int(value) if value.strip().isdigit() else float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value:
        raise ValueError(value)
    if isinstance(value, float) and value > 1:
        raise ValueError(value)
    return value


Documents = Annotated[
    Any, BeforeValidator(_documents), Says("a number of documents without a point, or a share from 0.0 to 1.0")
]


@dataclass(frozen=True, kw_only=True)
class PrepareSettings(ClusterSettings, OutputSettings, LogSettings):
    """What `dboost prepare` takes."""

    required: ClassVar[tuple[str, ...]] = ("data", "out")
    first: ClassVar[tuple[str, ...]] = (
        "data", "text", "column", "label", "out", "test", "keep", "min_df", "workers", "force"
    )  # fmt: skip

    data: Text | None = key(
        None, "documents: Parquet, .csv, .tsv or .jsonl (also .gz, ...), a file or a folder", positional=2
    )
    test: Text | None = key(
        None, "held-out documents, which need no labels, prepared with the vocabulary of the others"
    )
    text: Names = key(("text",), "column of the text; several are joined")
    column: Names | None = key(
        None, "columns by their kind, in place of text: title=text,tags=tags:;, ...; find: those of all others"
    )
    missing: Literal["refuse", "zero", "indicator"] = key("refuse", "what a missing value of such a column is")
    min_count: FromOne = key(1, "categories and tags of columns in fewer rows share a feature")
    label: Text | None = key(None, "column of the label, copied")
    label_separator: Text | None = key(None, "what stands between the tags of a label that is one text")
    keep: Names = key((), "further columns to copy; file is there by itself: where a document comes from")
    split: Text | None = key(None, "column that names the split of each document")
    where: Text | None = key(None, "a filter of documents, as in: year >= 2020 and lang in ('en', 'de')")
    on_bad_rows: Literal["refuse", "quarantine"] = key(
        "refuse", "documents without text or label: refuse, or put them aside, counted"
    )
    expect: Text | None = key(None, "a contract that the documents must keep: columns, ranges, labels, rows")
    on_drift: Literal["refuse", "note"] = key("refuse", "documents that do not keep it: refuse, or say so")
    write_contract: Text | None = key(None, "write the contract that these documents keep, to begin with")
    tokenizer: Literal["words", "identifiers"] = key("words", "words, or identifiers of source code")
    ngrams: FromOne = key(1, "terms of up to so many words")
    stop_words: Names | None = key(None, "words that are left out; english for a list of them")
    sublinear_tf: Switch = key(True, "weigh 1 + ln of a count in place of the count")
    binary: Switch = key(False, "weigh whether a term is there, not how often")
    min_df: Documents = key(5, "fewest documents (or share of them) a term is in")
    max_df: Documents = key(0.5, "most documents (or share of them) a term is in")
    max_features: FromOne | None = key(None, "keep the most frequent terms only")
    hashing: FromTwo | None = key(None, "hash terms into so many buckets; their names are lost")
    separator: Text | None = key(None, "of CSV: what stands between fields (default: told by the first rows)")
    encoding: Text | None = key(None, "of CSV and JSON lines, such as latin-1 (default: by its mark, or UTF-8)")
    decimal: Text | None = key(None, "of CSV: what stands before the fraction of a number, a point or a comma")


def done(settings: PrepareSettings, console: Console, client: Any = None) -> Any:
    """Write the prepared folder; returns its manifest."""
    refuse_existing(settings.out, MANIFEST, settings.force)
    refuse_unused(vars(settings))
    for name in ("data", "test"):
        if getattr(settings, name) is not None:
            any_path(getattr(settings, name), name)
    with ClusterSession(settings, console, client, [settings.data, settings.test]) as cluster:
        there = cluster.client()  # starts before the stage whose seconds are counted
        with console.stage("prepare"):
            manifest = prepare(settings, there, console)
    console.page("prepared", [pages.facts(facts(manifest))], {"out": settings.out, **manifest.content()})
    console.say(f"prepared: {settings.out}   next: dboost train {settings.out} --out MODEL")
    return manifest


def refuse_unused(given: Mapping[str, Any]) -> None:
    """Refuse keys of a preparation that would have no effect (UsageError)."""
    names: tuple[str, ...]
    if given.get("column") is None:
        names, where = ("missing", "min_count"), "without column="
    elif given.get("hashing") is not None:
        names, where = ("min_df", "max_df", "max_features"), "beside column= and hashing="
    else:
        return
    for name in names:
        value, default = given.get(name), getattr(PrepareSettings, name)
        if value not in (None, default):
            raise UsageError(f"{name}={value!r} has no effect {where}", hint=f"leave {name}= out")


def prepare(settings: PrepareSettings, client: Any, console: Console) -> Any:
    """Run the passes of the preparation on a client, or on threads of this process; what it takes is said first."""
    source: Any = settings.data if settings.test is None else {"train": settings.data, "test": settings.test}
    with engine_on(client) as engine:
        settings = with_kinds(settings, source, engine, console)
        announce(settings, client, console)
        taken = parameters_of(prepare_text) - {"out"}
        handed: dict[str, Any] = {name: value for name, value in vars(settings).items() if name in taken}
        handed["stop_words"] = stop_words(settings.stop_words or ())
        table = None if settings.column is None else table_of(settings)
        return prepare_text(source, str(settings.out), **handed, engine=engine, table=table)


def with_kinds(settings: PrepareSettings, source: Any, engine: Any, console: Console) -> PrepareSettings:
    """The settings with the kinds of all columns where some are to be found, which are shown before they are used."""
    given = settings.column or ()
    if FIND not in given:
        return settings
    told = tuple(one for one in given if one != FIND)
    said = {one.rpartition("=")[0] for one in told}
    seen = look_at_files(
        source,
        engine,
        split=settings.split,
        where=settings.where,
        left_out=[name for name in (settings.label, settings.split, *settings.keep, *said) if name],
        dialect=dialect_of(settings),
    )
    kinds = Kinds.of(seen)
    if kinds:
        console.event("kinds", kinds=dict(kinds), why=kinds.why)
        if console.mode != "json":
            console.say(f"columns by their kind:\n  {repr(kinds).replace(chr(10), chr(10) + '  ')}")
    kinds.say_remarks()
    found = tuple(f"{name}={kind}" for name, kind in kinds.items() if kind != "drop")
    if not (*told, *found):
        raise UsageError("no column is a feature", hint="tell the kind of one, such as column=title=text")
    return replace(settings, column=(*told, *found))


def table_of(settings: PrepareSettings) -> FeaturesOfFiles:
    """The transform of the columns that are named with their kinds."""
    columns: dict[str, Any] = {}
    for given in settings.column or ():
        name, found, kind = given.rpartition("=")
        kind, _, separator = kind.partition(":")
        if not found or not name or not kind or name in columns:
            raise UsageError(f"column={given!r}", hint="give each column once with its kind, such as title=text")
        columns[name] = {"kind": kind, "separator": separator} if separator else kind
    if settings.text != ("text",):
        raise UsageError("text beside column", hint=f"give {settings.text[0]}=text among the columns")
    if settings.tokenizer != "words":
        raise UsageError(f"tokenizer={settings.tokenizer!r} beside column", hint="leave one of the two out")
    limits = {"min_df": settings.min_df, "max_df": settings.max_df, "max_features": settings.max_features}
    text = TextFeatures(
        ngram_range=(1, settings.ngrams),
        stop_words=stop_words(settings.stop_words or ()) or None,
        sublinear_tf=settings.sublinear_tf,
        binary=settings.binary,
        hashing=settings.hashing,
        **({} if settings.hashing else limits),
    )
    features = Features(columns, others="drop", missing=settings.missing, min_count=settings.min_count, text=text)
    return FeaturesOfFiles.of(features)


def stop_words(given: tuple[str, ...]) -> tuple[str, ...]:
    """The words that are left out; ``english`` alone stands for scikit-learn's list."""
    if given != ("english",):
        return given
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return tuple(sorted(ENGLISH_STOP_WORDS))


def facts(manifest: Any) -> list[tuple[str, str]]:
    """What was written, in words."""
    rows = [("features", f"{manifest.features['n_features']:,}")]
    for name, split in manifest.splits.items():
        classes = split.get("classes")
        words = f"{split['rows']:,} documents, {split['nnz']:,} values"
        kind = "tags" if split.get("tags") else "classes"
        labels = ", no labels" if classes is None else f", {len(classes)} {kind}"
        if split.get("targets") is not None:
            labels = ", targets from {:.6g} to {:.6g}".format(*split["targets"])
        labels = labels if manifest.label is not None else ""
        rows.append((name, words + labels))
    refused = manifest.settings.get("refused") or {}
    if refused:
        reasons = ", ".join(f"{count:,} where {reason}" for reason, count in refused.items())
        rows.append(("put aside", f"{sum(refused.values()):,} documents, in _refused: {reasons}"))
    return [*rows, ("fingerprint", manifest.fingerprint[:16])]


COMMANDS = {"prepare": (PrepareSettings, done)}
