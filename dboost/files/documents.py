"""The two files of a saved model: JSON that is checked field by field, and arrays under a digest.

Covers: strict JSON in and out (non-finite numbers as words) under a digest of its own, labels and names as plain
values, the reading of the folder with its limits, and values as TOML writes them.
Does not cover: what the fields mean (``dboost.model.fitted``).

The digest of a document, its field ``sha256``, is over its values: other blanks or another order of fields are the same
document. It finds damage; it is no signature, since whoever can write the file can write a digest.
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
from dboost.files.paths import PathLike, local_path
from dboost.files.storage import read_plain_file, sha256_bytes, sha256_json, unpack_arrays
from dboost.former_names import renamed
from dboost.notices import warn_user

MODEL_FILE = "model.json"
ARRAYS_FILE = "arrays.safetensors"
MAX_JSON_BYTES = 256 << 20
MAX_ARRAYS_BYTES = 64 << 30
DIGEST = "sha256"
# How a document names labels that are Python's bytes; their values are hexadecimal.
BYTES = "bytes"
# Column numbers are 32-bit in sparse rows of Parquet, and no table in memory has as many columns.
MAX_FEATURES = (1 << 31) - 1

_WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def plain(value: Any) -> Any:
    """Return `value` in JSON's own types: NumPy numbers as Python's, series as lists, infinite numbers as words."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if hasattr(value, "__array__"):
        return plain(np.asarray(value).tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise UsageError(f"a value of type {type(value).__name__} cannot be saved as JSON")


def unplain(value: Any) -> Any:
    """Undo the words of `plain` for numbers, in a record too."""
    if isinstance(value, dict):
        return {name: unplain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [unplain(item) for item in value]
    return _WORDS.get(value, value) if isinstance(value, str) else value


def to_json(document: dict[str, Any]) -> bytes:
    """Serialise to indented JSON without NaN and infinity, sealed with the digest of all fields."""
    fields = plain(document)
    whole = fields | {DIGEST: content_digest(fields)}
    text = json.dumps(whole, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    # Half of a surrogate pair, as Python makes it of a file name that is no UTF-8, becomes the escape that JSON has.
    return text.encode("utf-8", "backslashreplace")


def content_digest(fields: Mapping[str, Any]) -> str:
    """The digest of a document of JSON values, over all fields but the digest itself."""
    return sha256_json({name: value for name, value in fields.items() if name != DIGEST})


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
    """A JSON object whose fields are read with their expected types."""

    fields: dict[str, Any]
    file: str  # For messages.
    where: str = ""  # Path of the object within the document, for messages.

    def _fail(self, name: str, expected: str) -> ModelFormatError:
        found = self.fields.get(name)
        shown = "nothing" if name not in self.fields else f"{type(found).__name__} {str(found)[:40]!r}"
        return ModelFormatError(f"field {self.where}{name}: expected {expected}, found {shown}", file=self.file)

    def expect_schema(self, schema: int, oldest: int | None = None) -> None:
        """Refuse a transform of another version, or of one before the oldest that is read (ModelFormatError)."""
        if not (schema if oldest is None else oldest) <= self.count("schema") <= schema:
            raise ModelFormatError(f"the transform is of another version than {schema}", file=self.file)

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

    def features(self, name: str) -> int:
        """A number of columns."""
        value = self.count(name)
        if value > MAX_FEATURES:
            raise self._fail(name, f"at most {MAX_FEATURES} features")
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
        if not _are_integers(value):
            raise self._fail(name, "a list of integers")
        return np.array(value, dtype=np.int64)

    def integer_lists(self, name: str) -> tuple[tuple[int, ...], ...]:
        """A list of lists of integers of 64 bits."""
        value = self.fields.get(name)
        if not isinstance(value, list) or not all(map(_are_integers, value)):
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
        return tuple(renamed(unplain(child.fields)) for child in self.children(name))


def _are_integers(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int and abs(item) < 1 << 62 for item in value)


def expect_array(
    arrays: Mapping[str, NDArray[Any]], name: str, dtype: Any, shape: tuple[int, ...], file: str
) -> NDArray[Any]:
    """The array of that name, of exactly this type and shape, and finite; else a ModelFormatError."""
    value = arrays.get(name)
    if value is None or value.dtype != dtype or value.shape != shape:
        found = "nothing" if value is None else f"{value.dtype} {value.shape}"
        raise ModelFormatError(f"array {name!r}: expected {np.dtype(dtype)} {shape}, found {found}", file=file)
    if value.dtype.kind == "f" and not np.all(np.isfinite(value)):
        raise ModelFormatError(f"array {name!r} holds NaN or infinity", file=file)
    return value


def read_document(path: PathLike, name: str, form: str, versions: Sequence[int], sealed_from: int) -> Document:
    """Read a document of a known version and check its digest, which versions before `sealed_from` lack (a warning)."""
    file = os.path.join(local_path(path), name)
    fields = parse_json(read_plain_file(path, name, max_bytes=MAX_JSON_BYTES), file)
    if not isinstance(fields, dict) or fields.get("format") != form:
        raise ModelFormatError(f"is not a {form} document", file=file)
    document = Document(fields, file)
    found = document.count("version")
    if found not in versions:
        known = ", ".join(map(str, versions))
        hint = "update dboost" if found > max(versions) else "save the model again with the version that wrote it"
        raise ModelFormatError(f"format version {found}, this version reads {known}", file=file, hint=hint)
    if found >= sealed_from or DIGEST in fields:
        _expect_digest(document.text(DIGEST), content_digest(fields), file)
    else:
        warn_user(
            f"format version {found} has no digest, so a damaged file would not be noticed (file {file}); "
            "save the model again"
        )
    return document


def _expect_digest(expected: str, found: str, file: str) -> None:
    if found != expected:
        raise ModelFormatError(
            f"the content does not match its SHA-256 (found {found[:12]}..., expected {expected[:12]}...)",
            file=file,
            hint="the file is damaged or was changed; restore the model",
        )


def read_folder(
    path: PathLike, form: str, versions: Sequence[int], sealed_from: int
) -> tuple[Document, dict[str, NDArray[Any]]]:
    """The checked document of a folder (`read_document`), and its arrays, whose bytes agree with the digest there."""
    document = read_document(path, MODEL_FILE, form, versions, sealed_from)
    spec = document.child("arrays")
    data = read_plain_file(path, spec.text("file"), max_bytes=MAX_ARRAYS_BYTES, size=spec.count("bytes"))
    arrays_file = os.path.join(os.path.dirname(document.file), spec.text("file"))
    _expect_digest(spec.text("sha256"), sha256_bytes(data), arrays_file)
    arrays, _ = unpack_arrays(data, file=arrays_file)
    return document, arrays


def encode_labels(labels: NDArray[Any]) -> dict[str, Any]:
    """Labels of any JSON-able type with their dtype; other objects are a UsageError."""
    kind = labels.dtype.kind
    if kind == "S" or (kind == "O" and len(labels) and all(isinstance(item, bytes) for item in labels.tolist())):
        return {"dtype": "S" if kind == "S" else BYTES, "values": [bytes(item).hex() for item in labels.tolist()]}
    if kind == "M":
        return {"dtype": labels.dtype.str, "values": [str(item) for item in labels.astype(str).tolist()]}
    if kind == "T":
        return {"dtype": "T", "values": [str(item) for item in labels.tolist()]}
    values = [item.item() if isinstance(item, np.generic) else item for item in labels.tolist()]
    odd = next((v for v in values if not (v is None or isinstance(v, bool | int | float | str))), None)
    if kind not in "biufUO" or odd is not None:
        shown = labels.dtype.name if odd is None else type(odd).__name__
        raise UsageError(f"labels of type {shown} cannot be saved", hint="use text, bytes, numbers, booleans or dates")
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
        if name in ("S", BYTES):
            found = [bytes.fromhex(value) for value in values]
            return np.array(found, dtype=np.bytes_) if name == "S" else _objects(found)
        if name == "O":
            return _objects(values)
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


def _objects(values: list[Any]) -> NDArray[Any]:
    labels = np.empty(len(values), dtype=object)
    labels[:] = values
    return labels


def check_distinct(labels: NDArray[Any], file: str) -> None:
    """Refuse (ModelFormatError) classes of which one occurs twice or is no value: predictions could be either."""
    kind, values = labels.dtype.kind, labels.tolist()
    if (kind == "f" and not np.all(np.isfinite(labels))) or (kind == "M" and np.any(np.isnat(labels))):
        raise ModelFormatError("a class is NaN, infinite or no date", file=file)
    if len(set(values)) != len(values):
        twice = next(v for place, v in enumerate(values) if v in values[:place])
        raise ModelFormatError(f"the class {twice!r} occurs twice", file=file)


def encode_names(names: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Names as one UTF-8 text and the end of each: a vocabulary of a million words stays two arrays."""
    encoded = [name.encode("utf-8", "surrogatepass") for name in names]
    ends = np.cumsum([len(item) for item in encoded], dtype=np.int64)
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), ends


def decode_names(text: NDArray[Any] | None, ends: NDArray[Any] | None, n: int, file: str) -> tuple[str, ...] | None:
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
        return tuple(whole[a:b].decode("utf-8", "surrogatepass") for a, b in zip(starts, ends.tolist(), strict=True))
    except UnicodeDecodeError as error:
        raise ModelFormatError(f"the name of a feature is no UTF-8: {error}", file=file) from error


def numbered(parts: Sequence[Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """The arrays of several things as those of one, each under the number of its thing."""
    return {f"{number}.{name}": array for number, part in enumerate(parts) for name, array in part.items()}


def under(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin with a prefix, such as the number and point of ``numbered``, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def to_toml(value: Any) -> str:
    """A value as TOML writes it, which Python reads but does not write."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for the one control character that JSON leaves as it is
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, float):
        text = repr(float(value))
        return text if any(mark in text for mark in ".en") else f"{text}.0"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{to_toml(str(key))} = {to_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(to_toml, value)) + "]"
    return str(value)
