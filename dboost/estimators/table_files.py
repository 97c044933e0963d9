"""``Features`` learned from files, chunk by chunk, and read again from the folder that ``dboost prepare`` makes.

Covers: what ``dboost.data.prepared.tables`` asks of a transform; the transform of a prepared folder. Does not cover:
the passes over files (there), the documents and arrays of a transform (``transform_files``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dboost.data.features.arrow import documents_of
from dboost.data.features.kinds import Told
from dboost.data.features.look import TEXT
from dboost.data.manifest import Manifest
from dboost.errors import DataError, UsageError
from dboost.estimators.document_features import DocumentFeatures
from dboost.estimators.features import Features, Kinds
from dboost.estimators.table_features import merged
from dboost.estimators.text_features import TextFeatures
from dboost.estimators.transform_files import FILE, read_from, write_into
from dboost.files.stores import AnyPath, StorePath


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
