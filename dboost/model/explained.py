"""What speaks for which class in one row: its features, and the part of every score that each of them brings.

Covers: ``contributions`` of one row, ``explain`` of a fitted estimator or pipeline. Does not cover: how it is shown.

A score is the intercept and the sum of the parts, so the parts say all that there is to say of a linear model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import UsageError, type_name
from dboost.model.fitted import Model
from dboost.notebook_html import block, lines, signed_bar, table

Float = NDArray[np.float64]

# Names that an error lists; features and classes that a notebook shows.
_SHOWN, _ROWS, _CLASSES = 8, 15, 4


@dataclass(frozen=True, repr=False)
class Contributions:
    """The parts of the scores of one row.

    Parameters
    ----------
    words : list of str
        Features (or hypotheses) of the model that the row has, in the order of the model.
    values : float64 array, shape (f,)
        Their values.
    parts : float64 array, shape (f, k)
        What each adds to every score.
    intercept : float64 array, shape (k,)
    labels : tuple of str
        The classes (or tasks, or targets); two classes share one score.
    columns : list of str, optional
        The column of the table that each feature comes from, where a transform knows it.
    notes : tuple of str
        From where the numbers of dates among the features are counted.
    """

    words: list[str]
    values: Float
    parts: Float
    intercept: Float
    labels: tuple[str, ...] = ()
    columns: list[str] | None = None
    notes: tuple[str, ...] = ()

    @property
    def scores(self) -> Float:
        """The scores: the intercept and all parts, shape (k,)."""
        return np.asarray(self.intercept + self.parts.sum(axis=0))

    def of_class(self, label: int | str) -> Float:
        """Parts of the score of a class, by its label or number; two classes share one score, which is for the second.

        Raises
        ------
        UsageError
            No class has this label.
        """
        if isinstance(label, str) and label not in self.labels:
            raise UsageError(f"no class {label!r}", hint=f"there are {', '.join(self.labels[:_SHOWN])}")
        number = self.labels.index(label) if isinstance(label, str) else label
        if self.parts.shape[1] == 1:
            return self.parts[:, 0] if number else -self.parts[:, 0]
        return self.parts[:, number]

    def _repr_html_(self) -> str:
        """The strongest parts as bars: blue and to the right what speaks for a class, else what speaks against it."""
        head, rows = self._table(signed_bar)
        shown = len(rows) - 2
        said = f"The features of this row, {'all' if shown == len(self.words) else 'the strongest'} {shown}"
        said += "." if shown == len(self.words) else f" of {len(self.words)}."
        side = "Blue, to the right, speaks for a class; orange, to the left, against it."
        return block(lines([f"{said} {side}", *self.notes]), table(head, rows))

    def __repr__(self) -> str:
        """The same as plain text: what is above zero speaks for a class, what is below it against."""
        head, rows = self._table(lambda part, _: f"{part:+.3f}")
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]

        def line(cells: list[str]) -> str:
            named = cells[0].ljust(widths[0])
            return "  ".join([named, *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))])

        return "\n".join([*(line(cells) for cells in (head, *rows)), *self.notes])

    def _table(self, shown_as: Callable[[float, float], str]) -> tuple[list[str], list[list[str]]]:
        """Head and rows: the strongest parts, each as it is shown beside the largest, then the intercept and scores."""
        labels = list(self.labels[-self.parts.shape[1] :]) or ["prediction"]
        shown = np.argsort(-self.scores, kind="stable")[:_CLASSES].tolist()
        scale = float(np.abs(self.parts).max(initial=0.0))
        strongest = np.argsort(-np.abs(self.parts).max(axis=1, initial=0.0), kind="stable")
        rows = [
            [self.words[j], f"{self.values[j]:.3g}", *(shown_as(float(self.parts[j, r]), scale) for r in shown)]
            for j in strongest[:_ROWS].tolist()
        ]
        for name, values in (("intercept", self.intercept), ("score", self.scores)):
            # no bars: they are no parts
            rows.append([name, "", *(shown_as(float(values[r]), np.inf) for r in shown)])
        return ["feature", "value", *(labels[r] for r in shown)], rows


def contributions(model: Model, row: Any, of_features: Any = None) -> Contributions:
    """The parts of the scores of one row that holds only the columns ``model.inputs``.

    `row` has shape (1, b); `of_features` names the column of a table that each feature of the model comes from.
    """
    held = model.held_columns(row)
    columns, values = held.indices, held.data
    words = model.hypotheses.words()
    W = model.W[columns]
    labels = () if model.task == "regression" else tuple(str(label) for label in model.classes.tolist())
    of = None if of_features is None or not model.plain else [str(of_features[j]) for j in model.active[columns]]
    return Contributions([words[j] for j in columns.tolist()], values, values[:, None] * W, model.intercept, labels, of)


def explain(model: Any, X: Any) -> Contributions:
    """What speaks for which class in one row.

    Parameters
    ----------
    model : fitted estimator, or Pipeline that ends in one
    X : one row of what it predicts
        For a pipeline of documents a list of one document.

    Returns
    -------
    Contributions
        Whose ``scores`` are those of ``decision_function``.

    Raises
    ------
    UsageError
        More rows than one, or an estimator that does not hold one model.

    Examples
    --------
    >>> import numpy as np
    >>> import dboost
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> model = dboost.BoostedClassifier(alpha=0.1).fit(X, ["a", "a", "b", "b"])
    >>> found = dboost.explain(model, X[3:])
    >>> found.words, bool(np.isclose(found.scores[0], model.decision_function(X[3:])[0]))
    (['x0'], True)
    """
    before, steps = None, getattr(model, "steps", None)
    if steps is not None:
        for _, step in steps[:-1]:
            X = step.transform(X)
        before, model = steps[-2][1] if len(steps) > 1 else None, steps[-1][1]
    held = getattr(model, "model_", None)
    if not isinstance(held, Model):
        raise UsageError(f"{type_name(model)} cannot be explained", hint="give a fitted estimator of one model")
    given = getattr(X, "column_names", getattr(X, "columns", None))
    names = None if given is None else [str(name) for name in given]
    if names is not None and held.feature_names is not None and names != list(held.feature_names):
        raise UsageError(
            f"the columns of the row are {', '.join(names[:_SHOWN])}, those of the fit were "
            f"{', '.join(held.feature_names[:_SHOWN])}",
            hint="give the columns of the fit, in its order",
        )
    if hasattr(X, "__dask_graph__"):
        X = X.compute()
    rows = X.tocsr() if hasattr(X, "tocsr") else np.atleast_2d(np.asarray(X, dtype=np.float64))
    if rows.shape[0] != 1:
        raise UsageError(f"{rows.shape[0]} rows; expected one", hint="give one row, such as X[:1]")
    if rows.shape[1] != held.n_features:
        raise UsageError(f"the row has {rows.shape[1]} features, the model was fitted on {held.n_features}")
    found = contributions(held, rows[:, held.inputs], getattr(before, "feature_columns_", None))
    if held.plain and held.feature_names is None and before is not None and hasattr(before, "get_feature_names_out"):
        # A sparse matrix between two steps carries no names: the transform is asked for them.
        offered = before.get_feature_names_out()
        used = held.held_columns(rows[:, held.inputs]).indices
        found = replace(found, words=[str(offered[held.active[j]]) for j in used.tolist()])
    origins = {name: said for column in getattr(before, "columns_", ()) for name, said in column.origins.items()}
    return replace(found, notes=tuple(f"{word} {origins[word]}" for word in found.words if word in origins))
