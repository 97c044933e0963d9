"""The manifest of a prepared data set: one JSON file beside the folders of its splits.

Covers: writing, reading and validating ``_dboost.json``, and the vocabulary file it names.
Does not cover: how the data is prepared (``prepare``) or read (``parquet``).

The folder looks like this::

    _dboost.json            schema, classes and rows per split, files with sizes and footer hashes, settings
    _vocabulary.parquet     term, document_frequency, idf; row j is feature j
    train/part-00000.parquet ...
    test/part-00000.parquet ...

Names that start with ``_`` or ``.`` are never data.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import DataError, type_name
from dboost.files.storage import sha256_bytes, write_file, writing, writing_whole
from dboost.files.store_folders import current
from dboost.files.stores import AnyPath, any_path

MANIFEST = "_dboost.json"
VOCABULARY = "_vocabulary.parquet"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class Manifest:
    """What a prepared data set says about itself."""

    schema: Mapping[str, str]  # Column name to kind (``int``, ``float32``, ``str``, ``list<int>``, ...).
    features: Mapping[str, Any]  # ``indices`` and ``values``: the two list columns; ``n_features``.
    label: str | None
    # ``rows``, ``nnz``, ``files`` (each ``name``, ``rows``, ``size``, ``footer`` and the sha256 of its ``columns``) and
    # ``classes`` (pairs of label and count, in sort order; None without a label).
    splits: Mapping[str, Mapping[str, Any]]
    vocabulary: Mapping[str, str] | None  # ``file`` and ``sha256``.
    settings: Mapping[str, Any]  # How the data was prepared.
    format_version: int = FORMAT_VERSION
    fingerprint: str = ""  # sha256 over everything above.
    root: str = field(default="", compare=False)  # Folder of the manifest; not part of the file.

    def content(self) -> dict[str, Any]:
        """The manifest as written, fingerprint included."""
        content = asdict(self)
        del content["root"]
        content["fingerprint"] = fingerprint_of(content)
        return content

    def feature_names(self) -> tuple[str, ...] | None:
        """The terms of the vocabulary, in the order of the features."""
        if self.vocabulary is None:
            return None
        return read_vocabulary(self.root, self.vocabulary)[0]


def fingerprint_of(content: Mapping[str, Any]) -> str:
    """SHA-256 of a manifest's content without its fingerprint."""
    plain = {key: value for key, value in content.items() if key != "fingerprint"}
    return sha256_bytes(json.dumps(plain, sort_keys=True, ensure_ascii=True).encode())


def write_manifest(manifest: Manifest, folder: str | os.PathLike[str]) -> None:
    """Write `manifest` into `folder`, fsynced and renamed into place."""
    text = json.dumps(manifest.content(), indent=1, ensure_ascii=False)
    write_file(any_path(folder) / MANIFEST, text.encode())


def write_parquet(table: Any, path: AnyPath, **options: Any) -> None:
    """Write a table as one file with page checksums, which appears whole, or not (StorageError)."""
    import pyarrow.parquet as pq

    with writing(path):
        path.parent.mkdir(exist_ok=True)
    with writing_whole(path) as stream:
        pq.write_table(table, stream, **{"compression": "zstd", "write_page_checksum": True} | options)


def load_manifest(folder: str | os.PathLike[str]) -> Manifest:
    """Read the manifest in a folder; one that is damaged, or names files outside, is a DataError."""
    folder = current(any_path(folder))
    return _read_manifest(folder, _written(folder / MANIFEST))


def _written(path: AnyPath) -> tuple[int, ...]:
    """What tells a file of a disk from an earlier one of its name, so that one that stays is read once."""
    if isinstance(path, Path):
        with contextlib.suppress(OSError):
            found = path.stat()
            return found.st_ino, found.st_size, found.st_mtime_ns
    return (next(_ANEW),)


_ANEW = itertools.count()


@lru_cache(maxsize=16)
def _read_manifest(folder: AnyPath, written: tuple[int, ...]) -> Manifest:
    path = folder / MANIFEST
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as fault:
        raise DataError("no manifest here", file=str(path), hint="make one with `dboost prepare`") from fault
    except OSError as fault:
        raise DataError(f"cannot be read: {fault.strerror or fault}", file=str(path)) from fault
    except ValueError as fault:
        raise DataError(f"not a manifest: {fault}", file=str(path), hint="prepare the data again") from fault
    if not isinstance(content, dict):
        raise DataError("not a manifest: expected a JSON object", file=str(path), hint="prepare the data again")
    if content.get("format_version") != FORMAT_VERSION:
        raise DataError(
            f"format version {content.get('format_version')!r}, expected {FORMAT_VERSION}",
            file=str(path),
            hint="prepare the data again with this version of dboost",
        )
    _check_content(content, str(path))
    return Manifest(**content, root=str(folder))


_EXPECTED: dict[str, tuple[type, ...]] = {
    "schema": (dict,),
    "features": (dict,),
    "label": (str, type(None)),
    "splits": (dict,),
    "vocabulary": (dict, type(None)),
    "settings": (dict,),
    "format_version": (int,),
    "fingerprint": (str,),
}


def _check_content(content: dict[str, Any], path: str) -> None:
    def refuse(what: str) -> DataError:
        return DataError(f"the manifest is damaged: {what}", file=path, hint="prepare the data again")

    if set(content) != set(_EXPECTED):
        raise refuse(f"keys {sorted(set(content) ^ set(_EXPECTED))} are missing or unknown")
    for key, kinds in _EXPECTED.items():
        if not isinstance(content[key], kinds):
            raise refuse(f"{key} is {type_name(content[key])}")
    features = content["features"]
    if not all(isinstance(features.get(key), str) for key in ("indices", "values")):
        raise refuse("features name no list columns")
    if not isinstance(features.get("n_features"), int) or features["n_features"] < 0:
        raise refuse("n_features is not a count")
    names = [content["vocabulary"].get("file")] if content["vocabulary"] is not None else []
    for split, entry in content["splits"].items():
        if not isinstance(entry, dict) or not isinstance(entry.get("files"), list):
            raise refuse(f"split {split!r} lists no files")
        names.append(split)
        for file in entry["files"]:
            if not isinstance(file, dict) or not {"name", "rows", "size", "footer"} <= set(file):
                raise refuse(f"a file of split {split!r} is incomplete")
            names.append(file["name"])
    for name in names:
        if not isinstance(name, str) or name in ("", ".", "..") or "/" in name or "\\" in name or "\0" in name:
            raise refuse(f"{name!r} is not a plain file name")
    if fingerprint_of(content) != content["fingerprint"]:
        raise refuse("it does not match its fingerprint")


def find_manifest(path: str) -> tuple[Manifest, str | None] | None:
    """The manifest that speaks for a folder or file, and the split it belongs to; None where there is none."""
    here = any_path(path)
    folder = here if here.is_dir() else here.parent
    if (folder / MANIFEST).is_file():
        return load_manifest(folder), None
    if (folder.parent / MANIFEST).is_file():
        manifest = load_manifest(folder.parent)
        if folder.name in manifest.splits:
            return manifest, folder.name
    return None


def write_vocabulary(
    folder: str | os.PathLike[str],
    terms: list[str],
    document_frequency: NDArray[np.int64],
    idf: NDArray[np.float64],
) -> dict[str, str]:
    """Write the vocabulary; returns what the manifest says about it."""
    import pyarrow as pa

    table = pa.table({"term": pa.array(terms, pa.string()), "document_frequency": document_frequency, "idf": idf})
    path = any_path(folder) / VOCABULARY
    write_parquet(table, path)
    return {"file": VOCABULARY, "sha256": sha256_bytes(path.read_bytes())}


def read_vocabulary(
    folder: str | os.PathLike[str], entry: Mapping[str, str]
) -> tuple[tuple[str, ...], NDArray[np.int64], NDArray[np.float64]]:
    """Terms, document frequencies and idf; the sha256 of the manifest is checked."""
    table = vocabulary_table(folder, entry)
    return (
        tuple(table.column("term").to_pylist()),
        table.column("document_frequency").to_numpy(),
        table.column("idf").to_numpy(),
    )


def vocabulary_table(folder: str | os.PathLike[str], entry: Mapping[str, str]) -> Any:
    """The vocabulary as an Arrow table; the sha256 of the manifest is checked."""
    path = any_path(folder) / entry["file"]
    return _read_vocabulary(path, entry["sha256"], _written(path))


@lru_cache(maxsize=1)
def _read_vocabulary(path: AnyPath, sha256: str, written: tuple[int, ...]) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        content = path.read_bytes()
    except OSError as fault:
        raise DataError(f"cannot be read: {fault.strerror or fault}", file=str(path)) from fault
    if sha256_bytes(content) != sha256:
        raise DataError("the vocabulary is not the one of the manifest", file=str(path), hint="prepare the data again")
    return pq.read_table(pa.BufferReader(content))
