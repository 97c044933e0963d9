"""Objects in S3, Google Cloud Storage and Azure as paths.

Covers: which addresses are served, the part of ``pathlib`` that is needed here, what a store answers as our errors.
Does not cover: folders that appear whole (``dboost.files.store_folders``), local files (``dboost.files.paths``).

Credentials come from where the makers of a store look for them (environment, profile, role of the machine). Those in an
address are refused: an address is written into logs, manifests and the tasks of a cluster.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple
from urllib.parse import parse_qsl

from dboost.errors import StorageError, UsageError
from dboost.files.paths import SCHEMES, PathLike, local_path
from dboost.redact import redact_urls

_ADDRESS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*):/{1,2}(?P<rest>[^/?][^?]*)(?P<query>\?.*)?", re.DOTALL)
# Options of an address in S3, called as where a file system is made.
_S3_OPTIONS = ("endpoint_override", "region", "scheme")
# Seconds and tries after which a store that does not answer is given up; Arrow would ask Google for 15 minutes.
CONNECT_SECONDS, REQUEST_SECONDS, TRIES, RETRY_SECONDS = 5.0, 60.0, 4, 30.0


class State(NamedTuple):
    """Size in bytes and time of the last change, as ``os.stat`` calls them."""

    st_size: int
    st_mtime_ns: int


@dataclass(frozen=True)
class StorePath(os.PathLike[str]):
    """An object, or a prefix that is taken for a folder."""

    base: str  # Scheme and bucket: ``s3://bucket``.
    key: str  # Without slashes at its ends.
    query: str = ""  # Options of the store, with the question mark; empty without.

    def __str__(self) -> str:
        return f"{self.base}/{self.key}{self.query}" if self.key else f"{self.base}{self.query}"

    __fspath__ = __str__

    def __truediv__(self, name: str | os.PathLike[str]) -> StorePath:
        more = os.fspath(name).strip("/")
        return StorePath(self.base, f"{self.key}/{more}".strip("/"), self.query)

    def with_name(self, name: str) -> StorePath:
        """Another one in the same folder."""
        return self.parent / name

    def resolve(self) -> StorePath:
        """Itself: an address is whole."""
        return self

    absolute = resolve

    @property
    def name(self) -> str:
        """The last part of the key."""
        return PurePosixPath(self.key).name

    @property
    def parent(self) -> StorePath:
        """The folder it lies in."""
        above = self.key.rpartition("/")[0]
        return StorePath(self.base, above, self.query)

    def relative_to(self, folder: StorePath) -> PurePosixPath:
        """The key below a folder."""
        return PurePosixPath(self.key).relative_to(folder.key)

    def exists(self) -> bool:
        """Whether there is an object, or something below the prefix."""
        return self._info().type.name in ("File", "Directory")

    def is_file(self) -> bool:
        """Whether there is an object."""
        return bool(self._info().type.name == "File")

    def is_dir(self) -> bool:
        """Whether something lies below the prefix."""
        return bool(self._info().type.name == "Directory")

    def stat(self) -> State:
        """Size and time of an object, or FileNotFoundError."""
        info = self._info()
        if info.type.name != "File":
            raise FileNotFoundError(str(self))
        return State(int(info.size), int(info.mtime_ns or 0))

    def rglob(self, pattern: str) -> Iterator[StorePath]:
        """The objects below, whose names fit the pattern, in the order of their keys."""
        from pyarrow.fs import FileSelector

        with self._asked() as (system, where):
            found = system.get_file_info(FileSelector(where, allow_not_found=True, recursive=True))
        for info in sorted(found, key=lambda one: one.path):
            if info.type.name == "File" and PurePosixPath(info.path).match(pattern):
                yield self / info.path[len(where) :]

    def iterdir(self) -> Iterator[StorePath]:
        """What lies directly below, objects and folders."""
        from pyarrow.fs import FileSelector

        with self._asked() as (system, where):
            found = system.get_file_info(FileSelector(where, allow_not_found=True))
        yield from (self / info.base_name for info in sorted(found, key=lambda one: one.path))

    def open_input(self) -> Any:
        """A file of Arrow that can be read anywhere."""
        with self._asked() as (system, where):
            return system.open_input_file(where)

    def open_output(self) -> Any:
        """A stream of Arrow; the object is there when it is closed."""
        with self._asked() as (system, where):
            return system.open_output_stream(where)

    def read_bytes(self) -> bytes:
        """The whole content."""
        with self.open_input() as stream, told(self):
            return bytes(stream.read())

    def read_text(self, encoding: str = "utf-8") -> str:
        """The whole content as text."""
        return self.read_bytes().decode(encoding)

    def write_bytes(self, data: bytes) -> None:
        """Put an object, which is there as a whole or not at all."""
        with self._asked() as (system, where):
            stream = system.open_output_stream(where)
            stream.write(data)
            stream.close()

    def mkdir(self, parents: bool = True, exist_ok: bool = True) -> None:
        """Nothing: a prefix needs not be made."""

    def unlink(self, missing_ok: bool = False) -> None:
        """Delete an object."""
        with self._asked() as (system, where):
            if not missing_ok or self.is_file():
                system.delete_file(where)

    def remove_below(self) -> None:
        """Delete all objects below the prefix, where there are any."""
        with self._asked() as (system, where):
            if self.is_dir():
                system.delete_dir(where)

    def copy_to(self, other: StorePath) -> None:
        """Copy an object within the store."""
        with self._asked() as (system, where):
            system.copy_file(where, other._place()[1])

    def _info(self) -> Any:
        with self._asked() as (system, where):
            return system.get_file_info(where)

    def _place(self) -> tuple[Any, str]:
        system, root = _system(self.base, self.query)
        return system, f"{root}/{self.key}" if self.key else root

    @contextmanager
    def _asked(self) -> Iterator[tuple[Any, str]]:
        """The file system and the place in it, and what goes wrong there as our errors."""
        with told(self):
            yield self._place()


AnyPath = Path | StorePath


def is_store(path: Any) -> bool:
    """Whether an address is that of a store that is served."""
    if isinstance(path, StorePath):
        return True
    if not isinstance(path, str | os.PathLike):
        return False
    text = os.fspath(path)
    found = _ADDRESS.fullmatch(text) if isinstance(text, str) else None
    return found is not None and found["scheme"].lower() in SCHEMES


def any_path(path: PathLike, what: str = "path") -> AnyPath:
    """What a user's path means: an object or prefix of a store that is served (else a UsageError), or a local path."""
    if isinstance(path, StorePath):
        return path
    if not is_store(path):
        return local_path(path, what)
    found = _ADDRESS.fullmatch(os.fspath(path))
    assert found is not None
    scheme = found["scheme"].lower()
    bucket, _, key = found["rest"].partition("/")
    # The part of Azure before the @ is a container.
    if "@" in bucket and (":" in bucket or not scheme.startswith("abfs")):
        raise UsageError(
            f"{what} holds a user or a password",
            file=redact_urls(os.fspath(path)),
            hint="set them in the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), in a profile or a role",
        )
    query = found["query"] or ""
    options = dict(parse_qsl(query[1:], keep_blank_values=True))
    known = _S3_OPTIONS if scheme == "s3" else ()
    odd = sorted(set(options) - set(known))
    if odd:
        raise UsageError(
            f"{what} has the option {odd[0]!r}",
            file=redact_urls(os.fspath(path)),
            hint=f"known: {', '.join(known) or 'none'}; credentials and the rest belong in the environment",
        )
    return StorePath(f"{scheme}://{bucket}", key.strip("/"), query)


@cache
def _system(base: str, query: str) -> tuple[Any, str]:
    """The file system of a bucket, and the name of the bucket in it."""
    from pyarrow import fs

    scheme, _, bucket = base.partition("://")
    with told(base):
        if scheme in ("gs", "gcs"):
            return fs.GcsFileSystem(retry_time_limit=timedelta(seconds=RETRY_SECONDS)), bucket
        if scheme != "s3":
            system, root = fs.FileSystem.from_uri(base)
            return system, root.rstrip("/")
        options: dict[str, Any] = dict(parse_qsl(query[1:]))
        address = options.get("endpoint_override") or os.environ.get("AWS_ENDPOINT_URL_S3") or ""
        address = address or os.environ.get("AWS_ENDPOINT_URL", "")
        if address:
            kind, mark, rest = address.partition("://")
            options["endpoint_override"] = rest if mark else address
            if mark:
                options.setdefault("scheme", kind)
        elif "region" not in options and not {"AWS_REGION", "AWS_DEFAULT_REGION"} & set(os.environ):
            options["region"] = fs.resolve_s3_region(bucket)
        return (
            fs.S3FileSystem(
                connect_timeout=CONNECT_SECONDS,
                request_timeout=REQUEST_SECONDS,
                retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=TRIES),
                **options,
            ),
            bucket,
        )


@contextmanager
def told(path: StorePath | str) -> Iterator[None]:
    """What a store answers, as one line that names the object; that nothing is there stays a ``FileNotFoundError``."""
    from pyarrow import ArrowException

    try:
        yield
    except (FileNotFoundError, StorageError, UsageError):
        raise
    except (OSError, ArrowException) as error:
        text = " ".join(str(error).split())
        kind = re.search(r"AWS Error ([A-Z_]+)", text)
        reason = re.search(r"Message: ([^.(]+)", text)
        short = ": ".join(part[1].strip() for part in (kind, reason) if part) or text[:160]
        raise StorageError(
            f"the store refuses ({redact_urls(short)})",
            file=redact_urls(str(path)),
            hint="check the address, the rights and the network; the same call goes on afterwards",
        ) from error


def open_input(path: str) -> Any:
    """A file to read anywhere in, local or in a store, by the text of its path."""
    if is_store(path):
        found = any_path(path)
        assert isinstance(found, StorePath)
        return found.open_input()
    return open(path, "rb")


def state_of(path: str, stream: IO[bytes]) -> State:
    """Size and time of a file that is open."""
    if is_store(path):
        found = any_path(path)
        assert isinstance(found, StorePath)
        return found.stat()
    state = os.fstat(stream.fileno())
    return State(state.st_size, state.st_mtime_ns)


def write_object(path: StorePath, data: bytes, keep: StorePath | None = None) -> None:
    """Put an object; the one before it is kept under another name first."""
    if keep is not None:
        if path.is_file():
            path.copy_to(keep)
        else:
            keep.unlink(missing_ok=True)
    path.write_bytes(data)
