"""Rows that transforms make of tables: with the names of their features, and lazily of the parts of a Dask collection.

Covers: names that rows keep, or that a caller gives beside them; counts over the parts of a table, in memory its only
one; rows of each part, made where it lies. Does not cover: what is counted (``dboost.data.features``,
``text_features``), tables, whose columns have names (``dboost.data.named_columns``).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dboost.data.collections import delayed_parts, refuse_gone
from dboost.data.named_columns import BEHIND, names_of, names_of_rows
from dboost.data.planned import Plan
from dboost.errors import ClusterError, DataError, UsageError, type_name


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
    found = rows
    if type(rows) is sparse.csr_array:
        # the constructor would take longer to look at one row than it takes to be counted
        found = NamedRows.__new__(NamedRows)
        found.__dict__.update(vars(rows))
    elif sparse.issparse(rows):
        found = NamedRows(rows)
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
        raise UsageError(f"feature_names= holds {odd!r}, {type_name(odd)}", hint="give texts")
    if len(set(names)) != len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise UsageError(f"feature_names= holds {twice!r} twice", hint="give every feature a name of its own")
    return names


def _texts(names: Any) -> tuple[Any, ...]:
    if hasattr(names, "to_pylist"):
        return tuple(names.to_pylist())
    return tuple(names.tolist() if hasattr(names, "tolist") else names)


# Counts of so many parts are added in one task.
_MERGE = 8


def is_lazy(X: Any) -> bool:
    """Whether a table is a collection of Dask."""
    return hasattr(X, "__dask_graph__")


def column_names(X: Any) -> list[Any]:
    """The names of the columns of a table, also of rows that are dicts and of an array."""
    if is_lazy(X):
        refuse_gone(X=X)
        if not hasattr(X, "columns") or not hasattr(X, "map_partitions"):
            raise UsageError(
                f"X is a dask {type(X).__name__}, whose columns have no names", hint="give a dask DataFrame"
            )
        return list(X.columns)
    named = names_of(X) or names_of_rows(X)
    if named:
        return named
    # a fit of arrays has no use for Arrow, which takes longer to load than a small fit
    from dboost.data.features.arrow import columns_of

    return list(columns_of(X)[0])


def over_parts(X: Any, count: Callable[[Any], Any], merge: Callable[[Sequence[Any]], Any]) -> Any:
    """What ``count`` gives of each part of a table, merged in the order of the parts."""
    return merged_parts(counted_lazily(X, count), merge) if is_lazy(X) else merge([count(X)])


def counted_lazily(X: Any, count: Callable[[Any], Any]) -> list[Any]:
    """What ``count`` gives of each part of a Dask collection, as delayed values."""
    import dask

    refuse_gone(X=X)
    counted = dask.delayed(_in_part, pure=False)
    return [counted(count, part, number) for number, part in enumerate(delayed_parts(X))]


def merged_parts(parts: Sequence[Any], merge: Callable[[Sequence[Any]], Any]) -> Any:
    """What delayed counts say together, merged in their order."""
    import dask

    merged = dask.delayed(merge, pure=False)
    while len(parts) > 1:
        parts = [merged(list(parts[i : i + _MERGE])) for i in range(0, len(parts), _MERGE)]
    return computed(parts[0])


def computed(lazy: Any) -> Any:
    """What a lazy value is."""
    try:
        return lazy.compute()
    except RuntimeError as error:
        if "asynchronous" in str(error):
            raise UsageError(
                "the Dask client is asynchronous, and its own event loop cannot wait for it",
                hint="await asyncio.to_thread(model.fit, X, y), which such a client serves",
            ) from None
        raise
    except Exception as error:
        # by its name: Dask's scheduler is not loaded where there is no cluster
        if type(error).__name__ != "KilledWorker":
            raise
        raise ClusterError(
            "a task on parts of the frame ended several workers; the usual cause is that they ran out of memory",
            hint="give the workers more memory, or the frame more and smaller partitions",
        ) from error


def _in_part(fn: Callable[[Any], Any], part: Any, number: int) -> Any:
    """The function of a part; what is wrong in it is said with its number. Runs on workers."""
    try:
        return fn(part)
    except DataError as fault:
        raise DataError(f"{fault.what} (partition {number})", column=fault.column, hint=fault.hint) from fault


def rows_of_parts(X: Any, transform: Any, names: Any, width: int, dtype: Any, table: Any = None) -> Any:
    """A dask array of sparse chunks of the rows of a frame, some columns of `table`, computed where the parts lie."""
    import dask
    import dask.array as da
    from dask.highlevelgraph import HighLevelGraph

    refuse_gone(X=X)
    held = dask.delayed(transform, name=f"dboost-transform-{uuid.uuid4().hex}")
    made = dask.delayed(dboost_transform, pure=False)
    parts = [made(held, part, number) for number, part in enumerate(delayed_parts(X))]
    name = f"dboost-rows-{uuid.uuid4().hex}"
    layer = {(name, i, 0): part.key for i, part in enumerate(parts)}
    graph = HighLevelGraph.from_collections(name, layer, dependencies=parts)
    chunks = ((np.nan,) * len(parts), (width,))
    found = da.Array(graph, name, chunks=chunks, dtype=dtype, meta=sparse.csr_array((0, 0), dtype=dtype))
    return with_names(found, names, Behind(X if table is None else table, transform, X))


def dboost_transform(transform: Any, part: Any, number: int) -> Any:
    """Plain sparse rows of a part: names stay with the whole. Runs on workers."""
    return _in_part(partial(_plain_rows, transform), part, number)


def _plain_rows(transform: Any, part: Any) -> Any:
    return sparse.csr_array(transform.transform(part))


def side_by_side(blocks: Sequence[Any], n_rows: int) -> sparse.csr_array:
    """Blocks of sorted columns as one matrix of float64, the entries of a row in the order of the blocks."""
    indptr = np.zeros(n_rows + 1, np.int64)
    for block in blocks:
        indptr += block.indptr
    indices: NDArray[Any] = np.empty(int(indptr[-1]), np.int32)
    values = np.empty(int(indptr[-1]))
    begin, first = indptr[:-1].copy(), 0
    for block in blocks:
        lengths = np.diff(block.indptr)
        at = np.arange(block.indptr[-1]) + np.repeat(begin - block.indptr[:-1], lengths)
        indices[at] = block.indices + first
        values[at] = block.data
        begin += lengths
        first += block.shape[1]
    if indptr[-1] <= np.iinfo(np.int32).max:
        # as SciPy has it, which would else turn both into numbers of 64 bits
        indptr = indptr.astype(np.int32)
    found = sparse.csr_array((values, indices, indptr), shape=(n_rows, first))
    found.has_sorted_indices = found.has_canonical_format = True
    return found
