"""The transform of a model in its folder: a document, and an array file where it has arrays, each under a digest.

Covers: writing and reading both, beside a model or in the folder of a pipeline; which kinds there are.
Does not cover: what a transform does (its own module), the folder of a pipeline (``persistence``).

The document holds the digest of the model's: a transform that was put beside another model is refused. Reading runs no
code from the folder.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dboost.errors import ModelFormatError, UsageError
from dboost.estimators.document_features import DocumentFeatures
from dboost.estimators.features import Features
from dboost.estimators.joined_features import JoinedFeatures, listed
from dboost.estimators.table_features import TableFeatures
from dboost.estimators.text_features import TextFeatures
from dboost.files.documents import (
    MAX_ARRAYS_BYTES,
    MAX_JSON_BYTES,
    MODEL_FILE,
    Document,
    numbered,
    of_number,
    read_document,
    to_json,
)
from dboost.files.paths import PathLike, local_path
from dboost.files.storage import pack_arrays, read_plain_file, sha256_bytes, unpack_arrays, write_file
from dboost.files.store_folders import local_copy

FILE, ARRAYS = "transform.json", "transform.safetensors"
FORMAT, VERSION = "dboost transform", 1


# Only these can come out of a folder: the document names one, it never brings code.
KINDS: dict[str, Any] = {
    "documents": DocumentFeatures,
    "features": Features,
    "table": TableFeatures,
    "text": TextFeatures,
    "joined": JoinedFeatures,
}
JOINED_SCHEMA = 1
# What a pipeline in a folder may begin with.
TAKES = "it takes Features, TextFeatures or TableFeatures, or a ColumnTransformer of these"


def kind_of(transform: Any) -> str | None:
    """The name of the kind of a transform; None for what cannot be saved."""
    return next((name for name, kind in KINDS.items() if isinstance(transform, kind)), None)


def _document(transform: Any) -> dict[str, Any]:
    """A transform as JSON values, but for its arrays."""
    name = kind_of(transform)
    if name is None:
        raise UsageError(f"a ColumnTransformer with a {type(transform).__name__} cannot be saved", hint=TAKES)
    if not isinstance(transform, JoinedFeatures):
        return {"kind": name, **transform.to_document()}
    parts = [
        {"name": name, "single": isinstance(columns, str), "columns": listed(columns), "part": _document(part)}
        for name, columns, part in transform.parts
    ]
    return {"kind": name, "schema": JOINED_SCHEMA, "parts": parts}


def _arrays(transform: Any) -> dict[str, Any]:
    if isinstance(transform, JoinedFeatures):
        return numbered([_arrays(part) for _, _, part in transform.parts])
    found: dict[str, Any] = transform.to_arrays()
    return found


def _again(spec: Document, arrays: dict[str, Any]) -> Any:
    """The transform of a document and its arrays; nothing in them is trusted."""
    name = spec.choice("kind", tuple(KINDS))
    if name != "joined":
        return KINDS[name].from_files(spec, arrays)
    spec.expect_schema(JOINED_SCHEMA)
    parts = []
    for number, one in enumerate(spec.children("parts")):
        columns, single = list(one.strings("columns") or ()), one.fields.get("single")
        if not columns or not isinstance(single, bool) or (single and len(columns) != 1):
            raise ModelFormatError("field columns: expected names, one of a single one", file=spec.file)
        part = one.child("part")
        part.choice("kind", tuple(kind for kind in KINDS if kind != "joined"))
        transform = _again(part, of_number(arrays, number))
        parts.append((one.text("name"), columns[0] if single else columns, transform))
    if not parts:
        raise ModelFormatError("field parts: expected at least one", file=spec.file)
    return JoinedFeatures(parts)


def described(transform: Any, folder: Path) -> dict[str, Any]:
    """The document of a transform, whose arrays are written into a folder."""
    document, arrays = _document(transform), _arrays(transform)
    if not arrays:
        return document
    packed = pack_arrays(arrays)
    write_file(folder / ARRAYS, packed)
    return document | {"arrays": {"file": ARRAYS, "bytes": len(packed), "sha256": sha256_bytes(packed)}}


def restored(spec: Document, folder: PathLike) -> Any:
    """The transform of a document."""
    if spec.fields.get("arrays") is None:
        return _again(spec, {})
    about = spec.child("arrays")
    if about.text("file") != ARRAYS:
        raise ModelFormatError(f"the arrays are in {about.text('file')!r}; expected {ARRAYS}", file=spec.file)
    file = os.path.join(local_path(folder), ARRAYS)
    data = read_plain_file(folder, ARRAYS, max_bytes=MAX_ARRAYS_BYTES, size=about.count("bytes"))
    if sha256_bytes(data) != about.text("sha256"):
        raise ModelFormatError("the content does not match its SHA-256", file=file, hint="restore the model")
    return _again(spec, dict(unpack_arrays(data, file=file)[0]))


def write_into(transform: Any, folder: PathLike) -> str:
    """Put a transform into a folder of prepared rows; the SHA-256 of its document."""
    whole = local_path(folder)
    content = to_json({"format": FORMAT, "version": VERSION, "transform": described(transform, whole)})
    write_file(whole / FILE, content)
    return sha256_bytes(content)


def read_from(folder: PathLike, sha256: str) -> Any:
    """The transform of a folder of prepared rows, of that digest (else a ModelFormatError)."""
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
    """The transform in the folder of a model; None where there is none, a ModelFormatError of another model."""
    folder = local_path(local_copy(model))
    if not os.path.lexists(folder / FILE):
        return None
    document = read_document(folder, FILE, FORMAT, (VERSION,), VERSION)
    data = read_plain_file(folder, MODEL_FILE, max_bytes=MAX_JSON_BYTES)
    if sha256_bytes(data) != document.text("model"):
        raise ModelFormatError("is the transform of another model", file=document.file, hint="restore the model")
    return restored(document.child("transform"), folder)
