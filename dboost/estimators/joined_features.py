"""``JoinedFeatures``: what scikit-learn's ``ColumnTransformer`` of transforms of dboost does, in a form that is saved.

Covers: taking it from a fitted one, transforming, its documents and arrays. Does not cover: its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer

from dboost.data.features.arrow import columns_of
from dboost.errors import ModelFormatError, UsageError
from dboost.estimators.named_rows import Behind, with_names
from dboost.estimators.on_partitions import column_names, is_lazy, rows_of_parts, side_by_side
from dboost.estimators.table_features import absent_columns
from dboost.files.documents import Document
from dboost.hypotheses.columns import ColumnSet
from dboost.model.fitted import Model

SCHEMA = 1


class JoinedFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Several transforms of some columns each, whose features stand side by side.

    Parameters
    ----------
    parts : sequence of (str, str or list of str, transform)
        Name, column (handed over as it is) or columns (as a table), and the fitted transform.
    """

    def __init__(self, parts: Sequence[tuple[str, Any, Any]]) -> None:
        self.parts = parts

    @classmethod
    def of(cls, given: ColumnTransformer) -> JoinedFeatures:
        """What a fitted ``ColumnTransformer`` does.

        Raises
        ------
        UsageError
            It weighs its parts, passes columns through, or chose none of them by their names.
        """
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
        used = list(dict.fromkeys(one for _, columns, _ in self.parts for one in _listed(columns)))
        if is_lazy(X):
            absent_columns(self, used, column_names(X))
            return rows_of_parts(X[used], self, names, len(names), np.dtype(np.float64), X)
        table, _ = columns_of(X)
        absent_columns(self, used, list(table))
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

    def to_document(self, described: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """All but the arrays of its parts, which are described by a function, as JSON values."""
        parts = [
            {
                "name": name,
                "single": isinstance(columns, str),
                "columns": _listed(columns),
                "part": described(transform),
            }
            for name, columns, transform in self.parts
        ]
        return {"schema": SCHEMA, "parts": parts}

    def to_arrays(self, arrays: Callable[[Any], Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
        """The arrays of its parts."""
        return {
            f"{number}.{name}": array
            for number, (_, _, transform) in enumerate(self.parts)
            for name, array in arrays(transform).items()
        }

    @classmethod
    def from_files(
        cls, document: Document, arrays: Mapping[str, Any], restore: Callable[[Document, dict[str, Any]], Any]
    ) -> JoinedFeatures:
        """What was saved; nothing in the files is trusted."""
        if document.count("schema") != SCHEMA:
            raise ModelFormatError(f"the transform is of another version than {SCHEMA}", file=document.file)
        parts = []
        for number, spec in enumerate(document.children("parts")):
            mine = {name[len(f"{number}.") :]: a for name, a in arrays.items() if name.startswith(f"{number}.")}
            columns, single = list(spec.strings("columns") or ()), spec.fields.get("single")
            if not columns or not isinstance(single, bool) or (single and len(columns) != 1):
                raise ModelFormatError("field columns: expected names, one of a single one", file=document.file)
            transform = restore(spec.child("part"), mine)
            parts.append((spec.text("name"), columns[0] if single else columns, transform))
        if not parts:
            raise ModelFormatError("field parts: expected at least one", file=document.file)
        return cls(parts)


def _listed(columns: Any) -> list[str]:
    return [columns] if isinstance(columns, str) else list(columns)


def with_feature_names(model: Model, names: Sequence[str]) -> Model:
    """A model of plain columns without names, with those of its features."""
    if model.feature_names is not None or not model.plain:
        return model
    active = model.active
    held = ColumnSet(active, tuple(names[j] for j in active.tolist()))
    return replace(model, feature_names=tuple(names), hypotheses=held)
