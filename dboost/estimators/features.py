"""``Features``: one transform of a table of text, categories, numbers, dates, tags, embeddings and weights.

Covers: the kinds of the columns, found or told, and what is saved. Does not cover: how columns become features
(``table_features``, ``text_features``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from dboost.data.features.kinds import Told
from dboost.data.features.look import DROP, NUMBERS_IN_TEXTS, TEXT, Seen
from dboost.errors import DataError, ModelFormatError, UsageError, type_name
from dboost.estimators.params import parameters
from dboost.estimators.table_features import (
    ColumnFeatures,
    as_format_errors,
    columns_document,
    columns_of_document,
    seen_of,
    told_columns,
)
from dboost.estimators.text_features import TextFeatures
from dboost.estimators.transformed_rows import column_names
from dboost.files.documents import Document, numbered, of_number
from dboost.notices import warn_user

SCHEMA = 1
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
            "schema": SCHEMA,
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
        document.expect_schema(SCHEMA)
        given = dict(document.mapping("parameters"))
        if set(given) != set(cls().get_params(deep=False)):
            raise ModelFormatError("field parameters: expected those of Features", file=document.file)
        texts = {
            spec.text("name"): TextFeatures.from_files(spec, of_number(arrays, number))
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
