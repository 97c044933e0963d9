"""Doing a run: what is not done yet, in order, in its folder."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dboost.errors import DataError, DboostError, UsageError
from dboost.files.paths import local_path
from dboost.files.storage import check_writable, sha256_json, write_file
from dboost.redact import redact

from ..asynchronous import serves_asynchronous
from ..cluster import ClusterSession
from ..config import ClusterSettings
from ..console import Console, console_of_call, finite
from . import folder as names
from .folder import RunFolder
from .foresight import foresee
from .lock import Lease, hold_lock
from .run_file import RunFile, read_run_file
from .stages import STAGES, Stage, Work, check

DONE, SKIPPED, LEFT_OUT = "done", "skipped", "left out"


@dataclass(frozen=True)
class Outcome:
    """What became of a stage in one call."""

    state: str  # {"done", "skipped", "left out"}
    why: str  # why it was done, or was not
    seconds: float = 0.0


@dataclass(frozen=True)
class RunResult:
    """A run that is done.

    Parameters
    ----------
    folder : pathlib.Path
    stages : dict of str to Outcome
        In their order.
    converged : bool
        Whether the model reached what was asked for before a limit.
    """

    folder: Path
    stages: dict[str, Outcome]
    converged: bool

    @property
    def model(self) -> Any:
        """The estimator, fitted; read on each access."""
        import dboost

        return dboost.load_model(self.folder / names.MODEL)

    @property
    def report(self) -> dict[str, Any]:
        """The report; read on each access."""
        found: dict[str, Any] = json.loads((self.folder / names.REPORT).read_bytes())
        return found

    @property
    def evaluation(self) -> dict[str, Any] | None:
        """The figures on held-out data; None where nothing was held out."""
        found: dict[str, Any] | None = self.report.get("evaluation")
        return found


@serves_asynchronous
def run(
    config: str | os.PathLike[str] | Mapping[str, Any],
    *,
    out: str | os.PathLike[str] | None = None,
    overrides: Sequence[str] = (),
    client: Any = None,
    console: Console | None = None,
    take_over: bool = False,
    trust: bool = False,
) -> RunResult:
    """Do what is not done yet of a run.

    Parameters
    ----------
    config : path or mapping
        A run file, or its tables. Paths in a file are relative to its folder, those of a mapping to the working folder.
    out : path, optional
        The run folder; by default ``runs/NAME`` beside the file, NAME being that of the file. A mapping has none.
    overrides : sequence of str
        ``"model.alpha=1e-4"``, which wins over the file.
    client : distributed.Client, optional
        Where the work runs; of an asynchronous one the call is awaited. In place of what the table [cluster] says.
    console : Console, optional
        Where progress is printed; by default below the cell of a notebook, and nowhere else.
    take_over : bool
        Whether a process of another host that the folder's lock names is known to have ended.
    trust : bool
        Whether the file may name hosts, programs and places to write outside of its folder.

    Returns
    -------
    RunResult

    Raises
    ------
    UsageError
        For a run file without meaning, and a folder that another process works in.
    DataError, ClusterError, StorageError, KeyboardInterrupt
        During a stage. Called again, the run goes on: stages that were done are not done again, and a model ends with
        the bits of the undisturbed run.
    """
    found = read_run_file(config, overrides)
    if out is None and isinstance(config, Mapping):
        raise UsageError("a run without a file has no folder of its own", hint="give out=")
    return _run(found, found.target(out), client, console, write=True, take_over=take_over, trust=trust)


@serves_asynchronous
def resume(
    path: str | os.PathLike[str],
    *,
    client: Any = None,
    cluster: ClusterSettings | None = None,
    console: Console | None = None,
    take_over: bool = False,
    trust: bool = False,
) -> RunResult:
    """Go on with a run from its folder, on `client` or `cluster` where one is given; see ``run``."""
    folder = local_path(path, "run").resolve()
    if not (folder / names.RUN_FILE).is_file():
        raise DataError(f"is no run folder: it holds no {names.RUN_FILE}", file=os.fspath(path))
    found = read_run_file(folder / names.RUN_FILE)
    return _run(found, folder, client, console, write=False, cluster=cluster, take_over=take_over, trust=trust)


def _run(
    run: RunFile,
    target: Path,
    client: Any,
    console: Console | None,
    *,
    write: bool,
    cluster: ClusterSettings | None = None,
    take_over: bool = False,
    trust: bool = False,
) -> RunResult:
    check(run)
    if not trust:
        run.refuse_reaching(cluster=client is None and cluster is None)
    foresee(run)
    _refuse_other(target)
    check_writable(target)
    target.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as opened:
        if console is None:
            console = console_of_call(opened)
        lease = opened.enter_context(hold_lock(target, take_over, console.say))
        folder = RunFolder(target)
        opened.callback(folder.close)
        if write:
            write_file(target / names.RUN_FILE, run.to_toml().encode())
        opened.enter_context(run_events(folder, console, " --trust" if run.reaches()[1] else ""))
        settings = run.cluster() if cluster is None else cluster
        session = opened.enter_context(ClusterSession(settings, console, client, run.data()))
        work = Work(run, folder, console, session.client)
        outcomes = {stage.name: _do(stage, work, session, lease) for stage in STAGES}
        converged = bool(folder.record("train")["facts"]["converged"])
        return RunResult(target, outcomes, converged)


def _do(stage: Stage, work: Work, cluster: ClusterSession, lease: Lease) -> Outcome:
    """Do a stage unless it is done."""
    folder, console = work.folder, work.console
    opened = stage.opens(work)
    if isinstance(opened, str):
        why = opened
        console.event("stage_left_out", stage=stage.name, why=why)
        if stage.name in work.run.tables:
            console.say(f"{stage.name}: left out, since {why}")
        return Outcome(LEFT_OUT, why)
    # as JSON has it: lists for tuples
    inputs = json.loads(json.dumps(stage.inputs(work, opened), default=str))
    why = folder.change(stage.name, stage.outputs, inputs)
    if not why:
        console.event("stage_skipped", stage=stage.name)
        console.say(f"{stage.name}: unchanged, skipped")
        return Outcome(SKIPPED, "unchanged")
    console.event("stage_due", stage=stage.name, why=why)
    if stage.name == "train":
        if not names.claim(folder / names.CHECKPOINT, sha256_json(inputs)):
            names.remove(folder / names.PARTIAL)
    # the cluster starts before the stage whose seconds are counted
    work.client()
    started = time.perf_counter()
    with console.stage(stage.name):
        facts = finite(cluster.run_with_rejoin(lambda _: stage.make(work, opened)))
    seconds = time.perf_counter() - started
    lease.check()
    folder.done(stage.name, stage.outputs, inputs, facts, seconds)
    console.event("stage_done", stage=stage.name, **{f"fact_{name}": value for name, value in facts.items()})
    if stage.name == "train":
        for name in (names.CHECKPOINT, names.PARTIAL, names.TABLES):
            shutil.rmtree(folder / name, ignore_errors=True)
    return Outcome(DONE, why, seconds)


@contextlib.contextmanager
def run_events(folder: RunFolder, console: Console, more: str) -> Iterator[None]:
    """Write the events of the run, its beginning and its end among them."""
    before = console.sink
    console.sink = folder.event
    console.event("run_start", pid=os.getpid())
    console.left = f"`dboost resume {folder.path}{more}` goes on with it"
    try:
        yield
    except BaseException as error:
        code = error.code if isinstance(error, DboostError) else type(error).__name__
        stopped = isinstance(error, KeyboardInterrupt)
        console.event("run_stopped" if stopped else "run_failed", code=code, text=redact(str(error), console.secrets))
        raise
    else:
        console.event("run_done")
        console.left = ""
    finally:
        console.sink = before


def _refuse_other(target: Path) -> None:
    """Refuse a folder that is there and is no run folder."""
    if target.exists() and not target.is_dir():
        raise UsageError("the run folder is a file", file=str(target), hint="choose another --out")
    known = (names.RUN_FILE, names.STAGES, "lock")
    if target.is_dir() and any(target.iterdir()) and not any((target / name).is_file() for name in known):
        raise UsageError(
            "the folder is there and is no run folder", file=str(target), hint="choose another --out, or an empty one"
        )
