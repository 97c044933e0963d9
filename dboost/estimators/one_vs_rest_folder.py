"""A saved ``OneVsRestBoostedClassifier``: a folder of one model for each class, and a document that names them.

``one_vs_rest.json`` holds the classes and, of each model, the digest of its own document, which in turn holds that of
its arrays: a folder put together from several models is refused. So is a changed ``one_vs_rest.json``.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import ModelFormatError
from dboost.files.documents import (
    MAX_JSON_BYTES,
    MODEL_FILE,
    check_distinct,
    decode_labels,
    encode_labels,
    read_document,
    to_json,
)
from dboost.files.paths import PathLike, local_path
from dboost.files.storage import read_plain_file, sha256_bytes, write_folder

FILE = "one_vs_rest.json"
FORMAT = "dboost one-vs-rest"
VERSION = 2
# Version 1 had no digest of the document.
VERSIONS = (1, VERSION)
SEALED_FROM = 2


def is_one_vs_rest(path: PathLike) -> bool:
    """Whether a folder holds the models of several classes."""
    return os.path.lexists(os.path.join(local_path(path), FILE))


def write(path: PathLike, classes: NDArray[Any], models: Sequence[Any], given: bool, force: bool) -> None:
    """Write the folder, which appears whole or not at all.

    Parameters
    ----------
    path : path
    classes : array
        Labels.
    models : sequence of fitted estimators
    given : bool
        Whether the estimator was given, or the default.
    force : bool
        Replace the folder of an earlier model.

    Raises
    ------
    UsageError
        When the folder exists (without `force`), or labels are of a type that JSON cannot hold.
    StorageError
        When it cannot be written.
    """
    labels = encode_labels(classes)
    with write_folder(path, marker=FILE, force=force) as folder:
        digests = []
        for place, model in enumerate(models):
            model.save(folder / _name(place))
            digests.append(sha256_bytes((folder / _name(place) / MODEL_FILE).read_bytes()))
        document = {"format": FORMAT, "version": VERSION, "classes": labels, "given": given, "models": digests}
        (folder / FILE).write_bytes(to_json(document))


def read(path: PathLike, load: Callable[[PathLike], Any]) -> tuple[NDArray[Any], list[Any], bool]:
    """The classes, the estimators and whether their template was given, trusting nothing in the folder.

    Parameters
    ----------
    path : path
    load : function
        Reads the estimator of one folder.

    Raises
    ------
    ModelFormatError
    """
    document = read_document(path, FILE, FORMAT, VERSIONS, SEALED_FROM)
    file = document.file
    classes = decode_labels(document.child("classes"))
    given = document.fields.get("given")
    if not isinstance(given, bool):
        raise ModelFormatError("field given: expected true or false", file=file)
    digests = document.strings("models") or ()
    expected = 1 if len(classes) == 2 else len(classes)
    check_distinct(classes, file)
    if len(classes) < 2 or len(digests) != expected:
        raise ModelFormatError(f"{len(digests)} models for the classes {classes.tolist()[:10]}", file=file)
    models = []
    for place, digest in enumerate(digests):
        folder = os.path.join(local_path(path), _name(place))
        _check_part(folder, digest)
        models.append(load(folder))
        if getattr(models[-1], "classes_", np.zeros(0)).tolist() != [False, True]:
            raise ModelFormatError("is no classifier of one class against the others", file=folder)
    if len({(type(one), one.n_features_in_) for one in models}) != 1:
        raise ModelFormatError("models of different kinds or numbers of features", file=file)
    return classes, models, given


def _name(place: int) -> str:
    """The folder of a model."""
    return f"class-{place}"


def _check_part(folder: str, digest: str) -> None:
    """Refuse a link, and a model that is not the one which was saved here."""
    try:
        mode = os.lstat(folder).st_mode
    except OSError as error:
        raise ModelFormatError(f"cannot be opened: {error.strerror or error}", file=folder) from error
    if not stat.S_ISDIR(mode):
        raise ModelFormatError("is no folder; links are not followed", file=folder)
    if sha256_bytes(read_plain_file(folder, MODEL_FILE, max_bytes=MAX_JSON_BYTES)) != digest:
        raise ModelFormatError(
            "is not the model that was saved here", file=folder, hint="the folder was changed; restore the model"
        )
