"""``TableFeatures``: rows of a table to a sparse matrix of named features, as a transformer of scikit-learn.

Covers: the parameters, fitting, transforming, and the JSON form that is saved with a model.
Does not cover: the folder of a model and its transform (``dboost.estimators.pipeline_folder``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dboost.data.collections import refuse_gone
from dboost.data.named_columns import refuse_unread
from dboost.errors import DataError, ModelFormatError, UsageError, without_values
from dboost.estimators.named_rows import with_names
from dboost.files.documents import Document

MISSING = ("refuse", "zero", "indicator")
KINDS = ("number", "boolean", "category")
SCHEMA = 1


class TableFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Numeric columns as they are, categories and booleans as one feature for each value.

    Parameters
    ----------
    missing : {"refuse", "zero", "indicator"}, default "refuse"
        What a missing value (null, and NaN in a column of numbers) is: an error, a row of zeros in the features of its
        column, or that and a 1 in one more feature, ``"<column> is missing"``, which every column then has.

    Attributes
    ----------
    feature_names_in_ : array of str
        The columns; of an array without names, not there.
    n_features_in_ : int
    unseen_ : dict of str to int
        Number of values in the last call of ``transform`` that were not there in ``fit``, by column. They are zeros.

    Notes
    -----
    The columns are found by name in a table, which may hold others and in any order, and by place in an array.
    A dask DataFrame is gathered into the memory of the caller.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from dboost import TableFeatures
    >>> features = TableFeatures().fit(pa.table({"size": [1.5, 0.0], "colour": ["red", "blue"]}))
    >>> features.get_feature_names_out().tolist()
    ['size', 'colour=blue', 'colour=red']
    >>> features.transform(pa.table({"size": [2.0], "colour": ["red"]})).toarray().tolist()
    [[2.0, 0.0, 1.0]]
    """

    _columns: list[tuple[str, str, list[str]]]

    def __init__(self, *, missing: str = "refuse") -> None:
        self.missing = missing

    def fit(self, X: Any, y: Any = None) -> TableFeatures:
        """Learn the columns and their categories.

        Parameters
        ----------
        X : array or pandas, Arrow, polars or dask table, shape (n, p)
        y : ignored

        Raises
        ------
        UsageError
            `missing` is none of its choices.
        DataError
            There are no rows, a column holds dates or another type that has no meaning as a feature, a missing value
            that is refused, or two features would have the same name.
        """
        if self.missing not in MISSING:
            raise UsageError(f"missing={self.missing!r}", hint=f"use one of {', '.join(MISSING)}")
        table, named = _table(X)
        if not table:
            raise DataError("X has no columns; expected at least one")
        if not len(next(iter(table.values()))):
            raise DataError("no rows: Found array with 0 sample(s) while a minimum of 1 is required")
        columns = []
        for name, values in table.items():
            kind = _kind(name, values.type)
            self._check_missing(name, values, kind)
            found = [] if kind == "number" else sorted(set(_texts(values, kind).unique().drop_null().to_pylist()))
            columns.append((name, kind, found))
        self._settle(columns, named)
        return self

    def _settle(self, columns: list[tuple[str, str, list[str]]], named: bool) -> None:
        names = _feature_names(columns, self.missing)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"two features would be named {twice!r}", hint="rename a column")
        self._columns, self._named, self._names = columns, named, names
        self.n_features_in_ = len(columns)
        if named:
            self.feature_names_in_ = np.array([name for name, _, _ in columns], dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.unseen_: dict[str, int] = {}

    def transform(self, X: Any) -> sparse.csr_array:
        """Rows as features.

        Parameters
        ----------
        X : array or table, shape (n, p)
            With the columns of ``fit``.

        Returns
        -------
        CSR matrix of float64, shape (n, features)

        Raises
        ------
        DataError
            A column is not there or of another kind than in ``fit``, or a missing value is refused.
        """
        check_is_fitted(self, "n_features_in_")
        table, named = _table(X)
        if not named or not self._named:
            if len(table) != self.n_features_in_:
                raise DataError(f"X has {len(table)} features, but {type(self).__name__} is expecting "
                                f"{self.n_features_in_} features as input")  # fmt: skip
            table = dict(zip([name for name, _, _ in self._columns], table.values(), strict=True))
        absent = [name for name, _, _ in self._columns if name not in table]
        if absent:
            raise DataError(
                f"{len(absent)} of the {self.n_features_in_} columns of the transform are not there",
                column=absent[0],
                hint="give rows of the table that it was fitted on",
            )
        rows: list[NDArray[np.int64]] = []
        places: list[NDArray[np.int64]] = []
        numbers: list[NDArray[np.float64]] = []
        unseen, first, n = {}, 0, len(next(iter(table.values())))
        for name, kind, categories in self._columns:
            values = table[name]
            if _kind(name, values.type) != kind and not pa.types.is_null(values.type):
                raise DataError(f"the values are {values.type}; expected a {kind} as in fit", column=name)
            gone = self._check_missing(name, values, kind)
            if kind == "number":
                dense = np.where(gone, 0.0, _floats(name, values))
                at = np.flatnonzero(dense)
                rows, places, numbers = [*rows, at], [*places, np.full(at.size, first)], [*numbers, dense[at]]
                first += 1
            else:
                found = pc.index_in(_texts(values, kind), value_set=pa.array(categories, pa.large_string()))
                codes = pc.fill_null(found, -1).to_numpy(zero_copy_only=False)
                unknown = int(np.count_nonzero((codes < 0) & ~gone))
                if unknown:
                    unseen[name] = unknown
                at = np.flatnonzero((codes >= 0) & ~gone)
                rows, places, numbers = [*rows, at], [*places, first + codes[at]], [*numbers, np.ones(at.size)]
                first += len(categories)
            if self.missing == "indicator":
                at = np.flatnonzero(gone)
                rows, places, numbers = [*rows, at], [*places, np.full(at.size, first)], [*numbers, np.ones(at.size)]
                first += 1
        self.unseen_ = unseen
        entries = (np.concatenate(numbers), (np.concatenate(rows), np.concatenate(places)))
        found_rows = sparse.csr_array(entries, shape=(n, first))
        found_rows.sort_indices()
        return with_names(found_rows, self._names)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the features, like ``"size"`` and ``"colour=red"``; `input_features` must be those of ``fit``."""
        check_is_fitted(self, "n_features_in_")
        own = [name for name, _, _ in self._columns]
        if input_features is not None and [str(name) for name in input_features] != own:
            raise UsageError("input_features is not equal to feature_names_in_", hint="leave it out")
        return np.array(self._names, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_columns")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = True
        tags.input_tags.allow_nan = self.missing != "refuse"
        return tags

    def to_document(self) -> dict[str, Any]:
        """All that ``transform`` needs, as JSON values, with a version of its own."""
        check_is_fitted(self, "n_features_in_")
        columns = [{"name": name, "kind": kind, "categories": found} for name, kind, found in self._columns]
        return {"schema": SCHEMA, "missing": self.missing, "named": self._named, "columns": columns}

    @classmethod
    def from_document(cls, document: Document) -> TableFeatures:
        """The transformer that ``to_document`` described; nothing in the document is trusted."""
        if document.count("schema") != SCHEMA:
            raise ModelFormatError(f"the transform is of another version than {SCHEMA}", file=document.file)
        named = document.fields.get("named")
        if not isinstance(named, bool):
            raise ModelFormatError("field named: expected true or false", file=document.file)
        columns = []
        for column in document.children("columns"):
            kind, found = column.choice("kind", KINDS), list(column.strings("categories") or ())
            if len(set(found)) < len(found) or (kind == "number" and found):
                raise ModelFormatError("field categories: expected distinct values, of numbers none", file=column.file)
            columns.append((column.text("name"), kind, found))
        if not columns or len({name for name, _, _ in columns}) < len(columns):
            raise ModelFormatError("field columns: expected distinct names, at least one", file=document.file)
        made = cls(missing=document.choice("missing", MISSING))
        try:
            made._settle(columns, named)
        except DataError as error:
            raise ModelFormatError(error.what, file=document.file) from error
        return made

    def _check_missing(self, name: str, values: Any, kind: str) -> NDArray[np.bool_]:
        """Where values are missing."""
        gone: NDArray[np.bool_] = pc.is_null(values, nan_is_null=kind == "number").to_numpy(zero_copy_only=False)
        if kind == "number" and np.isinf(_floats(name, values)).any():
            raise DataError("a value is infinity; expected finite numbers", column=name)
        if self.missing == "refuse" and gone.any():
            raise DataError(
                f"{int(gone.sum())} of {len(gone)} values are missing (null or NaN)",
                column=name,
                hint='fill them, or give missing="zero" or missing="indicator"',
            )
        return gone


def _feature_names(columns: list[tuple[str, str, list[str]]], missing: str) -> list[str]:
    names = []
    for name, kind, categories in columns:
        names += [name] if kind == "number" else [f"{name}={value}" for value in categories]
        names += [f"{name} is missing"] if missing == "indicator" else []
    return names


def _kind(name: str, form: Any) -> str:
    types = pa.types
    if types.is_dictionary(form):
        inner = _kind(name, form.value_type)
        return inner if inner == "boolean" else "category"
    if types.is_boolean(form):
        return "boolean"
    if types.is_integer(form) or types.is_floating(form) or types.is_decimal(form):
        return "number"
    if types.is_string(form) or types.is_large_string(form) or types.is_string_view(form) or types.is_null(form):
        return "category"
    if types.is_temporal(form):
        advice = "make numbers or categories of it first: the year, the day of the week, or days since a fixed day"
        raise DataError(f"the values are dates or times ({form})", column=name, hint=advice)
    raise DataError(f"the values are {form}; expected numbers, booleans or text", column=name, hint="drop the column")


def _floats(name: str, values: Any) -> NDArray[np.float64]:
    """Numbers as float64; integers that it cannot hold are refused rather than rounded."""
    try:
        found = pc.cast(values, pa.float64(), safe=pa.types.is_integer(values.type))
    except pa.ArrowInvalid as error:
        raise DataError(
            "an integer is beyond 2**53, which float64 does not hold exactly",
            column=name,
            hint="it may be an identifier: drop the column, or give it as text to make it a category",
        ) from error
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.float64)


def _texts(values: Any, kind: str) -> Any:
    """Values as text: ``true`` and ``false``, and categories as they are written."""
    if pa.types.is_dictionary(values.type):
        values = pc.cast(values, values.type.value_type)
    return pc.cast(values, pa.large_string())


def _table(X: Any) -> tuple[dict[str, Any], bool]:
    """Columns by name, each as one Arrow array, and whether the names are the caller's."""
    refuse_unread(X)
    if hasattr(X, "dask") and hasattr(X, "compute"):
        refuse_gone(X=X)
        X = X.compute()
    if sparse.issparse(X):
        raise UsageError("X is sparse; expected rows of a table", hint="give a sparse matrix to the estimator itself")
    if isinstance(X, pa.Table | pa.RecordBatch):
        names, columns = X.schema.names, X.columns
    elif hasattr(X, "columns"):
        names = list(X.columns)
        columns = [_arrow(name, X[name]) for name in names]
    else:
        X = np.asarray(X)
        if X.ndim != 2:
            raise UsageError(f"Expected 2D array, got {X.ndim}D array instead", hint="Reshape your data")
        return {f"x{j}": _arrow(f"x{j}", X[:, j]) for j in range(X.shape[1])}, False
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise UsageError("the names of the columns are not distinct texts", hint="rename the columns")
    flat = [one.combine_chunks() if isinstance(one, pa.ChunkedArray) else one for one in columns]
    return dict(zip(names, flat, strict=True)), True


def _arrow(name: str, values: Any) -> Any:
    try:
        if hasattr(values, "to_arrow"):
            return values.to_arrow()
        made = pa.array(values, from_pandas=True)
        return made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        said = without_values(error)
        raise DataError(f"the values are of several types or none that Arrow knows: {said}", column=name) from None
