"""The folder of a model within what a user may name: itself, a saved pipeline, a run, or the home of a retraining.

Covers: finding it, and the transform that belongs to it. Does not cover: reading the model (``load``), what a run or a
home holds besides (``dboost_pipelines``).
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from dboost.errors import DataError
from dboost.estimators import one_vs_rest_folder, pipeline_folder
from dboost.estimators.transform_files import read_beside
from dboost.files.documents import MODEL_FILE
from dboost.files.paths import PathLike, local_path
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
    """The folder that holds the model itself, which `path` is, or has in it.

    Parameters
    ----------
    path : path
        Folder of a model, of ``save_model`` of a pipeline, of a run, or of a retraining, whose champion is meant. One
        that is none of them is given back as it is, for its reader to refuse.

    Raises
    ------
    DataError
        There is no such folder; a run that has no model yet; a home without a champion, or whose pointer is damaged.
    """
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
    return given


def read_transform(path: PathLike) -> Any | None:
    """The transform of a model's folder as ``find_model`` gives it; None where it was trained on features.

    Raises
    ------
    ModelFormatError
        It is damaged, or of another model.
    """
    folder = local_copy(path)
    if pipeline_folder.is_pipeline(folder):
        return pipeline_folder.parts(folder)[1]
    return read_beside(folder)


def _holds_model(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (MODEL_FILE, pipeline_folder.FILE, one_vs_rest_folder.FILE))


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
