"""What transforms of tables share: counts over the parts of a table, and rows of each part, lazily on Dask.

Covers: tables in memory, whose only part they are, and dask DataFrames and Series, whose parts are counted and turned
into rows where they lie. Does not cover: what is counted (``dboost.data.features``, ``text_features``).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dboost.data.collections import refuse_gone
from dboost.data.features.arrow import columns_of
from dboost.data.named_columns import names_of
from dboost.errors import DataError, UsageError
from dboost.estimators.named_rows import Behind, with_names

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
    return names_of(X) if names_of(X) else list(columns_of(X)[0])


def over_parts(X: Any, count: Callable[[Any], Any], merge: Callable[[Sequence[Any]], Any]) -> Any:
    """What ``count`` gives of each part of a table, merged in the order of the parts."""
    if not is_lazy(X):
        return merge([count(X)])
    import dask

    refuse_gone(X=X)
    merged = dask.delayed(merge, pure=False)
    counted = dask.delayed(_in_part, pure=False)
    parts = [counted(count, part, number) for number, part in enumerate(X.to_delayed())]
    while len(parts) > 1:
        parts = [merged(parts[i : i + _MERGE]) for i in range(0, len(parts), _MERGE)]
    return computed(parts[0])


def computed(lazy: Any) -> Any:
    """What a lazy value is."""
    try:
        return lazy.compute()
    except RuntimeError as error:
        if "asynchronous" not in str(error):
            raise
        raise UsageError(
            "the Dask client is asynchronous, and its own event loop cannot wait for it",
            hint="await asyncio.to_thread(model.fit, X, y), which such a client serves",
        ) from None


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
    parts = [made(held, part, number) for number, part in enumerate(X.to_delayed())]
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
