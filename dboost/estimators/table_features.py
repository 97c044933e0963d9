"""``TableFeatures``: rows of a table to a sparse matrix of named features, as a transformer of scikit-learn.

Covers: the parameters, fitting, transforming, and the JSON form that is saved with a model.
Does not cover: the kinds of columns (``dboost.data.features``), columns of text (``features``), the folder of a model
and its transform (``dboost.estimators.persistence``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dboost.data.features import kinds
from dboost.data.features.arrow import columns_of
from dboost.data.features.kinds import Column, Counted, Told
from dboost.data.features.look import DROP, TEXT, Seen, look_at_all
from dboost.data.named_columns import names_of, unknown_column
from dboost.errors import DataError, DboostError, ModelFormatError, UsageError
from dboost.estimators.named_rows import Behind, with_names
from dboost.estimators.on_partitions import column_names, is_lazy, over_parts, rows_of_parts
from dboost.files.documents import Document

SCHEMA = 2


class TableFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Columns of a table as features, each by its kind; a column of text is one of categories.

    Parameters
    ----------
    columns : dict of str to (str or dict), optional
        The kinds of columns, where they are not to be those of their types: ``"number"``, ``"category"``,
        ``"boolean"``, ``"date"``, ``"tags"``, ``"embedding"``, ``"weights"``, or ``"drop"`` for one that is no
        feature. A dict has the kind under ``"kind"``, and any of the parameters below for this column.
    missing : {"refuse", "zero", "indicator"}, default "refuse"
        What a missing value (null, and NaN in a column of numbers) is: an error, a row of zeros in the features of its
        column, or that and a 1 in one more feature, ``"<column> is missing"``, which every column then has.
    min_count : int, default 1
        Categories, tags and names of weights in fewer rows share one feature, ``"<column> is rare"``.
    max_values : int, default 100,000
        A column of more values with a feature each is refused: it may be an identifier.
    scale : {"none", "max"}, default "none"
        Whether numbers, and the years and ages of dates, are divided by the largest absolute value in the fit. As they
        are, a penalty hardly holds back a year beside features of 0 and 1. (``standardize=True`` of an estimator
        divides by deviations.)

    Attributes
    ----------
    feature_names_in_ : array of str
        The columns; of an array without names, not there.
    n_features_in_ : int
    kinds_ : dict of str to str
        The kind of each column.
    column_groups_ : int64 array, shape (features,)
        For ``column_groups=`` of an estimator: the features of a category, of a part of a date, of tags and of an
        embedding are one group, every other is one of its own.
    feature_columns_ : array of str, shape (features,)
        The column that each feature comes from.
    unseen_ : dict of str to int
        Number of values in the last call of ``transform`` that were not there in ``fit``, by column. They are zeros,
        or rare where there are rare ones. Not counted on Dask.

    Notes
    -----
    The columns are found by name in a table, which may hold others and in any order, and by place in an array.
    Of a date there are its year, month, weekday, hour (where there is one) and its age before the last one, in years;
    ``{"kind": "date", "parts": ["year"]}`` has some of these. ``{"kind": "tags", "separator": ";"}`` cuts texts into
    tags. A dask DataFrame is counted on its workers, and gives a dask array of sparse chunks.

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

    _columns: list[Column]

    def __init__(
        self,
        columns: Mapping[str, Any] | None = None,
        *,
        missing: str = "refuse",
        min_count: int = 1,
        max_values: int = 100_000,
        scale: str = "none",
    ) -> None:
        self.columns = columns
        self.missing = missing
        self.min_count = min_count
        self.max_values = max_values
        self.scale = scale

    def fit(self, X: Any, y: Any = None) -> TableFeatures:
        """Learn the columns and their categories.

        Parameters
        ----------
        X : array, list of dicts, or pandas, Arrow, polars or dask table, shape (n, p)
        y : object, optional
            The name of a column that is the label, and no feature; else ignored.

        Raises
        ------
        UsageError
            A parameter has no meaning.
        DataError
            There are no rows, a column is of a type that has no meaning as a feature, or not of the kind that was
            told, a missing value that is refused, or two features would have the same name.
        """
        planned = self._plan(X, y)
        names = [name for name, _ in planned]
        counted = over_parts(X, partial(_count, planned), partial(merged, names))
        refuse_no_rows(max((one.rows for one in counted.values()), default=1))
        self._settle([kinds.settle(name, counted[name], told) for name, told in planned], self._are_named(X))
        return self

    def _plan(self, X: Any, y: Any) -> list[tuple[str, Told]]:
        """The columns and what is said of each."""
        named = list(column_names(X))
        if not named:
            raise DataError("X has no columns; expected at least one")
        given = told_columns(self.columns, named, self._defaults())
        rest = [name for name in named if name not in given and not (isinstance(y, str) and name == y)]
        found = {name: seen.kind(name)[0] for name, seen in seen_of(X, rest).items()} if rest else {}
        # a column of which no value is there has no features, but may be one of categories later
        by_type = {name: "category" if kind in (TEXT, DROP) else kind for name, kind in found.items()}
        all_kinds = {**given, **{name: self._defaults(kind) for name, kind in by_type.items()}}
        return [(name, told) for name in named if (told := all_kinds.get(name)) is not None]

    def _defaults(self, kind: str = "number") -> Told:
        """What is said of all columns."""
        return Told(kind, self.missing, self.min_count, self.max_values, self.scale).check("columns")

    @staticmethod
    def _are_named(X: Any) -> bool:
        return is_lazy(X) or bool(names_of(X)) or isinstance(X, list)

    def _settle(self, columns: list[Column], named: bool) -> None:
        names = [name for column in columns for name in column.names()]
        if not columns:
            raise DataError("no column is a feature", hint="tell the kind of one in columns=")
        refuse_twice(names)
        self._columns, self._named, self._names = columns, named, names
        self.kinds_ = {column.name: column.kind for column in columns}
        self.n_features_in_ = len(columns)
        if named:
            self.feature_names_in_ = np.array([column.name for column in columns], dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.unseen_: dict[str, int] = {}

    def transform(self, X: Any) -> Any:
        """Rows as features.

        Parameters
        ----------
        X : array or table, shape (n, p)
            With the columns of ``fit``.

        Returns
        -------
        CSR matrix of float64, shape (n, features); of a dask DataFrame a dask array of such chunks, computed lazily

        Raises
        ------
        DataError
            A column is not there or of another kind than in ``fit``, or a missing value is refused.
        """
        check_is_fitted(self, "n_features_in_")
        if is_lazy(X):
            absent_columns(self, [column.name for column in self._columns], column_names(X))
            return rows_of_parts(X, self, self._names, len(self._names), np.dtype(np.float64))
        table, named = columns_of(X)
        if not named or not self._named:
            if len(table) != self.n_features_in_:
                raise DataError(f"X has {len(table)} features, but {type(self).__name__} is expecting "
                                f"{self.n_features_in_} features as input")  # fmt: skip
            table = dict(zip([column.name for column in self._columns], table.values(), strict=True))
        return with_names(self._rows(table), self._names, Behind(X, self))

    def _rows(self, table: Mapping[str, Any]) -> sparse.csr_array:
        """Rows of the columns of a table."""
        absent_columns(self, [column.name for column in self._columns], list(table))
        rows: list[NDArray[np.int64]] = []
        places: list[NDArray[np.int64]] = []
        numbers: list[NDArray[np.float64]] = []
        unseen, first, n = {}, 0, len(next(iter(table.values())))
        for column in self._columns:
            found = column.entries(table[column.name])
            rows, places, numbers = [*rows, found.rows], [*places, first + found.places], [*numbers, found.numbers]
            if found.unseen:
                unseen[column.name] = found.unseen
            first += len(column.names())
        self.unseen_ = unseen
        entries = (np.concatenate(numbers), (np.concatenate(rows), np.concatenate(places)))
        made = sparse.csr_array(entries, shape=(n, first))
        made.sort_indices()
        return made

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the features, like ``"size"`` and ``"colour=red"``; `input_features` must be those of ``fit``."""
        check_is_fitted(self, "n_features_in_")
        own = [column.name for column in self._columns]
        if input_features is not None and [str(name) for name in input_features if str(name) in own] != own:
            raise UsageError("input_features is not equal to feature_names_in_", hint="leave it out")
        return np.array(self._names, dtype=object)

    @property
    def column_groups_(self) -> NDArray[np.int64]:
        """The group of each feature."""
        check_is_fitted(self, "n_features_in_")
        return groups_of([part for column in self._columns for part in column.parts()])

    @property
    def feature_columns_(self) -> NDArray[Any]:
        """The column of each feature."""
        check_is_fitted(self, "n_features_in_")
        found = [np.full(len(column.names()), column.name, dtype=object) for column in self._columns]
        return np.concatenate(found)

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
        return {
            "schema": SCHEMA,
            "parameters": self.get_params(deep=False),
            "named": self._named,
            "columns": [column.about() for column in self._columns],
        }

    @classmethod
    def from_document(cls, document: Document) -> TableFeatures:
        """The transformer that ``to_document`` described; nothing in the document is trusted."""
        if document.count("schema") != SCHEMA:
            raise ModelFormatError(f"the transform is of another version than {SCHEMA}", file=document.file)
        named = document.fields.get("named")
        if not isinstance(named, bool):
            raise ModelFormatError("field named: expected true or false", file=document.file)
        given = document.mapping("parameters")
        if set(given) != set(cls().get_params(deep=False)):
            raise ModelFormatError("field parameters: expected those of TableFeatures", file=document.file)
        try:
            columns = [kinds.restored(column) for column in document.children("columns")]
            made = cls(**given)
            told_columns(made.columns, list(made.columns or ()), made._defaults())
            if len({column.name for column in columns}) < len(columns):
                raise UsageError("field columns: expected distinct names")
            made._settle(columns, named)
        except ModelFormatError:
            raise
        except (DboostError, TypeError) as error:
            raise ModelFormatError(getattr(error, "what", str(error)), file=document.file) from error
        return made


def told_columns(
    given: Any, names: Sequence[Any], defaults: Told, passed: Collection[str] = ()
) -> dict[str, Told | None]:
    """What a user says of some columns; None for those that are no features, and nothing of those of `passed`.

    Raises
    ------
    UsageError, DataError
        It has no meaning, or names a column that is not there.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise UsageError(f"columns is a {type(given).__name__}", hint='give a dict, such as {"size": "number"}')
    found: dict[str, Told | None] = {}
    for name, value in given.items():
        if name not in names:
            raise unknown_column(name, list(names))
        if name in passed:
            continue
        said = {"kind": value} if isinstance(value, str) else value
        if not isinstance(said, Mapping) or "kind" not in said:
            raise UsageError(
                f"columns gives a {type(value).__name__}",
                column=str(name),
                hint=f"give one of {', '.join((*kinds.KINDS, DROP))}, or a dict with it as 'kind'",
            )
        odd = sorted(set(said) - {"kind", *kinds.OPTIONS})
        if odd:
            raise UsageError(f"unknown option {odd[0]!r}", column=str(name), hint=f"use {', '.join(kinds.OPTIONS)}")
        if said["kind"] == DROP:
            found[name] = None
            continue
        options = {**vars(defaults), **said, "given": True}
        found[name] = Told(**{**options, "parts": tuple(options["parts"])}).check(str(name))
    return found


def seen_of(X: Any, names: Sequence[str]) -> dict[str, Seen]:
    """What the values of some columns say of their kinds, over all parts of a table."""
    table = X if isinstance(X, list) or not names_of(X) else X[list(names)] if is_lazy(X) else X
    return dict(over_parts(table, partial(_look, list(names)), partial(merged, list(names))))


def _look(names: list[str], part: Any) -> dict[str, Seen]:
    columns, _ = columns_of(part)
    return look_at_all({name: columns[name] for name in names})


def _count(planned: Sequence[tuple[str, Told]], part: Any) -> dict[str, Counted]:
    return count_columns(planned, columns_of(part)[0])


def count_columns(planned: Sequence[tuple[str, Told]], columns: Mapping[str, Any]) -> dict[str, Counted]:
    """What a part of a table says of its columns."""
    return {name: kinds.count(name, columns[name], told) for name, told in planned}


def merged(names: list[str], parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What several parts of a table say of some columns together."""
    whole = dict(parts[0])
    for part in parts[1:]:
        whole = {name: whole[name].merge(part[name], name) for name in names}
    return whole


def absent_columns(transform: Any, own: Sequence[str], there: Sequence[Any]) -> None:
    """Refuse a table that lacks a column of a transform."""
    absent = [name for name in own if name not in there]
    if absent:
        raise DataError(
            f"{len(absent)} of the {len(own)} columns of the transform are not there",
            column=absent[0],
            hint="give rows of the table that it was fitted on",
        )


def refuse_no_rows(rows: int) -> None:
    """Refuse a table without rows."""
    if not rows:
        raise DataError("no rows: Found array with 0 sample(s) while a minimum of 1 is required")


def refuse_twice(names: Sequence[str]) -> None:
    """Refuse two features of one name."""
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise DataError(f"two features would be named {twice!r}", hint="rename a column")


def groups_of(parts: Sequence[tuple[int, bool]]) -> NDArray[np.int64]:
    """The group of each feature, from the sizes of parts and whether each is one group."""
    groups, first = [], 0
    for size, together in parts:
        groups.append(np.full(size, first) if together else np.arange(first, first + size))
        first += 1 if together else size
    return np.concatenate([*groups, np.zeros(0, np.int64)]).astype(np.int64)
