"""The two files of a saved model: JSON that is checked field by field, and arrays under a digest.

Covers: strict JSON in and out (non-finite numbers as words), labels and names as plain values, and the reading of the
folder with its limits.
Does not cover: what the fields mean (``dboost.model``).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import ModelFormatError, UsageError
from dboost.storage import PathLike, read_plain_file, sha256_bytes, unpack_arrays

MODEL_FILE = "model.json"
ARRAYS_FILE = "arrays.safetensors"
MAX_JSON_BYTES = 256 << 20
MAX_ARRAYS_BYTES = 64 << 30

_WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def plain(value: Any) -> Any:
    """Return `value` in JSON's own types: NumPy numbers as Python's, non-finite numbers as "inf", "-inf", "nan"."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise UsageError(f"a value of type {type(value).__name__} cannot be saved as JSON")


def unplain(value: Any) -> Any:
    """Undo the words of `plain` for numbers in a record."""
    if isinstance(value, str):
        return _WORDS.get(value, value)
    return value


def to_json(document: dict[str, Any]) -> bytes:
    """Serialise to indented JSON without NaN and infinity."""
    return (json.dumps(plain(document), indent=1, allow_nan=False, ensure_ascii=False) + "\n").encode()


def parse_json(data: bytes, file: str) -> Any:
    """Parse strictly: UTF-8, no NaN or infinity, no key twice, no bottomless nesting."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) != len(items):
            raise ModelFormatError("a key occurs twice", file=file)
        return found

    def constant(name: str) -> Any:
        raise ModelFormatError(f"{name} is no JSON number", file=file)

    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant)
    except ModelFormatError:
        raise
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"is not valid JSON: {error}", file=file) from error


@dataclass(frozen=True)
class Document:
    """A JSON object whose fields are read with their expected types.

    Parameters
    ----------
    fields : dict
    file : str
        For messages.
    where : str
        Path of the object within the document, for messages.
    """

    fields: dict[str, Any]
    file: str
    where: str = ""

    def _fail(self, name: str, expected: str) -> ModelFormatError:
        found = self.fields.get(name)
        shown = "nothing" if name not in self.fields else f"{type(found).__name__} {str(found)[:40]!r}"
        return ModelFormatError(f"field {self.where}{name}: expected {expected}, found {shown}", file=self.file)

    def text(self, name: str) -> str:
        """A string."""
        value = self.fields.get(name)
        if not isinstance(value, str):
            raise self._fail(name, "text")
        return value

    def choice(self, name: str, known: Sequence[str]) -> str:
        """One of the known strings."""
        value = self.fields.get(name)
        if not isinstance(value, str) or value not in known:
            raise self._fail(name, "one of " + ", ".join(known))
        return value

    def count(self, name: str) -> int:
        """An integer from 0 to 2^53."""
        value = self.fields.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 1 << 53:
            raise self._fail(name, "a count")
        return value

    def number(self, name: str) -> float:
        """A float, infinities and NaN included."""
        value = unplain(self.fields.get(name))
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self._fail(name, "a number")
        return float(value)

    def integers(self, name: str) -> NDArray[np.int64]:
        """A list of integers of 64 bits."""
        value = self.fields.get(name)
        if not isinstance(value, list) or not all(type(item) is int and abs(item) < 1 << 62 for item in value):
            raise self._fail(name, "a list of integers")
        return np.array(value, dtype=np.int64)

    def integer_lists(self, name: str) -> tuple[tuple[int, ...], ...]:
        """A list of lists of integers of 64 bits."""
        value = self.fields.get(name)
        if not isinstance(value, list) or not all(
            isinstance(items, list) and all(type(item) is int and abs(item) < 1 << 62 for item in items)
            for items in value
        ):
            raise self._fail(name, "a list of lists of integers")
        return tuple(tuple(items) for items in value)

    def strings(self, name: str) -> tuple[str, ...] | None:
        """A list of strings, or null."""
        value = self.fields.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._fail(name, "a list of text or null")
        return tuple(value)

    def mapping(self, name: str) -> dict[str, Any]:
        """A JSON object."""
        value = self.fields.get(name)
        if not isinstance(value, dict):
            raise self._fail(name, "an object")
        return value

    def child(self, name: str) -> Document:
        """A JSON object, to be read further."""
        return Document(self.mapping(name), self.file, f"{self.where}{name}.")

    def children(self, name: str) -> list[Document]:
        """A list of JSON objects, to be read further."""
        value = self.fields.get(name)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self._fail(name, "a list of objects")
        return [Document(item, self.file, f"{self.where}{name}.{place}.") for place, item in enumerate(value)]

    def records(self, name: str) -> tuple[dict[str, Any], ...]:
        """A list of flat objects of numbers and words."""
        value = self.fields.get(name)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self._fail(name, "a list of objects")
        return tuple({key: unplain(item) for key, item in record.items()} for record in value)


def expect_array(
    arrays: Mapping[str, NDArray[Any]], name: str, dtype: Any, shape: tuple[int, ...], file: str
) -> NDArray[Any]:
    """The array called `name`, of exactly this type and shape, and finite.

    Raises
    ------
    ModelFormatError
    """
    value = arrays.get(name)
    if value is None or value.dtype != dtype or value.shape != shape:
        found = "nothing" if value is None else f"{value.dtype} {value.shape}"
        raise ModelFormatError(f"array {name!r}: expected {np.dtype(dtype)} {shape}, found {found}", file=file)
    if value.dtype.kind == "f" and not np.all(np.isfinite(value)):
        raise ModelFormatError(f"array {name!r} holds NaN or infinity", file=file)
    return value


def read_document(path: PathLike, name: str, form: str, versions: Sequence[int]) -> Document:
    """Read the document `name` of a folder, of one of the known versions.

    Raises
    ------
    ModelFormatError
    """
    file = os.path.join(os.fspath(path), name)
    fields = parse_json(read_plain_file(path, name, max_bytes=MAX_JSON_BYTES), file)
    if not isinstance(fields, dict) or fields.get("format") != form:
        raise ModelFormatError(f"is not a {form} document", file=file)
    document = Document(fields, file)
    found = document.count("version")
    if found not in versions:
        known = ", ".join(map(str, versions))
        hint = "update dboost" if found > max(versions) else "save the model again with the version that wrote it"
        raise ModelFormatError(f"format version {found}, this version reads {known}", file=file, hint=hint)
    return document


def read_folder(path: PathLike, form: str, versions: Sequence[int]) -> tuple[Document, dict[str, NDArray[Any]]]:
    """Read and check the two files of a folder, of one of the known versions.

    Returns
    -------
    document : Document
    arrays : dict of str to array
        Their bytes agree with the digest in the document.

    Raises
    ------
    ModelFormatError
    """
    document = read_document(path, MODEL_FILE, form, versions)
    spec = document.child("arrays")
    size = spec.count("bytes")
    data = read_plain_file(path, spec.text("file"), max_bytes=min(size, MAX_ARRAYS_BYTES))
    arrays_file = os.path.join(os.fspath(path), spec.text("file"))
    if len(data) != size:
        raise ModelFormatError(f"has {len(data)} bytes, {MODEL_FILE} says {size}", file=arrays_file)
    digest = sha256_bytes(data)
    if digest != spec.text("sha256"):
        raise ModelFormatError(
            f"the content does not match its SHA-256 (found {digest[:12]}..., expected {spec.text('sha256')[:12]}...)",
            file=arrays_file,
            hint="the file is damaged or was changed; restore the model",
        )
    arrays, _ = unpack_arrays(data, file=arrays_file)
    return document, arrays


def encode_labels(labels: NDArray[Any]) -> dict[str, Any]:
    """Labels of any JSON-able type with their dtype.

    Raises
    ------
    UsageError
        For labels such as bytes or Python objects other than text, numbers, booleans and None.
    """
    kind = labels.dtype.kind
    if kind == "M":
        return {"dtype": labels.dtype.str, "values": [str(item) for item in labels.astype(str).tolist()]}
    if kind == "T":
        return {"dtype": "T", "values": [str(item) for item in labels.tolist()]}
    values = [item.item() if isinstance(item, np.generic) else item for item in labels.tolist()]
    odd = next((v for v in values if not (v is None or isinstance(v, bool | int | float | str))), None)
    if kind not in "biufUO" or odd is not None:
        shown = labels.dtype.name if odd is None else type(odd).__name__
        raise UsageError(f"labels of type {shown} cannot be saved", hint="use text, numbers, booleans or dates")
    if any(isinstance(v, float) and not math.isfinite(v) for v in values):
        raise UsageError("a label that is NaN or infinite cannot be saved", hint="use text, numbers, booleans or dates")
    return {"dtype": "O" if kind == "O" else labels.dtype.str, "values": values}


def decode_labels(spec: Document) -> NDArray[Any]:
    """Undo `encode_labels`."""
    name = spec.text("dtype")
    values = spec.fields.get("values")
    if not isinstance(values, list) or not all(v is None or isinstance(v, bool | int | float | str) for v in values):
        raise ModelFormatError(f"field {spec.where}values: expected a list of labels", file=spec.file)
    try:
        if name == "O":
            labels = np.empty(len(values), dtype=object)
            labels[:] = values
            return labels
        if name == "T":
            return np.array(values, dtype=np.dtypes.StringDType())
        dtype = np.dtype(name)
        if dtype.kind not in "biufUM":
            raise ValueError(f"dtype {name!r}")
        # The width of text follows from the labels: one claimed by the file could ask for any amount of memory.
        labels = np.array(values, dtype=np.str_ if dtype.kind == "U" else dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelFormatError(f"the labels cannot be read: {error}", file=spec.file) from error
    if labels.ndim != 1:
        raise ModelFormatError("the labels are not a list", file=spec.file)
    return labels


def encode_names(names: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Names as one UTF-8 text and the end of each: a vocabulary of a million words stays two arrays."""
    encoded = [name.encode("utf-8") for name in names]
    ends = np.cumsum([len(item) for item in encoded], dtype=np.int64)
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), ends


def decode_names(
    text: NDArray[Any] | None, ends: NDArray[Any] | None, n: int, file: str
) -> tuple[str, ...] | None:
    """Undo `encode_names` for `n` names; None when there are none."""
    if text is None and ends is None:
        return None
    if (
        text is None
        or ends is None
        or text.dtype != np.uint8
        or ends.dtype != np.int64
        or text.ndim != 1
        or ends.shape != (n,)
        or np.any(np.diff(ends, prepend=0) < 0)
        or (n > 0 and ends[-1] != len(text))
    ):
        raise ModelFormatError(f"the names of {n} features are damaged", file=file)
    whole = text.tobytes()
    starts = [0, *ends[:-1].tolist()]
    try:
        return tuple(whole[a:b].decode("utf-8") for a, b in zip(starts, ends.tolist(), strict=True))
    except UnicodeDecodeError as error:
        raise ModelFormatError(f"the name of a feature is no UTF-8: {error}", file=file) from error
