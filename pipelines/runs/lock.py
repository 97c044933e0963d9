"""One process at a time in a run folder, and none that has ended in the way of the next.

The system locks the file for as long as its process lives, and lifts the lock however that ends. Where all who could
hold it share one kernel, or the folder is on a disk of this machine, that decides, whatever the name of the host, which
every container has anew. A shared folder may not tell of the locks of other machines, or keep those of a machine that
is gone. There the file is a lease: its holder changes it every ``BEAT`` seconds, and whoever wants it watches it for
``LEASE`` seconds of a clock of its own. What has changed meanwhile is alive, what has not is dead. No clock is compared
with another one, so that it does not matter what the hosts, or the store, take for the time.

The package filelock was considered: it has the system's locks, and none that outlasts a lost machine.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from dboost import interruption
from dboost.errors import StorageError, UsageError
from dboost.files.unfinished import LOCKS, beside_of

if LOCKS:
    import fcntl

LOCK = "lock"
# Seconds between two signs of life, and without one until a holder is taken for dead: twelve beats may be late, as
# where a machine swaps, or a store answers slowly.
BEAT, LEASE = 10.0, 120.0
# Seconds between two looks at a lease that is watched.
LOOK = 1.0
# Seconds after which a lease that was written on a shared folder is read again: whoever wrote last has it.
SETTLE = 1.0
# Seconds of silence after which a list of runs says that a run on another host was killed. There is no time to watch
# it, and the clocks of two hosts may differ by minutes.
DOUBT = 900.0
# File systems that one kernel has for itself, whose locks all who see the files see.
LOCAL = frozenset({
    "apfs", "bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "ramfs", "reiserfs", "tmpfs", "xfs",
    "zfs",
})  # fmt: skip
# A record has one length, so that a reader finds the old one or the new one.
_LENGTH = 512
# Processes that were found dead: the other locks that one of them has left are not watched again.
_ENDED: set[tuple[Any, ...]] = set()


class Lease:
    """A lock that this process holds."""

    def __init__(self, folder: Path, descriptor: int) -> None:
        self._folder, self._descriptor = folder, descriptor
        self._record = {**myself(), "key": secrets.token_hex(8), "beat": 0}
        self._ends = threading.Event()
        self._beats = threading.Thread(target=self._live, name="dboost-lock", daemon=True)
        self._lost: dict[str, Any] | None = None

    def check(self) -> None:
        """Refuse to go on where another process has taken the folder over."""
        if self._lost is not None:
            raise StorageError(
                f"{_named(self._lost)} has taken this folder over: for {LEASE:g} s there was no sign of life of this "
                "process",
                file=str(self._folder),
                hint="leave it to that process",
            )

    def begin(self, settle: bool) -> bool:
        """Write the record, and go on to do so; whether it is the one that stays."""
        self._write()
        if settle:
            time.sleep(SETTLE)
        if not self._mine():
            return False
        self._beats.start()
        return True

    def end(self) -> None:
        """Let go."""
        self._ends.set()
        if self._beats.is_alive():
            self._beats.join()
        with contextlib.suppress(OSError):
            if self._mine():
                os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)

    def _live(self) -> None:
        while not self._ends.wait(BEAT):
            # A store that does not answer may do so at the next beat.
            with contextlib.suppress(OSError):
                if not self._mine():
                    self._lost = _parsed(_text(self._folder / LOCK))
                    return
                self._record["beat"] += 1
                self._write()

    def _mine(self) -> bool:
        """Whether the file that has the name of the lock is this one, with the record of this process."""
        return _parsed(_text(self._folder / LOCK)).get("key") == self._record["key"]

    def _write(self) -> None:
        os.pwrite(self._descriptor, json.dumps(self._record).ljust(_LENGTH).encode(), 0)
        with contextlib.suppress(OSError):  # what has no disk to be synced with is there already
            os.fsync(self._descriptor)


@contextlib.contextmanager
def hold_lock(folder: Path, take_over: bool = False, say: Callable[[str], Any] = str) -> Iterator[Lease]:
    """Hold the lock of a run folder that is there.

    `take_over`: whether what names another host is known to have ended, as where a cluster's manager starts a run anew
    and never has two of them; without it that is found out.
    """
    try:
        lease = _taken(folder, take_over, say)
    except OSError as error:
        raise StorageError(f"cannot write: {error.strerror or error}", file=str(folder / LOCK)) from error
    try:
        yield lease
    finally:
        lease.end()


def myself() -> dict[str, Any]:
    """Host, process and start time of this process, as a lock names them."""
    since = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "since": since,
        "kernel": kernel(),
        "process": process(),
    }


def holder_of(folder: Path) -> dict[str, Any] | None:
    """Who holds the lock of a folder, if any; another host lives until its lease is older than ``DOUBT``."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR)
    except OSError:
        return None
    try:
        locked, holder = lock_of_system(descriptor), _parsed(os.pread(descriptor, _LENGTH, 0))
        if _decided(folder, locked, holder):
            return None if locked else holder or {"host": "unknown"}
        silent = abs(time.time() - os.fstat(descriptor).st_mtime)
        return (holder or {"host": "unknown"}) if silent < DOUBT else None
    finally:
        os.close(descriptor)


def _taken(folder: Path, take_over: bool, say: Callable[[str], Any]) -> Lease:
    path = folder / LOCK
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            locked, text = lock_of_system(descriptor), os.pread(descriptor, _LENGTH, 0)
            holder = _parsed(text)
            if not _decided(folder, locked, holder):
                if not take_over:
                    _watch(folder, text, locked is False, say)
                if locked is False:
                    # The lock of a machine that is gone may stay for ever; a new and empty file has none.
                    (beside := beside_of(path)).touch()
                    os.replace(beside, path)
                    continue
            elif not locked:
                raise _in_use(folder, holder)
            lease = Lease(folder, descriptor)
            if lease.begin(settle=not is_local(folder)):
                descriptor = -1
                return lease
            holder = _parsed(_text(path))
            if holder:
                raise _in_use(folder, holder)
        finally:
            if descriptor >= 0:
                os.close(descriptor)


def _decided(folder: Path, locked: bool | None, holder: dict[str, Any]) -> bool:
    """Whether the lock of the system says all there is to know, or nobody has a lease."""
    if locked and not holder:
        return True
    return locked is not None and (_here(holder) or is_local(folder))


def _watch(folder: Path, text: bytes, locked: bool, say: Callable[[str], Any]) -> None:
    """Return where the lease is not renewed; refuse one that is.

    A file that is locked and empty may be that of a process that is about to write its lease.
    """
    holder = _parsed(text)
    who = tuple(holder.get(name) for name in ("host", "pid", "process"))
    if (holder and who in _ENDED) or not (text.strip() or locked):
        return
    say(f"{_named(holder)} has not let go of {folder}; waiting up to {LEASE:g} s for a sign of life")
    until = time.monotonic() + LEASE
    while time.monotonic() < until:
        interruption.check()
        time.sleep(min(LOOK, LEASE))
        now = _text(folder / LOCK)
        if now != text:
            if not now.strip():
                return
            raise _in_use(folder, _parsed(now))
    _ENDED.add(who)


def lock_of_system(descriptor: int) -> bool | None:
    """Lock a file; False where another process has it, None where the file system has no locks."""
    if not LOCKS:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _text(path: Path) -> bytes:
    """What the lock says, read anew: a shared folder shows what others wrote to whoever opens the file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        if error.errno == errno.ESTALE:  # replaced on another machine
            return b""
        raise


def _parsed(text: bytes) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        found = json.loads(text)
        if isinstance(found, dict):
            return found
    return {}


@cache
def kernel() -> str:
    """What tells the running system from others: all containers of a machine share it, and no two machines do."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return socket.gethostname()


def process() -> str:
    """A name of this process that no other has, whatever its number."""
    return _token(os.getpid())


@cache
def _token(pid: int) -> str:
    return f"{pid}-{secrets.token_hex(8)}"


def _here(holder: dict[str, Any]) -> bool:
    if "kernel" in holder:
        return bool(holder["kernel"] == kernel())
    return bool(holder.get("host") == socket.gethostname())


def is_local(folder: Path) -> bool:
    """Whether a folder is on a file system that this kernel has for itself; False where that cannot be told."""
    place = folder.resolve()
    try:
        mounted = [one for one in psutil.disk_partitions(all=True) if place.is_relative_to(one.mountpoint)]
    except OSError:
        return False
    # Of two at one place the later one covers the other.
    innermost = max(reversed(mounted), key=lambda one: len(Path(one.mountpoint).parts), default=None)
    return innermost is not None and innermost.fstype in LOCAL


def _named(holder: dict[str, Any]) -> str:
    host, pid = (holder.get(name, "unknown") for name in ("host", "pid"))
    return f"process {pid} on host {host}"


def _in_use(folder: Path, holder: dict[str, Any]) -> UsageError:
    ends = "when that process ends" if _here(holder) else f"{LEASE:g} s after the last sign of life of that process"
    return UsageError(
        f"{_named(holder)} works in this folder since {holder.get('since', 'unknown')}",
        file=str(folder),
        hint=f"wait for it, or end it: its lock expires {ends}",
    )
