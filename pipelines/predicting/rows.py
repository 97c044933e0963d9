"""Where the rows of a prediction come from: features as they are, or raw documents and the transform of the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from dboost.data.manifest import MANIFEST
from dboost.data.meaning import is_text
from dboost.data.parquet.block import at
from dboost.data.parquet.plan import blocks_of
from dboost.data.parquet.read import (
    as_data_errors,
    check_unchanged,
    first_of,
    inspect_file,
    open_file,
    read_group,
    with_folders,
)
from dboost.data.prepared.chunk import TextChunk, TextColumns, read_span, texts_of
from dboost.data.prepared.documents import Wanted, document_files
from dboost.data.prepared.prepare import check_columns, cut_chunks
from dboost.data.prepared.text import TextRule
from dboost.data.sources import in_own_names, open_sources
from dboost.errors import DataError, UsageError
from dboost.estimators.features import Features
from dboost.estimators.text_features import DocumentFeatures, TextFeatures
from dboost.files.store_folders import current
from dboost.files.stores import any_path, is_store
from dboost.model.fitted import Model

from ..config import DataSettings, dialect_of
from ..inputs import input_positions, open_data

Columns = NDArray[np.int64]


@dataclass(frozen=True)
class Read:
    """What a prediction reads."""

    pieces: tuple[Any, ...]  # in the order of the rows
    columns: int  # columns that are read, and that there are in the first file
    of: int
    bytes: int  # of the files, compressed, in the columns that are read


@dataclass(frozen=True)
class PreparedRows:
    """A block of features."""

    block: Any
    at: Columns  # where the columns that the model reads are among those of the block
    types: Mapping[str, Any] = field(default_factory=dict)  # of the columns that are carried through, over all files
    ending: str = ""  # what the names of the files end with, where they are copies of those of the user

    def scores(self, model: Model, transform: Any) -> NDArray[np.float64]:
        """Scores of its rows."""
        return model.scores_of_inputs(self._read(self.block.read(dense=model.plain)))

    def labelled(self, model: Model, transform: Any, labels: Any) -> tuple[Any, Any, Any]:
        """The columns of its rows that the model reads, their labels and their weights, from one reading."""
        found = self.block.read(label=True)
        return self._read(found), found.label_array(), found.weight_array()

    def _read(self, found: Any) -> Any:
        """The columns that the model reads."""
        rows = found.batch(self.block.layout.n_features, self.block.layout.names)
        return rows if np.array_equal(self.at, np.arange(rows.shape[1])) else rows[:, self.at]

    @property
    def file(self) -> str:
        """The first of its files."""
        path: str = self.block.spans[0][0].path
        return path

    def texts(self, rows: Sequence[int]) -> list[str]:
        """The texts of some rows; features have none."""
        return ["" for _ in rows]

    def kept(self, names: Sequence[str]) -> dict[str, Any]:
        """Columns of its rows, as they are in the files."""
        if not names:
            return {}
        schema = pa.schema([(name, self.types[name]) for name in names])
        tables = []
        for ref, groups in self.block.spans:
            with open_file(ref.path) as file, as_data_errors(ref.path):
                tables += [read_group(file, ref, group, names).cast(schema) for group in groups]
        table = pa.concat_tables(tables)
        return {name: table.column(name) for name in names}

    def positions(self) -> tuple[pa.Array, pa.Array]:
        """File name and row within the file of every row."""
        return positions(((ref, group, 0, None) for ref, groups in self.block.spans for group in groups), self.ending)


@dataclass(frozen=True)
class RawRows:
    """Consecutive raw documents, or rows of a raw table; `origin` has the file that the user gave for a copy of one."""

    chunk: TextChunk
    how: TextColumns
    columns: tuple[str, ...] = ()  # Where the transform reads a table: its columns. Else it reads the texts of `how`.
    origin: Mapping[str, str] = field(default_factory=dict)

    def scores(self, model: Model, transform: Any) -> NDArray[np.float64]:
        """Scores of its rows, which are read, transformed and forgotten span by span."""
        return np.vstack([model.decision_function(rows) for rows in self._transformed(transform)])

    def labelled(self, model: Model, transform: Any, labels: Any) -> tuple[Any, Any, Any]:
        """The columns of its rows that the model reads, their labels and their weights."""
        rows = [part[:, model.inputs] for part in self._transformed(transform)]
        named = list(self.kept(labels.columns).values())
        found = named[0] if len(named) == 1 else np.column_stack([np.asarray(column) for column in named])
        weight = None if labels.weight is None else self.kept((labels.weight,))[labels.weight]
        return sparse.vstack(rows, format="csr"), found, weight

    def texts(self, rows: Sequence[int]) -> list[str]:
        """The texts of some rows; of a table those of its text columns, one after another."""
        if not self.how.text or not rows:
            return ["" for _ in rows]
        if self.columns:
            columns = [column.take(list(rows)).to_pylist() for column in self.kept(self.how.text).values()]
            return ["\n".join(str(text) for text in texts if text is not None) for texts in zip(*columns, strict=True)]
        found = pa.chunked_array([chunk for _, read in self._read() for chunk in read.chunks], pa.large_string())
        return [str(text) for text in found.take(list(rows)).to_pylist()]

    def row(self, number: int, transform: Any) -> tuple[Any, Any] | None:
        """What the transform is given of one row, and its features; None where there are fewer rows."""
        for ref, group, start, stop in self.chunk.spans:
            if number < stop - start:
                alone = replace(self.chunk, spans=((ref, group, start + number, start + number + 1),))
                one = replace(self, chunk=alone)
                return next(one._read())[1], next(one._transformed(transform))
            number -= stop - start
        return None

    def _transformed(self, transform: Any) -> Iterator[Any]:
        """The features of its rows, span by span; an error names the file and the row group."""
        for (ref, group, _, _), read in self._read():
            with in_own_names(self.origin), at(ref.path, group, ""):
                found = transform.transform(read)
            yield found

    def _read(self) -> Iterator[tuple[Any, Any]]:
        """Each span with what the transform is given of it: texts, or the columns of a table."""
        with in_own_names(self.origin):
            for span in self.chunk.spans:
                check_unchanged(span[0])
                table = read_span(span, list(self.columns or self.how.text), self.how.types)
                yield span, table if self.columns else texts_of(table, self.how.text, span[0].path, span[1])

    @property
    def file(self) -> str:
        """The first of its files, as the user named it."""
        path = self.chunk.spans[0][0].path
        return self.origin.get(path, path)

    def kept(self, names: Sequence[str]) -> dict[str, Any]:
        """Columns of its rows."""
        if not names:
            return {}
        with in_own_names(self.origin):
            table = pa.concat_tables([read_span(span, list(names), self.how.types) for span in self.chunk.spans])
        return {name: table.column(name) for name in names}

    def positions(self) -> tuple[pa.Array, pa.Array]:
        """File name and row within the file of every document."""
        return positions(self.chunk.spans)


@dataclass(frozen=True)
class Reads:
    """The columns that the transform of a model reads."""

    text: tuple[str, ...] = ()  # Those that are texts. A transform of texts alone is given them joined.
    columns: tuple[str, ...] = ()  # the others
    table: bool = False  # whether the transform is given all of them as a table
    tags: tuple[str, ...] = ()  # the columns of tags in one text

    @property
    def given(self) -> tuple[str, ...]:
        """The columns of the table that the transform is given; none where it is given texts."""
        return (*self.text, *self.columns) if self.table else ()


def reads_of(transform: Any, text: Sequence[str] | None = None) -> Reads | None:
    """What a transform reads; None where there is none.

    `text`: the columns of the text; by default those that it was trained on, else ``text``, as what Python fits on a
    list of documents knows no column.
    """
    if transform is None:
        return None
    if isinstance(transform, DocumentFeatures):
        return Reads(text=tuple(text or transform.text))
    if isinstance(transform, TextFeatures):
        return Reads(text=tuple(text or (transform.column or "text",)))
    if isinstance(transform, Features):
        others = tuple(column.name for column in transform.columns_)
        tags = tuple(column.name for column in transform.columns_ if column.told.separator is not None)
        return Reads(text=tuple(transform.texts_), columns=others, table=True, tags=tags)
    names = getattr(transform, "feature_names_in_", None)
    if names is None:
        raise UsageError(
            "the model reads a table whose columns had no names, so none of a file can be theirs",
            hint="fit it on a table with names, as pandas has, or call dboost.load_pipeline(folder).predict in Python",
        )
    return Reads(columns=tuple(map(str, names)), table=True)


def how_of(transform: Any, reads: Reads) -> TextColumns:
    """How the texts are cut into terms that a transform reads."""
    rule, hashing = getattr(transform, "rule", TextRule.of("words")), getattr(transform, "hashing", None)
    return TextColumns(reads.text, None, (), None, rule, hashing)


def are_raw(settings: DataSettings, transform: Any) -> bool:
    """Whether the data is what the transform of a model reads: documents, and no prepared folder or features.

    Parquet is raw where it has the columns that are read, or no columns of features either.
    """
    if settings.features is not None or settings.data is None:
        return False
    # settings that know no raw documents have no such key
    reads = reads_of(transform, getattr(settings, "text", None))
    if reads is None:
        return False
    path = current(any_path(str(settings.data), "data"))
    if (path / MANIFEST).is_file():
        return False
    files = document_files(path)
    if any(is_text(file) for file, _ in files):
        return True
    kinds, needed = first_of(files).kinds, {*reads.text, *reads.columns}
    return needed <= set(kinds) or not any(kind.startswith(("list<", "fixed[")) for kind in kinds.values())


def prepared_rows(settings: DataSettings, model: Model, keep: Sequence[str], ending: str = "") -> Read:
    """Features, in blocks; `ending` as in ``PreparedRows``."""
    data = open_data(settings, "test", model)
    blocks = blocks_of(data)
    places = feature_positions(model, data, blocks)
    if not blocks:
        return Read((), 0, 0, 0)
    files = data.files()
    infos = with_folders([inspect_file(file) for file in files]) if keep else [first_of(files)]
    types = check_columns([(info, False) for info in infos], TextColumns((), None, tuple(keep), None, TextRule(), None))
    pieces = tuple(PreparedRows(block, places, types, ending) for block in blocks)
    names = {*blocks[0].layout.columns, *keep}
    spans = [(ref, group) for block in blocks for ref, groups in block.spans for group in groups]
    return Read(pieces, len(names), len(infos[0].kinds), _bytes(spans, names))


def raw_rows(
    settings: DataSettings,
    transform: Any,
    keep: Sequence[str],
    staging: Path,
    engine: Any,
    labels: Sequence[str] = (),
    tags: Sequence[str] = (),
) -> Read:
    """Raw documents, in pieces of some megabytes of text; those in CSV and JSON lines are copied into `staging`.

    `labels`: those columns of `keep` that are labels, whose numbers are read as what is learned is.
    `tags`: those that hold tags in one text, of which an empty one has none.
    """
    reads = reads_of(transform, getattr(settings, "text", None))
    assert reads is not None, "callers ask before"
    more, tags = tuple(dict.fromkeys([*reads.columns, *keep])), (*reads.tags, *tags)
    how = replace(how_of(transform, reads), keep=more)
    kept = tuple(name for name in more if name not in (*reads.text, *tags, *labels))
    where = any_path(str(settings.data), "data")
    learned = tuple(name for name in labels if name not in reads.text)
    wanted = Wanted(reads.text, learned, kept, dialect=dialect_of(settings), tags=tags)
    with _telling_text(reads, transform):
        sources = open_sources([("new", where)], wanted, None, "new", staging, engine)
    with in_own_names(sources.origin), _telling_text(reads, transform):
        # a file that was named by itself is called as it is in its folder
        whole = [(path, name, is_store(name) or Path(name).is_absolute()) for _, (path, name) in sources.files]
        files = [(path, any_path(name).name if long else name) for path, name, long in whole]
        found = with_folders(engine.map(inspect_file, files, name="read-footers"))
        how = replace(how, types=check_columns([(info, True) for info in found], how))
        chunks = cut_chunks([("new", info) for info in found], {"new"}, how)
    names = set(how.wanted(labelled=False))
    spans = [(info.ref, group) for info in found for group in range(len(info.rows))]
    # the copy of a file in another format holds no other columns
    there = len(found[0].kinds) if found else 0
    # a piece has the origins of its own files only
    own = ({span[0].path for span in chunk.spans} & sources.origin.keys() for chunk in chunks)
    pieces = tuple(
        RawRows(chunk, how, reads.given, {path: sources.origin[path] for path in paths})
        for chunk, paths in zip(chunks, own)
    )
    return Read(pieces, len(names), there, _bytes(spans, names))


@contextmanager
def _telling_text(reads: Reads, transform: Any) -> Iterator[None]:
    """Say how the column of text is named, where a model that was fitted on texts alone does not know it."""
    try:
        yield
    except DataError as error:
        if not isinstance(transform, TextFeatures) or error.column not in reads.text:
            raise
        hint = f"{error.hint}; text= names the column of the documents" if error.hint else "name another with text="
        raise DataError(error.what, file=error.file, column=error.column, hint=hint) from None


def feature_positions(model: Model, data: Any, blocks: Sequence[Any]) -> Columns:
    """Where the columns that the model reads are in a block; a prepared folder of another vocabulary is refused."""
    manifest, layout = data.resolve()[1], blocks[0].layout if blocks else None
    names = layout.columns if layout is not None and layout.kind == "columns" else None
    if manifest is not None:
        names = manifest.feature_names()
    return input_positions(model, names, model.n_features if layout is None else layout.n_features, data)


def positions(spans: Iterable[tuple[Any, int, int, int | None]], ending: str = "") -> tuple[pa.Array, pa.Array]:
    """File name, less `ending`, and row within the file of every row of spans: file, row group, first row and end."""
    files: list[str] = []
    rows: list[np.ndarray[Any, np.dtype[np.int64]]] = []
    sizes: dict[str, list[int]] = {}
    for ref, group, first, end in spans:
        if ref.path not in sizes:
            footer = open_file(ref.path).metadata
            sizes[ref.path] = [footer.row_group(each).num_rows for each in range(footer.num_row_groups)]
        before, count = sum(sizes[ref.path][:group]), sizes[ref.path][group]
        rows.append(np.arange(before + first, before + (count if end is None else end), dtype=np.int64))
        files.append(ref.name.removesuffix(ending))
    span = np.repeat(np.arange(len(rows)), [len(part) for part in rows])
    every = np.concatenate(rows) if rows else np.zeros(0, np.int64)
    return pa.array(files, pa.string()).take(pa.array(span)), pa.array(every)


def _bytes(spans: Sequence[tuple[Any, int]], names: set[str]) -> int:
    """Compressed bytes of some columns in some row groups."""
    total, footers = 0, {}
    for ref, group in spans:
        if ref.path not in footers:
            footers[ref.path] = open_file(ref.path).metadata
        row_group = footers[ref.path].row_group(group)
        columns = (row_group.column(j) for j in range(row_group.num_columns))
        total += sum(one.total_compressed_size for one in columns if one.path_in_schema.split(".")[0] in names)
    return total


def check_transform(model: Model, transform: Any, path: str) -> None:
    """Refuse a transform that makes other features than those of the model."""
    if len(transform.get_feature_names_out()) != model.n_features:
        raise DataError("the model has another number of features than its transform", file=path)
