"""The state of a fit, a path or a cross-validation on disk: what was killed goes on, to the bits of the undisturbed.

Covers: the content of a checkpoint, the test that it belongs to this fit, when it is written, and the folder of several
fits, of which those that are done are not made again. Does not cover: the two generations on disk and their checksums
(``dboost.files.generations``), what a state means (``dboost.problem.state``), where a fit may be cut
(``dboost.problem.limits``), or the saved model (``dboost.model.fitted``).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.cross_validation import FoldScores
from dboost.boosting.fit import FitResult, FitSettings, FitState, Fitting
from dboost.boosting.path import PathKeeper, Progress
from dboost.boosting.planned import Planned
from dboost.errors import ModelFormatError, StorageError, UsageError
from dboost.estimators.params import loss_spec, penalty_spec
from dboost.files.documents import Document, parse_json, plain, under
from dboost.files.generations import read_generation, restore, write_generation
from dboost.files.paths import PathLike
from dboost.files.storage import check_writable, pack_arrays, sha256_json, unpack_arrays
from dboost.files.stores import AnyPath, StorePath, any_path
from dboost.notices import warn_user
from dboost.passes.folds import Folds
from dboost.problem.accelerators import EVERY, allowed
from dboost.problem.memory import Anchor, Memory
from dboost.problem.tuning import Tuning

Kept = TypeVar("Kept")

# Writing takes at most this share of the time of a fit.
SHARE = 0.05
# Seconds after which a state is written whatever that takes.
MOST_SECONDS = 60.0


class CheckpointWriter(Generic[Kept]):
    """Writes some of the states it is offered, the first of them and the last."""

    def __init__(self, write: Callable[[Kept], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write = write
        self._clock = clock
        self._due = -float("inf")
        self._held: Kept | None = None

    def update(self, state: Kept) -> None:
        """Write the state, or hold it while the last one was written a moment ago."""
        self._held = state
        if self._clock() >= self._due:
            self._settle()

    @contextlib.contextmanager
    def closing(self) -> Iterator[None]:
        """Write the last state offered inside, also where an error or an interrupt ends the fit."""
        try:
            yield
        except BaseException:
            # the error that ended the fit is the one to be told
            with contextlib.suppress(StorageError):
                self._settle()
            raise
        self._settle()

    def _settle(self) -> None:
        state, self._held = self._held, None
        if state is None:
            return
        started = self._clock()
        self._write(state)
        ended = self._clock()
        self._due = ended + min(MOST_SECONDS, (ended - started) / SHARE)


FORMAT = "dboost-checkpoint"
# Version 2 had one generation, and checksums that left out types and shapes of arrays. States of version 3 were left on
# the way by accelerators that there are no more. Version 4 had former names of settings and records.
VERSION = 5
FORM = f"{FORMAT} {VERSION}"
# The header holds the history, one record per round.
MAX_HEADER_BYTES = 256 << 20

# Going on with more rounds or towards another target is what a checkpoint is for.
_FREE = ("tol", "max_rounds", "max_passes", "max_seconds")
_NUMBERS = ("lam", "lower_bound", "objective", "gap")
_COUNTS = ("round", "passes")
# Arrays of a system of its own, and those of an anchor, are stored beside the others under these prefixes.
_CARRIED = "carried."
_ANCHOR = "anchor."


@dataclass(frozen=True)
class Identity:
    """What a checkpoint must share with the fit that goes on from it."""

    # Of the data.
    fingerprint: str
    # Everything that shapes the optimum or the way there, as JSON.
    settings: dict[str, Any]


def identity(plan: Planned, settings: FitSettings) -> Identity:
    """The identity of a fit."""
    shown = {name: value for name, value in vars(settings).items() if name not in _FREE}
    # those that the library chooses are no choice of the fit
    del shown["accelerators"], shown["tuning"]
    if set(allowed(settings)) != set(EVERY):
        shown["accelerators"] = sorted(allowed(settings))
    if settings.tuning != Tuning():
        shown["tuning"] = repr(settings.tuning)
    # a hash: there may be a factor for each of many features
    for name in ("penalty_factors", "signs", "column_groups"):
        shown[name] = None if shown[name] is None else shown[name].digest()
    shown["penalty"], shown["loss"] = penalty_spec(settings.penalty), loss_spec(settings.loss)
    for name in ("system", "hypotheses"):
        shown[name] = None if shown[name] is None else shown[name].to_json()
    shown["classes"] = None if plan.classes is None else [str(label) for label in plan.classes.tolist()]
    return Identity(plan.fingerprint, plain(shown))


def check_place(path: PathLike, folder: bool) -> None:
    """Refuse, before anything is read or computed, a place where no checkpoint can be written: a file, or a folder."""
    target = any_path(path, "checkpoint").resolve()
    if not isinstance(target, StorePath):
        given = os.fspath(path)
        if folder and target.exists() and not target.is_dir():
            raise StorageError("the checkpoint of several fits is a folder, but a file has this name", file=given)
        if not folder and target.is_dir():
            raise StorageError("the checkpoint is to be a file, but a folder has this name", file=given)
        if not folder and not target.parent.is_dir():
            raise StorageError("the folder of the checkpoint is not there", file=given, hint="make it first")
    check_writable(target / PROGRESS if folder else target)


def write_checkpoint(path: PathLike, fit: Identity, state: FitState) -> None:
    """Make `state` the newest checkpoint; the one before it is kept."""
    write_sealed(path, fit, *packed_state(state))


def packed_state(state: FitState) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """A state as arrays and as a JSON object; `unpacked_state` is the way back."""
    arrays: dict[str, NDArray[Any]] = {"active": state.active, "W": state.W, "intercept": state.intercept}
    if state.candidates is not None:
        arrays["candidates"] = state.candidates
    arrays |= {_CARRIED + name: array for name, array in state.carried.items()}
    if state.memory.anchor is not None:
        arrays |= {_ANCHOR + name: array for name, array in vars(state.memory.anchor).items()}
    document = {name: getattr(state, name) for name in (*_NUMBERS, *_COUNTS)} | {
        "memory": {name: value for name, value in vars(state.memory).items() if name != "anchor"},
        "history": list(state.history),
        "keys": state.keys,
        "provisional": state.provisional,
    }
    return arrays, document


def write_sealed(path: PathLike, fit: Identity, arrays: dict[str, NDArray[Any]], document: dict[str, Any]) -> None:
    """Make arrays and a JSON object the newest generation of a file that belongs to a fit."""
    whole = document | {
        "format": FORMAT,
        "version": VERSION,
        "fingerprint": fit.fingerprint,
        "settings": fit.settings,
        "settings_sha256": sha256_json(fit.settings),
    }
    text = json.dumps(plain(whole), allow_nan=False)
    write_generation(path, FORM, pack_arrays(arrays, {"state": text}))


def read_checkpoint(path: PathLike, fit: Identity, n_features: int, n_outputs: int) -> FitState | None:
    """Read the state back for the same fit; None where there is no file yet."""
    found = read_generation(path, FORM, "give another path, or delete the checkpoint to start again")
    if found is None:
        return None
    arrays, document = opened(found.data, os.fspath(found.file), fit)
    state = unpacked_state(arrays, document, fit, n_features, n_outputs)
    restore(found, path)
    if found.damage:
        warn_user(
            f"the newest checkpoint {found.damage}; the fit goes on from the one before it, after round {state.round} "
            f"(file {os.fspath(path)})"
        )
    return state


def opened(data: bytes, file: str, fit: Identity) -> tuple[dict[str, NDArray[Any]], Document]:
    """Arrays and JSON object of a file that `write_sealed` wrote for the same fit."""
    arrays, metadata = unpack_arrays(data, file=file, max_header=MAX_HEADER_BYTES)
    parsed = parse_json(metadata.get("state", "").encode(), file)
    if not isinstance(parsed, dict):
        raise ModelFormatError("the checkpoint holds no state", file=file, hint="give another path")
    document = Document(parsed, file)
    document.choice("format", (FORMAT,))
    _refuse_other(fit, document, file)
    return arrays, document


def unpacked_state(
    arrays: dict[str, NDArray[Any]], document: Document, fit: Identity, n_features: int, n_outputs: int
) -> FitState:
    """A state that `packed_state` packed, checked for shapes and ranges."""
    keys = document.integer_lists("keys")
    induced = fit.settings["hypotheses"] is not None
    _check_arrays(arrays, len(keys) if induced else n_features, n_outputs, document.file)
    memory = document.child("memory")
    numbers: dict[str, Any] = {name: document.number(name) for name in _NUMBERS}
    numbers |= {name: document.count(name) for name in _COUNTS}
    return FitState(
        active=arrays["active"],
        W=arrays["W"],
        intercept=arrays["intercept"],
        candidates=arrays.get("candidates"),
        memory=Memory(
            settled=bool(memory.fields.get("settled")),
            wide=bool(memory.fields.get("wide")),
            falling=bool(memory.fields.get("falling")),
            cut=bool(memory.fields.get("cut")),
            creeps=bool(memory.fields.get("creeps")),
            promised=memory.number("promised"),
            descended=memory.number("descended"),
            anchor=Anchor(**found) if (found := under(arrays, _ANCHOR)) else None,
            # checkpoints of earlier versions have no such count
            misled=memory.count("misled") if "misled" in memory.fields else 0,
            **{name: memory.count(name) for name in ("draws", "products", "refused", "wait")},
        ),
        history=document.records("history"),
        keys=keys,
        provisional=bool(document.fields.get("provisional")),
        carried=under(arrays, _CARRIED),
        **numbers,
    )


def _sound_anchor(arrays: dict[str, NDArray[Any]], n: int) -> bool:
    found = under(arrays, _ANCHOR)
    if not found:
        return True
    if set(found) != {field.name for field in fields(Anchor)} or not _is_model(found, n, 1):
        return False
    rows, added = found["rows"], found["added"]
    whole = added.dtype == np.int64 and added.ndim == 1 and bool(np.all(added >= 0)) and int(added.sum()) == len(rows)
    return whole and rows.ndim == 1 and _ascending(np.sort(rows), n)


def _is_model(arrays: dict[str, NDArray[Any]], n: int, k: int) -> bool:
    """Whether there are rows of W and an intercept: finite, of n columns and k outputs."""
    active, W, intercept = arrays.get("active"), arrays.get("W"), arrays.get("intercept")
    if active is None or W is None or intercept is None or not _ascending(active, n):
        return False
    numbers = all(one.dtype == np.float64 and bool(np.all(np.isfinite(one))) for one in (W, intercept))
    return numbers and W.shape == (len(active), k) and intercept.shape == (k,)


def _check_arrays(arrays: dict[str, NDArray[Any]], n: int, k: int, file: str) -> None:
    """Shapes, types and ranges: compiled code trusts them."""
    rows_left = arrays.get("candidates", np.zeros(0, np.int64))
    if not (_is_model(arrays, n, k) and _ascending(rows_left, n) and _sound_anchor(arrays, n)):
        raise ModelFormatError("the arrays of the checkpoint do not fit together", file=file)


def _ascending(rows: NDArray[Any], n: int) -> bool:
    if rows.dtype != np.int64 or rows.ndim != 1:
        return False
    return not len(rows) or bool(rows[0] >= 0 and rows[-1] < n and np.all(np.diff(rows) > 0))


def _refuse_other(fit: Identity, document: Document, file: str) -> None:
    hint = "give another path, or delete the file to start again"
    if document.text("fingerprint") != fit.fingerprint:
        raise UsageError("the checkpoint belongs to other data", file=file, hint=hint)
    theirs = document.mapping("settings")
    different = sorted(name for name in {*fit.settings, *theirs} if fit.settings.get(name) != theirs.get(name))
    if different:
        raise UsageError(f"the checkpoint belongs to other settings of {', '.join(different)}", file=file, hint=hint)


PROGRESS = "progress"
_HINT = "give another path, or delete the folder to start again"
_STATE, _FIT = "state.", "fit."
_RESULT_ARRAYS = ("active", "W", "intercept", "trace")
_RESULT_NUMBERS = ("objective", "lower_bound", "gap", "alpha", "alpha_max")


class PathFolder:
    """Keeps the progress of one path in a folder; `more` is what else must be the same, as JSON."""

    def __init__(self, path: PathLike, settings: FitSettings, more: dict[str, Any] | None = None) -> None:
        self._folder = any_path(path, "checkpoint").resolve()
        self._settings = settings
        self._more = more or {}
        self._identity: Identity | None = None
        self._written = 0
        self._keeper: CheckpointWriter[Progress] = CheckpointWriter(self._write)

    def progress(self, fitting: Fitting, alphas: Sequence[float]) -> Progress:
        """What was kept of the same path."""
        mine = self._identity = _identity(fitting.plan, self._settings, self._more | {"alphas": list(alphas)})
        found = read_generation(self._folder / PROGRESS, FORM, _HINT)
        if found is None:
            return Progress()
        arrays, document = opened(found.data, os.fspath(found.file), mine)
        sizes = fitting.plan.n_features, fitting.plan.n_outputs
        running = None
        if "running" in document.fields:
            running = unpacked_state(under(arrays, _STATE), document.child("running"), mine, *sizes)
        count = document.count("finished")
        finished = tuple(self._finished(place, fitting, sizes) for place in range(count))
        remembered = None
        if "norms" in arrays:
            remembered = document.number("lam"), arrays["norms"]
        if count > len(alphas) or (remembered is not None and arrays["norms"].dtype != np.float64):
            raise ModelFormatError("the progress of the path does not fit together", file=document.file, hint=_HINT)
        restore(found, self._folder / PROGRESS)
        self._written = count
        return Progress(finished, remembered, running)

    def update(self, progress: Progress) -> None:
        """Keep this, now or, where the last write was a moment ago, later."""
        self._keeper.update(progress)

    def closing(self) -> AbstractContextManager[None]:
        """Write the last progress offered inside, also where an error or an interrupt ends it."""
        return self._keeper.closing()

    def _write(self, progress: Progress) -> None:
        assert self._identity is not None, "a path asks for its progress first"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            where = os.fspath(self._folder)
            raise StorageError(f"cannot make the folder: {error.strerror or error}", file=where) from error
        for place in range(self._written, len(progress.finished)):
            write_sealed(self._strength(place), self._identity, *_packed_result(progress.finished[place]))
        arrays: dict[str, NDArray[Any]] = {}
        document: dict[str, Any] = {"finished": len(progress.finished)}
        if progress.remembered is not None:
            document["lam"], arrays["norms"] = progress.remembered
        if progress.running is not None:
            more, document["running"] = packed_state(progress.running)
            arrays |= {_STATE + name: array for name, array in more.items()}
        write_sealed(self._folder / PROGRESS, self._identity, arrays, document)
        self._written = len(progress.finished)

    def _strength(self, place: int) -> AnyPath:
        return self._folder / f"strength-{place:05d}"

    def _finished(self, place: int, fitting: Fitting, sizes: tuple[int, int]) -> FitResult:
        assert self._identity is not None
        found = read_generation(self._strength(place), FORM, _HINT)
        if found is None:
            raise ModelFormatError("the file is missing", file=os.fspath(self._strength(place)), hint=_HINT)
        arrays, document = opened(found.data, os.fspath(found.file), self._identity)
        state = unpacked_state(under(arrays, _STATE), document.child("state"), self._identity, *sizes)
        mine = under(arrays, _FIT)
        # a fit holds rows that are zero, and no part of its model (``Objective.shown``)
        sound = (
            "trace" in mine
            and _is_model(mine, max(sizes[0], len(state.keys)), sizes[1])
            and np.isin(mine["active"], state.active).all()
            and not state.W[~np.isin(state.active, mine["active"])].any()
        )
        if not sound:
            raise ModelFormatError("the arrays of the fit do not fit together", file=document.file, hint=_HINT)
        known: dict[str, Any] = {name: document.number(name) for name in _RESULT_NUMBERS}
        known |= {name: mine[name] for name in _RESULT_ARRAYS}
        return FitResult(
            **known,
            stop_reason=document.text("stop_reason"),
            n_iter=state.round,
            passes=state.passes,
            history=[dict(record) for record in state.history],
            state=state,
            pool=fitting.problem.pool,
        )


class FoldFolder:
    """Keeps the progress of a cross-validation in a folder; `settings` are those of the fits to all rows."""

    def __init__(
        self,
        path: PathLike,
        plan: Any,
        settings: FitSettings,
        folds: Folds,
        fold_tol: float,
        scorer: str | None = None,
        gammas: Sequence[float] = (),
    ) -> None:
        self._folder = any_path(path, "checkpoint").resolve()
        self._plan = plan
        self._settings = settings
        self._fold_tol = fold_tol
        self._more = {
            "folds": {"count": folds.count, "seed": folds.seed, "given": _digest(folds)},
            "scorer": scorer,
            "gammas": list(gammas),
        }
        self._blends = max(1, len(gammas))

    def path(self, fold: int | None) -> PathKeeper:
        """For the path without a fold, or for that of all rows."""
        if fold is None:
            return PathFolder(self._folder / "all", self._settings)
        settings = replace(self._settings, tol=self._fold_tol)
        return PathFolder(self._path(fold), settings, self._more | {"fold": fold})

    def scores(self, fold: int, alphas: Sequence[float]) -> FoldScores | None:
        """What the path without a fold is worth on it, if that was kept."""
        file = self._scores(fold)
        found = read_generation(file, FORM, _HINT)
        if found is None:
            return None
        arrays, document = opened(found.data, os.fspath(found.file), self._identity(fold, alphas))
        names = [item.name for item in fields(FoldScores)]
        if sorted(arrays) != sorted(names) or arrays["loss"].shape != (1, len(alphas) * self._blends):
            raise ModelFormatError("the scores of the fold do not fit together", file=document.file, hint=_HINT)
        return FoldScores(**arrays)

    def judged(self, fold: int, alphas: Sequence[float], scores: FoldScores) -> None:
        """Keep the scores of a fold; its fits are not needed any more."""
        write_sealed(self._scores(fold), self._identity(fold, alphas), dict(vars(scores)), {})
        done = self._path(fold)
        if isinstance(done, StorePath):
            done.remove_below()
        else:
            shutil.rmtree(done, ignore_errors=True)

    def _path(self, fold: int) -> AnyPath:
        return self._folder / f"fold-{fold}"

    def _scores(self, fold: int) -> AnyPath:
        return self._folder / f"fold-{fold}.scores"

    def _identity(self, fold: int, alphas: Sequence[float]) -> Identity:
        settings = replace(self._settings, tol=self._fold_tol)
        return _identity(self._plan, settings, self._more | {"fold": fold, "alphas": list(alphas)})


def _identity(plan: Any, settings: FitSettings, more: dict[str, Any]) -> Identity:
    found = identity(plan, settings)
    # whatever ends a fit decides what the next one starts from: a path goes on under the same limits only
    limits = {name: getattr(settings, name) for name in _FREE}
    # the strengths of a path are those in `more`
    shown = {name: value for name, value in found.settings.items() if name != "alpha"}
    # as JSON has it: lists for tuples
    return Identity(found.fingerprint, plain(shown | limits | more))


def _digest(folds: Folds) -> str | None:
    if folds.given is None:
        return None
    digest = hashlib.sha256()
    for key in sorted(folds.given):
        digest.update(key.encode() + np.ascontiguousarray(folds.given[key]).tobytes())
    return digest.hexdigest()


def _packed_result(result: FitResult) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    # which columns are left is for the rounds of a fit, and this one has ended
    arrays, state = packed_state(replace(result.state, candidates=None))
    arrays = {_STATE + name: array for name, array in arrays.items()}
    arrays |= {_FIT + name: getattr(result, name) for name in _RESULT_ARRAYS}
    numbers = {name: getattr(result, name) for name in _RESULT_NUMBERS}
    return arrays, numbers | {"stop_reason": result.stop_reason, "state": state}
