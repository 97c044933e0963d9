"""Tables of numbers in CSV and JSON lines, brought into Parquet before they are read as features.

Covers: which data needs it, and the copies, which keep the names of their files. Does not cover: documents, which are
copied where they are prepared or labelled (``dboost.data.sources``).
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dboost.data.manifest import MANIFEST
from dboost.data.meaning import is_text
from dboost.data.prepared.documents import document_files
from dboost.data.sources import copy_tables
from dboost.files.storage import sha256_json, write_file
from dboost.files.store_folders import current
from dboost.files.stores import any_path

from .config import DataSettings, S, dialect_of
from .runs.fingerprints import of_input

# What the names of copies end with, after those of their files.
ENDING = ".parquet"
# In the folder of the copies: what they were made of. A name that begins so is none of data.
_OF = "_of"


def is_text_table(settings: DataSettings) -> bool:
    """Whether the data is in files of text; the keys that say how text is written are refused for other data."""
    if settings.data is None:
        return False
    path = current(any_path(str(settings.data), "data"))
    files = [] if (path / MANIFEST).is_file() else [file for file, _ in document_files(path)]
    dialect_of(settings).check_used(files)
    return any(map(is_text, files))


def as_parquet(settings: S, folder: Path, keep: Sequence[str] = ()) -> S:
    """The settings with the data as Parquet: as it is, or copied into `folder`, unless the same copies stand there.

    `keep`: columns that are read beside features, labels and weights.
    """
    if not is_text_table(settings):
        return settings
    label, dialect = tuple(settings.label or ()), dialect_of(settings)
    columns = None if settings.features is None else (*settings.features, *filter(None, [settings.weight]), *keep)
    mine = sha256_json([of_input(str(settings.data)), label, columns, dialect.separator, dialect.encoding])
    of = folder / _OF
    if not of.is_file() or of.read_text(encoding="utf-8") != mine:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        copy_tables(any_path(str(settings.data), "data"), folder, ENDING, label, columns, dialect)
        write_file(of, mine.encode())
    return replace(settings, data=str(folder), separator=None, encoding=None)


@contextmanager
def for_a_while(settings: S, client: Any = None) -> Iterator[S]:
    """As ``as_parquet``, with copies that are gone afterwards."""
    with staging_for(settings, client) as folder:
        yield as_parquet(settings, folder / "tables")


@contextmanager
def staging_for(settings: DataSettings, client: Any) -> Iterator[Path]:
    """A folder for copies of the data; where a cluster works it is beside the data, which all workers see."""
    beside = None if client is None else Path(str(any_path(str(settings.data), "data").absolute())).parent
    with tempfile.TemporaryDirectory(prefix=".dboost-", dir=beside) as folder:
        yield Path(folder)
