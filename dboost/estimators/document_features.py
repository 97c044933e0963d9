"""``DocumentFeatures``: the transform of a folder that ``dboost prepare`` wrote, as a step of a pipeline.

Covers: taking it from the folder, transforming raw documents, the form that is saved with a model.
Does not cover: learning a vocabulary from documents in memory (``TextFeatures``), or the files (``transform_files``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin

from dboost.data.features.arrow import arrow_of, documents_of
from dboost.data.manifest import Manifest, read_vocabulary
from dboost.data.named_columns import refuse_unread
from dboost.data.prepared.text import TOKENISERS, TextRule, TextTransform
from dboost.errors import DataError, ModelFormatError, UsageError
from dboost.estimators.transformed_rows import with_names
from dboost.files.documents import Document, decode_names, encode_names, expect_array

SCHEMA = 1


class DocumentFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Documents to the features that a model was trained on, with the vocabulary of its prepared folder.

    `text`: Text columns; several are joined by a newline.
    `tokenizer`: How documents are cut into terms, and what counts become, as in ``dboost prepare``.
    `hashing`: Number of buckets, where terms are hashed.
    `idf`: float64 array, shape (number of terms,).

    Examples
    --------
    >>> features = DocumentFeatures(("text",), "words", None, ["cat", "dog"], np.array([1.0, 1.0]))
    >>> features.transform(["a cat", "no dog, a dog"]).toarray().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def __init__(self, text: Any, tokenizer: str | TextRule, hashing: int | None, terms: Any, idf: Any) -> None:
        self.text = text
        self.tokenizer = tokenizer
        self.hashing = hashing
        self.terms = terms
        self.idf = idf

    @classmethod
    def of_prepared(cls, manifest: Manifest) -> DocumentFeatures | None:
        """The transform of a prepared folder; None where its features came from no documents."""
        settings, vocabulary = manifest.settings, manifest.vocabulary
        if vocabulary is None or "tokenizer" not in settings:
            return None
        terms, _, idf = read_vocabulary(manifest.root, vocabulary)
        rule = TextRule.from_settings(settings)
        return cls(tuple(settings["text"]), rule, settings["hashing"], tuple(terms), idf)

    def fit(self, X: Any, y: Any = None) -> DocumentFeatures:
        """Refused (UsageError): the vocabulary is that of the prepared folder."""
        raise UsageError("the vocabulary of a prepared folder is not learned again", hint="use dboost.TextFeatures")

    def transform(self, X: Any) -> sparse.csr_array:
        """Rows of documents, or of a table with the text columns, with the float32 values of ``dboost prepare``."""
        # buckets of hashed terms have no names
        names = self.terms if self.hashing is None else None
        return with_names(self._made().transform(self.documents(X), np.float32), names)

    def documents(self, X: Any) -> Any:
        """The documents of a table as one Arrow array of texts; others as they are."""
        refuse_unread(X)
        if not hasattr(X, "columns"):
            return X
        names = list(X.schema.names) if isinstance(X, pa.Table | pa.RecordBatch) else [str(name) for name in X.columns]
        parts = []
        for name in self.text:
            if name not in names:
                raise DataError("the text column of the model is not there", column=name, hint=f"there are {names[:8]}")
            parts.append(documents_of(name, arrow_of(name, X[name]), "refuse"))
        if len(parts) == 1:
            return parts[0]
        return pc.binary_join_element_wise(*parts, pa.scalar("\n", pa.large_string()))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The term of each feature; `input_features` is there for pipelines."""
        return np.array(list(self.terms), dtype=object)

    @property
    def rule(self) -> TextRule:
        """How documents are cut into terms, and what their counts become."""
        return TextRule.of(self.tokenizer)

    def _made(self) -> TextTransform:
        found: TextTransform | None = self.__dict__.get("_transform")
        if found is None:
            found = self._transform = TextTransform(self.tokenizer, list(self.terms), self.idf, self.hashing)
        return found

    def __getstate__(self) -> dict[str, Any]:
        # The table of terms is made again where it is needed.
        return {name: value for name, value in super().__getstate__().items() if name != "_transform"}

    def __sklearn_is_fitted__(self) -> bool:
        return True

    # ---- as files --------------------------------------------------------------------------------------------------

    def to_document(self) -> dict[str, Any]:
        """All but the terms, as JSON values."""
        about = {"text": list(self.text), "hashing": self.hashing, **self.rule.about()}
        return {"schema": SCHEMA, **about}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The terms and their weights."""
        names, ends = encode_names(list(self.terms))
        return {"terms": names, "term_ends": ends, "idf": np.asarray(self.idf, np.float64)}

    @classmethod
    def from_files(cls, document: Document, arrays: dict[str, NDArray[Any]]) -> DocumentFeatures:
        """The transform that was saved; nothing in the files is trusted."""
        document.expect_schema(SCHEMA)
        text = document.strings("text") or ()
        if not text or len(set(text)) < len(text):
            raise ModelFormatError("field text: expected distinct names, at least one", file=document.file)
        hashing = None if document.fields.get("hashing") is None else document.count("hashing")
        idf = arrays.get("idf", np.zeros(0))
        terms = decode_names(arrays.get("terms"), arrays.get("term_ends"), idf.shape[0], document.file)
        if terms is None or not terms or len(set(terms)) < len(terms):
            raise ModelFormatError("the terms are missing, or some are there twice", file=document.file)
        idf = expect_array(arrays, "idf", np.float64, (len(terms),), document.file)
        document.choice("tokenizer", tuple(TOKENISERS))
        try:
            rule = TextRule.from_settings(document.fields)
        except (UsageError, TypeError) as error:
            raise ModelFormatError(f"how documents are read has no meaning: {error}", file=document.file) from error
        return cls(tuple(text), rule, hashing, terms, idf)
