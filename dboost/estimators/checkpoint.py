"""The state of a fit on disk, so that a killed fit goes on where it was, with the bits of the undisturbed one.

Covers: the content of a checkpoint, and the test that it belongs to this fit.
Does not cover: the two generations on disk and their checksums (``dboost.files.generations``), what a state means
(``dboost.problem.state``), or the saved model (``dboost.model.fitted``).
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.fit import FitSettings, FitState
from dboost.boosting.planned import Planned
from dboost.errors import ModelFormatError, StorageError, UsageError
from dboost.estimators.params import loss_spec, penalty_spec
from dboost.files.documents import Document, parse_json, plain
from dboost.files.generations import read_generation, restore, write_generation
from dboost.files.paths import PathLike
from dboost.files.storage import check_writable, pack_arrays, sha256_json, unpack_arrays
from dboost.files.stores import StorePath, any_path
from dboost.notices import warn_user
from dboost.problem.accelerators import EVERY, allowed
from dboost.problem.memory import Anchor, Memory
from dboost.problem.tuning import Tuning

FORMAT = "dboost-checkpoint"
# Version 2 had one generation, and checksums that left out types and shapes of arrays. States of version 3 were left on
# the way by accelerators that there are no more.
VERSION = 4
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
    """What a checkpoint must share with the fit that goes on from it.

    Parameters
    ----------
    fingerprint : str
        Of the data.
    settings : dict
        Everything that shapes the optimum or the way there, as JSON.
    """

    fingerprint: str
    settings: dict[str, Any]


def identity(plan: Planned, settings: FitSettings) -> Identity:
    """The identity of a fit."""
    shown = {name: value for name, value in vars(settings).items() if name not in _FREE}
    # those that the library chooses are no choice of the fit, and files written before there were others say nothing
    del shown["accelerators"], shown["tuning"]
    if set(allowed(settings)) != set(EVERY):
        shown["accelerators"] = sorted(allowed(settings))
    if settings.tuning != Tuning():
        shown["tuning"] = repr(settings.tuning)
    # a hash: there may be a factor for each of many features; files written before there were factors say nothing
    factors = shown.pop("penalty_factors")
    if factors is not None:
        shown["penalty_factors"] = factors.digest()
    signs = shown.pop("signs")
    if signs is not None:
        shown["signs"] = signs.digest()
    groups = shown.pop("column_groups")
    if groups is not None:
        shown["column_groups"] = groups.digest()
    if shown["offset"] is None:
        del shown["offset"]
    shown["penalty"] = penalty_spec(settings.penalty)
    loss = loss_spec(settings.loss)
    shown["loss"] = loss if len(loss) > 1 else loss["name"]
    shown["system"] = None if settings.system is None else settings.system.to_json()
    shown["hypotheses"] = None if settings.hypotheses is None else settings.hypotheses.to_json()
    shown["classes"] = None if plan.classes is None else [str(label) for label in plan.classes.tolist()]
    return Identity(plan.fingerprint, plain(shown))


def check_place(path: PathLike) -> None:
    """Refuse, before anything is read or computed, a place where no checkpoint can be written.

    Raises
    ------
    UsageError
        For a path that is not served.
    StorageError
        When the folder is not there, or no file can be written in it.
    """
    target = any_path(path, "checkpoint").resolve()
    if isinstance(target, StorePath):
        check_writable(target)
        return
    if target.is_dir():
        raise StorageError("the checkpoint is to be a file, but a folder has this name", file=os.fspath(path))
    if not target.parent.is_dir():
        raise StorageError("the folder of the checkpoint is not there", file=os.fspath(path), hint="make it first")
    check_writable(target)


def write_checkpoint(path: PathLike, fit: Identity, state: FitState) -> None:
    """Make `state` the newest checkpoint; the one before it is kept.

    Raises
    ------
    StorageError
        When it cannot be written; the earlier checkpoint is untouched.
    """
    arrays, document = packed_state(state)
    write_sealed(path, fit, arrays, document)


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
    """Make arrays and a JSON object the newest generation of a file that belongs to a fit.

    Raises
    ------
    StorageError
        When it cannot be written; the earlier generation is untouched.
    """
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
    """Read the state back for the same fit; None where there is no file yet.

    Warns
    -----
    DboostWarning
        When the newest checkpoint is damaged and the fit goes on from the one before it, to the same bits.

    Raises
    ------
    UsageError
        When the checkpoint belongs to other data or other settings.
    ModelFormatError
        When both generations are damaged.
    StorageError
        When it cannot be read.
    """
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
    """Arrays and JSON object of a file that `write_sealed` wrote for the same fit.

    Raises
    ------
    UsageError
        When it belongs to other data or other settings.
    ModelFormatError
        When it is no such file.
    """
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
            promised=memory.number("promised"),
            descended=memory.number("descended"),
            anchor=_anchor(arrays),
            **{name: memory.count(name) for name in ("draws", "products", "refused", "wait")},
        ),
        history=document.records("history"),
        keys=keys,
        provisional=bool(document.fields.get("provisional")),
        carried={name.removeprefix(_CARRIED): a for name, a in arrays.items() if name.startswith(_CARRIED)},
        **numbers,
    )


def _anchor(arrays: dict[str, NDArray[Any]]) -> Anchor | None:
    """The anchor of one output; most fits have none."""
    if _ANCHOR + "rows" not in arrays:
        return None
    return Anchor(**{field.name: arrays[_ANCHOR + field.name] for field in fields(Anchor)})


def _sound_anchor(arrays: dict[str, NDArray[Any]], n: int) -> bool:
    names = [_ANCHOR + field.name for field in fields(Anchor)]
    if not any(name in arrays for name in names):
        return True
    if not all(name in arrays for name in names):
        return False
    active, W, intercept, rows, added = (arrays[name] for name in names)
    numbers = W.dtype == intercept.dtype == np.float64 and W.shape == (len(active), 1) and intercept.shape == (1,)
    whole = added.dtype == np.int64 and added.ndim == 1 and bool(np.all(added >= 0)) and int(added.sum()) == len(rows)
    return (
        numbers
        and bool(np.all(np.isfinite(W)) and np.all(np.isfinite(intercept)))
        and whole
        and _ascending(active, n)
        and rows.ndim == 1
        and _ascending(np.sort(rows), n)
    )


def _check_arrays(arrays: dict[str, NDArray[Any]], n: int, k: int, file: str) -> None:
    """Shapes, types and ranges: compiled code trusts them."""
    active, W, intercept = arrays.get("active"), arrays.get("W"), arrays.get("intercept")
    sound = (
        active is not None
        and W is not None
        and intercept is not None
        and W.dtype == intercept.dtype == np.float64
        and active.ndim == 1
        and W.shape == (len(active), k)
        and intercept.shape == (k,)
        and bool(np.all(np.isfinite(W)) and np.all(np.isfinite(intercept)))
        and all(_ascending(arrays[name], n) for name in ("active", "candidates") if name in arrays)
        and _sound_anchor(arrays, n)
    )
    if not sound:
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
