"""How large the data of a training is, as far as footers, a manifest and the labels tell.

Covers: rows, stored values, columns, outputs, and the blocks that a fit reads one by one. No value of a feature is
read. Does not cover: whether the data is right; the fit checks that, and says it in words of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from dboost.data.manifest import Manifest
from dboost.data.parquet.block import ParquetBlock
from dboost.data.parquet.plan import looked_at
from dboost.data.parquet.read import FileInfo, inspect_file, open_file, read_group, with_folders
from dboost.engine.local import LocalEngine

MOST_LABELS = 2_000_000
"""Rows. Labels are looked at in the first row groups up to so many rows, which takes some tenths of a second: a class
that is only in later ones is not counted, and the estimates are then of a fit with fewer classes."""


@dataclass(frozen=True)
class Shape:
    """How large the data is."""

    rows: int  # rows, and values of features that are stored; of a table all of them
    values: int
    features: int | None  # columns; None where only the rows tell
    classes: int | None  # classes that were seen; None where labels are no classes, or were not there to be seen
    tasks: int  # label columns
    all_labels: bool  # whether the labels of all rows were looked at
    dense: bool  # whether the features are columns of a table or lists of one length
    blocks: tuple[ParquetBlock, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of all blocks, decoded."""
        return sum(block.nbytes_estimate for block in self.blocks)

    def outputs(self, kind: str | None = None) -> int:
        """Columns of W in a fit by an estimator of this name, or by one that suits the labels.

        Two classes are told apart by one column of W.
        """
        if self.tasks > 1:
            return self.tasks
        if self.classes is None or (kind is not None and kind.endswith(("Regressor", "RegressorCV"))):
            return 1
        return 1 if self.classes <= 2 else self.classes


def shape_of(data: Any) -> Shape:
    """Look at ``ParquetData``."""
    files, manifest, split = data.resolve()
    with LocalEngine() as engine, warnings.catch_warnings():
        # What a fit would say of columns it says itself.
        warnings.simplefilter("ignore")
        infos = with_folders(engine.on_driver(inspect_file, files))
        blocks, layout, label = looked_at(data, infos, manifest)
        if layout.n_features < 0:
            found = engine.on_driver(lambda info: _largest_index(info, layout.columns[0]), infos)
            if all(one is not None for one in found):
                width = 1 + max((one for one in found if one is not None), default=0)
                blocks, layout, label = looked_at(data, infos, manifest, width)
    classes, all_labels = _classes(label, infos, manifest, split)
    return Shape(
        rows=sum(block.n_rows for block in blocks),
        values=sum(block.stored for block in blocks),
        features=layout.n_features if layout.n_features >= 0 else None,
        classes=classes,
        tasks=len(label),
        all_labels=all_labels,
        dense=layout.kind != "lists",
        blocks=tuple(blocks),
    )


def _largest_index(info: FileInfo, column: str) -> int | None:
    """The largest index in a list column, by the statistics of the footer; None where it has none."""
    metadata = open_file(info.ref.path).metadata
    most = -1
    for group in range(metadata.num_row_groups):
        chunks = [metadata.row_group(group).column(c) for c in range(metadata.num_columns)]
        for chunk in chunks:
            if chunk.path_in_schema.split(".")[0] != column:
                continue
            known = chunk.statistics
            if known is not None and known.has_min_max:
                most = max(most, int(known.max))
            elif info.leaves[group][column]:
                return None
    return most


def _classes(
    label: Sequence[str], infos: Sequence[FileInfo], manifest: Manifest | None, split: str | None
) -> tuple[int | None, bool]:
    """How many classes there are, and whether all rows were looked at for them."""
    if len(label) != 1:
        return None, True
    if manifest is not None and split is not None and label[0] == manifest.label:
        known = manifest.splits[split].get("classes")
        if known is not None:
            return len(known), True
    kind = next((info.kinds[label[0]] for info in infos if info.kinds[label[0]] != "null"), "null")
    if kind not in ("int", "bool", "str"):
        # These are the numbers of a regression, or what no fit takes.
        return None, True
    seen: set[Any] = set()
    rows = 0
    for info in infos:
        with_labels = open_file(info.ref.path)
        for group, count in enumerate(info.rows):
            if rows and rows + count > MOST_LABELS:
                return len(seen), False
            column = read_group(with_labels, info.ref, group, [label[0]]).column(0)
            seen.update(one for one in pc.unique(column).to_pylist() if one is not None)
            rows += count
    return len(seen), True
