"""The transform of a model in its folder: a document, and an array file where it has arrays, each under a digest.

Covers: writing and reading both, beside a model or in the folder of a pipeline; which kinds there are; the form of
scikit-learn's ``ColumnTransformer`` of these that is saved (``JoinedFeatures``); ``Features`` learned from files, chunk
by chunk, for ``dboost.data.prepared.tables``; the transform of a prepared folder.
Does not cover: what another transform does (its own module), the folder of a pipeline (``persistence``), the passes
over files (``dboost.data.prepared.tables``).

The document holds the digest of the model's: a transform that was put beside another model is refused. Reading runs no
code from the folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer

from dboost.data.features.arrow import columns_of, documents_of
from dboost.data.features.kinds import Told
from dboost.data.features.look import TEXT
from dboost.data.manifest import Manifest
from dboost.errors import DataError, ModelFormatError, UsageError, type_name
from dboost.estimators.features import Features, Kinds, TableFeatures, absent_columns, merged
from dboost.estimators.text_features import DocumentFeatures, TextFeatures
from dboost.estimators.transformed_rows import Behind, column_names, is_lazy, rows_of_parts, side_by_side, with_names
from dboost.files.documents import (
    MAX_ARRAYS_BYTES,
    MAX_JSON_BYTES,
    MODEL_FILE,
    Document,
    numbered,
    read_document,
    to_json,
    under,
)
from dboost.files.paths import PathLike, local_path
from dboost.files.storage import pack_arrays, read_plain_file, sha256_bytes, unpack_arrays, write_file
from dboost.files.store_folders import local_copy
from dboost.files.stores import AnyPath, StorePath
from dboost.hypotheses.columns import ColumnSet
from dboost.model.fitted import Model

FILE, ARRAYS = "transform.json", "transform.safetensors"
FORMAT, VERSION = "dboost transform", 1


JOINED_SCHEMA = 1


class JoinedFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Transforms of one column, handed over as it is, or several, as a table; their features stand side by side."""

    def __init__(self, parts: Sequence[tuple[str, Any, Any]]) -> None:
        self.parts = parts

    @classmethod
    def of(cls, given: ColumnTransformer) -> JoinedFeatures:
        """What a fitted ``ColumnTransformer`` does; weights, passed parts and columns without names are refused."""
        if given.transformer_weights is not None:
            raise UsageError("a ColumnTransformer with transformer_weights cannot be saved", hint="leave them out")
        parts = []
        for name, transform, columns in given.transformers_:
            if isinstance(transform, str) and transform == "drop":
                continue
            single = isinstance(columns, str)
            names = [columns] if single else list(columns)
            if not names or not all(isinstance(one, str) for one in names):
                raise UsageError(
                    f"the part {name!r} of a ColumnTransformer names no columns", hint="give the names of columns"
                )
            parts.append((name, columns if single else names, transform))
        return cls(parts)

    def fit(self, X: Any, y: Any = None) -> JoinedFeatures:
        """Refused (UsageError): it is one that was fitted before."""
        raise UsageError("a ColumnTransformer that was saved is not fitted again", hint="fit a new one")

    def transform(self, X: Any) -> Any:
        """Rows as features; of a dask DataFrame a lazy dask array of sparse chunks."""
        names = self._names()
        used = list(dict.fromkeys(one for _, columns, _ in self.parts for one in listed(columns)))
        if is_lazy(X):
            absent_columns(used, column_names(X))
            return rows_of_parts(X[used], self, names, len(names), np.dtype(np.float64), X)
        table, _ = columns_of(X, used)
        absent_columns(used, list(table))
        blocks = []
        for _, columns, transform in self.parts:
            mine = table[columns] if isinstance(columns, str) else pa.table({one: table[one] for one in columns})
            blocks.append(transform.transform(mine))
        return with_names(side_by_side(blocks, len(next(iter(table.values())))), names, Behind(X, self))

    def _names(self) -> list[str]:
        return [f"{name}__{one}" for name, _, transform in self.parts for one in transform.get_feature_names_out()]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the features, like ``"textfeatures__wave"``."""
        return np.array(self._names(), dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    # ---- as files --------------------------------------------------------------------------------------------------

    def to_document(self) -> dict[str, Any]:
        """All but the arrays of the parts, as JSON values."""
        parts = [
            {"name": name, "single": isinstance(columns, str), "columns": listed(columns), "part": _document(part)}
            for name, columns, part in self.parts
        ]
        return {"schema": JOINED_SCHEMA, "parts": parts}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of all parts."""
        return numbered([part.to_arrays() for _, _, part in self.parts])

    @classmethod
    def from_files(cls, document: Document, arrays: dict[str, NDArray[Any]]) -> JoinedFeatures:
        """The transform that was saved; nothing in the files is trusted."""
        document.expect_schema(JOINED_SCHEMA)
        parts = []
        for number, one in enumerate(document.children("parts")):
            columns, single = list(one.strings("columns") or ()), one.fields.get("single")
            if not columns or not isinstance(single, bool) or (single and len(columns) != 1):
                raise ModelFormatError("field columns: expected names, one of a single one", file=document.file)
            part = one.child("part")
            part.choice("kind", tuple(kind for kind in KINDS if kind != "joined"))
            transform = _again(part, under(arrays, f"{number}."))
            parts.append((one.text("name"), columns[0] if single else columns, transform))
        if not parts:
            raise ModelFormatError("field parts: expected at least one", file=document.file)
        return cls(parts)


def listed(columns: Any) -> list[str]:
    """The names of columns that may be a single one."""
    return [columns] if isinstance(columns, str) else list(columns)


def with_feature_names(model: Model, names: Sequence[str]) -> Model:
    """A model of plain columns without names, with those of its features."""
    if model.feature_names is not None or not model.plain:
        return model
    active = model.active
    held = ColumnSet(active, tuple(names[j] for j in active.tolist()))
    return replace(model, feature_names=tuple(names), hypotheses=held)


# Only these can come out of a folder: the document names one, it never brings code.
KINDS: dict[str, Any] = {
    "documents": DocumentFeatures,
    "features": Features,
    "table": TableFeatures,
    "text": TextFeatures,
    "joined": JoinedFeatures,
}
# What a pipeline in a folder may begin with.
TAKES = "it takes Features, TextFeatures or TableFeatures, or a ColumnTransformer of these"


def kind_of(transform: Any) -> str | None:
    """The name of the kind of a transform; None for what cannot be saved."""
    return next((name for name, kind in KINDS.items() if isinstance(transform, kind)), None)


def _document(transform: Any) -> dict[str, Any]:
    """A transform as JSON values, but for its arrays."""
    name = kind_of(transform)
    if name is None:
        raise UsageError(f"a ColumnTransformer with {type_name(transform)} cannot be saved", hint=TAKES)
    return {"kind": name, **transform.to_document()}


def _again(spec: Document, arrays: dict[str, Any]) -> Any:
    """The transform of a document and its arrays; nothing in them is trusted."""
    return KINDS[spec.choice("kind", tuple(KINDS))].from_files(spec, arrays)


def described(transform: Any, folder: Path) -> dict[str, Any]:
    """The document of a transform, whose arrays are written into a folder."""
    document = _document(transform)
    arrays: dict[str, Any] = transform.to_arrays()
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


@dataclass(frozen=True)
class FeaturesOfFiles:
    """An unfitted ``Features`` whose columns are all told, and what is said of each."""

    features: Features
    told: Mapping[str, Told]  # Of each column that is no text.
    text: Mapping[str, TextFeatures]

    @classmethod
    def of(cls, features: Features) -> FeaturesOfFiles:
        """Of a transform with the kinds of all columns; one that names none is a UsageError."""
        told, text = features.told()
        if not told and not text:
            raise UsageError("columns names no column", hint="give one of title=text, price=number, ...")
        return cls(features, told, text)

    @property
    def columns(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """The columns that are texts, the others, and those of them that are tags in one text."""
        tags = tuple(name for name, one in self.told.items() if one.separator is not None)
        return tuple(self.text), tuple(self.told), tags

    def limits(self, text: str) -> tuple[Any, Any, Any] | None:
        """``min_df``, ``max_df`` and ``max_features``; None where terms are hashed."""
        one = self.text[text]
        return None if one.hashing is not None else (one.min_df, one.max_df, one.max_features)

    def count(self, columns: Mapping[str, Any]) -> Any:
        """What some rows say of the columns that are no texts."""
        return self.features.count(columns, self.told, {})[0]

    def documents(self, text: str, values: Any) -> Any:
        """Values of a column of text, of which none is missing."""
        return documents_of(text, values, self.features.missing)

    def count_terms(self, text: str, values: Any) -> Any:
        """The terms of some values of a column of text, or their counts where they are hashed."""
        return self.text[text].count_terms(values)[1]

    def merge(self, parts: Sequence[Any]) -> Any:
        """What several parts say together."""
        return merged(list(self.told), parts)

    def settled(
        self, counted: Any, rows: int, terms: Mapping[str, tuple[Any, int | None]], folder: AnyPath
    ) -> tuple[list[str], dict[str, Any]]:
        """Write the fitted transform into a folder; the names of its features, and where it is."""
        if isinstance(folder, StorePath):
            raise UsageError("a table of several kinds of columns is prepared into a folder of this machine")
        known = {name: ((rows, counts), n_terms) for name, (counts, n_terms) in terms.items()}
        own = {name: one.kind for name, one in self.told.items()} | dict.fromkeys(self.text, TEXT)
        kinds = Kinds(own, dict.fromkeys(own, "told"))
        fitted = self.features.settle((counted, known, rows), self.told, self.text, kinds)
        return fitted.get_feature_names_out().tolist(), {"file": FILE, "sha256": write_into(fitted, folder)}

    @property
    def read(self) -> Any:
        """The function that gives the transform of a folder again."""
        return read_from


def transform_of_prepared(manifest: Manifest) -> Features | DocumentFeatures | None:
    """The transform of a prepared folder; None where its features came from no raw rows."""
    about = manifest.settings.get("transform")
    if about is None:
        return DocumentFeatures.of_prepared(manifest)
    if not isinstance(about, dict) or not isinstance(about.get("sha256"), str):
        raise DataError("the manifest names no transform", file=manifest.root, hint="prepare the data again")
    found: Features = read_from(manifest.root, about["sha256"])
    return found
