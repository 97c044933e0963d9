"""Checks over all files of a Parquet data set, and the cut into blocks.

Covers: schema drift (compared by name), the feature layout, blocks of row groups, the plan of a fit.
Does not cover: decoding (``parquet_read``, ``parquet_block``).

Row groups are joined to blocks of as many rows as rows in memory are cut into (``blocks``), and those that ``prepare``
writes are cut likewise where there are few. Footers, the number of features and that of outputs decide the cut.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dboost.data.absent_column import absent_column
from dboost.data.blocks import GROUP_ROWS, rows_per_block
from dboost.data.budget import block_budget, memory_budget
from dboost.data.labels.labels import LabelStats, coder_of_one, label_notes, stats_of_one
from dboost.data.manifest import Manifest
from dboost.data.meaning import FILE, column_kind, fits, joint_type, say_index
from dboost.data.parquet.block import ParquetBlock
from dboost.data.parquet.read import NUMBERS, FileInfo, Layout, inspect_file, say_folders, with_folders
from dboost.data.planned import Plan, class_list, n_outputs, plan_coder
from dboost.data.prepared.mapper import InProcess, Mapper
from dboost.errors import DataError, UsageError
from dboost.notices import warn_user

if TYPE_CHECKING:
    from dboost.data.parquet.input import ParquetData

# Data of so many bytes is kept for long and read again and again: a bit of it that changes is worth a word.
WORTH_CHECKSUMS = 1 << 30
# No row groups are joined to a block that costs so many times what one does on average.
_UNEVEN = 4
_HOW_TEXT_IS_READ = (
    "`dboost prepare --column find` or dboost.Features makes features of columns of any kind, `dboost prepare` of "
    "documents; to leave the column out, name the others in features="
)


def plan_parquet(data: ParquetData, *, task: str, classes: Any, class_weight: Any, engine: Mapper) -> Plan:
    """The plan of a fit over Parquet files; see ``build_plan``."""
    blocks, infos, manifest = plan_blocks(data, engine=engine, n_features=None, labels=True)
    budget = memory_budget(engine)
    refuse_giants(blocks, block_budget(engine))
    reports = engine.map(ParquetBlock.scan_labels, blocks, task, name="scan-labels")
    stats = reduce(LabelStats.merge, reports, LabelStats())
    label = blocks[0].label if blocks else ()
    task_names = list(label) if len(label) > 1 else None
    kind, one = stats.kind, data.one_label
    if one is not None:
        stats = stats_of_one(stats, one)
    coder, task_classes = plan_coder(stats, task, classes, class_weight, task_names)
    if one is not None:
        coder = coder_of_one(coder, one, kind)
    kept = [report.n_kept for report in reports]
    first = blocks[0]
    parts = _cut(infos, first.layout, first.label, data, first.manifest, n_outputs(coder, stats))
    if parts != blocks:
        every = all(block.n_rows == n for block, n in zip(blocks, kept, strict=True))
        kept = (
            [block.n_rows for block in parts] if every else engine.map(ParquetBlock.kept_rows, parts, name="count-rows")
        )
    ready = [replace(block, rows=n, coder=coder) for block, n in zip(parts, kept, strict=True) if n]
    layout = ready[0].layout
    names = layout.columns if layout.kind == "columns" else None
    if manifest is not None and layout.kind == "lists":
        names = manifest.feature_names()
    nbytes = sum(block.nbytes_estimate for block in ready)
    digest = hashlib.sha256()
    digest.update(repr((layout.kind, layout.columns, layout.n_features, label, blocks[0].weight)).encode())
    digest.update(repr([(info.ref.size, info.ref.footer) for info in infos]).encode())
    if data.groups is not None:
        digest.update(repr(data.groups).encode())
    if any(info.ref.folders for info in infos):
        digest.update(repr([info.ref.folders for info in infos]).encode())
    if one is not None:
        digest.update(repr(one).encode())
    digest.update(repr((coder.task, class_list(coder), stats.n_kept, stats.sum_weight, sorted(stats.weight))).encode())
    bare = [info.ref.name for info in infos if not info.checksums]
    notes = []
    if bare and sum(info.ref.size for info in infos) >= WORTH_CHECKSUMS:
        notes.append(
            f"{len(bare)} of {len(infos)} files carry no page checksums ({bare[0]} first): "
            "damage inside them cannot be detected. Write them with write_page_checksum=True"
        )
    if classes is None:
        several = sum(1 for info in infos if sum(info.rows)) > 1
        notes.extend(label_notes(stats.count, stats.where if several else {}))
    return Plan.of(
        coder,
        stats,
        items=tuple(ready),
        rows=tuple(block.rows for block in ready),
        n_features=layout.n_features,
        feature_names=names,
        classes=task_classes,
        digest=digest.hexdigest,
        nbytes_estimate=nbytes,
        streams=nbytes > budget,
        notes=tuple(notes),
    )


def blocks_of(data: ParquetData, *, n_features: int | None = None, labels: bool = False) -> list[ParquetBlock]:
    """Specs of consecutive row groups, for predictions and evaluation; `labels`: whether these must be there."""
    return plan_blocks(data, engine=None, n_features=n_features, labels=labels)[0]


def footers_of(data: ParquetData, mapper: Mapper) -> list[FileInfo]:
    """What the footers of all files say; the name of the file is a column of its own where it names the groups."""
    named = data.groups == FILE
    return data.footers(lambda files: with_folders(mapper.map(inspect_file, files, name="read-footers"), named))


def looked_at(
    data: ParquetData, infos: Sequence[FileInfo], manifest: Manifest | None, n_features: int | None = None
) -> tuple[list[ParquetBlock], Layout, tuple[str, ...]]:
    """The blocks, the layout (of width -1 where nothing tells it) and the label columns as footers alone tell them."""
    label = _label_columns(data, manifest)
    _check_named(infos, {"label": label, **_beside(data)})
    layout = _layout(data, infos, manifest, label, n_features)
    return _cut(infos, layout, label, data, None), layout, label


def plan_blocks(
    data: ParquetData,
    *,
    engine: Mapper | None,
    n_features: int | None,
    labels: bool = False,
    select: Callable[[Layout, Manifest | None], Layout] | None = None,
) -> tuple[list[ParquetBlock], list[FileInfo], Manifest | None]:
    """All footers, compared, and blocks of row groups; `select` narrows the layout before anything is compared."""
    mapper: Mapper = InProcess() if engine is None else engine
    data = data.opened()
    _, manifest, split = data.resolve()
    infos = footers_of(data, mapper)
    if manifest is not None and split is not None:
        _check_manifest_files(infos, manifest, split)
    label = _label_columns(data, manifest)
    if labels and not label:
        raise UsageError("ParquetData names no label column", hint="give label=, the name of the column to learn")
    if labels:
        _refuse_unlabelled(data, manifest, split)
        # Before the features: a label column that is named wrongly would be taken for one of them.
        _check_named(infos, {"label": label, **_beside(data)})
    layout = _layout(data, infos, manifest, label, n_features)
    if select is not None:
        layout = select(layout, manifest)
    needed, described = list(layout.columns), data if labels else None
    if labels:
        needed += [*label, *(name for names in _beside(data).values() for name in names)]
    else:
        label = ()
    say_folders(infos, needed)
    _check_drift(infos, needed, manifest)
    blocks = _cut(infos, layout, label, described, None if manifest is None else manifest.root)
    if layout.n_features < 0:
        width = 1 + max(mapper.map(ParquetBlock.largest_index, blocks, name="count-features"), default=-1)
        blocks = _cut(infos, replace(layout, n_features=width), label, described, None)
    return blocks, infos, manifest


def _beside(data: ParquetData) -> dict[str, tuple[str, ...]]:
    """The columns of weights and groups, where there are any."""
    return {what: (name,) for what in ("weight", "groups") if (name := getattr(data, what)) is not None}


def _label_columns(data: ParquetData, manifest: Manifest | None) -> tuple[str, ...]:
    if data.label is not None:
        return (data.label,) if isinstance(data.label, str) else tuple(data.label)
    return (manifest.label,) if manifest is not None and manifest.label is not None else ()


def _refuse_unlabelled(data: ParquetData, manifest: Manifest | None, split: str | None) -> None:
    """Refuse a split of held-out documents that were prepared without labels."""
    if manifest is None or split is None or manifest.label is None or data.label not in (None, manifest.label):
        return
    if manifest.splits[split].get("classes") is None and manifest.splits[split].get("targets") is None:
        raise DataError(
            f"the split {split!r} was prepared without labels",
            file=manifest.root,
            column=manifest.label,
            hint="predict its labels, or prepare it again with labels",
        )


def _check_named(infos: Sequence[FileInfo], named: Mapping[str, Sequence[str]]) -> None:
    """Refuse columns that no file has; `named` holds the names of each role."""
    kinds = _kinds(infos)
    for role, names in named.items():
        for name in names:
            if name not in kinds:
                raise absent_column(name, kinds, infos[0].ref.path, role)


def _kinds(infos: Sequence[FileInfo]) -> dict[str, str]:
    """The columns of the first file, each with the kind that holds all files' values; drift is refused elsewhere."""
    kinds, types = dict(infos[0].kinds), dict(infos[0].types)
    for info in infos[1:]:
        for name, kind in info.kinds.items():
            if kinds.get(name, kind) != kind and (joint := joint_type(types[name], info.types[name])) is not None:
                kinds[name], types[name] = column_kind(joint), joint
    return kinds


def _layout(
    data: ParquetData,
    infos: Sequence[FileInfo],
    manifest: Manifest | None,
    label: tuple[str, ...],
    n_features: int | None,
) -> Layout:
    """Which of the three layouts the feature columns have."""
    kinds = _kinds(infos) if manifest is None else {**_kinds(infos), **manifest.schema}
    first = infos[0].ref.path
    index = frozenset(name for info in infos for name in info.index)
    columns = _feature_columns(data, kinds, manifest, label, index)
    for name in columns:
        if name not in kinds:
            raise absent_column(name, kinds, first, "feature")
    found = [kinds[name] for name in columns]
    given = n_features if n_features is not None else data.n_features
    if given is not None and given < 1:
        raise UsageError(f"n_features={given}", hint="give a positive number, or leave it out")
    if len(columns) == 2 and all(kind.startswith("list<") for kind in found):
        if found[0] != "list<int>":
            raise DataError(f"{found[0]}, expected a list of integer indices", file=first, column=columns[0])
        value = found[1][5:-1]
        if value not in NUMBERS:
            raise DataError(f"{found[1]}, expected a list of numbers", file=first, column=columns[1])
        known = manifest.features["n_features"] if manifest is not None else -1
        return Layout("lists", columns, known if given is None else given, _value_type([value]))
    if len(columns) == 1 and found[0].startswith("fixed["):
        width, value = found[0][6:-1].split("]<", 1)
        if value not in NUMBERS:
            raise DataError(f"{found[0]}, expected lists of numbers", file=first, column=columns[0])
        _check_width(given, int(width))
        return Layout("fixed", columns, int(width), _value_type([value]))
    for name, kind in zip(columns, found, strict=True):
        if kind not in NUMBERS:
            raise DataError(
                f"type {kind}, expected numbers",
                file=next((info.ref.path for info in infos if info.kinds.get(name) == kind), first),
                column=name,
                hint=_HOW_TEXT_IS_READ
                if kind == "str"
                else "name numeric columns, one fixed-size list column, or two list columns (indices, values)",
            )
    _check_width(given, len(columns))
    return Layout("columns", columns, len(columns), _value_type(found))


def _check_width(given: int | None, found: int) -> None:
    if given is not None and given != found:
        raise DataError(f"the files have {found} features, expected {given}")


def _feature_columns(
    data: ParquetData,
    kinds: dict[str, str],
    manifest: Manifest | None,
    label: tuple[str, ...],
    index: frozenset[str] = frozenset(),
) -> tuple[str, ...]:
    if isinstance(data.features, str):
        return (data.features,)
    if data.features is not None:
        columns = tuple(data.features)
    elif manifest is not None:
        return (manifest.features["indices"], manifest.features["values"])
    else:
        given = [name for name in kinds if name not in (*label, data.weight, data.groups)]
        columns = tuple(name for name in given if name not in index)
        rows = sparse_columns({name: kinds[name] for name in columns})
        if rows is not None:
            unused = [repr(name) for name in columns if name not in rows]
            if unused:
                warn_user(f"columns {', '.join(unused)} beside the sparse rows of {' and '.join(rows)} are not used")
            columns = rows
        else:
            say_index([name for name in given if name in index])
    if not columns:
        raise UsageError("no feature columns", hint="name them: ParquetData(path, features=[...])")
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise UsageError(f"features names {twice[0]!r} twice", hint="name every column once")
    overlap = sorted(set(columns) & {*label, data.weight, data.groups})
    if overlap:
        also = "label, the weight or the groups"
        raise UsageError(f"{overlap[0]!r} is a feature and also the {also}", hint="take it out of one")
    return columns


def sparse_columns(kinds: Mapping[str, str]) -> tuple[str, str] | None:
    """Of columns and kinds the two of sparse rows, if they have the names and kinds that ``dboost prepare`` gives."""
    known = kinds.get("indices") == "list<int>" and kinds.get("values") in ("list<float32>", "list<float64>")
    return ("indices", "values") if known else None


def _value_type(kinds: Sequence[str]) -> np.dtype[Any]:
    return np.dtype(np.float32 if kinds and all(kind == "float32" for kind in kinds) else np.float64)


def _missing(name: str, info: FileInfo) -> DataError:
    alike = [other for other in info.kinds if other.lower() == name.lower()]
    hint = f"found {alike[0]!r}: rename it" if alike else "write the file again with this column, or leave it out"
    return DataError("the column is missing", file=info.ref.path, column=name, hint=hint)


def _check_drift(infos: Sequence[FileInfo], needed: Sequence[str], manifest: Manifest | None) -> None:
    """Compare every footer with the reference by name; refuse what is missing or of another kind."""
    reference = _kinds(infos)
    if manifest is not None:
        reference = {**reference, **{name: manifest.schema[name] for name in needed if name in manifest.schema}}
    base = infos[0] if manifest is None else None
    extra: dict[str, str] = {}
    for info in infos:
        for name in needed:
            kind = info.kinds.get(name)
            if kind is None:
                raise _missing(name, info)
            if kind == reference[name] and kind != "null":
                continue
            if kind == "null" and sum(info.rows) == 0:
                continue
            if kind != "null" and fits(info.types[name], reference[name]):
                continue
            if kind == "null":
                raise DataError(
                    "the column holds only nulls", file=info.ref.path, column=name, hint="impute or drop these rows"
                )
            source = "the manifest says" if base is None else f"{base.ref.name} has"
            raise DataError(
                f"type {kind}, {source} {reference[name]}",
                file=info.ref.path,
                column=name,
                hint="write all files with one schema",
            )
        for name in info.kinds:
            if name not in reference:
                extra.setdefault(name, info.ref.name)
    if extra:
        name, file = next(iter(extra.items()))
        more = "" if len(extra) == 1 else f" (and {len(extra) - 1} more columns)"
        warn_user(f"column {name!r}{more} of {file} is not in the first file and is not used")


def _check_manifest_files(infos: Sequence[FileInfo], manifest: Manifest, split: str) -> None:
    """The files of a split are those the manifest lists, byte for byte as far as size and footer tell."""
    for info, entry in zip(infos, manifest.splits[split]["files"], strict=True):
        if (info.ref.size, info.ref.footer) != (entry["size"], entry["footer"]):
            raise DataError(
                f"the file is not the one of the manifest ({entry['size']} bytes then, {info.ref.size} now)",
                file=info.ref.path,
                hint="prepare the data again",
            )


class _Group(NamedTuple):
    """A row group of a file: its number, its rows, and the values that its footer tells."""

    info: FileInfo
    number: int
    rows: int
    stored: int


def _cut(
    infos: Sequence[FileInfo],
    layout: Layout,
    label: tuple[str, ...],
    data: ParquetData | None,
    manifest: str | None,
    outputs: int | None = None,
) -> list[ParquetBlock]:
    """Join row groups into blocks, which begin at multiples of ``rows_per_block`` where row groups do.

    `data`: names the columns of weights and groups.
    `outputs`: columns of W; where they are known, row groups of more rows than a block are cut.
    """
    found = [
        _Group(info, i, n, info.leaves[i][layout.columns[0]] if layout.kind == "lists" else n * layout.n_features)
        for info in infos
        for i, n in enumerate(info.rows)
        if n
    ]
    n_rows = sum(group.rows for group in found)
    cost = n_rows + sum(group.stored for group in found)
    size = rows_per_block(n_rows, cost, layout.n_features, outputs or 1)
    size = max(size, GROUP_ROWS) if outputs is None else size
    # no block is to be far larger than others because its rows are
    most = _UNEVEN * size * cost / max(n_rows, 1)

    def block(held: list[_Group], part: tuple[int, int] | None = None) -> ParquetBlock:
        first, last = held[0], held[-1]
        key = f"{first.info.ref.name}#{first.number}..{last.info.ref.name}#{last.number}"
        rows, stored = sum(group.rows for group in held), sum(group.stored for group in held)
        if part is not None:
            key = f"{key}[{part[0]}:{part[1]}]"
            stored = -(-stored * (part[1] - part[0]) // rows)
            rows = part[1] - part[0]
        return ParquetBlock(
            spans=tuple(
                (info.ref, tuple(group.number for group in ours))
                for info, ours in groupby(held, key=attrgetter("info"))
            ),
            layout=layout,
            label=label,
            weight=None if data is None else data.weight,
            group=None if data is None else data.groups,
            key=key,
            n_rows=rows,
            rows=rows,
            stored=stored,
            nbytes_estimate=8 * (max(layout.n_features, 0) + 1)
            + stored * (4 + layout.dtype.itemsize)
            + rows * (12 if len(label) < 2 else 8 + len(label)),
            manifest=manifest,
            part=part,
        )

    blocks: list[ParquetBlock] = []
    held: list[_Group] = []
    start = held_cost = window = 0
    for group in found:
        cut = size < min(group.rows, GROUP_ROWS) and group.rows <= 2 * GROUP_ROWS
        if held and (cut or start // size != window or held_cost + group.rows + group.stored > most):
            blocks.append(block(held))
            held, held_cost = [], 0
        if cut:
            blocks += [block([group], (a, min(a + size, group.rows))) for a in range(0, group.rows, size)]
        else:
            held.append(group)
            held_cost, window = held_cost + group.rows + group.stored, start // size
        start += group.rows
    return [*blocks, block(held)] if held else blocks


def refuse_giants(blocks: Sequence[ParquetBlock], budget: int) -> None:
    """A block that cannot be held once cannot be read at all: refuse before a worker dies of it."""
    for block in blocks:
        if block.nbytes_estimate > budget:
            ref, groups = block.spans[0]
            size, limit = block.nbytes_estimate // 2**20, budget // 2**20
            raise DataError(
                f"the row group decodes to about {size} MiB, the memory budget is {limit} MiB",
                file=ref.path,
                row_group=groups[0],
                hint="write the file again with smaller row groups",
            )
