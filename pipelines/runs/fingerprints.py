"""What a stage depends on, as plain values that are equal when nothing has changed.

Small files and footers of Parquet are read whole. Of a large file that is no Parquet, and of the rows of Parquet, the
size and the time of the last change must do: reading them would take as long as the stage.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dboost.data import load_manifest
from dboost.data.manifest import MANIFEST
from dboost.data.meaning import visible
from dboost.data.patterns import matches
from dboost.errors import DataError
from dboost.files.paths import PathLike
from dboost.files.storage import sha256_bytes, sha256_json
from dboost.files.store_folders import current, local_copy
from dboost.files.stores import AnyPath, any_path, open_input

# A file of at most so many bytes is read whole.
SMALL = 4 << 20
# Columns of a fit's history that differ from run to run.
VOLATILE = ("seconds", "bytes_moved")
_MAGIC = b"PAR1"
# Settings of a preparation that say which rows and columns are there, which their digests tell; the others say how a
# model reads documents.
NOT_READ = ("keep", "where", "on_bad_rows", "refused")


def of_input(given: PathLike) -> Any:
    """A file, a folder or a pattern that a stage reads; a prepared folder has a fingerprint of its own."""
    path = current(any_path(given, "data"))
    if (path / MANIFEST).is_file():
        return {"prepared": load_manifest(path).fingerprint}
    files = files_of(given)
    if not files and not path.is_dir():
        raise DataError("there is no such file or folder", file=str(path))
    return {name: of_file(file) for name, file in files.items()}


def files_of(given: PathLike) -> dict[str, AnyPath]:
    """A file, or those of a folder or a pattern, by their names; empty where nothing is there."""
    path = current(any_path(given, "data"))
    several = matches(path)
    if several is not None:
        return {name: any_path(file) for file, name in several}
    if path.is_dir():
        return {name: path / name for name in sorted(visible(path))}
    return {path.name: path} if path.is_file() else {}


def of_rows(given: PathLike, split: str, columns: Sequence[str]) -> Any:
    """The features, the label and some columns of a split of a prepared folder, and how its terms are made.

    Other columns that the folder holds, and other splits, change nothing here. None where the data is no prepared
    folder, has no such split, or was prepared by a version that wrote no digests of columns.
    """
    folder = current(any_path(given, "data"))
    if not (folder / MANIFEST).is_file():
        return None
    manifest = load_manifest(folder)
    files = manifest.splits.get(split, {}).get("files", [{}])
    if not all("columns" in file for file in files):
        return None
    features = [manifest.features[name] for name in ("indices", "values")]
    names = dict.fromkeys([*features, *([manifest.label] if manifest.label else []), *columns])
    return {
        "vocabulary": manifest.vocabulary,
        "rule": {name: value for name, value in manifest.settings.items() if name not in NOT_READ},
        "rows": [[file["name"], file["rows"], *(file["columns"].get(name) for name in names)] for file in files],
    }


def of_file(path: AnyPath) -> list[Any]:
    """Size and content of a small file; size, time of change and footer of a large one."""
    found = path.stat()
    if found.st_size <= SMALL:
        return [found.st_size, sha256_bytes(path.read_bytes())]
    return [found.st_size, found.st_mtime_ns, sha256_bytes(_end(path, found.st_size))]


def of_output(path: Path) -> str:
    """A file or folder that a stage wrote, the same when it was copied; empty where it is not there."""
    if path.is_file():
        return sha256_json(_written(path))
    if not path.is_dir():
        return ""
    names = sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
    return sha256_json({name: _written(path / name) for name in names})


def of_model(given: PathLike) -> str:
    """A saved model but for the times that its fit took, which differ from run to run."""
    path = Path(local_copy(given))
    digest = hashlib.sha256()
    for file in sorted(path.rglob("model.json")):
        document = json.loads(file.read_bytes())
        document.pop("sha256", None)
        for record in document.get("history", []):
            for name in [name for name in record if name.startswith(VOLATILE)]:
                del record[name]
        digest.update(sha256_json([file.relative_to(path).as_posix(), document]).encode())
        for arrays in sorted(file.parent.glob("*.safetensors")):
            digest.update(arrays.read_bytes())
    return digest.hexdigest()


def of_values(values: Any) -> str:
    """Settings and digests, as one digest; what JSON does not have counts by its text."""
    return sha256_json(json.loads(json.dumps(values, default=str)))


def _written(path: Path) -> list[Any]:
    size = path.stat().st_size
    return [size, sha256_bytes(path.read_bytes() if size <= SMALL else _end(path, size))]


def _end(path: AnyPath, size: int) -> bytes:
    """The footer of Parquet; of another file its last bytes."""
    with open_input(str(path)) as handle:
        handle.seek(size - 8)
        tail = handle.read(8)
        length = int.from_bytes(tail[:4], "little") if tail[4:] == _MAGIC else SMALL
        handle.seek(max(0, size - 8 - length))
        return bytes(handle.read())
