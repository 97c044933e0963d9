"""``Features`` and ``TableFeatures``: rows of a table to a sparse matrix of named features.

Covers: fitting, transforming, the names and groups of features, what is said of columns and found of them, and the JSON
form. Does not cover: the kinds of columns (``dboost.data.features``), text (``text_features``), the folder of a model
and its transform (``dboost.estimators.persistence``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from dboost.data.features import kinds
from dboost.data.features.arrow import columns_of, documents_of
from dboost.data.features.kinds import Column, Told
from dboost.data.features.look import DROP, NUMBERS_IN_TEXTS, TEXT, Seen, look_at_all
from dboost.data.named_columns import names_of, unknown_column
from dboost.errors import DataError, DboostError, ModelFormatError, UsageError, type_name
from dboost.estimators.counted_parts import counted_parts, merged_terms
from dboost.estimators.params import parameters
from dboost.estimators.text_features import TextFeatures
from dboost.estimators.transformed_rows import (
    Behind,
    column_names,
    is_lazy,
    over_parts,
    rows_of_parts,
    side_by_side,
    with_names,
)
from dboost.files.documents import Document, numbered, under
from dboost.notices import warn_user

# Version 2 had dates whose years are as they are, which a column without ``earliest`` still says.
SCHEMA, OLDEST = 3, 2
Planned = tuple[Mapping[str, str], dict[str, Told], dict[str, TextFeatures]]
"""The kinds of the columns, what is said of each that is no text, and how each that is one is read."""


@parameters
class ColumnFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What the transforms of tables share; each says which column is of which kind."""

    columns: Mapping[str, Any] | None = field(default=None, kw_only=False)
    missing: str = "refuse"
    min_count: int = 1
    max_values: int = 100_000
    scale: str = "none"

    def _plan(self, X: Any, y: Any) -> Planned:
        raise NotImplementedError

    def _defaults(self, kind: str = "number") -> Told:
        """What is said of all columns."""
        return Told(kind, self.missing, self.min_count, self.max_values, self.scale).check()

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn the kinds of the columns, their values and terms.

        Parameters
        ----------
        X : table
            Of pandas, polars or Arrow, a list of dicts, or a dask DataFrame.
        y : object, optional
            The name of a column that is the label, and no feature; else ignored.

        Raises
        ------
        UsageError
            A parameter has no meaning, or names a column that is not there.
        DataError
            There are no rows, a column is of no kind or not of the one that was told (the first row is named), a
            missing value is refused, or two features would have the same name.
        """
        columns, told, texts = self._plan(X, y)
        named = is_lazy(X) or bool(names_of(X)) or isinstance(X, list)
        part = X[[*told, *texts]] if is_lazy(X) else X
        # where all of the text is at hand, its terms are counted on all cores
        apart = {} if is_lazy(X) else {name: clone(one) for name, one in texts.items()}
        count = partial(_count_part, self, told, {} if apart else texts, [*told, *texts])
        n_terms: dict[str, int | None] = dict.fromkeys(texts)
        if is_lazy(X):
            limits = {name: one.limits for name, one in texts.items()}
            (values, terms, rows), n_terms = counted_parts(part, count, self.merge, limits)
        else:
            values, terms, rows = self.merge([count(part)])
        if apart and rows:
            table = columns_of(X, apart)[0]
            for name, one in apart.items():
                with _of_column(name):
                    one.fit(documents_of(name, table[name], self.missing))
        known = {name: (one, n_terms[name]) for name, one in terms.items()}
        fitted = apart or {name: clone(one) for name, one in texts.items()}
        return self.settle((values, known, rows), told, fitted, columns, named)

    def count(self, columns: Mapping[str, Any], told: Mapping[str, Told], texts: Mapping[str, TextFeatures]) -> Any:
        """What rows say of columns: values, terms, and how many they are. Parts of a table add up."""
        terms = {}
        for name, one in texts.items():
            with _of_column(name):
                terms[name] = one.count(documents_of(name, columns[name], self.missing))
        rows = len(next(iter(columns.values()))) if columns else 0
        return {name: kinds.count(name, columns[name], one) for name, one in told.items()}, terms, rows

    @staticmethod
    def merge(parts: Sequence[Any]) -> Any:
        """What the rows of several counts say together."""
        values = merged(list(parts[0][0]), [part[0] for part in parts])
        terms = merged_terms([part[1] for part in parts])
        return values, terms, sum(part[2] for part in parts)

    def settle(
        self,
        counted: Any,
        told: Mapping[str, Told],
        texts: Mapping[str, TextFeatures],
        columns: Mapping[str, str] | None = None,
        named: bool = True,
    ) -> Any:
        """Take the features from the merged counts of all rows; terms beyond the limits are counted by number alone."""
        values, terms, rows = counted
        if not rows:
            raise DataError("no rows: Found array with 0 sample(s) while a minimum of 1 is required")
        for name, (counts, n_terms) in terms.items():
            with _of_column(name):
                texts[name].settle(counts, n_terms)
        found = [kinds.settle(name, values[name], one) for name, one in told.items()]
        if isinstance(columns, Kinds):
            for one in found:
                columns.why[one.name] += "".join(f"; {name} {origin}" for name, origin in one.origins.items())
        empty = [f"{one.name} ({one.why_empty})" for one in found if not one.names()]
        if empty and len(empty) == len(found) and not texts:
            raise DataError("no column makes a feature", column=found[0].name, hint=found[0].why_empty)
        if empty:
            warn_user(f"no features: {', '.join(empty)}")
        return self._settle(found, dict(texts), columns, named)

    def _settle(
        self, columns: list[Column], texts: dict[str, TextFeatures], of_kind: Mapping[str, str] | None, named: bool
    ) -> Any:
        if not columns and not texts:
            raise DataError("no column is a feature", hint="tell the kind of one in columns=")
        names = [name for column in columns for name in column.names()]
        for name, one in texts.items():
            names += [f"{name}:{term}" for term in one.get_feature_names_out()]
        refuse_twice(names)
        self._columns, self.texts_, self._names, self._named = columns, texts, names, named
        own = {column.name: column.kind for column in columns} | dict.fromkeys(texts, TEXT)
        self.kinds_: Any = own if of_kind is None else of_kind
        self._used = [name for name in self.kinds_ if name in own]
        self.n_features_in_ = len(self._used)
        if named:
            self.feature_names_in_ = np.array(self._used, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.unseen_: dict[str, int] = {}
        return self

    def transform(self, X: Any) -> Any:
        """Rows as features.

        Parameters
        ----------
        X : table, or array of two dimensions
            With the columns of ``fit``: found by name in a table, which may hold others and in any order, and by place
            in an array.

        Returns
        -------
        scipy.sparse.csr_array of float64, shape (n, features); of a dask DataFrame a lazy dask array of such chunks

        Raises
        ------
        DataError
            A column is not there or of another kind than in ``fit``, or a missing value is refused.
        """
        check_is_fitted(self)
        if is_lazy(X):
            absent_columns(self._used, column_names(X))
            return rows_of_parts(X[self._used], self, self._names, len(self._names), np.dtype(np.float64), X)
        table, named = columns_of(X, self._used if self._named else None)
        if not named or not self._named:
            if len(table) != self.n_features_in_:
                raise DataError(f"X has {len(table)} features, but {type(self).__name__} is expecting "
                                f"{self.n_features_in_} features as input")  # fmt: skip
            table = dict(zip(self._used, table.values(), strict=True))
        absent_columns(self._used, list(table))
        return with_names(self._rows(table), self._names, Behind(X, self))

    def _rows(self, table: Mapping[str, Any]) -> sparse.csr_array:
        """Rows of the columns of a table."""
        rows: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
        places: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
        numbers: list[NDArray[np.float64]] = [np.zeros(0)]
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
        blocks = [made]
        for name, one in self.texts_.items():
            with _of_column(name):
                blocks.append(one.transform(documents_of(name, table[name], self.missing)))
        return side_by_side(blocks, n) if self.texts_ else made

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the features, like ``"price"``, ``"colour=red"`` and ``"title:wave"``.

        Parameters
        ----------
        input_features : sequence of str, optional
            Those of ``fit``.
        """
        check_is_fitted(self)
        own = self._used
        if input_features is not None and [str(name) for name in input_features if str(name) in own] != own:
            raise UsageError("input_features is not equal to feature_names_in_", hint="leave it out")
        return np.array(self._names, dtype=object)

    @property
    def column_groups_(self) -> NDArray[np.int64]:
        """The group of each feature."""
        check_is_fitted(self)
        parts = [part for column in self._columns for part in column.parts()]
        parts += [(len(one.get_feature_names_out()), False) for one in self.texts_.values()]
        groups, first = [], 0
        for size, together in parts:
            groups.append(np.full(size, first) if together else np.arange(first, first + size))
            first += 1 if together else size
        return np.concatenate(groups).astype(np.int64)

    @property
    def feature_columns_(self) -> NDArray[Any]:
        """The column of each feature."""
        check_is_fitted(self)
        sizes = {column.name: len(column.names()) for column in self._columns}
        sizes |= {name: len(one.get_feature_names_out()) for name, one in self.texts_.items()}
        return np.concatenate([np.full(size, name, dtype=object) for name, size in sizes.items()])

    @property
    def columns_(self) -> list[Column]:
        """The columns that are no text, as features."""
        check_is_fitted(self)
        return self._columns

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_names")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = True
        tags.input_tags.allow_nan = self.missing != "refuse"
        return tags


@parameters
class TableFeatures(ColumnFeatures):
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
        Whether numbers, and the years and ages of dates, are divided by the largest absolute value in the fit. As it
        is, a penalty hardly holds back a large number beside features of 0 and 1. (``standardize=True`` of an estimator
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
    Of a date there are its year, counted from that of the first one in the fit, its month, weekday, hour (where there
    is one) and its age before the last one, in years; ``{"kind": "date", "parts": ["year"]}`` has some of these.
    ``{"kind": "tags", "separator": ";"}`` cuts texts into
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

    def _plan(self, X: Any, y: Any) -> Planned:
        named = list(column_names(X))
        if not named:
            raise DataError("X has no columns; expected at least one")
        given = told_columns(self.columns, named, self._defaults())
        rest = [name for name in named if name not in given and not (isinstance(y, str) and name == y)]
        found = {name: seen.kind(name) for name, seen in seen_of(X, rest).items()} if rest else {}
        # a column of which no value is there has no features, but may be one of categories later
        by_type = {
            name: replace(self._defaults("category" if kind in (TEXT, DROP) else kind), given=why == NUMBERS_IN_TEXTS)
            for name, (kind, why) in found.items()
        }
        all_kinds = {**given, **by_type}
        told = {name: one for name in named if (one := all_kinds.get(name)) is not None}
        return {name: one.kind for name, one in told.items()}, told, {}

    # ---- as files --------------------------------------------------------------------------------------------------

    def to_document(self) -> dict[str, Any]:
        """All that ``transform`` needs, as JSON values, with a version of its own."""
        return columns_document(self, self.get_params(deep=False))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """None: all of it is in the document."""
        return {}

    @classmethod
    def from_files(cls, document: Document, arrays: Mapping[str, NDArray[Any]]) -> TableFeatures:
        """The transform that was saved; nothing in the files is trusted."""
        given = document.mapping("parameters")
        if set(given) != set(cls().get_params(deep=False)):
            raise ModelFormatError("field parameters: expected those of TableFeatures", file=document.file)
        with as_format_errors(document.file):
            columns, named = columns_of_document(document)
            made = cls(**given)
            told_columns(made.columns, list(made.columns or ()), made._defaults())
            made._settle(columns, {}, None, named)
        return made


@contextmanager
def as_format_errors(file: str) -> Iterator[None]:
    """Say of a file that it is damaged where something in it has no meaning."""
    try:
        yield
    except ModelFormatError:
        raise
    except (DboostError, TypeError, ValueError) as error:
        raise ModelFormatError(f"field parameters: {getattr(error, 'what', str(error))}", file=file) from error


def columns_document(features: ColumnFeatures, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that are no text, as JSON values."""
    check_is_fitted(features)
    columns = [column.about() for column in features.columns_]
    return {"schema": SCHEMA, "parameters": dict(parameters), "named": features._named, "columns": columns}


def columns_of_document(document: Document) -> tuple[list[Column], bool]:
    """What ``columns_document`` described, and whether the columns had names; nothing in it is trusted."""
    document.expect_schema(SCHEMA, OLDEST)
    named = document.fields.get("named")
    if not isinstance(named, bool):
        raise ModelFormatError("field named: expected true or false", file=document.file)
    columns = [kinds.restored(column) for column in document.children("columns")]
    if not columns or len({column.name for column in columns}) < len(columns):
        raise UsageError("field columns: expected distinct names, at least one")
    return columns, named


def told_columns(
    given: Any, names: Sequence[Any], defaults: Told, passed: Collection[str] | None = None
) -> dict[str, Told | None]:
    """What a user says of some columns, None for those that are dropped; nothing of those of `passed`, text."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise UsageError(f"columns is {type_name(given)}", hint='give a dict, such as {"size": "number"}')
    known = ", ".join((*(() if passed is None else (TEXT,)), *kinds.KINDS, DROP))
    found: dict[str, Told | None] = {}
    for name, value in given.items():
        if name not in names:
            raise unknown_column(name, list(names))
        if passed is not None and name in passed:
            continue
        said = {"kind": value} if isinstance(value, str) else value
        if not isinstance(said, Mapping) or "kind" not in said:
            raise UsageError(
                f"columns gives {type_name(value)}",
                column=str(name),
                hint=f"give one of {known}, or a dict with it as 'kind'",
            )
        if said["kind"] not in (*kinds.KINDS, DROP):
            raise UsageError(f"kind={said['kind']!r}", column=str(name), hint=f"use one of {known}")
        known_options = kinds.options_of(said["kind"])
        odd = sorted(set(said) - {"kind", *known_options})
        if odd:
            raise UsageError(
                f"a column of kind {said['kind']!r} has no option {odd[0]!r}",
                column=str(name),
                hint=f"use {', '.join(known_options)}" if known_options else "give the kind alone",
            )
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
    columns, _ = columns_of(part, names)
    return look_at_all({name: columns[name] for name in names})


def merged(names: list[str], parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What several parts of a table say of some columns together."""
    whole = dict(parts[0])
    for part in parts[1:]:
        whole = {name: whole[name].merge(part[name], name) for name in names}
    return whole


def absent_columns(own: Sequence[str], there: Sequence[Any]) -> None:
    """Refuse a table that lacks a column of a transform."""
    absent = [name for name in own if name not in there]
    if absent:
        raise DataError(
            f"{len(absent)} of the {len(own)} columns of the transform are not there",
            column=absent[0],
            hint="give rows of the table that it was fitted on",
        )


def refuse_twice(names: Sequence[str]) -> None:
    """Refuse two features of one name."""
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise DataError(f"two features would be named {twice!r}", hint="rename a column")


@contextmanager
def _of_column(name: str) -> Iterator[None]:
    """Say the column of an error in a text."""
    try:
        yield
    except DataError as error:
        if error.column is not None:
            raise
        raise DataError(error.what, column=name, hint=error.hint) from error


def _count_part(
    features: ColumnFeatures, told: Mapping[str, Told], texts: Mapping[str, TextFeatures], used: list[str], part: Any
) -> tuple[dict[str, Any], dict[str, Any], int]:
    """What a part of a table says. Runs on workers."""
    found: tuple[dict[str, Any], dict[str, Any], int] = features.count(columns_of(part, used)[0], told, texts)
    return found


FEATURES_SCHEMA = 1
FIND = "find"


class Kinds(dict[str, str]):
    """The kind of each column, and why it is taken for one.

    Attributes
    ----------
    why : dict of str to str
    remarks : dict of str to str
        What a person may see in some columns, and what to do.
    """

    def __init__(self, kinds: Mapping[str, str], why: Mapping[str, str], remarks: Mapping[str, str] | None = None):
        super().__init__(kinds)
        self.why, self.remarks = dict(why), dict(remarks or {})

    @classmethod
    def of(cls, seen: Mapping[str, Seen]) -> Kinds:
        """The kinds that the values of columns tell."""
        found = {name: one.kind(name) for name, one in seen.items()}
        remarks = {name: said for name, one in seen.items() if (said := one.remark(found[name][0]))}
        why = {name: why for name, (_, why) in found.items()}
        return cls({name: kind for name, (kind, _) in found.items()}, why, remarks)

    def say_remarks(self) -> None:
        """Say them, a line for each column."""
        for name, said in self.remarks.items():
            warn_user(f"column {name!r}, taken for {self[name]!r}: {said}")

    def __repr__(self) -> str:
        wide = max(map(len, self), default=0)
        return "\n".join(f"{name:<{wide}}  {kind:<9}  {self.why[name]}".rstrip() for name, kind in self.items())


@parameters
class Features(ColumnFeatures):
    """Any table as named features: each column by its kind, which is found out or told.

    ======== ====================================== =================================================
    kind     taken for one                          features
    ======== ====================================== =================================================
    text     texts of 2.5 words and more on average one for each term, ``title:wave`` (tf-idf)
    category other texts, pandas' categories        one for each value, ``colour=red``
    boolean  true and false                         ``new=true``, ``new=false``
    number   numbers, texts like ``12.50``          the number, ``price``
    date     dates and times, texts that are these  ``day.year``, ``day.month=3``, ``day.age``, ...
    tags     lists of texts or whole numbers        one for each value, ``authors=Gauss``
    embed.   lists of numbers, all of one length    one for each place, ``vector[3]``
    weights  maps, lists of pairs, structs          the number of each name, ``words:wave``
    drop     one different text in each row         none: it is an identifier, which is said
    ======== ====================================== =================================================

    Parameters
    ----------
    columns : dict of str to (str, dict or TextFeatures), optional
        The kinds of some columns; a dict has the kind under ``"kind"`` (``"embedding"`` in full), and options of this
        column: those of ``TextFeatures`` for text, else those of ``TableFeatures``.
    others : {"find", "drop"}, default "find"
        Whether the kinds of the other columns are found out, or they are left out.
    missing : {"refuse", "zero", "indicator"}, default "refuse"
        As in ``TableFeatures``. A text that is missing is an empty one, unless it is refused.
    min_count, max_values, scale
        As in ``TableFeatures``.
    text : TextFeatures, optional
        How columns of text are read, unless told otherwise; as ``TextFeatures()`` by default.

    Attributes
    ----------
    kinds_ : dict of str to str
        The kind of each column, printed with the reason. Texts that look like numbers, dates or tags and are none, such
        as ``3,14`` or ``$5``, are warned of in ``fit``, and are in its ``remarks``.
    n_features_in_ : int
    feature_names_in_ : array of str
        The columns that are features.
    texts_ : dict of str to TextFeatures
        The transform of each column of text.
    column_groups_, feature_columns_, unseen_
        As of ``TableFeatures``.

    Notes
    -----
    The same table gives the same bits in pandas, polars, Arrow, as a list of dicts, and on Dask however it is cut. Of a
    dask DataFrame the rows are a lazy dask array of sparse chunks.

    Examples
    --------
    >>> rows = [{"title": "the sea and its waves", "price": 3.5, "tags": ["sea"]},
    ...         {"title": "a sky full of clouds", "price": 1.0, "tags": ["sky", "air"]}]
    >>> features = Features().fit(rows)
    >>> dict(features.kinds_)
    {'title': 'text', 'price': 'number', 'tags': 'tags'}
    >>> features.get_feature_names_out()[:4].tolist()
    ['price', 'tags=air', 'tags=sea', 'tags=sky']
    """

    others: str = FIND
    text: TextFeatures | None = None

    def look(self, X: Any, y: Any = None) -> Kinds:
        """The kinds that ``fit`` would take the columns for; nothing is learned.

        Parameters
        ----------
        X : table
        y : str, optional
            The name of the label column.
        """
        return self._plan(X, y)[0]

    def fit(self, X: Any, y: Any = None) -> Features:
        super().fit(X, y)
        dropped = [name for name, kind in self.kinds_.items() if kind == DROP and name not in (self.columns or {})]
        if dropped and self.others == FIND:
            about = ", ".join(f"{name} ({self.kinds_.why[name]})" for name in dropped)
            warn_user(f"no features: {about}. To use a column, tell its kind in columns=")
        self.kinds_.say_remarks()
        return self

    fit.__doc__ = ColumnFeatures.fit.__doc__

    def told(self) -> tuple[dict[str, Told], dict[str, TextFeatures]]:
        """What is said of the columns that are told: of those that are no text, and how the others are read."""
        given = {} if self.columns is None else self.columns
        texts = {name: clone(one) for name, said in given.items() if (one := self._text_told(said)) is not None}
        told = told_columns(given, list(given), self._defaults(), passed=texts)
        return {name: one for name, one in told.items() if one is not None}, texts

    def _plan(self, X: Any, y: Any) -> tuple[Kinds, dict[str, Told], dict[str, TextFeatures]]:
        if self.others not in (FIND, DROP):
            raise UsageError(f"others={self.others!r}", hint=f"use {FIND!r} or {DROP!r}")
        defaults = self._defaults()
        names = [name for name in column_names(X) if not (isinstance(y, str) and name == y)]
        if not all(isinstance(name, str) for name in names):
            raise UsageError("the names of the columns are not distinct texts", hint="rename the columns")
        given = {} if self.columns is None else self.columns
        if not isinstance(given, Mapping):
            raise UsageError(f"columns is {type_name(given)}", hint='give a dict, such as {"title": "text"}')
        texts = {name: one for name, said in given.items() if (one := self._text_told(said)) is not None}
        told = told_columns(given, names, defaults, passed=texts)
        why = dict.fromkeys([*told, *texts], "told")
        kinds = {name: DROP if one is None else one.kind for name, one in told.items()} | dict.fromkeys(texts, TEXT)
        open_ones, remarks = [name for name in names if name not in kinds], {}
        if self.others == DROP:
            kinds |= dict.fromkeys(open_ones, DROP)
            why |= dict.fromkeys(open_ones, "others='drop'")
        elif open_ones:
            found = Kinds.of(seen_of(X, open_ones))
            kinds, why, remarks = kinds | found, why | found.why, found.remarks
        for name in open_ones:
            if kinds[name] == TEXT:
                texts[name] = self._text()
            elif kinds[name] != DROP:
                told[name] = replace(defaults, kind=kinds[name], given=why[name] == NUMBERS_IN_TEXTS)
        used = {name: what for name in names if (what := told.get(name)) is not None}
        if not used and not texts:
            raise DataError("no column is a feature", hint="tell the kind of one in columns=")
        return (
            Kinds({name: kinds[name] for name in names}, why, remarks),
            used,
            {name: texts[name] for name in names if name in texts},
        )

    def _text(self) -> TextFeatures:
        return TextFeatures() if self.text is None else self.text

    def _text_told(self, said: Any) -> TextFeatures | None:
        """How a column is read that is told to be one of text; None of another kind."""
        if isinstance(said, TextFeatures):
            return said
        if said == TEXT:
            return self._text()
        if isinstance(said, Mapping) and said.get("kind") == TEXT:
            options = {name: value for name, value in said.items() if name != "kind"}
            odd = sorted(set(options) - set(TextFeatures().get_params()))
            if odd:
                raise UsageError(f"TextFeatures has no option {odd[0]!r}", hint="see its parameters")
            made: TextFeatures = clone(self._text()).set_params(**options)
            return made
        return None

    # ---- as files --------------------------------------------------------------------------------------------------

    def to_document(self) -> dict[str, Any]:
        """All but the terms, as JSON values."""
        check_is_fitted(self)
        given = self.get_params(deep=False)
        told = {} if self.columns is None else dict(self.columns)
        given["columns"] = {name: _plainly(said) for name, said in told.items()} if told else None
        given["text"] = None if self.text is None else self.text.parameters()
        of_all = {name: given[name] for name in ("missing", "min_count", "max_values", "scale")}
        return {
            "schema": FEATURES_SCHEMA,
            "parameters": given,
            "kinds": dict(self.kinds_),
            "why": self.kinds_.why,
            "table": columns_document(self, {"columns": None, **of_all}) if self.columns_ else None,
            "texts": [{"name": name, **one.to_document()} for name, one in self.texts_.items()],
        }

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The terms of all columns of text."""
        return numbered([one.to_arrays() for one in self.texts_.values()])

    @classmethod
    def from_files(cls, document: Document, arrays: Mapping[str, NDArray[Any]]) -> Features:
        """The transform that was saved; nothing in the files is trusted."""
        document.expect_schema(FEATURES_SCHEMA)
        given = dict(document.mapping("parameters"))
        if set(given) != set(cls().get_params(deep=False)):
            raise ModelFormatError("field parameters: expected those of Features", file=document.file)
        texts = {
            spec.text("name"): TextFeatures.from_files(spec, under(arrays, f"{number}."))
            for number, spec in enumerate(document.children("texts"))
        }
        kinds, why = document.mapping("kinds"), document.mapping("why")
        with as_format_errors(document.file):
            table = document.fields.get("table") is not None
            columns = columns_of_document(document.child("table"))[0] if table else []
            used = [name for name, kind in kinds.items() if kind != DROP]
            if sorted(used) != sorted([*texts, *(column.name for column in columns)]) or set(why) != set(kinds):
                raise ModelFormatError("field kinds: expected one of each column of the transform", file=document.file)
            given["text"] = None if given["text"] is None else TextFeatures.of_parameters(given["text"])
            made = cls(**given)
            made._defaults()
            made._settle(columns, texts, Kinds(kinds, why), True)
        return made


def _plainly(said: Any) -> Any:
    """What is said of a column, as JSON values."""
    if isinstance(said, TextFeatures):
        return {"kind": TEXT, **said.parameters()}
    return said if isinstance(said, str) else dict(said)
