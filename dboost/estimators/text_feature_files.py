"""``TextFeatures`` as a document and arrays: what is saved with a model, and what comes back from its folder.

Covers: both directions, and what cannot be saved. Does not cover: the files themselves (``transform_files``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dboost.errors import DataError, ModelFormatError, UsageError
from dboost.estimators.text_features import TextFeatures
from dboost.files.documents import Document, decode_names, encode_names, expect_array

SCHEMA = 1
# It says where the work is done, and is no part of what is done.
_OF_THE_PROCESS = "n_threads"


def to_document(features: TextFeatures) -> dict[str, Any]:
    """The parameters, as JSON values.

    Raises
    ------
    UsageError
        A function that cuts documents would be code in the folder of a model.
    """
    check_is_fitted(features)
    return {"schema": SCHEMA, "n_documents": features.n_documents_, "parameters": parameters(features)}


def parameters(features: TextFeatures) -> dict[str, Any]:
    """The parameters as JSON values, but for what is of the process.

    Raises
    ------
    UsageError
        As of ``to_document``.
    """
    if callable(features.analyzer):
        raise UsageError(
            "TextFeatures with a function as its analyzer cannot be saved: the folder would hold code",
            hint="use 'word', 'char' or 'char_wb'",
        )
    plain = {name: value for name, value in features.get_params(deep=False).items() if name != _OF_THE_PROCESS}
    plain["dtype"] = np.dtype(features.dtype).name
    plain["ngram_range"] = [int(size) for size in features.ngram_range]
    if features.stop_words is not None and not isinstance(features.stop_words, str):
        plain["stop_words"] = sorted(features.stop_words)
    return plain


def of_parameters(given: Any) -> TextFeatures:
    """An unfitted transform of parameters; nothing in them is trusted.

    Raises
    ------
    UsageError, DataError, TypeError, ValueError
        They are not those of ``parameters``, or have no meaning.
    """
    known = set(TextFeatures().get_params(deep=False)) - {_OF_THE_PROCESS}
    if set(given) != known or given["dtype"] not in ("float64", "float32"):
        raise UsageError("expected those of TextFeatures")
    dtype = np.dtype(given["dtype"]).type
    made = TextFeatures(**{**given, "dtype": dtype, "ngram_range": tuple(given["ngram_range"])})
    made._check()
    return made


def to_arrays(features: TextFeatures) -> dict[str, NDArray[Any]]:
    """What was learned."""
    found: dict[str, NDArray[Any]] = {"document_frequency": features.document_frequency_, "idf": features._idf}
    if features._terms is not None:
        found["terms"], found["term_ends"] = encode_names(features._terms.to_pylist())
    return found


def restore(document: Document, arrays: dict[str, NDArray[Any]]) -> TextFeatures:
    """The transformer that was saved; nothing in the files is trusted.

    Raises
    ------
    ModelFormatError
    """
    file, given = document.file, dict(document.mapping("parameters"))
    if document.count("schema") != SCHEMA:
        raise ModelFormatError(f"the transform is of another version than {SCHEMA}", file=file)
    try:
        made = of_parameters(given)
    except (UsageError, DataError, TypeError, ValueError) as error:
        raise ModelFormatError(f"field parameters: {error}", file=file) from error
    dtype = np.dtype(given["dtype"])
    df = arrays.get("document_frequency", np.zeros(0, np.int64))
    n_features = df.shape[0] if df.ndim == 1 else 0
    df = expect_array(arrays, "document_frequency", np.int64, (n_features,), file)
    idf = expect_array(arrays, "idf", dtype, (n_features,), file)
    terms = decode_names(arrays.get("terms"), arrays.get("term_ends"), n_features, file)
    hashed = made.hashing is not None
    if n_features < 1 or hashed != (terms is None) or (hashed and n_features != made.hashing):
        raise ModelFormatError("the terms are not those of the parameters", file=file)
    if terms is not None and len(set(terms)) < n_features:
        raise ModelFormatError("two features have the same term", file=file)
    found = None if terms is None else pa.array(terms, pa.large_string())
    return made._adopt(df, document.count("n_documents"), found, idf)
