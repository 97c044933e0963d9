"""The progress of a path or of a cross-validation in a folder: fits that are done are not made again.

Covers: the files of the folder, when they are written, and the test that they belong to this path.
Does not cover: the state of one fit (``checkpoint``), or which fits there are (``dboost.boosting.progress``).

A path has ``strength-00000`` and so on, one file for each fit that has ended, and ``progress``: how many have ended,
what the last of them leaves to the next, and the state of the one that runs. What ``progress`` does not count is not
there, so that it alone decides after a kill between two writes. A cross-validation has a folder ``all`` for the path of
all rows, one ``fold-0`` for each fold, and ``fold-0.scores`` once the fold is done.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.fit import FitResult, FitSettings, Fitting
from dboost.boosting.fold_scores import FoldScores
from dboost.boosting.progress import Nothing, PathKeeper, Progress
from dboost.errors import ModelFormatError, StorageError
from dboost.estimators.checkpoint import (
    FORM,
    Identity,
    identity,
    opened,
    packed_state,
    unpacked_state,
    write_sealed,
)
from dboost.estimators.checkpoint_times import Keeper
from dboost.files.documents import plain
from dboost.files.generations import read_generation, restore
from dboost.files.paths import PathLike
from dboost.files.storage import check_writable
from dboost.files.stores import AnyPath, StorePath, any_path
from dboost.passes.folds import Folds

PROGRESS = "progress"
_HINT = "give another path, or delete the folder to start again"
_STATE, _FIT = "state.", "fit."
_RESULT_ARRAYS = ("active", "W", "intercept", "trace")
_RESULT_NUMBERS = ("objective", "lower_bound", "gap", "alpha", "alpha_max")
# Whatever ends a fit decides what the next one starts from: a path goes on under the same limits only.
_LIMITS = ("tol", "max_rounds", "max_passes", "max_seconds")


def check_folder(path: PathLike) -> None:
    """Refuse, before anything is read or computed, a place where no progress can be kept.

    Raises
    ------
    UsageError
        For a path that is not served.
    StorageError
        When it is a file, or nothing can be written there.
    """
    target = any_path(path, "checkpoint").resolve()
    if isinstance(target, StorePath):
        check_writable(target / PROGRESS)
        return
    if target.exists() and not target.is_dir():
        raise StorageError("the checkpoint of several fits is a folder, but a file has this name", file=os.fspath(path))
    check_writable(target / PROGRESS)


class PathFolder:
    """Keeps the progress of one path in a folder.

    Parameters
    ----------
    path : path
        Made when it is missing.
    settings : FitSettings
    more : dict
        What else must be the same, as JSON.
    """

    def __init__(self, path: PathLike, settings: FitSettings, more: dict[str, Any] | None = None) -> None:
        self._folder = any_path(path, "checkpoint").resolve()
        self._settings = settings
        self._more = more or {}
        self._identity: Identity | None = None
        self._written = 0
        self._keeper: Keeper[Progress] = Keeper(self._write)

    def progress(self, fitting: Fitting, alphas: Sequence[float]) -> Progress:
        """What was kept of the same path.

        Raises
        ------
        UsageError
            When the folder belongs to another path.
        ModelFormatError
            When it is damaged.
        """
        mine = self._identity = _identity(fitting.plan, self._settings, self._more | {"alphas": list(alphas)})
        found = read_generation(self._folder / PROGRESS, FORM, _HINT)
        if found is None:
            return Progress()
        arrays, document = opened(found.data, os.fspath(found.file), mine)
        sizes = fitting.plan.n_features, fitting.plan.n_outputs
        running = None
        if "running" in document.fields:
            running = unpacked_state(_under(arrays, _STATE), document.child("running"), mine, *sizes)
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

    def offer(self, progress: Progress) -> None:
        """Keep this, now or, where the last write was a moment ago, later."""
        self._keeper.offer(progress)

    def keeping(self) -> AbstractContextManager[None]:
        """Write the last progress offered inside, also where an error or an interrupt ends it."""
        return self._keeper.keeping()

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
        state = unpacked_state(_under(arrays, _STATE), document.child("state"), self._identity, *sizes)
        mine = _under(arrays, _FIT)
        active, W, intercept, trace = (mine.get(name) for name in _RESULT_ARRAYS)
        sound = (
            active is not None
            and W is not None
            and intercept is not None
            and trace is not None
            and active.dtype == np.int64
            and all(array.dtype == np.float64 and np.all(np.isfinite(array)) for array in (W, intercept))
            and W.shape == (len(active), sizes[1])
            and intercept.shape == (sizes[1],)
            # a fit holds rows that are zero, and no part of its model (``Objective.shown``)
            and np.all(np.diff(active) > 0)
            and np.isin(active, state.active).all()
            and not state.W[~np.isin(state.active, active)].any()
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
    """Keeps the progress of a cross-validation in a folder.

    Parameters
    ----------
    path : path
    plan : Plan
    settings : FitSettings
        Of the fits to all rows.
    folds : Folds
    fold_tol : float
        Gap of the fits without a fold.
    scorer : str, optional
        Name of what judges the fits without a fold beside their loss and error.
    gammas : sequence of float
        Shares of the blends with their refits that are judged beside them; empty for none.
    """

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
        # before, folds were drawn by what rows hold, and a folder of that time is of other folds
        self._folds: dict[str, Any] = {"count": folds.count, "seed": folds.seed, "given": _digest(folds)}
        self._folds |= {"drawn": "by place"} if folds.given is None else {}
        self._judged: dict[str, Any] = {} if scorer is None else {"scorer": scorer}
        self._judged |= {"gammas": list(gammas)} if gammas else {}
        self._blends = max(1, len(gammas))

    def path(self, fold: int | None) -> PathKeeper:
        """For the path without a fold, or for that of all rows."""
        if fold is None:
            return PathFolder(self._folder / "all", self._settings)
        settings = replace(self._settings, tol=self._fold_tol)
        return PathFolder(self._path(fold), settings, self._more(fold))

    def scores(self, fold: int, alphas: Sequence[float]) -> FoldScores | None:
        """What the path without a fold is worth on it, if that was kept.

        Raises
        ------
        UsageError
            When the folder belongs to another cross-validation.
        ModelFormatError
            When it is damaged.
        """
        file = self._scores(fold)
        found = read_generation(file, FORM, _HINT)
        if found is None:
            return None
        arrays, document = opened(found.data, os.fspath(found.file), self._identity(fold, alphas))
        names = [item.name for item in fields(FoldScores)]
        if "score" not in arrays and "loss" in arrays:
            # a folder from before there were scorers
            arrays["score"] = np.full_like(arrays["loss"], np.nan)
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

    def _more(self, fold: int) -> dict[str, Any]:
        return {"fold": fold, "folds": self._folds} | self._judged

    def _identity(self, fold: int, alphas: Sequence[float]) -> Identity:
        settings = replace(self._settings, tol=self._fold_tol)
        return _identity(self._plan, settings, self._more(fold) | {"alphas": list(alphas)})


def keeper_of(path: PathLike | None, settings: FitSettings) -> PathKeeper:
    """What keeps the progress of a path; without a folder nothing does."""
    return Nothing() if path is None else PathFolder(path, settings)


def _identity(plan: Any, settings: FitSettings, more: dict[str, Any]) -> Identity:
    found = identity(plan, settings)
    limits = {name: getattr(settings, name) for name in _LIMITS}
    # the strengths of a path are those in `more`
    shown = {name: value for name, value in found.settings.items() if name != "alpha"}
    # as JSON has it: lists for tuples
    return Identity(found.fingerprint, plain(shown | limits | more))


def _digest(folds: Folds) -> str | None:
    import hashlib

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


def _under(arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
