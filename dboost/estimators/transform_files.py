"""The transform of a model in its folder: a document, and an array file where it has arrays, each under a digest.

Covers: writing and reading both, beside a model or in the folder of a pipeline; which kinds there are.
Does not cover: what a transform does (its own module), the folder of a pipeline (``persistence``).

The document holds the digest of the model's: a transform that was put beside another model is refused. Reading runs no
code from the folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dboost.errors import ModelFormatError, UsageError
from dboost.estimators import text_feature_files
from dboost.estimators.document_features import DocumentFeatures
from dboost.estimators.features import Features
from dboost.estimators.joined_features import JoinedFeatures
from dboost.estimators.table_features import TableFeatures
from dboost.estimators.text_features import TextFeatures
from dboost.files.documents import MAX_ARRAYS_BYTES, MAX_JSON_BYTES, MODEL_FILE, Document, read_document, to_json
from dboost.files.paths import PathLike, local_path
from dboost.files.storage import pack_arrays, read_plain_file, sha256_bytes, unpack_arrays, write_file
from dboost.files.store_folders import local_copy

FILE, ARRAYS = "transform.json", "transform.safetensors"
FORMAT, VERSION = "dboost transform", 1


@dataclass(frozen=True)
class Kind:
    """A transform that can be saved.

    Parameters
    ----------
    made : type
        Its class.
    to_document, to_arrays : function of the transform
        What is saved, as JSON values and as arrays.
    restore : function (document, arrays)
        The transform again; trusts nothing.
    """

    made: type[Any]
    to_document: Callable[[Any], dict[str, Any]]
    to_arrays: Callable[[Any], dict[str, Any]]
    restore: Callable[[Document, dict[str, Any]], Any]


# Only these can come out of a folder: the document names one, it never brings code.
KINDS: dict[str, Kind] = {
    "documents": Kind(
        DocumentFeatures, DocumentFeatures.to_document, DocumentFeatures.to_arrays, DocumentFeatures.from_files
    ),
    "features": Kind(Features, Features.to_document, Features.to_arrays, Features.from_files),
    "table": Kind(
        TableFeatures, TableFeatures.to_document, lambda _: {}, lambda spec, _: TableFeatures.from_document(spec)
    ),
    "text": Kind(
        TextFeatures, text_feature_files.to_document, text_feature_files.to_arrays, text_feature_files.restore
    ),
}


def _part(transform: Any) -> Kind:
    name = kind_of(transform)
    if name is None or name == JOINED:
        raise UsageError(f"a ColumnTransformer with a {type(transform).__name__} cannot be saved", hint=TAKES)
    return KINDS[name]


def _part_document(transform: Any) -> dict[str, Any]:
    return {"kind": kind_of(transform), **_part(transform).to_document(transform)}


def _part_again(spec: Document, arrays: dict[str, Any]) -> Any:
    return KINDS[spec.choice("kind", tuple(kind for kind in KINDS if kind != JOINED))].restore(spec, arrays)


JOINED = "joined"
KINDS[JOINED] = Kind(
    JoinedFeatures,
    lambda joined: joined.to_document(_part_document),
    lambda joined: joined.to_arrays(lambda part: _part(part).to_arrays(part)),
    lambda spec, arrays: JoinedFeatures.from_files(spec, arrays, _part_again),
)
# What a pipeline in a folder may begin with.
TAKES = "it takes Features, TextFeatures or TableFeatures, or a ColumnTransformer of these"


def kind_of(transform: Any) -> str | None:
    """The name of the kind of a transform; None for what cannot be saved."""
    return next((name for name, kind in KINDS.items() if isinstance(transform, kind.made)), None)


def described(transform: Any, folder: Path) -> dict[str, Any]:
    """The document of a transform, whose arrays are written into a folder."""
    name = kind_of(transform)
    assert name is not None, "callers ask for the kind before"
    kind = KINDS[name]
    document, arrays = {"kind": name, **kind.to_document(transform)}, kind.to_arrays(transform)
    if not arrays:
        return document
    packed = pack_arrays(arrays)
    write_file(folder / ARRAYS, packed)
    return document | {"arrays": {"file": ARRAYS, "bytes": len(packed), "sha256": sha256_bytes(packed)}}


def restored(spec: Document, folder: PathLike) -> Any:
    """The transform of a document.

    Raises
    ------
    ModelFormatError
    """
    kind = KINDS[spec.choice("kind", tuple(KINDS))]
    if spec.fields.get("arrays") is None:
        return kind.restore(spec, {})
    about = spec.child("arrays")
    if about.text("file") != ARRAYS:
        raise ModelFormatError(f"the arrays are in {about.text('file')!r}; expected {ARRAYS}", file=spec.file)
    file = os.path.join(local_path(folder), ARRAYS)
    data = read_plain_file(folder, ARRAYS, max_bytes=MAX_ARRAYS_BYTES, size=about.count("bytes"))
    if sha256_bytes(data) != about.text("sha256"):
        raise ModelFormatError("the content does not match its SHA-256", file=file, hint="restore the model")
    arrays, _ = unpack_arrays(data, file=file)
    return kind.restore(spec, dict(arrays))


def write_into(transform: Any, folder: PathLike) -> str:
    """Put a transform into a folder of prepared rows; the SHA-256 of its document."""
    whole = local_path(folder)
    content = to_json({"format": FORMAT, "version": VERSION, "transform": described(transform, whole)})
    write_file(whole / FILE, content)
    return sha256_bytes(content)


def read_from(folder: PathLike, sha256: str) -> Any:
    """The transform of a folder of prepared rows.

    Raises
    ------
    ModelFormatError
        It is damaged, or not the one of that digest.
    """
    path = local_path(folder)
    document = read_document(path, FILE, FORMAT, (VERSION,), VERSION)
    if sha256_bytes(read_plain_file(path, FILE, max_bytes=MAX_JSON_BYTES)) != sha256:
        raise ModelFormatError(
            "is not the transform of the manifest", file=document.file, hint="prepare the data again"
        )
    return restored(document.child("transform"), path)


def write_beside(transform: Any, model: PathLike) -> None:
    """Put a transform into the folder of a saved model; the document, without which there is none, comes last."""
    folder = local_path(model)
    document = {"format": FORMAT, "version": VERSION, "transform": described(transform, folder)}
    document["model"] = sha256_bytes((folder / MODEL_FILE).read_bytes())
    write_file(folder / FILE, to_json(document))


def read_beside(model: PathLike) -> Any | None:
    """The transform in the folder of a model; None where there is none.

    Raises
    ------
    ModelFormatError
        It is damaged, or of another model.
    """
    folder = local_path(local_copy(model))
    if not os.path.lexists(folder / FILE):
        return None
    document = read_document(folder, FILE, FORMAT, (VERSION,), VERSION)
    data = read_plain_file(folder, MODEL_FILE, max_bytes=MAX_JSON_BYTES)
    if sha256_bytes(data) != document.text("model"):
        raise ModelFormatError("is the transform of another model", file=document.file, hint="restore the model")
    return restored(document.child("transform"), folder)
