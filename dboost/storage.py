"""Files and folders that appear whole or not at all.

Covers: the atomic write of a file and of a folder (written beside the target, flushed to the disk, renamed, the
parent folder flushed), SHA-256 digests, and the safetensors container with a bounded header.
Does not cover: what a model or a checkpoint holds (``dboost.model``, ``dboost.estimators.checkpoint``), or Parquet.

``fsspec.transaction`` is not used: it collects its files in the system's temporary folder and copies them across
devices, which is neither atomic nor flushed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import ModelFormatError, StorageError, UsageError
from dboost.staging import staged

PathLike = str | os.PathLike[str]

# A header names a handful of arrays; the limit keeps a damaged length field from being allocated.
MAX_HEADER_BYTES = 1 << 20


def sha256_bytes(data: bytes | memoryview) -> str:
    """Hexadecimal SHA-256 of `data`."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: PathLike) -> str:
    """Hexadecimal SHA-256 of a file's content.

    Raises
    ------
    StorageError
        When the file cannot be read.
    """
    try:
        with open(path, "rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as error:
        raise StorageError(f"cannot read: {error.strerror or error}", file=os.fspath(path)) from error


def sha256_json(value: Any) -> str:
    """Hexadecimal SHA-256 of a JSON value, independent of the order of its keys."""
    return sha256_bytes(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())


def write_file(path: PathLike, data: bytes) -> None:
    """Write `data` to `path` so that a reader sees the old content or the new, never a part.

    Raises
    ------
    StorageError
        When the file cannot be written; nothing is left behind and the old file is untouched.
    """
    target = Path(path).resolve()
    beside = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        try:
            _write_flushed(beside, data)
            os.replace(beside, target)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            raise
        _flush_folder(target.parent)
    except OSError as error:
        raise StorageError(
            f"cannot write: {error.strerror or error}", file=os.fspath(path), hint="check the free space and the rights"
        ) from error


@contextlib.contextmanager
def write_folder(path: PathLike, *, marker: str, force: bool = False) -> Iterator[Path]:
    """Fill a folder that appears under its name only when it is complete.

    Parameters
    ----------
    path : path
        The folder to create. Its parent is created when missing.
    marker : str
        A file that every folder of this kind holds. With `force`, only an empty folder or one that holds `marker`
        is replaced, so that a wrong path does not delete something else.
    force : bool
        Replace a folder that exists. A rename cannot replace a filled folder, so the old one is renamed aside and
        deleted last; a crash between the two renames leaves it beside `path` under ``.<name>.<token>.old``.

    What a killed process has left of the same folder is removed (``dboost.staging``).

    Yields
    ------
    pathlib.Path
        The folder to write into.

    Raises
    ------
    UsageError
        When `path` exists and may not be replaced.
    StorageError
        When the folder cannot be written.
    """
    target = Path(path).resolve()
    _refuse_existing(target, path, marker, force)
    old = target.with_name(f".{target.name}.{secrets.token_hex(6)}.old")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with staged(target) as beside:
            yield beside
            _flush_tree(beside)
            # Asked again: another process may have filled the name while this one was writing.
            _refuse_existing(target, path, marker, force)
            if target.exists():
                os.rename(target, old)
            try:
                os.rename(beside, target)
            except OSError:
                if old.exists():
                    os.rename(old, target)
                raise
        _flush_folder(target.parent)
        shutil.rmtree(old, ignore_errors=True)
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(
            f"cannot write: {error.strerror or error}", file=os.fspath(path), hint="check the free space and the rights"
        ) from error


def _refuse_existing(target: Path, path: PathLike, marker: str, force: bool) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise UsageError("a folder is to be written, but a file of this name exists", file=os.fspath(path))
    if not force:
        raise UsageError(
            "the folder exists", file=os.fspath(path), hint="choose another path, or pass force=True (--force)"
        )
    if not (target / marker).is_file() and any(target.iterdir()):
        raise UsageError(
            f"the folder exists and holds no {marker}, so it is not replaced even with force",
            file=os.fspath(path),
            hint="choose another path, or delete it yourself",
        )


def _write_flushed(path: Path, data: bytes) -> None:
    with open(path, "xb") as handle:
        handle.write(data)
        handle.flush()
        os.fsync(handle.fileno())


def _flush_tree(folder: Path) -> None:
    for parent, _, files in os.walk(folder):
        for name in files:
            with open(os.path.join(parent, name), "rb+") as handle:
                os.fsync(handle.fileno())
        _flush_folder(Path(parent))


def _flush_folder(folder: Path) -> None:
    # A rename is durable once the folder's own entry is; Windows cannot open a folder for this.
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_plain_file(folder: PathLike, name: str, *, max_bytes: int) -> bytes:
    """Read the regular file `name` directly inside `folder`, following no link.

    Parameters
    ----------
    folder : path
        The folder of a saved object.
    name : str
        A bare file name. Anything with a separator, ``..`` or a drive is refused.
    max_bytes : int
        The largest size that is read.

    Raises
    ------
    ModelFormatError
        When the name leads outside, the file is missing, a link, no regular file, or too large.
    """
    if not name or name in (".", "..") or name != os.path.basename(name) or "\\" in name or ":" in name or "\0" in name:
        raise ModelFormatError(f"the file name {name!r} leads outside the folder", file=os.fspath(folder))
    path = os.path.join(folder, name)
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            raise ModelFormatError("is a symbolic link, which is not followed", file=path)
        if not stat.S_ISREG(mode):
            raise ModelFormatError("is not a regular file", file=path)
        # O_NOFOLLOW closes the moment between the look and the opening.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError as error:
        raise ModelFormatError("the file is missing", file=path, hint="is this the folder of a saved model?") from error
    except OSError as error:
        raise ModelFormatError(f"cannot be opened: {error.strerror or error}", file=path) from error
    with os.fdopen(descriptor, "rb") as handle:
        size = os.fstat(handle.fileno()).st_size
        if size > max_bytes:
            raise ModelFormatError(f"has {size} bytes, at most {max_bytes} are read", file=path)
        return handle.read(size)


def pack_arrays(arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str] | None = None) -> bytes:
    """Return arrays in the safetensors format (no code, bounded header, little endian)."""
    from safetensors.numpy import save

    whole = {name: np.ascontiguousarray(value).reshape(np.shape(value)) for name, value in arrays.items()}
    packed: bytes = save(whole, metadata=dict(metadata) if metadata else None)
    return packed


def unpack_arrays(
    data: bytes, *, file: str, max_header: int = MAX_HEADER_BYTES
) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Read what `pack_arrays` wrote.

    Returns
    -------
    arrays : dict of str to array
    metadata : dict of str to str

    Raises
    ------
    ModelFormatError
        When the header is too long, cut short or inconsistent with the data.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    length = int.from_bytes(data[:8], "little") if len(data) >= 8 else -1
    if length < 2 or length > max_header or length > len(data) - 8:
        raise ModelFormatError(
            f"the header of the arrays claims {length} bytes (file: {len(data)}, limit: {max_header})", file=file
        )
    try:
        header = json.loads(data[8 : 8 + length])
        arrays = load(data)
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelFormatError(f"the arrays cannot be read: {error}", file=file) from error
    return arrays, dict(header.get("__metadata__") or {})
