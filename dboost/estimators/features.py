"""``Features``: one transform of a table of text, categories, numbers, dates, tags, embeddings and weights.

Covers: the kinds of the columns, found or told; fitting, transforming, what is saved. Does not cover: columns of text
(``text_features``) and all others (``table_features``), of which it is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from dboost.data.features.arrow import columns_of, is_text
from dboost.data.features.kinds import Column, Told, settle
from dboost.data.features.look import DROP, TEXT, Seen
from dboost.errors import DataError, ModelFormatError, UsageError
from dboost.estimators import text_feature_files
from dboost.estimators.named_rows import Behind, with_names
from dboost.estimators.on_partitions import column_names, is_lazy, over_parts, rows_of_parts, side_by_side
from dboost.estimators.table_features import (
    TableFeatures,
    absent_columns,
    count_columns,
    groups_of,
    merged,
    refuse_no_rows,
    refuse_twice,
    seen_of,
    told_columns,
)
from dboost.estimators.text_features import TextFeatures
from dboost.files.documents import Document
from dboost.notices import warn_user

SCHEMA = 1
FIND = "find"


class Kinds(dict[str, str]):
    """The kind of each column, and why it is taken for one.

    Attributes
    ----------
    why : dict of str to str
    """

    def __init__(self, kinds: Mapping[str, str], why: Mapping[str, str]) -> None:
        super().__init__(kinds)
        self.why = dict(why)

    @classmethod
    def of(cls, seen: Mapping[str, Seen]) -> Kinds:
        """The kinds that the values of columns tell."""
        found = {name: one.kind(name) for name, one in seen.items()}
        return cls({name: kind for name, (kind, _) in found.items()}, {name: why for name, (_, why) in found.items()})

    def __repr__(self) -> str:
        wide = max(map(len, self), default=0)
        return "\n".join(f"{name:<{wide}}  {kind:<9}  {self.why[name]}".rstrip() for name, kind in self.items())


class Features(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Any table as named features: each column by its kind, which is found out or told.

    ======== ====================================== =================================================
    kind     taken for one                          features
    ======== ====================================== =================================================
    text     texts of 2.5 words and more on average one for each term, ``title:wave`` (tf-idf)
    category other texts, pandas' categories        one for each value, ``colour=red``
    boolean  true and false                         ``new=true``, ``new=false``
    number   numbers                                the number, ``price``
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
        The kind of each column, printed with the reason.
    n_features_in_ : int
    feature_names_in_ : array of str
        The columns that are features.
    texts_ : dict of str to TextFeatures
        The transform of each column of text.
    table_ : TableFeatures or None
        That of all other columns.
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

    table_: TableFeatures | None
    texts_: dict[str, TextFeatures]

    def __init__(
        self,
        columns: Mapping[str, Any] | None = None,
        *,
        others: str = FIND,
        missing: str = "refuse",
        min_count: int = 1,
        max_values: int = 100_000,
        scale: str = "none",
        text: TextFeatures | None = None,
    ) -> None:
        self.columns = columns
        self.others = others
        self.missing = missing
        self.min_count = min_count
        self.max_values = max_values
        self.scale = scale
        self.text = text

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
        """Learn the kinds, the terms and the values.

        Parameters
        ----------
        X : pandas, Arrow or polars table, list of dicts, or dask DataFrame
        y : object, optional
            The name of a column that is the label, and no feature; else ignored.

        Raises
        ------
        UsageError
            A parameter has no meaning, or names a column that is not there.
        DataError
            A column is of no kind, or not of the one that was told; it names the first row.
        """
        kinds, told, texts = self._plan(X, y)
        dropped = [name for name, kind in kinds.items() if kind == DROP and name not in (self.columns or {})]
        if dropped and self.others == FIND:
            about = ", ".join(f"{name} ({kinds.why[name]})" for name in dropped)
            warn_user(f"no features: {about}. To use a column, tell its kind in columns=")
        if is_lazy(X):
            X = X[[*told, *texts]]
        # where all of the text is at hand, its terms are counted on all cores
        counted = over_parts(X, partial(_count_part, self, told, texts if is_lazy(X) else {}), self.merge)
        fitted = {name: clone(one) for name, one in texts.items()}
        if texts and not is_lazy(X):
            columns, _ = columns_of(X)
            for name, one in fitted.items():
                with _of_column(name):
                    one.fit(documents_of(name, columns[name], self.missing))
        values, terms, rows = counted
        return self.settle((values, {name: (one, None) for name, one in terms.items()}, rows), told, fitted, kinds)

    def count(self, columns: Mapping[str, Any], told: Mapping[str, Told], texts: Mapping[str, TextFeatures]) -> Any:
        """What some rows say of columns: values, terms, and how many rows they are. Parts of a table add up.

        Parameters
        ----------
        columns : mapping of str to Arrow array
        told : mapping of str to Told
            What is said of each column that is no text.
        texts : mapping of str to TextFeatures
        """
        terms = {}
        for name, one in texts.items():
            with _of_column(name):
                terms[name] = one.count(documents_of(name, columns[name], self.missing))
        rows = len(next(iter(columns.values()))) if columns else 0
        return count_columns(list(told.items()), columns), terms, rows

    @staticmethod
    def merge(parts: Sequence[Any]) -> Any:
        """What the rows of several counts say together."""
        values = merged(list(parts[0][0]), [part[0] for part in parts])
        terms = {name: TextFeatures.merge([part[1][name] for part in parts]) for name in parts[0][1]}
        return values, terms, sum(part[2] for part in parts)

    def settle(
        self, counted: Any, told: Mapping[str, Told], texts: Mapping[str, TextFeatures], kinds: Kinds | None = None
    ) -> Features:
        """Take the features from what all rows say (``count``, ``merge``), as ``fit`` does.

        Beside the counts of the terms stands how many there are, where those beyond the limits are no more among them.
        """
        values, terms, rows = counted
        refuse_no_rows(rows)
        for name, (counts, n_terms) in terms.items():
            with _of_column(name):
                texts[name].settle(counts, n_terms)
        if kinds is None:
            found = {name: one.kind for name, one in told.items()} | dict.fromkeys(texts, TEXT)
            kinds = Kinds(found, dict.fromkeys(found, "told"))
        self._settle([settle(name, values[name], one) for name, one in told.items()], dict(texts), kinds)
        return self

    def told(self) -> tuple[dict[str, Told], dict[str, TextFeatures]]:
        """What is said of the columns that are told: of those that are no text, and how the others are read."""
        given = {} if self.columns is None else self.columns
        texts = {name: clone(one) for name, said in given.items() if (one := self._text_told(said)) is not None}
        told = told_columns(given, list(given), self._defaults(), passed=texts)
        return {name: one for name, one in told.items() if one is not None}, texts

    def _defaults(self) -> Told:
        return Told("number", self.missing, self.min_count, self.max_values, self.scale).check("columns")

    def _plan(self, X: Any, y: Any) -> tuple[Kinds, dict[str, Told], dict[str, TextFeatures]]:
        """The kinds of all columns, what is said of each that is no text, and how those of text are read."""
        if self.others not in (FIND, DROP):
            raise UsageError(f"others={self.others!r}", hint=f"use {FIND!r} or {DROP!r}")
        defaults = self._defaults()
        names = [name for name in column_names(X) if not (isinstance(y, str) and name == y)]
        if not all(isinstance(name, str) for name in names):
            raise UsageError("the names of the columns are not distinct texts", hint="rename the columns")
        given = {} if self.columns is None else self.columns
        if not isinstance(given, Mapping):
            raise UsageError(f"columns is a {type(given).__name__}", hint='give a dict, such as {"title": "text"}')
        texts = {name: one for name, said in given.items() if (one := self._text_told(said)) is not None}
        told = told_columns(given, names, defaults, passed=texts)
        why = dict.fromkeys([*told, *texts], "told")
        kinds = {name: DROP if one is None else one.kind for name, one in told.items()} | dict.fromkeys(texts, TEXT)
        open_ones = [name for name in names if name not in kinds]
        if self.others == DROP:
            kinds |= dict.fromkeys(open_ones, DROP)
            why |= dict.fromkeys(open_ones, "others='drop'")
        elif open_ones:
            found = Kinds.of(seen_of(X, open_ones))
            kinds, why = kinds | found, why | found.why
        for name in open_ones:
            if kinds[name] == TEXT:
                texts[name] = self._text()
            elif kinds[name] != DROP:
                told[name] = Told(**{**vars(defaults), "kind": kinds[name]})
        used = {name: what for name in names if (what := told.get(name)) is not None}
        if not used and not texts:
            raise DataError("no column is a feature", hint="tell the kind of one in columns=")
        return (
            Kinds({name: kinds[name] for name in names}, why),
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

    def _settle(self, columns: list[Column], texts: dict[str, TextFeatures], kinds: Kinds) -> None:
        self.table_ = None
        if columns:
            table = TableFeatures(
                missing=self.missing, min_count=self.min_count, max_values=self.max_values, scale=self.scale
            )
            table._settle(columns, True)
            self.table_ = table
        self.texts_ = texts
        names = [] if self.table_ is None else self.table_.get_feature_names_out().tolist()
        for name, one in texts.items():
            names += [f"{name}:{term}" for term in one.get_feature_names_out()]
        refuse_twice(names)
        self._names = names
        self.kinds_ = kinds
        used = [name for name, kind in kinds.items() if kind != DROP]
        self.feature_names_in_, self.n_features_in_ = np.array(used, dtype=object), len(used)
        self.unseen_: dict[str, int] = {}

    def transform(self, X: Any) -> Any:
        """Rows as features.

        Parameters
        ----------
        X : table
            With the columns of ``fit``, in any order and among others.

        Returns
        -------
        scipy.sparse.csr_array of float64, shape (n, features); of a dask DataFrame a lazy dask array of such chunks

        Raises
        ------
        DataError
            A column is not there or of another kind than in ``fit``, or a missing value is refused.
        """
        check_is_fitted(self)
        used = self.feature_names_in_.tolist()
        if is_lazy(X):
            absent_columns(self, used, column_names(X))
            return rows_of_parts(X[used], self, self._names, len(self._names), np.dtype(np.float64), X)
        columns, named = columns_of(X)
        if not named and len(columns):
            raise UsageError("the columns of X have no names", hint="give a table of pandas, polars or Arrow")
        absent_columns(self, used, list(columns))
        blocks = [] if self.table_ is None else [self.table_._rows(columns)]
        self.unseen_ = {} if self.table_ is None else self.table_.unseen_
        for name, one in self.texts_.items():
            with _of_column(name):
                blocks.append(one.transform(documents_of(name, columns[name], self.missing)))
        made = side_by_side(blocks, len(next(iter(columns.values()))))
        return with_names(made, self._names, Behind(X, self))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the features, like ``"price"``, ``"colour=red"`` and ``"title:wave"``."""
        check_is_fitted(self)
        return np.array(self._names, dtype=object)

    @property
    def column_groups_(self) -> NDArray[np.int64]:
        """The group of each feature."""
        check_is_fitted(self)
        table = np.zeros(0, np.int64) if self.table_ is None else self.table_.column_groups_
        terms = groups_of([(len(self._names) - len(table), False)])
        return np.concatenate([table, terms + int(table.max(initial=-1)) + 1])

    @property
    def feature_columns_(self) -> NDArray[Any]:
        """The column of each feature."""
        check_is_fitted(self)
        found = [] if self.table_ is None else [self.table_.feature_columns_]
        found += [np.full(len(one.get_feature_names_out()), name, dtype=object) for name, one in self.texts_.items()]
        return np.concatenate(found)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_names")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = True
        tags.input_tags.allow_nan = self.missing != "refuse"
        return tags

    # ---- as files --------------------------------------------------------------------------------------------------

    def to_document(self) -> dict[str, Any]:
        """All but the terms, as JSON values."""
        check_is_fitted(self)
        given = self.get_params(deep=False)
        told = {} if self.columns is None else dict(self.columns)
        given["columns"] = {name: _plainly(said) for name, said in told.items()} if told else None
        given["text"] = None if self.text is None else text_feature_files.parameters(self.text)
        return {
            "schema": SCHEMA,
            "parameters": given,
            "kinds": dict(self.kinds_),
            "why": self.kinds_.why,
            "table": None if self.table_ is None else self.table_.to_document(),
            "texts": [{"name": name, **text_feature_files.to_document(one)} for name, one in self.texts_.items()],
        }

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The terms of all columns of text."""
        return {
            f"{number}.{name}": array
            for number, one in enumerate(self.texts_.values())
            for name, array in text_feature_files.to_arrays(one).items()
        }

    @classmethod
    def from_files(cls, document: Document, arrays: dict[str, NDArray[Any]]) -> Features:
        """The transform that was saved; nothing in the files is trusted."""
        file = document.file
        if document.count("schema") != SCHEMA:
            raise ModelFormatError(f"the transform is of another version than {SCHEMA}", file=file)
        given = dict(document.mapping("parameters"))
        if set(given) != set(cls().get_params(deep=False)):
            raise ModelFormatError("field parameters: expected those of Features", file=file)
        texts: dict[str, TextFeatures] = {}
        for number, spec in enumerate(document.children("texts")):
            mine = {name[len(f"{number}.") :]: a for name, a in arrays.items() if name.startswith(f"{number}.")}
            texts[spec.text("name")] = text_feature_files.restore(spec, mine)
        table = None if document.fields.get("table") is None else TableFeatures.from_document(document.child("table"))
        kinds, why = document.mapping("kinds"), document.mapping("why")
        known = {TEXT: list(texts)} | {"table": [] if table is None else list(table.kinds_)}
        used = [name for name, kind in kinds.items() if kind != DROP]
        if sorted(used) != sorted(known[TEXT] + known["table"]) or set(why) != set(kinds):
            raise ModelFormatError("field kinds: expected one of each column of the transform", file=file)
        try:
            if given["text"] is not None:
                given["text"] = text_feature_files.of_parameters(given["text"])
            made = cls(**given)
            made._defaults()
            made._settle([] if table is None else table._columns, texts, Kinds(kinds, why))
        except (UsageError, DataError, TypeError, ValueError) as error:
            raise ModelFormatError(f"field parameters: {error}", file=file) from error
        return made


def _plainly(said: Any) -> Any:
    """What is said of a column, as JSON values."""
    if isinstance(said, TextFeatures):
        return {"kind": TEXT, **text_feature_files.parameters(said)}
    return said if isinstance(said, str) else dict(said)


def documents_of(name: str, values: Any, missing: str) -> Any:
    """A column of text as an Arrow array of texts.

    Raises
    ------
    DataError
        The values are no text, or missing and refused.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_null(values.type):
        values = values.cast(pa.large_string())
    if not is_text(values.type):
        raise DataError(f"the values are {values.type}; expected text", column=name, hint="give it another kind")
    if values.null_count and missing == "refuse":
        first = int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0])
        raise DataError(
            f"{values.null_count} of {len(values)} texts are missing, the first in row {first}",
            column=name,
            hint='fill them, or give missing="zero", which takes them for empty ones',
        )
    return pc.fill_null(values.cast(pa.large_string()), "")


class _of_column:
    """Says the column of an error in a text."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, DataError) and error.column is None:
            raise DataError(error.what, column=self._name, hint=error.hint) from error


def _count_part(
    features: Features, told: Mapping[str, Told], texts: Mapping[str, TextFeatures], part: Any
) -> tuple[dict[str, Any], dict[str, Any], int]:
    """What a part of a table says. Runs on workers."""
    found: tuple[dict[str, Any], dict[str, Any], int] = features.count(columns_of(part)[0], told, texts)
    return found
