"""Where the documents of ``prepare`` come from: the files of each split, as Parquet.

Covers: which files are meant, one file in two splits, copies of those in other formats, the kinds of their columns, and
errors in the names of the files that the user gave. Does not cover: what the formats mean (``documents``), or what is
done with the rows (``prepare``).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from dboost.data.features.look import Seen
from dboost.data.meaning import (
    CSV,
    Dialect,
    folder_columns,
    folder_values,
    format_of,
    is_index,
    is_text,
    say_index,
    say_own,
)
from dboost.data.parquet.block import at
from dboost.data.parquet.read import inspect_file
from dboost.data.prepared.copies import Copy, Picking, copy_documents, lacks_values, look_at
from dboost.data.prepared.documents import (
    Wanted,
    column_types,
    document_files,
    header_of,
    joint_kinds,
)
from dboost.data.prepared.mapper import Mapper
from dboost.data.prepared.where import parsed
from dboost.errors import DataError, UsageError
from dboost.files.storage import writing
from dboost.files.stores import AnyPath, is_store

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
# Folder of the copies within the folder that is being written; they go before it gets its name.
COPIES = "_documents"
# Folder of the rows that were put aside; it stays.
REFUSED = "_refused"
_BELOW = "below the names of the columns"


@dataclass(frozen=True)
class Sources:
    """Files of documents, all in Parquet."""

    # In the order of the rows. The split is None where a column says it.
    files: tuple[tuple[str | None, tuple[str, str]], ...]
    origin: Mapping[str, str]  # From the path of a copy to that of the file it was made from.
    refused: Mapping[str, int] = field(default_factory=dict)  # Rows that were put aside, by reason.


@contextmanager
def in_own_names(origin: Mapping[str, str]) -> Iterator[None]:
    """Errors name the file that the user gave, not its copy, which has row groups of its own; by the paths of both."""
    try:
        yield
    except DataError as fault:
        file = origin.get(fault.file or "")
        if file is None:
            raise
        raise DataError(fault.what, file=file, column=fault.column, hint=fault.hint) from fault


def splits_of(
    source: Source | Mapping[str, Source], split_column: str | None
) -> tuple[list[tuple[str | None, Source]], str]:
    """The source of each split, and the split that the vocabulary is learned from; without meaning a UsageError."""
    if not isinstance(source, Mapping):
        return [(None if split_column is not None else "train", source)], "train"
    if split_column is not None:
        raise UsageError("split was given beside a source per split", hint="use one of them")
    if not source:
        raise UsageError("source names no split", hint="name at least one")
    for name in source:
        if not name or name.startswith(("_", ".")) or "/" in name or "\\" in name:
            raise UsageError(f"{name!r} cannot name a split")
    if "train" in source:
        return list(source.items()), "train"
    if len(source) > 1:
        raise UsageError("no split is named 'train'", hint="the vocabulary is learned from the split 'train'")
    return list(source.items()), next(iter(source))


def open_sources(
    splits: Sequence[tuple[str | None, Source]],
    wanted: Wanted,
    label: str | None,
    learned: str,
    staging: AnyPath,
    mapper: Mapper,
    where: str | None = None,
    quarantine: bool = False,
) -> Sources:
    """The files of all splits; those of text, or with rows to leave out, are copied into Parquet within `staging`."""
    found = [(owner, file) for owner, source in splits for file in document_files(source)]
    _refuse_same(found)
    filtered = parsed(where)[1] if where is not None else ()
    every = list(dict.fromkeys(path for _, (path, _) in found))
    foreign, other = ([path for path in every if is_text(path) == text] for text in (True, False))
    wanted.dialect.check_used(every)
    mine = {path for owner, (path, _) in found if owner in (None, learned)}
    folders = _folders([file for _, file in found])
    copies: dict[str, str] = {}
    refused: Counter[str] = Counter()

    def picking(learns: bool) -> Picking:
        # rows without a text, or a label to learn from, go into REFUSED with their reasons; else they end it when read
        required = (*wanted.texts, *([label] if label and learns else ())) if quarantine else ()
        return Picking(where, required, str(staging / REFUSED))

    def loosened(what: Wanted) -> Wanted:
        return replace(what, optional=(*what.optional, *([label] if label else [])))

    def copy(paths: Sequence[str], what: Wanted, kinds: Mapping[str, str]) -> None:
        make_folder(staging / COPIES)
        numbered = enumerate(paths, len(copies))
        items = [Copy(path, str(staging / COPIES / f"{i:05d}.parquet"), folders[path]) for i, path in numbered]
        copies.update((item.path, item.target) for item in items)
        for learns in (True, False):
            some = [item for item in items if (item.path in mine) == learns]
            if some:
                for told in mapper.map(copy_documents, some, what, kinds, picking(learns), name="copy-documents"):
                    refused.update(told)

    if foreign:
        more = tuple(name for name in filtered if name not in wanted.names())
        read = replace(wanted, kept=(*wanted.kept, *more))
        types: dict[str, dict[str, frozenset[str]]] = {}
        for learns in (True, False):
            some = [path for path in foreign if (path in mine) == learns]
            items = [(path, tuple(folders[path])) for path in some]
            what = read if learns else loosened(read)
            types.update(zip(some, mapper.map(column_types, items, what, name="find-types"), strict=True))
        say_own({name for path in foreign for name in types[path] if name in folders[path]})
        copy(foreign, loosened(read), joint_kinds([types[path] for path in foreign], foreign))
    needed = where is not None
    if quarantine and other and not needed:
        required = [(path, picking(path in mine).required) for path in other]
        needed = any(mapper.map(lacks_values, required, name="look-for-missing"))
    if other and needed:
        copy(sorted(other, key=lambda path: path not in mine), loosened(wanted), {})
    files = tuple((owner, (copies.get(path, path), name)) for owner, (path, name) in found)
    return Sources(files, {copy: path for path, copy in copies.items()}, dict(refused))


def _folders(files: Sequence[tuple[str, str]]) -> dict[str, dict[str, tuple[str, Any]]]:
    """The columns that the folders of each file hold, by its path: kinds and values."""
    columns, kinds = folder_values([name for _, name in files])
    return {
        path: {name: (kinds[name], value) for name, value in values.items()}
        for (path, _), values in zip(files, columns, strict=True)
    }


def look_at_files(
    source: Source | Mapping[str, Source],
    mapper: Mapper,
    *,
    split: str | None = None,
    where: str | None = None,
    left_out: Sequence[str] = (),
    dialect: Dialect,
) -> dict[str, Seen]:
    """What the rows that are learned from say of the kind of each column, folders' too, but some left out."""
    splits, learned = splits_of(source, split)
    files = [file for owner, one in splits if owner in (None, learned) for file in document_files(one)]
    dialect.check_used(path for path, _ in files)
    folders = _folders(files)
    foreign = [path for path, _ in files if is_text(path)]
    every = Wanted((), (), (), dialect=dialect, every=True)
    types = mapper.map(column_types, [(path, tuple(folders[path])) for path in foreign], every, name="find-types")
    kinds = joint_kinds(types, foreign)
    infos = mapper.map(inspect_file, [file for file in files if not is_text(file[0])], name="read-footers")
    index = {*filter(is_index, kinds), *(name for info in infos for name in info.index)} - {*left_out}
    say_index(sorted(index), "tell its kind")
    names = dict.fromkeys([*kinds, *(name for info in infos for name in info.kinds), *next(iter(folders.values()))])
    kept = tuple(name for name in names if name not in {*left_out, *index})
    needed = tuple(name for name in names if name in kept or name == split)
    wanted = Wanted((), (), needed, needed, dialect)
    of_split = None if split is None else (split, learned)
    items = [Copy(path, "", folders[path]) for path, _ in files]
    parts = mapper.map(look_at, items, wanted, kinds, where, of_split, name="look")
    whole: dict[str, Seen] = {}
    if not any(rows for rows, _ in parts):
        raise _no_row(files, _BELOW if where is None and split is None else "that is learned from")
    for (path, _), (_, part) in zip(files, parts, strict=True):
        for name, seen in part.items():
            with at(path, None, name):
                whole[name] = whole[name].merge(seen, name) if name in whole else seen
    return {name: whole[name] for name in kept if name in whole}


def copy_tables(
    source: Source, folder: AnyPath, ending: str, labels: Sequence[str], columns: Sequence[str] | None, dialect: Dialect
) -> None:
    """Copy tables of CSV and JSON lines into a folder, as Parquet with their names and an ending; None: all columns."""
    files = document_files(source)
    paths = [path for path, _ in files]
    headers = [header_of(path, dialect) for path in paths]
    for path, there in zip(paths, headers, strict=True):
        odd = sorted(set(there) ^ set(headers[0])) if columns is None and format_of(path) == CSV else []
        if odd:
            raise DataError(
                f"the column is in one of two files only: {os.path.basename(paths[0])} is the other",
                file=path, column=odd[0], hint="write all files with one schema",
            )  # fmt: skip
    others = headers[0] if columns is None else columns
    others = tuple(dict.fromkeys(name for name in others if name not in labels))
    folders = [tuple(folder_columns(name)) for _, name in files]
    wanted = Wanted((), tuple(labels), others, dialect=dialect)
    reports = [column_types((path, there), wanted) for path, there in zip(paths, folders, strict=True)]
    kinds = joint_kinds(reports, paths)
    if set(kinds.values()) <= {"null"}:
        raise _no_row(files, f"{_BELOW} that holds a value")
    for path, name in files:
        target = folder / _copy_name(name, ending)
        make_folder(target.parent)
        copy_documents(Copy(path, str(target)), wanted, kinds, Picking())


def _no_row(files: Sequence[tuple[str, str]], which: str) -> DataError:
    return DataError(f"there is no row {which}", file=files[0][0] if len(files) == 1 else None)


def source_of_copy(source: Source, folder: AnyPath, ending: str, copy: str) -> str | None:
    """The file that `copy_tables` made a copy of; None for a file that is no copy of this source."""
    here = os.path.abspath(copy)
    copies = ((os.path.abspath(str(folder / _copy_name(name, ending))), path) for path, name in document_files(source))
    return next((path for target, path in copies if target == here), None)


def _copy_name(name: str, ending: str) -> str:
    return (os.path.basename(name) if is_store(name) or os.path.isabs(name) else name) + ending


def _refuse_same(found: Sequence[tuple[str | None, tuple[str, str]]]) -> None:
    """Documents that are learned from and judged by would be judged too well."""
    seen: dict[Any, tuple[str | None, str]] = {}
    for owner, (path, _) in found:
        first, where = seen.setdefault(_same_file(path), (owner, path))
        if first != owner:
            same = "" if where == path else f", as {where}"
            raise UsageError(
                f"one file is in the splits {first!r} and {owner!r}{same}",
                file=path,
                hint="hold out documents that are in no other split",
            )


def _same_file(path: str) -> Any:
    """What is equal for two names of one file."""
    if is_store(path):
        return path
    state = os.stat(path)
    return state.st_dev, state.st_ino


def make_folder(folder: AnyPath) -> None:
    """Make a folder and those above it."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
