"""The folder of a model within what a user may name, and the transform that it was trained behind.

Covers: models, saved pipelines, runs and homes of retrainings. Nothing here loads an estimator, so that what reads a
model alone begins sooner. Does not cover: saving and loading estimators (``persistence``), what a run or a home holds
besides (``dboost_pipelines``).
"""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

from dboost.errors import DataError, ModelFormatError
from dboost.estimators.transform_files import read_beside, restored
from dboost.files.documents import MAX_JSON_BYTES, MODEL_FILE, read_document
from dboost.files.paths import PathLike, local_path
from dboost.files.storage import read_plain_file, sha256_bytes
from dboost.files.store_folders import local_copy
from dboost.files.stores import is_store

# In a run and in a saved pipeline, the folder of the model.
PART = "model"
# In the home of a retraining: which version is the champion, and the folder of the versions, which are runs.
CHAMPION, VERSIONS = "champion.json", "versions"
VERSION = re.compile(r"v\d{4,}")
# A run that has no model yet is told by either of these.
_RUN = ("run.toml", "stages.json")


def find_model(path: PathLike) -> str:
    """The folder of the model itself, in that of a pipeline, run or retraining."""
    given = os.fspath(path)
    # a store holds models and pipelines; runs and homes are kept on disks
    if is_store(given):
        return given
    folder = local_path(given)
    if not folder.is_dir():
        raise DataError("there is no such model folder", file=given, hint="make one with `dboost train`")
    if (folder / CHAMPION).is_file():
        folder = _champion(folder)
    if _holds_model(folder):
        return str(folder)
    if _holds_model(folder / PART):
        return str(folder / PART)
    if any((folder / name).is_file() for name in _RUN):
        raise DataError("the run has no model yet", file=str(folder), hint="`dboost resume` goes on with it")
    raise ModelFormatError(
        f"there is no {MODEL_FILE}",
        file=os.path.abspath(folder),
        hint="name the folder of a model, a saved pipeline, a run or a retraining",
    )


def read_transform(path: PathLike) -> Any | None:
    """The transform of a model's folder as ``find_model`` gives it; None where it was trained on features."""
    folder = local_copy(path)
    if is_pipeline(folder):
        return pipeline_parts(folder)[1]
    return read_beside(folder)


def _holds_model(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (MODEL_FILE, PIPELINE, ONE_VS_REST))


def _champion(home: Path) -> Path:
    """The run of the champion."""
    file = home / CHAMPION
    try:
        version = json.loads(file.read_bytes())["version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            "does not say which version is the champion", file=str(file), hint="`dboost retrain` makes it again"
        ) from error
    if version is None:
        raise DataError("no version is the champion yet", file=str(file), hint="`dboost retrain` makes one")
    if not isinstance(version, str) or VERSION.fullmatch(version) is None:
        raise DataError(f"names {version!r}, which is no version", file=str(file), hint="`dboost retrain` mends it")
    return home / VERSIONS / version


PIPELINE = "pipeline.json"
PIPELINE_FORMAT = "dboost pipeline"
PIPELINE_VERSION = 1


def is_pipeline(path: PathLike) -> bool:
    """Whether a folder holds a transform and a model."""
    return os.path.lexists(os.path.join(local_path(path), PIPELINE))


def pipeline_parts(path: PathLike) -> tuple[tuple[str, ...], Any, str]:
    """The names of the steps, the transform, and the folder of the model, which is the one that belongs to it."""
    document = read_document(path, PIPELINE, PIPELINE_FORMAT, (PIPELINE_VERSION,), PIPELINE_VERSION)
    names = document.strings("steps") or ()
    if len(names) != 2 or names[0] == names[1] or any("__" in name or not name for name in names):
        raise ModelFormatError("field steps: expected two different names", file=document.file)
    features = restored(document.child("transform"), path)
    folder = os.path.join(local_path(path), PART)
    check_part(folder, document.text("model"), "with this transform")
    return names, features, folder


ONE_VS_REST = "one_vs_rest.json"


def is_one_vs_rest(path: PathLike) -> bool:
    """Whether a folder holds the models of several classes."""
    return os.path.lexists(os.path.join(local_path(path), ONE_VS_REST))


def check_part(folder: str, digest: str, belongs: str) -> None:
    """Refuse a link, and a model that is not the one which was saved in this folder of a larger one."""
    try:
        mode = os.lstat(folder).st_mode
    except OSError as error:
        raise ModelFormatError(f"cannot be opened: {error.strerror or error}", file=folder) from error
    if not stat.S_ISDIR(mode):
        raise ModelFormatError("is no folder; links are not followed", file=folder)
    if sha256_bytes(read_plain_file(folder, MODEL_FILE, max_bytes=MAX_JSON_BYTES)) != digest:
        raise ModelFormatError(
            f"is not the model that was saved {belongs}", file=folder, hint="the folder was changed; restore the model"
        )
