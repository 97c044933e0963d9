"""``JoinedFeatures``: what scikit-learn's ``ColumnTransformer`` of transforms of dboost does, in a form that is saved.

Covers: taking it from a fitted one, transforming. Does not cover: its parts, its form in files (``transform_files``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer

from dboost.data.features.arrow import columns_of
from dboost.errors import UsageError
from dboost.estimators.named_rows import Behind, with_names
from dboost.estimators.on_partitions import column_names, is_lazy, rows_of_parts, side_by_side
from dboost.estimators.table_features import absent_columns
from dboost.hypotheses.columns import ColumnSet
from dboost.model.fitted import Model


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
        table, _ = columns_of(X)
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
