"""What Parquet data holds, as far as footers, a manifest and the label column tell.

Covers: rows, classes, bytes and partitions for a person who looks. Does not cover: the checks of a fit (``plan``), or
values of features, of which none is read.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from dboost import notebook_html as page
from dboost.data.absent_column import absent_column
from dboost.data.manifest import Manifest
from dboost.data.parquet import plan
from dboost.data.parquet.read import FileInfo, open_file, read_group
from dboost.data.prepared.mapper import InProcess
from dboost.errors import DboostError

# Above these a look would take seconds: footers are a read each, and labels are read and counted.
MOST_FILES = 1000
MOST_LABELS = 2_000_000
SHOWN_CLASSES = 20


@dataclass(frozen=True)
class Summary:
    """What is known of the data without reading it."""

    files: int
    on_disk: int  # Bytes of the files.
    rows: int
    features: int | None  # None where only the rows tell.
    partitions: int  # Blocks that a fit reads one by one; one may have several row groups, or files.
    decoded: int | None  # Bytes of all partitions in memory, estimated.
    labels: tuple[str, ...]  # Columns of labels.
    # Labels with their numbers of rows, most frequent first; None where they were not counted.
    classes: tuple[tuple[str, int], ...] | None


def summary(data: Any) -> Summary | None:
    """Look at ``ParquetData``; None where there are too many files to look at each."""
    data = data.opened()
    files, manifest, split = data.resolve()
    if len(files) > MOST_FILES:
        return None
    infos = plan.footers_of(data, InProcess())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a fit would say of columns, it says itself
        blocks, layout, label = plan.looked_at(data, infos, manifest)
    rows, classes = sum(sum(info.rows) for info in infos), None
    if rows <= MOST_LABELS and (counts := count_labels(label, infos, manifest, split, MOST_LABELS)[0]) is not None:
        named = {"no label" if name is None else str(name): count for name, count in counts.items()}
        classes = tuple(sorted(named.items(), key=lambda item: (-item[1], item[0])))
    return Summary(
        files=len(files),
        on_disk=sum(info.ref.size for info in infos),
        rows=rows,
        features=layout.n_features if layout.n_features >= 0 else None,
        partitions=len(blocks),
        decoded=sum(block.nbytes_estimate for block in blocks) if layout.n_features >= 0 else None,
        labels=label,
        classes=classes,
    )


def count_labels(
    label: tuple[str, ...], infos: Sequence[FileInfo], manifest: Manifest | None, split: str | None, most: int
) -> tuple[dict[Any, int] | None, bool]:
    """Rows of each label in the first row groups, up to `most` rows, and whether these are all.

    None in place of labels that are no classes: those of several tasks, and the numbers of a regression.
    """
    if len(label) != 1:
        return None, True
    known = manifest.splits[split].get("classes") if manifest is not None and split is not None else None
    if manifest is not None and known is not None and label == (manifest.label,):
        return {name: int(count) for name, count in known}, True
    counts: Counter[Any] = Counter()
    rows = 0
    for info in infos:
        if label[0] not in info.types:
            raise absent_column(label[0], info.kinds, info.ref.path, "label")
        kind = info.types[label[0]]
        if pa.types.is_nested(kind) or pa.types.is_floating(kind):
            return None, True
        with open_file(info.ref.path) as file:
            for group, count in enumerate(info.rows):
                if rows and rows + count > most:
                    return counts, False
                column = read_group(file, info.ref, group, label).column(0)
                column = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
                counts.update({one["values"]: one["counts"] for one in column.value_counts().to_pylist()})
                rows += count
    return counts, True


def html(data: Any) -> str:
    """The summary as a table of HTML; where the data cannot be looked at, why not."""
    head = page.pre(repr(data))
    try:
        found = summary(data)
    except (DboostError, OSError) as error:
        return page.block(head, page.lines([str(error)]))
    if found is None:
        return page.block(head, page.lines([f"more than {MOST_FILES} files: not looked at"]))
    rows = [
        ["rows", f"{found.rows:,}"],
        ["features", "as many as the rows hold" if found.features is None else f"{found.features:,}"],
        ["bytes", f"{size_in_words(found.on_disk)} in {found.files:,} {'file' if found.files == 1 else 'files'}"],
        ["partitions", f"{found.partitions:,}" + _held(found.decoded)],
    ]
    if found.labels and found.classes is None:
        rows.append(["label", ", ".join(found.labels)])
    if found.classes is None:
        return page.block(head, _facts(rows))
    rows.append(["classes", f"{len(found.classes):,} in {found.labels[0]}"])
    most = max((count for _, count in found.classes), default=1)
    bars = [[name, page.bar(count / most, f"{count:,}")] for name, count in found.classes[:SHOWN_CLASSES]]
    more = len(found.classes) - SHOWN_CLASSES
    notes = [f"and {more:,} more {'class' if more == 1 else 'classes'}"] if more > 0 else []
    return page.block(head, _facts(rows), page.table(["class", "rows"], bars), page.lines(notes))


def _facts(rows: list[list[str]]) -> str:
    return page.table([], [[name, page.words(fact)] for name, fact in rows])


def _held(decoded: int | None) -> str:
    return "" if decoded is None else f", about {size_in_words(decoded)} in memory"


def size_in_words(count: float) -> str:
    """Bytes, in words."""
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1000:
            break
        size, unit = size / 1024, larger
    return f"{size:.3g} {unit}"
