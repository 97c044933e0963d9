"""Documents to features in Parquet: the passes of ``dboost prepare``.

Covers: checking the source, the cut into chunks, the vocabulary, publishing the folder with its manifest.
Does not cover: where documents come from (``sources``), tokens and tf-idf (``text``), one chunk (``prepare_chunk``),
the layout of the folder (``manifest``).

Two passes: one reads the text and counts terms, one writes features. The counts of every document are kept in the
folder that is being made until the second pass; only where a column says the split of a row, or for documents from
which nothing is learned, does that read the text itself. No process holds more than a chunk of documents and the
vocabulary: counts are exact, and are added in shards of the terms (``vocabulary``), for which disk must do.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa

from dboost.data.blocks import GROUP_ROWS
from dboost.data.manifest import MANIFEST, Manifest, load_manifest, write_manifest, write_vocabulary
from dboost.data.meaning import FILE, Dialect, column_kind, joint_type
from dboost.data.parquet.read import FileInfo, inspect_file, say_folders, with_folders
from dboost.data.prepared.chunk import (
    COUNTS,
    Labels,
    TextChunk,
    TextColumns,
    count_chunk,
    counts_of,
    write_chunk,
)
from dboost.data.prepared.contract import contract_of, kept, look, read_contract, together
from dboost.data.prepared.documents import Wanted
from dboost.data.prepared.mapper import InProcess, Mapper
from dboost.data.prepared.tables import TableTransform, learn_table, names_file, write_table
from dboost.data.prepared.text import TextRule, choose_vocabulary
from dboost.data.prepared.vocabulary import counted_terms
from dboost.data.sources import COPIES, Source, Sources, in_own_names, open_sources, splits_of
from dboost.errors import DataError, StorageError, UsageError
from dboost.files import store_folders
from dboost.files.publish import publish
from dboost.files.storage import check_writable, refuse_existing, write_file, writing
from dboost.files.stores import AnyPath, StorePath, any_path
from dboost.files.unfinished import own_folder

# Bytes of text in a slice of a row group. With half as many, reading the slices of one large row group took a third
# longer in all, since each is decoded from the start.
SLICE_BYTES = 24 << 20
_SLICES = 8
# What stands for a count, by whether it is binary and sublinear.
_TF = {(False, True): "(1 + ln tf)", (False, False): "tf", (True, True): "[tf > 0]", (True, False): "[tf > 0]"}
REFUSE, QUARANTINE = "refuse", "quarantine"
BAD_ROWS = (REFUSE, QUARANTINE)
DRIFT = (REFUSE, "note")
_LABEL_KINDS = ("str", "int", "bool", "float32", "float64", "bytes", "list<str>")


def prepare_text(
    source: Source | Mapping[str, Source],
    out: str | os.PathLike[str],
    *,
    text: str | Sequence[str],
    label: str | None = None,
    keep: Sequence[str] = (),
    split: str | None = None,
    tokenizer: str = "words",
    ngrams: int = 1,
    stop_words: Sequence[str] = (),
    sublinear_tf: bool = True,
    binary: bool = False,
    min_df: int | float = 5,
    max_df: int | float = 0.5,
    max_features: int | None = None,
    hashing: int | None = None,
    where: str | None = None,
    on_bad_rows: str = "refuse",
    expect: str | os.PathLike[str] | None = None,
    on_drift: str = "refuse",
    write_contract: str | os.PathLike[str] | None = None,
    force: bool = False,
    engine: Mapper | None = None,
    table: TableTransform | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    label_separator: str | None = None,
) -> Manifest:
    """Turn documents into a folder that ``ParquetData`` reads, and give its manifest.

    What the parameters mean is said by the keys of ``dboost prepare``. `source` is a path, a list of them, or a dict of
    these by split; with `split`, a column, or without either, the only split is ``"train"``. The vocabulary is learned
    from ``"train"``, or the only split; documents of others need no labels. `text` may be several columns, joined by a
    newline. `keep` may name ``"file"``, the file that a row comes from, where no column is called so. `engine` maps the
    chunks, in this process by default; all workers must see `source` and `out`. `table` makes features of a table of
    several kinds of columns: `text` is then those of its columns that are texts, and the parameters of terms, from
    `tokenizer` to `hashing`, are those that it holds itself. Where `decimal` is given, every column of numbers that are
    written so is one of numbers, also where they end in zeros.

    Raises UsageError, DataError: A parameter has no meaning or the folder exists; columns, documents or labels are
    missing, files drift, no term is left.
    Raises StorageError: The folder cannot be written. Nothing is left behind, and an older folder is kept.
    """
    stop = (stop_words,) if isinstance(stop_words, str) else tuple(stop_words)
    rule = TextRule(tokenizer, ngrams, stop, sublinear_tf, binary)
    how = TextColumns((text,) if isinstance(text, str) else tuple(text), label, tuple(keep), split, rule, hashing)
    how = replace(how, label_separator=label_separator)
    if table is not None:
        texts, others, tags = table.columns
        how = replace(how, text=texts, features=others, tags=tags)
    _check_settings(how, min_df, max_df, max_features)
    target = any_path(out, "out").absolute()
    _check_target(target, force)
    mapper: Mapper = InProcess() if engine is None else engine
    wanted = replace(_wanted(how), dialect=Dialect(separator, encoding, decimal))
    splits, learned = splits_of(source, split)
    how = replace(how, learned=learned)
    settings = {
        "text": list(how.text),
        **rule.about(),
        "min_df": min_df,
        "max_df": max_df,
        "max_features": max_features,
        "hashing": hashing,
        "weights": f"tf-idf: {_TF[binary, sublinear_tf]} * (ln((1 + documents) / (1 + df)) + 1), rows of length 1",
        "vocabulary_split": learned,
        "keep": list(how.keep),
        "where": where,
        "on_bad_rows": on_bad_rows,
        **({} if label_separator is None else {"label_separator": label_separator}),
    }
    if on_drift not in DRIFT:
        raise UsageError(f"on_drift={on_drift!r}", hint=f"use one of {', '.join(DRIFT)}")
    if on_drift != "refuse" and expect is None:
        raise UsageError(f"on_drift={on_drift!r} without expect=", hint="give the contract, or leave on_drift= out")
    contract = None if expect is None else read_contract(expect)
    if write_contract is not None:
        check_writable(write_contract)
    if on_bad_rows not in BAD_ROWS:
        raise UsageError(f"on_bad_rows={on_bad_rows!r}", hint=f"use one of {', '.join(BAD_ROWS)}")
    with contextlib.ExitStack() as opened:
        staging = opened.enter_context(_staging(target))
        sources = open_sources(splits, wanted, label, learned, staging, mapper, where, on_bad_rows == QUARANTINE)
        settings["refused"] = dict(sorted(sources.refused.items()))
        with in_own_names(sources.origin):
            chunks, types = _plan(sources, how, mapper)
            how = replace(how, types=types)
            looked = contract is not None or write_contract is not None
            seen = together(mapper.map(look, [file for _, file in sources.files], name="look")) if looked else {}
            manifest = (
                _prepared(chunks, how, settings, staging, mapper)
                if table is None
                else _prepared_table(chunks, how, table, settings, staging, mapper)
            )
        if contract is not None:
            manifest = kept(contract, seen, manifest, refuses=on_drift == REFUSE)
        for name in (COPIES, COUNTS):
            _remove(staging / name)
        write_manifest(manifest, staging)
        _publish(staging, target)
    if write_contract is not None:
        write_file(write_contract, contract_of(seen, manifest).text().encode())
    return load_manifest(target)


@contextlib.contextmanager
def _staging(target: AnyPath) -> Iterator[AnyPath]:
    """A folder that all workers see, for what is not finished; it is gone afterwards, or has become the target."""
    if isinstance(target, StorePath):
        staging = target / store_folders.generation()
        try:
            yield staging
        except BaseException:
            with contextlib.suppress(StorageError):
                staging.remove_below()
            raise
        return
    with contextlib.ExitStack() as opened:
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            beside = opened.enter_context(own_folder(target))
        yield beside


def _remove(folder: AnyPath) -> None:
    if isinstance(folder, StorePath):
        folder.remove_below()
    else:
        shutil.rmtree(folder, ignore_errors=True)


def _prepared(
    chunks: Sequence[TextChunk],
    how: TextColumns,
    settings: Mapping[str, Any],
    staging: AnyPath,
    mapper: Mapper,
) -> Manifest:
    """Learn the vocabulary and write the features of every chunk."""
    mine = [chunk for chunk in chunks if chunk.split in (None, how.learned)]
    counted = mapper.map(count_chunk, mine, how, how.learned, str(staging), name="count-terms")
    documents = sum(chunk.rows for chunk in counted)
    if documents == 0:
        raise DataError(f"no rows in split {how.learned!r}, from which the vocabulary is learned")
    files = [counts_of(str(staging), chunk) for chunk in mine]
    limits = {name: settings[name] for name in ("min_df", "max_df", "max_features")}
    found, n_terms = counted_terms(files, sum(chunk.size for chunk in counted), documents, **limits, mapper=mapper)
    terms, df, idf = choose_vocabulary(found, documents, n_terms=n_terms, **limits)
    vocabulary = write_vocabulary(staging, terms, df, idf)
    written = mapper.map(write_chunk, chunks, how, str(staging), vocabulary, name="write-features")
    return _manifest(how, "float32", len(terms), written, vocabulary, {**settings, "documents": documents})


def _prepared_table(
    chunks: Sequence[TextChunk],
    how: TextColumns,
    table: TableTransform,
    settings: Mapping[str, Any],
    staging: AnyPath,
    mapper: Mapper,
) -> Manifest:
    """Learn the transform of a table and write the features of every chunk."""
    mine = [chunk for chunk in chunks if chunk.split in (None, how.learned)]
    names, where, rows = learn_table(mine, how, table, staging, mapper)
    written = mapper.map(write_table, chunks, how, table.read, str(staging), where["sha256"], name="write-features")
    kept = ("vocabulary_split", "keep", "where", "on_bad_rows", "label_separator", "refused")
    about = {name: settings[name] for name in kept if name in settings}
    about |= {"columns": [*how.text, *how.features], "documents": rows, "transform": where}
    return _manifest(how, "float64", len(names), written, names_file(staging, names), about)


def _manifest(
    how: TextColumns,
    values: str,
    n_features: int,
    written: Sequence[Sequence[dict[str, Any]]],
    vocabulary: dict[str, str],
    settings: dict[str, Any],
) -> Manifest:
    """What is said of features in values of a kind, of which each chunk has told what it wrote."""
    return Manifest(
        schema={"indices": "list<int>", "values": f"list<{values}>", **_copied_kinds(how)},
        features={"indices": "indices", "values": "values", "n_features": n_features},
        label=how.label,
        splits=_split_entries([entry for entries in written for entry in entries]),
        vocabulary=vocabulary,
        settings=settings,
    )


def _wanted(how: TextColumns) -> Wanted:
    """The columns to copy from files that do not tell the types of theirs."""
    texts = (*how.text, *([how.split] if how.split else []))
    label = (how.label,) if how.label else ()
    tags = (*how.tags, *(label if how.label_separator is not None else ()))
    kept = tuple(name for name in (*how.features, *how.keep) if name not in (*texts, *tags))
    documents = () if how.features else how.text
    labels = () if how.label_separator is not None else label
    return Wanted(texts, labels, kept, (FILE,), tags=tags, documents=documents)


def _check_settings(how: TextColumns, min_df: Any, max_df: Any, max_features: Any) -> None:
    if not how.text and not how.features:
        raise UsageError("text names no column", hint="name the text column")
    if how.label in (*how.text, *how.features):
        raise UsageError(
            f"the label column {how.label!r} is a column of features too, so that the features would hold the answer",
            hint="name another label column, or another text column",
        )
    if how.label_separator is not None and (how.label is None or not how.label_separator):
        raise UsageError(
            f"label_separator={how.label_separator!r}", hint="give what stands between the tags of label=, such as ';'"
        )
    reserved = {"indices", "values"} & {*how.keep, *([how.label] if how.label else [])}
    if reserved:
        raise UsageError(f"a column {sorted(reserved)[0]!r} would clash with the features", hint="rename it")
    for name, value in (("min_df", min_df), ("max_df", max_df)):
        share = isinstance(value, float)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value or (share and value > 1):
            raise UsageError(f"{name}={value!r}", hint="give a number of documents, or a share between 0.0 and 1.0")
    for name, value, low in (("max_features", max_features, 1), ("hashing", how.hashing, 2)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < low):
            raise UsageError(f"{name}={value!r}", hint=f"give a number of at least {low}, or leave it out")


def _check_target(target: AnyPath, force: bool) -> None:
    """Refuse an existing folder; with force, refuse one that was not made here."""
    if isinstance(target, StorePath):
        refuse_existing(target, MANIFEST, force)
        return
    if not os.path.lexists(target):
        return
    if not force:
        raise UsageError(f"{target} exists", hint="choose another folder, or use --force (force=True)")
    if not target.is_dir() or (any(target.iterdir()) and not (target / MANIFEST).is_file()):
        raise UsageError(f"{target} is not a prepared data set and is not replaced", hint="choose another folder")


def _copied_kinds(how: TextColumns) -> dict[str, str]:
    """The kinds of the columns that are copied."""
    names = [name for name in how.wanted() if name == how.label or name in how.keep]
    kinds = {name: column_kind(how.types[name]) for name in names if name in how.types}
    return kinds | ({} if how.label_separator is None or how.label not in kinds else {how.label: "list<str>"})


def _plan(sources: Sources, how: TextColumns, mapper: Mapper) -> tuple[list[TextChunk], dict[str, Any]]:
    """Chunks, and the types of the columns that are read."""
    files = [file for _, file in sources.files]
    found = with_folders(mapper.map(inspect_file, files, name="read-footers"), FILE in how.keep)
    infos = [(owner, info) for (owner, _), info in zip(sources.files, found, strict=True)]
    say_folders([info for info in found if info.ref.path not in sources.origin], how.wanted())
    bare = _unlabelled(infos, how)
    types = check_columns([(info, owner in bare) for owner, info in infos], how)
    return cut_chunks(infos, bare, how), types


def _unlabelled(infos: Sequence[tuple[str | None, FileInfo]], how: TextColumns) -> set[str | None]:
    """Splits other than the learned one of which no file has labels."""
    others = {owner for owner, _ in infos} - {None, how.learned}
    labelled = {owner for owner, info in infos if info.kinds.get(str(how.label), "null") != "null"}
    return others - labelled


def check_columns(infos: Sequence[tuple[FileInfo, bool]], how: TextColumns) -> dict[str, Any]:
    """Every file has the columns, of one kind; returns the Arrow type of each over all files.

    Beside each file stands whether its split has no labels.
    """
    types: dict[str, Any] = {}
    for info, bare in infos:
        for name in how.wanted(labelled=not bare):
            if name not in info.kinds:
                raise _wanted(how).absent(name, list(info.kinds), info.ref.path)
            kind = info.kinds[name]
            if kind == "null" and (
                sum(info.rows) == 0 or (name in (*how.keep, *how.features) and name not in how.text)
            ):
                types.setdefault(name, info.types[name])
                continue
            before = types.get(name, pa.null())
            joint = joint_type(before, info.types[name])
            if joint is None or (kind == "null" and before != joint):
                known = column_kind(before)
                both = (kind, known) if kind != known else (info.types[name], before)
                raise DataError(
                    f"type {both[0]}, the files before have {both[1]}",
                    file=info.ref.path,
                    column=name,
                    hint="write all files with one schema",
                )
            if name in how.text and kind != "str":
                raise DataError(f"type {kind}, expected text", file=info.ref.path, column=name)
            if name == how.label and column_kind(joint) not in _LABEL_KINDS:
                raise DataError(
                    f"type {kind}, expected labels: text, integers, booleans, floats, bytes or lists of tags",
                    file=info.ref.path,
                    column=name,
                    hint="cast the column, a date to text and a decimal to float64, where that is what it means",
                )
            types[name] = joint
    return types


def cut_chunks(
    infos: Sequence[tuple[str | None, FileInfo]], bare: set[str | None], how: TextColumns
) -> list[TextChunk]:
    """Chunks of some megabytes of text: small row groups are joined, large ones cut into slices.

    Chunks end where rows are a multiple of a power of two: as blocks of rows in memory do (``dboost.data.blocks``), so
    that a model of these files is that of the same rows in memory. Each slice of a row group decodes it from the
    start, hence there are few. The cut depends on the files alone, so that the folder is the same for any number of
    workers.
    """
    chunks: list[TextChunk] = []
    spans: list[Any] = []
    rows = 0
    current: str | None = None

    def close() -> None:
        nonlocal spans
        if spans:
            chunks.append(TextChunk(len(chunks), tuple(spans), current, current not in bare))
        spans = []

    for owner, info in infos:
        if owner != current:
            close()
            current, rows = owner, 0
        for group, n in enumerate(info.rows):
            if n == 0:
                continue
            each = sum(info.sizes[group].get(name, 0) for name in how.text) / n
            step = GROUP_ROWS
            while step > 1 and each * step > SLICE_BYTES + SLICE_BYTES // 2:
                step //= 2
            while n > step * _SLICES:
                step *= 2
            start = 0
            while start < n:
                stop = min(start + step - (rows + start) % step, n)
                spans.append((info.ref, group, start, stop))
                if (rows + stop) % step == 0:
                    close()
                start = stop
            rows += n
    close()
    return chunks


def _split_entries(entries: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What the manifest says about each split."""
    splits: dict[str, dict[str, Any]] = {}
    for split in sorted({entry["split"] for entry in entries}):
        mine = [entry for entry in entries if entry["split"] == split]
        labels = reduce(Labels.merge, [entry["labels"] for entry in mine])
        splits[split] = {
            "rows": sum(entry["rows"] for entry in mine),
            "nnz": sum(entry["nnz"] for entry in mine),
            "files": [{key: entry[key] for key in ("name", "rows", "size", "footer", "columns")} for entry in mine],
            "classes": [[_plain(value), labels.count[value]] for value in sorted(labels.count)] or None,
        }
        if labels.tags:
            splits[split]["tags"] = True
        if labels.fractions:
            splits[split]["targets"] = [labels.low, labels.high]
    return splits


def _plain(value: Any) -> Any:
    """A label as JSON holds it; bytes as their hexadecimal form."""
    return value.hex() if isinstance(value, bytes) else value


def _publish(staging: AnyPath, target: AnyPath) -> None:
    """Give the finished folder its name."""
    if isinstance(target, StorePath):
        store_folders.publish(target, staging.name)
        return
    assert isinstance(staging, Path) and isinstance(target, Path)
    with writing(target):
        publish(staging, target)
