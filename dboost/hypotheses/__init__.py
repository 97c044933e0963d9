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
    """The class of a family in ``FAMILIES``."""
    module, cls = FAMILIES[name]
    return getattr(import_module(module), cls)


def family_from_json(spec: Any) -> Family:
    """Undo ``Family.to_json``.

    Parameters
    ----------
    spec : dict
        ``{"family": name, parameter: value, ...}``.

    Raises
    ------
    UsageError
        For an unknown family, or parameters that it does not take.
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

    Raises
    ------
    ModelFormatError
        When anything is missing, of another type, shape or range, or not finite.
    """
    name = spec.choice("family", tuple(FAMILIES))
    found: Chosen = family_class(name).restore(spec, arrays, n_features)
    return found


def family_from_fields(cls: Any, spec: dict[str, Any]) -> Any:
    """``from_json`` of a family whose JSON holds its fields, each under its name; the others have their defaults.

    Raises
    ------
    UsageError
        For other fields than the family has, or values it refuses.
    """
    given, known = {name: value for name, value in spec.items() if name != "family"}, [f.name for f in fields(cls)]
    odd = sorted(set(given) - set(known))
    if odd:
        hint = f"it takes {', '.join(known) or 'none'}"
        raise UsageError(f"hypotheses of family {spec['family']!r} have no parameter {odd[0]!r}", hint=hint)
    return cls(**given)


def same_hypotheses(one: Chosen, other: Any) -> bool:
    """Whether two models hold the same hypotheses: equal JSON, and equal bits in the arrays."""
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
