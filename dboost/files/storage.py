"""Files and folders that appear whole or not at all.

Covers: the atomic write of a file and of a folder (written beside the target, flushed to the disk, renamed, the
parent folder flushed), whether a place can be written at all, SHA-256 digests, and the safetensors container with a
bounded header.
Does not cover: which paths are served (``dboost.files.paths``), files that killed processes left
(``dboost.files.unfinished``), what a model or a checkpoint holds (``dboost.model.fitted``,
``dboost.estimators.checkpoint``), or Parquet.

``fsspec.transaction`` is not used: it collects its files in the system's temporary folder and copies them across
devices, which is neither atomic nor flushed.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import ModelFormatError, StorageError, UsageError
from dboost.files import store_folders
from dboost.files.paths import PathLike, local_path
from dboost.files.publish import publish
from dboost.files.stores import StorePath, any_path, write_object
from dboost.files.unfinished import FOLDER, beside_of, own_file, own_folder

# A header names a handful of arrays; the limit keeps a damaged length field from being allocated.
MAX_HEADER_BYTES = 1 << 20


def sha256_bytes(data: bytes | memoryview) -> str:
    """Hexadecimal SHA-256 of `data`."""
    return hashlib.sha256(data).hexdigest()


def sha256_json(value: Any) -> str:
    """Hexadecimal SHA-256 of a JSON value, independent of the order of its keys."""
    return sha256_bytes(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())


def write_file(path: PathLike, *parts: bytes, keep: PathLike | None = None) -> None:
    """Write a file whole or not at all (StorageError); with `keep`, the old file gets that name in the same folder."""
    with writing_whole(path, keep) as stream:
        for part in parts:
            stream.write(part)


@contextlib.contextmanager
def writing_whole(path: PathLike, keep: PathLike | None = None) -> Iterator[IO[bytes]]:
    """A stream to a file that appears when the block ends, and does not after an error; `keep` as in `write_file`."""
    if isinstance(found := any_path(path), StorePath):
        # what is streamed into an object could not be taken back
        whole = io.BytesIO()
        yield whole
        older = None if keep is None else any_path(keep)
        write_object(found, whole.getvalue(), keep=older if isinstance(older, StorePath) else None)
        return
    target = found.resolve()
    with writing(path):
        beside, handle = own_file(target)
        try:
            # The lock says that this process lives, so the file is closed after it has its name.
            with handle:
                yield handle
                handle.flush()
                os.fsync(handle.fileno())
                if os.name == "nt":
                    handle.close()  # an open file cannot be renamed there
                if keep is not None:
                    _keep_old(target, Path(keep))
                os.replace(beside, target)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            raise
        _flush_folder(target.parent)


@contextlib.contextmanager
def writing(path: PathLike) -> Iterator[None]:
    """Faults of the file system while `path` is written, such as that the disk is full, as a ``StorageError``."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        reason = error.strerror or (os.strerror(error.errno) if error.errno else str(error).splitlines()[0])
        raise StorageError(
            f"cannot write: {reason}", file=os.fspath(path), hint="check the free space and the rights"
        ) from error


def _keep_old(target: Path, keep: Path) -> None:
    """Give the file `target` the second name `keep`, so that the first one is never missing."""
    keep.unlink(missing_ok=True)
    if not target.exists():
        return
    try:
        os.link(target, keep)
    except OSError:  # a file system without a second name for a file
        shutil.copyfile(target, keep)


def check_writable(path: PathLike) -> None:
    """Find out before a long computation whether a path can be written (else a StorageError); nothing stays behind."""
    if isinstance(found := any_path(path), StorePath):
        probe = found.with_name(f".{found.name}.{secrets.token_hex(6)}")
        probe.write_bytes(b"")
        probe.unlink()
        return
    target = found.resolve()
    made: list[Path] = []
    with writing(path):
        try:
            for folder in reversed([f for f in target.parents if not f.exists()]):
                folder.mkdir()
                made.append(folder)
            trial = beside_of(target, FOLDER)
            trial.mkdir()
            with contextlib.suppress(FileNotFoundError):  # another process took it for an abandoned one
                trial.rmdir()
        finally:
            for folder in reversed(made):
                with contextlib.suppress(OSError):  # another process writes there by now
                    folder.rmdir()


@contextlib.contextmanager
def write_folder(path: PathLike, *, marker: str, force: bool = False) -> Iterator[Path]:
    """Fill a folder that appears under its name only when it is complete.

    `path`: The folder to create. Its parent is created when missing. In a store it is filled here and put there at the
    end (``dboost.files.store_folders``).
    `marker`: A file that every folder of this kind holds. With `force`, only an empty folder or one that holds `marker`
    is replaced, so that a wrong path does not delete something else.
    `force`: Replace a folder that exists (``dboost.files.publish``).
    Yields pathlib.Path: The folder to write into.
    Raises UsageError: When `path` exists and may not be replaced.
    Raises StorageError: When the folder cannot be written.
    """
    if isinstance(found := any_path(path), StorePath):
        with _store_folder(found, marker, force) as beside:
            yield beside
        return
    target = found.resolve()
    refuse_existing(path, marker, force)
    with writing(path):
        target.parent.mkdir(parents=True, exist_ok=True)
        with own_folder(target) as beside:
            yield beside
            _flush_tree(beside)
            # Asked again: another process may have filled the name while this one was writing.
            refuse_existing(path, marker, force)
            publish(beside, target)
        _flush_folder(target.parent)


@contextlib.contextmanager
def _store_folder(target: StorePath, marker: str, force: bool) -> Iterator[Path]:
    """Fill a local folder that is put into a store when it is complete, and is named there last of all."""
    refuse_existing(target, marker, force)
    name = store_folders.generation()
    with tempfile.TemporaryDirectory(prefix="dboost-") as folder:
        yield Path(folder)
        try:
            store_folders.upload(Path(folder), target / name)
            refuse_existing(target, marker, force)
            store_folders.publish(target, name)
        except BaseException:
            with contextlib.suppress(StorageError):
                (target / name).remove_below()
            raise


def refuse_existing(path: PathLike, marker: str, force: bool) -> None:
    """Refuse (UsageError) a folder that exists, unless it may be replaced; see ``write_folder``."""
    target = any_path(path)
    if isinstance(target, StorePath):
        free, file = store_folders.is_free(target), str(target)
    else:
        free, file = not target.exists(), os.fspath(path)
    if free:
        return
    if isinstance(target, Path) and not target.is_dir():
        raise UsageError("a folder is to be written, but a file of this name exists", file=file)
    if not force:
        raise UsageError("the folder exists", file=file, hint="choose another path, or pass force=True (--force)")
    if not (store_folders.current(target) / marker).is_file() and any(target.iterdir()):
        raise UsageError(
            f"the folder exists and holds no {marker}, so it is not replaced even with force",
            file=file,
            hint="choose another path, or delete it yourself",
        )


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


def read_plain_file(folder: PathLike, name: str, *, max_bytes: int, size: int | None = None) -> bytes:
    """Read the regular file `name` directly inside `folder`, following no link.

    `folder`: The folder of a saved object.
    `name`: A bare file name. Anything with a separator, ``..`` or a drive is refused.
    `max_bytes`: The largest size that is read.
    `size`: The size that the file must have; a file of another size is not read.
    Raises UsageError: For a folder that is not served.
    Raises ModelFormatError: When the name leads outside, the file is missing, a link, no regular file, too large or of
    another size.
    """
    if not name or name in (".", "..") or name != os.path.basename(name) or "\\" in name or ":" in name or "\0" in name:
        raise ModelFormatError(f"the file name {name!r} leads outside the folder", file=os.fspath(folder))
    path = os.path.join(local_path(folder), name)
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            raise ModelFormatError("is a symbolic link, which is not followed", file=path)
        if not stat.S_ISREG(mode):
            raise ModelFormatError("is not a regular file", file=path)
        # O_NOFOLLOW closes the moment between the look and the opening.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError as error:
        raise ModelFormatError("the file is missing", file=path, hint="restore the file") from error
    except OSError as error:
        raise ModelFormatError(f"cannot be opened: {error.strerror or error}", file=path) from error
    with os.fdopen(descriptor, "rb") as handle:
        found = os.fstat(handle.fileno()).st_size
        if size is not None and found != size:
            raise ModelFormatError(f"has {found} bytes, expected {size}", file=path, hint="restore the file")
        if found > max_bytes:
            raise ModelFormatError(f"has {found} bytes, at most {max_bytes} are read", file=path)
        return handle.read(found)


def pack_arrays(arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str] | None = None) -> bytes:
    """Return arrays in the safetensors format (no code, bounded header, little endian)."""
    from safetensors.numpy import save

    whole = {name: np.ascontiguousarray(value).reshape(np.shape(value)) for name, value in arrays.items()}
    packed: bytes = save(whole, metadata=dict(metadata) if metadata else None)
    return packed


def unpack_arrays(
    data: bytes, *, file: str, max_header: int = MAX_HEADER_BYTES
) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Read what `pack_arrays` wrote; what is cut short or inconsistent is a ModelFormatError."""
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
