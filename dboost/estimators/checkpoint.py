"""The state of a fit on disk, so that a killed fit goes on where it was.

Covers: one file that is replaced atomically after a round, and the test that it belongs to this fit.
Does not cover: what a state means (``dboost.boosting.fit``), or the saved model (``dboost.model``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dboost.errors import ModelFormatError, StorageError, UsageError
from dboost.modelfile import Document, parse_json, plain, unplain
from dboost.storage import PathLike, pack_arrays, sha256_bytes, sha256_json, unpack_arrays, write_file

FORMAT = "dboost-checkpoint"
VERSION = 1
# The header holds the history, one record per round.
MAX_HEADER_BYTES = 256 << 20

_NUMBERS = ("objective", "gap", "lower_bound", "alpha", "alpha_max")


@dataclass(frozen=True)
class Identity:
    """What a checkpoint must share with the fit that goes on from it.

    Parameters
    ----------
    fingerprint : str
        Of the data.
    settings : dict
        Everything that shapes the optimum or the way there, as JSON. The limits on work (`max_rounds`) and the target
        (`tol`) are not part of it: going on with more rounds is what a checkpoint is for.
    """

    fingerprint: str
    settings: Mapping[str, Any]

    def differences(self, other: Mapping[str, Any]) -> list[str]:
        """Names of the settings that differ."""
        mine = plain(dict(self.settings))
        return sorted(name for name in {*mine, *other} if mine.get(name) != other.get(name))


def write_checkpoint(path: PathLike, identity: Identity, result: Any) -> None:
    """Replace the checkpoint by the state `result` (a ``FitResult``).

    Raises
    ------
    StorageError
        When it cannot be written; the earlier checkpoint is untouched.
    """
    arrays = {
        "active": np.asarray(result.active, dtype=np.int64),
        "W": np.asarray(result.W, dtype=np.float64),
        "intercept": np.asarray(result.intercept, dtype=np.float64),
    }
    state = plain(
        {
            "format": FORMAT,
            "version": VERSION,
            "fingerprint": identity.fingerprint,
            "settings": dict(identity.settings),
            "settings_sha256": sha256_json(plain(dict(identity.settings))),
            "n_iter": result.n_iter,
            "passes": result.passes,
            "stop_reason": result.stop_reason,
            "history": list(result.history),
            "arrays_sha256": sha256_bytes(pack_arrays(arrays)),
        }
        | {name: getattr(result, name) for name in _NUMBERS}
    )
    text = json.dumps(state, allow_nan=False)
    metadata = {"state": text, "sha256": sha256_bytes(text.encode())}
    write_file(path, pack_arrays(arrays, metadata))


def read_checkpoint(path: PathLike, identity: Identity) -> dict[str, Any] | None:
    """Read the state back for the same fit; None where there is no file yet.

    Returns
    -------
    dict
        The fields of a ``FitResult``.

    Raises
    ------
    UsageError
        When the checkpoint belongs to other data or other settings.
    ModelFormatError
        When it is damaged.
    StorageError
        When it cannot be read.
    """
    file = os.fspath(path)
    try:
        with open(path, "rb") as handle:
            data = handle.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"cannot read the checkpoint: {error.strerror or error}", file=file) from error
    arrays, metadata = unpack_arrays(data, file=file, max_header=MAX_HEADER_BYTES)
    text = metadata.get("state", "").encode()
    if not text or sha256_bytes(text) != metadata.get("sha256"):
        raise ModelFormatError("the checkpoint is damaged", file=file, hint="delete it to start again")
    state = Document(parse_json(text, file), file)
    state.choice("format", (FORMAT,))
    if state.count("version") != VERSION:
        raise ModelFormatError(f"checkpoint version {state.count('version')}, this version reads {VERSION}", file=file)
    if sha256_bytes(pack_arrays(arrays)) != state.text("arrays_sha256"):
        raise ModelFormatError("the arrays of the checkpoint are damaged", file=file, hint="delete it to start again")
    _refuse_other(identity, state, file)
    return {
        "active": arrays["active"],
        "W": arrays["W"],
        "intercept": arrays["intercept"],
        "history": [{key: unplain(value) for key, value in record.items()} for record in state.records("history")],
        "stop_reason": state.text("stop_reason"),
        "n_iter": state.count("n_iter"),
        "passes": state.count("passes"),
    } | {name: state.number(name) for name in _NUMBERS}


def _refuse_other(identity: Identity, state: Document, file: str) -> None:
    hint = "give another path, or delete the file to start again"
    if state.text("fingerprint") != identity.fingerprint:
        raise UsageError("the checkpoint belongs to other data", file=file, hint=hint)
    different = identity.differences(state.mapping("settings"))
    if different:
        raise UsageError(f"the checkpoint belongs to other settings of {', '.join(different)}", file=file, hint=hint)
