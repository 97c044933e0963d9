"""Families of hypotheses, by name: what a user may ask for, and what a saved model may hold.

A new family is one file here and one line in ``FAMILIES``. Its class has, beside what ``base.Family`` asks for,

- ``from_json(spec) -> Family``, a class method that undoes ``to_json`` (UsageError where it cannot);
- ``restore(spec, arrays, n_features) -> Chosen``, a static method that undoes ``Chosen.to_json`` and ``Chosen.arrays``
  of a saved model and trusts nothing in it (ModelFormatError).

``listed.ListedFamily`` has all of that for a family that can be listed, from four short methods.

The classes are loaded by name when they are needed: a model that holds raw columns must not load compiled kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import UsageError
from dboost.files.documents import Document
from dboost.hypotheses.base import Chosen, Family

# name in JSON -> module and class
FAMILIES: dict[str, tuple[str, str]] = {
    "columns": ("dboost.hypotheses.columns", "Columns"),
    "kernels": ("dboost.hypotheses.kernels.family", "Kernels"),
    "patches": ("dboost.hypotheses.patches.family", "Patches"),
    "piecewise_linear": ("dboost.hypotheses.pieces.family", "PiecewiseLinear"),
    "products": ("dboost.hypotheses.products.family", "Products"),
    "stumps": ("dboost.hypotheses.stumps.family", "Stumps"),
    "union": ("dboost.hypotheses.union", "Union"),
}


def family_class(name: str) -> Any:
    """The class of a family in ``FAMILIES``.

    Parameters
    ----------
    name : str
        A key of ``FAMILIES``.

    Returns
    -------
    type

    Examples
    --------
    >>> family_class("columns").__name__
    'Columns'
    """
    module, cls = FAMILIES[name]
    return getattr(import_module(module), cls)


def family_from_json(spec: Any) -> Family:
    """Undo ``Family.to_json``.

    Parameters
    ----------
    spec : dict
        ``{"family": name, parameter: value, ...}``.

    Returns
    -------
    Family

    Raises
    ------
    UsageError
        For an unknown family, or parameters that it does not take.

    Examples
    --------
    >>> family_from_json({"family": "stumps", "bins": 32}).bins
    32
    """
    name = spec.get("family") if isinstance(spec, Mapping) else None
    if not isinstance(name, str) or name not in FAMILIES:
        raise UsageError(f"hypotheses of family {name!r}", hint=f"known families: {', '.join(FAMILIES)}")
    found: Family = family_class(name).from_json(dict(spec))
    return found


def restore_chosen(spec: Document, arrays: Mapping[str, NDArray[Any]], n_features: int) -> Chosen:
    """The hypotheses of a saved model.

    Parameters
    ----------
    spec : Document
        What ``Chosen.to_json`` gave.
    arrays : mapping of str to array
        What ``Chosen.arrays`` gave.
    n_features : int
        Raw columns offered.

    Returns
    -------
    Chosen

    Raises
    ------
    ModelFormatError
        When anything is missing, of another type, shape or range, or not finite.

    Examples
    --------
    >>> import numpy as np
    >>> import dboost
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> held = dboost.BoostedClassifier(alpha=0.1).fit(X, [0, 0, 1, 1]).model_.hypotheses
    >>> from dboost.files.documents import Document
    >>> again = restore_chosen(Document(held.to_json(), "model.json"), held.arrays(), 2)
    >>> same_hypotheses(held, again)
    True
    """
    name = spec.choice("family", tuple(FAMILIES))
    found: Chosen = family_class(name).restore(spec, arrays, n_features)
    return found


def family_from_fields(cls: Any, spec: dict[str, Any]) -> Any:
    """``from_json`` of a family whose JSON holds its fields, each under its name; the others have their defaults.

    Parameters
    ----------
    cls : type
        A family that is a dataclass.
    spec : dict
        As ``family_from_json`` takes it.

    Returns
    -------
    Family

    Raises
    ------
    UsageError
        For other fields than the family has, or values it refuses.

    Examples
    --------
    >>> family_from_fields(family_class("products"), {"family": "products", "max_degree": 3}).max_degree
    3
    """
    given, known = {name: value for name, value in spec.items() if name != "family"}, [f.name for f in fields(cls)]
    odd = sorted(set(given) - set(known))
    if odd:
        hint = f"it takes {', '.join(known) or 'none'}"
        raise UsageError(f"hypotheses of family {spec['family']!r} have no parameter {odd[0]!r}", hint=hint)
    return cls(**given)


def same_hypotheses(one: Chosen, other: Any) -> bool:
    """Whether two models hold the same hypotheses: equal JSON, and equal bits in the arrays.

    Parameters
    ----------
    one : Chosen
    other : object

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy as np
    >>> import dboost
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> held = dboost.BoostedClassifier(alpha=0.1).fit(X, [0, 0, 1, 1]).model_.hypotheses
    >>> same_hypotheses(held, held), same_hypotheses(held, None)
    (True, False)
    """
    if type(one) is not type(other) or one.to_json() != other.to_json():
        return False
    mine, theirs = one.arrays(), other.arrays()
    return mine.keys() == theirs.keys() and all(
        mine[name].dtype == theirs[name].dtype and np.array_equal(mine[name], theirs[name]) for name in mine
    )


__all__ = [
    "FAMILIES",
    "Chosen",
    "Family",
    "family_class",
    "family_from_fields",
    "family_from_json",
    "restore_chosen",
    "same_hypotheses",
]
