"""``ParquetData``: a training set in Parquet, named by path and columns.

Covers: the public description, and which files it means.
Does not cover: decoding (``parquet_read``), checks over all files and blocks (``parquet_plan``). Nothing is read
before the first use, and pyarrow is not imported before that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from dboost.data.manifest import Manifest, find_manifest
from dboost.data.meaning import PARQUET, files_below
from dboost.data.patterns import delta_files, files_of_each, matches, refuse_absent
from dboost.errors import UsageError
from dboost.files.store_folders import current
from dboost.files.stores import any_path
from dboost.redact import redact_urls


@dataclass(eq=False)
class Opened:
    """What a description means, found once."""

    files: list[tuple[str, str]]  # path and name within the data set, in the order of the rows
    manifest: Manifest | None
    split: str | None
    footers: tuple[Any, ...] | None = None  # what they say (FileInfo), once they were read


class ParquetData:
    """Rows in Parquet files.

    Parameters
    ----------
    path : str, path or list of them
        A file, a folder (all Parquet files below it, names starting with ``_`` or ``.`` left out), a pattern, or a list
        of these. The order is that of the sorted names, or of the list. Names of folders such as ``year=2020`` are
        columns. Paths are local, from the home folder where they begin with ``~``, or ``file:`` URLs; all workers must
        see them.
    features : str, sequence of str, or None
        - names of numeric columns: each column is a feature;
        - the name of one fixed-size list column: each position is a feature;
        - the names of two list columns, indices and values: sparse rows, read without copying.

        None takes what the manifest says, else a list of integers ``indices`` with a list of floats ``values``, else
        every column that is none of `label`, `weight` and `groups` nor the index of a table that pandas or Dask wrote.
    label : str or sequence of str, optional
        The label column; several columns, or one list column, for several tasks or
        targets. None takes the manifest's.
    weight : str, optional
        The column of sample weights.
    groups : str, optional
        A column, such as the file, the author or the thread of a document, whose equal values tell which rows belong
        together: where rows are held out, they are by whole groups. ``"file"``, where no column has this name, is the
        file of each row.
    n_features : int, optional
        Number of columns of sparse rows; None takes the manifest's, else one more than the largest index.
    split : str, optional
        Which split of a prepared folder; needed where it has several.

    Notes
    -----
    A manifest (``_dboost.json``, see ``dboost prepare``) beside the files is used where it exists: it adds feature
    names, and files that are missing, new or changed since it was written are refused.

    Examples
    --------
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> import dboost
    >>> table = pa.table({"age": [1.0, 2.0, 3.0, 4.0], "kind": ["a", "a", "b", "b"]})
    >>> pq.write_table(table, "people.parquet", write_page_checksum=True)
    >>> data = ParquetData("people.parquet", features=["age"], label="kind")
    >>> dboost.BoostedClassifier(alpha=0.1).fit(data).classes_.tolist()
    ['a', 'b']
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        features: str | Sequence[str] | None = None,
        label: str | Sequence[str] | None = None,
        weight: str | None = None,
        groups: str | None = None,
        n_features: int | None = None,
        split: str | None = None,
    ) -> None:
        self.path = path
        self.features = features
        self.label = label
        self.weight = weight
        self.groups = groups
        self.n_features = n_features
        self.split = split
        self._version: int | None = None
        self._one: Any = None
        self._opened: Opened | None = None

    def __repr__(self) -> str:
        names = ("features", "label", "weight", "groups", "n_features", "split")
        given = [f"{name}={getattr(self, name)!r}" for name in names if getattr(self, name) is not None]
        # Whatever prints or records this description must not tell the user and the password of a URL.
        return f"ParquetData({', '.join([redact_urls(repr(self.path)), *given])})"

    def _repr_html_(self) -> str:
        # pyarrow is loaded here, since nothing else of this description needs it.
        from dboost.data.parquet.summary import html

        return html(self)

    def of_one_label(self, label: Any) -> ParquetData:
        """The same rows, labelled True where they have this label and False elsewhere."""
        found = copy(self)
        found._one = label
        return found

    @property
    def one_label(self) -> Any:
        """The label that `of_one_label` was given; None where the labels are those of the data."""
        return self._one

    def opened(self) -> ParquetData:
        """The same rows, whose files, manifest and footers are read once; files that change afterwards are refused."""
        if self._opened is not None:
            return self
        found = copy(self)
        found._opened = Opened(*self.resolve())
        return found

    def footers(self, read: Callable[[list[tuple[str, str]]], Sequence[Any]]) -> list[Any]:
        """What the footers of the files say, which a function reads unless they were read after ``opened``."""
        if self._opened is None:
            return list(read(self.files()))
        if self._opened.footers is None:
            self._opened.footers = tuple(read(self._opened.files))
        return list(self._opened.footers)

    def files(self) -> list[tuple[str, str]]:
        """(path, name within the data set) of every file, in the order of the rows."""
        return self.resolve()[0]

    def resolve(self) -> tuple[list[tuple[str, str]], Manifest | None, str | None]:
        """The files, the manifest that speaks for them, and the split when the whole of one is meant."""
        if self._opened is not None:
            return list(self._opened.files), self._opened.manifest, self._opened.split
        if not isinstance(self.path, str | os.PathLike):
            paths = [any_path(path) for path in self.path]
            if not paths:
                raise UsageError("path is an empty list", hint="name at least one Parquet file")
            if self.split is not None:
                raise UsageError("split was given with a list of files", hint="give the prepared folder instead")
            return files_of_each(paths, [PARQUET]), None, None
        # Workers may stand in another folder than this process: they are told the whole path.
        path = current(any_path(self.path).absolute())
        several = matches(path)
        if several is None and (table := delta_files(path, self._version)) is not None:
            # the version that was read first is the one that is read until the end
            several, self._version = table
        found = None
        if several is None:
            refuse_absent(path)
            found = find_manifest(str(path))
            if path.is_file():
                if self.split is not None:
                    raise UsageError("split was given with a single file", hint="give the prepared folder instead")
                return [(str(path), path.name)], None if found is None else found[0], None
        if found is None:
            if self.split is not None:
                raise UsageError(f"split={self.split!r}, but there is no manifest", file=str(path))
            return files_below(path, [PARQUET]) if several is None else several, None, None
        manifest, split = found
        split = split if self.split is None else self.split
        if split is None and len(manifest.splits) == 1:
            split = next(iter(manifest.splits))
        if split is None or split not in manifest.splits:
            what = "no split was chosen" if split is None else f"split={split!r} does not exist"
            raise UsageError(f"{what} in {path}", hint=f"use split= one of {', '.join(sorted(manifest.splits))}")
        names = [entry["name"] for entry in manifest.splits[split]["files"]]
        folder = any_path(manifest.root) / split
        return [(str(folder / name), name) for name in names], manifest, split

    def named(self) -> dict[str, Any]:
        """The columns of label, weight and groups, where there are any: what is no feature."""
        label = self.label
        if label is None:
            manifest = self.resolve()[1]
            label = None if manifest is None else manifest.label
        found: dict[str, Any] = {} if label is None else {"y": label if isinstance(label, str) else list(label)}
        more = {"sample_weight": self.weight, "groups": self.groups}
        return found | {what: name for what, name in more.items() if name is not None}
