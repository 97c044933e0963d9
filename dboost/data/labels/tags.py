"""Labels that are lists: some tags in each row, of which every one is a task of its own.

Covers: what holds such lists, the tags of the rows, and their signs for each task. Does not cover:
which tags are learned (``labels``), tags as features (``dboost.data.features``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.data.labels.factorise import is_arrow
from dboost.data.meaning import column_kind
from dboost.errors import DataError

TAGS = "tags"
OF_TAGS = "lists of tags, which are texts, are learned by MultiTaskBoostedClassifier"
# Tags beyond which the signs of all rows take more memory than the features of most texts.
MOST = 20_000
_LOOKED_AT = 1_000


def are_tags(labels: Any) -> bool:
    """Whether labels are lists of texts, one list in each row."""
    if is_arrow(labels):
        return _is_list(labels.type)
    if type(labels).__module__.split(".")[0] == "polars":
        return str(getattr(labels, "dtype", "")).startswith(("List(String", "List(Null"))
    if type(getattr(labels, "dtype", None)).__name__ == "ArrowDtype":
        return _is_list(labels.dtype.pyarrow_dtype)
    if isinstance(labels, np.ndarray) or hasattr(labels, "iloc"):
        if labels.ndim != 1 or getattr(labels.dtype, "kind", "O") != "O":
            return False
        some = np.asarray(labels[:_LOOKED_AT] if isinstance(labels, np.ndarray) else labels.iloc[:_LOOKED_AT])
        rows = [row for row in some.tolist() if row is not None]
        return bool(rows) and all(_is_row(row) for row in rows)
    if not isinstance(labels, list | tuple):
        return False
    rows = [row for row in labels[:_LOOKED_AT] if row is not None]
    return bool(rows) and all(_is_row(row) for row in rows)


def _is_row(row: Any) -> bool:
    return isinstance(row, list | tuple | set | frozenset | np.ndarray) and all(
        isinstance(tag, str) or tag is None for tag in row
    )


def _is_list(kind: Any) -> bool:
    """Lists of which none has an element have no type of them."""
    return column_kind(kind) in ("list<str>", "list<null>")


def as_arrow(labels: Any) -> Any:
    """Lists of tags as an Arrow array."""
    import pyarrow as pa

    from dboost.data.features.arrow import arrow_of, no_surrogates

    if isinstance(labels, list | tuple | np.ndarray):
        rows = [
            None if row is None else sorted(row) if isinstance(row, set | frozenset) else list(row) for row in labels
        ]
        try:
            return pa.array(rows, pa.list_(pa.string()))
        except UnicodeEncodeError:
            raise no_surrogates("a tag") from None
    return arrow_of("y", labels)


def tags_in_texts(texts: Any, separator: str) -> Any:
    """Lists of the tags that stand in texts (else a DataError), as an Arrow array."""
    from dboost.data.features.arrow import arrow_of, is_text, split_tags

    held = arrow_of("y", texts)
    if not is_text(held.type):
        raise DataError(f"the labels are {held.type}; expected tags in one text", hint="leave label_separator out")
    return split_tags(held, separator)


def flat_tags(labels: Any) -> tuple[int, NDArray[np.int64], list[str], NDArray[np.int64]]:
    """How many rows, and of every tag its row and its number among the different tags; missing ones are a DataError."""
    import pyarrow as pa

    from dboost.data.features.arrow import missing, row_of, tags_of, texts_of

    held = as_arrow(labels)
    if held.null_count:
        raise DataError(
            f"the tags of {held.null_count} rows are missing, the first of row {row_of(missing(held))}",
            hint="drop these rows, or give an empty list for a row without tags",
        )
    if pa.types.is_null(held.type):
        return len(held), np.zeros(0, np.int64), [], np.zeros(0, np.int64)
    rows, inner = tags_of(held)
    found = texts_of(inner).dictionary_encode()
    return len(held), rows, found.dictionary.to_pylist(), found.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def frequent_tags(labels: Any, min_count: int) -> list[str]:
    """The tags that are in so many rows at least, sorted; for ``classes=`` of ``MultiTaskBoostedClassifier``.

    Parameters
    ----------
    labels : lists of tags, one in each row
    min_count : int

    Returns
    -------
    list of str

    Examples
    --------
    >>> frequent_tags([["sea", "sky"], ["sea"], []], 2)
    ['sea']
    """
    n_rows = flat_tags(labels)[0]
    count, _ = count_tags(labels, np.ones(n_rows))
    return sorted(tag for tag, rows in count.items() if rows >= min_count)


def count_tags(labels: Any, weight: NDArray[np.float64]) -> tuple[dict[str, int], dict[str, float]]:
    """In how many rows of positive weight each tag is, and their weight."""
    n_rows, rows, names, codes = flat_tags(labels)
    if n_rows != weight.shape[0]:
        raise DataError(f"{n_rows} labels for {weight.shape[0]} rows", hint="give one list per row")
    _, first = np.unique(rows * max(len(names), 1) + codes, return_index=True)
    rows, codes = rows[first], codes[first]
    kept = weight[rows] > 0
    count = np.bincount(codes[kept], minlength=len(names)).tolist()
    total = np.bincount(codes, weights=weight[rows], minlength=len(names)).tolist()
    seen = [j for j, number in enumerate(count) if number]
    return {names[j]: count[j] for j in seen}, {names[j]: total[j] for j in seen}


def tag_signs(labels: Any, tags: Sequence[str]) -> NDArray[np.int8]:
    """+1 where a row has a tag and -1 where it has not, int8 (m, k); tags that are none of these are passed over."""
    n_rows, rows, names, codes = flat_tags(labels)
    place = {tag: j for j, tag in enumerate(tags)}
    table = np.array([place.get(name, -1) for name in names], dtype=np.int64)
    found = table[codes] if len(names) else codes
    signs = np.full((n_rows, len(tags)), -1, dtype=np.int8)
    signs[rows[found >= 0], found[found >= 0]] = 1
    return signs
