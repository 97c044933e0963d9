"""Names of features that come beside sparse rows, which have none of their own.

Covers: rows that keep the names their transform gave them, names that a caller gives, and their checks.
Does not cover: tables, whose columns have names (``dboost.data.named_columns``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from scipy import sparse

from dboost.data.named_columns import BEHIND
from dboost.data.planned import Plan
from dboost.errors import UsageError


@dataclass(frozen=True, eq=False)
class Behind:
    """What rows were made from: its other columns may be their labels, and its index is that of predictions."""

    table: Any
    transform: Any
    # The columns of the table that it read.
    read: Any = None


class NamedRows(sparse.csr_array):  # type: ignore[misc]
    """Sparse rows that know the names of their columns, so that an estimator behind a transform learns them.

    Rows that are picked keep the names. What changes the columns, such as a product, a transposition or a stack of
    several, gives arrays without names.
    """

    # One for each column; shared with the transform, and never copied.
    feature_names: Any = None

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if isinstance(found, NamedRows) and not isinstance(key, tuple):
            found.feature_names = self.feature_names
        return found

    def __getstate__(self) -> dict[str, Any]:
        # rows that go to another process need not take the table that they were made from with them
        return {name: value for name, value in vars(self).items() if name != BEHIND}


def with_names(rows: Any, names: Any, behind: Behind | None = None) -> Any:
    """The same rows, without a copy, with names and what they were made from; as they are where there is neither."""
    if names is None and behind is None:
        return rows
    found = NamedRows(rows) if sparse.issparse(rows) else rows
    found.feature_names = names
    setattr(found, BEHIND, behind)
    return found


def names_beside(X: Any) -> Any:
    """The names that rows were given by their transform; None where there are none."""
    own = isinstance(X, NamedRows) or (hasattr(X, "__dask_graph__") and not hasattr(X, "columns"))
    return vars(X).get("feature_names") if own else None


def named(plan: Plan, X: Any, given: Sequence[str] | None) -> Plan:
    """The plan with the names of its features: of its data, beside it, or given as ``feature_names`` of ``fit``."""
    beside = names_beside(X)
    if given is None:
        return plan if beside is None or plan.feature_names is not None else replace(plan, feature_names=_texts(beside))
    if plan.feature_names is not None or beside is not None:
        raise UsageError(
            "feature_names= was given, and the data has names of its own", hint="leave it out, or rename the columns"
        )
    names = checked(given)
    if len(names) != plan.n_features:
        raise UsageError(
            f"feature_names= has {len(names):,} names, and the data {plan.n_features:,} features",
            hint="give one name for each column",
        )
    return replace(plan, feature_names=names)


def checked(given: Any) -> tuple[str, ...]:
    """Names as a caller gives them."""
    if isinstance(given, str):
        raise UsageError(f"feature_names={given!r} is one text", hint="give a list of names, one for each column")
    names = _texts(given)
    odd = next((name for name in names if not isinstance(name, str)), None)
    if odd is not None:
        raise UsageError(f"feature_names= holds {odd!r}, a {type(odd).__name__}", hint="give texts")
    if len(set(names)) != len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise UsageError(f"feature_names= holds {twice!r} twice", hint="give every feature a name of its own")
    return names


def _texts(names: Any) -> tuple[Any, ...]:
    if hasattr(names, "to_pylist"):
        return tuple(names.to_pylist())
    return tuple(names.tolist() if hasattr(names, "tolist") else names)
