"""From settings to the data and the model of a run, refused here when they have no meaning."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, logsumexp

import dboost
from dboost.data import load_manifest
from dboost.data.absent_column import listed, nearest
from dboost.data.manifest import MANIFEST
from dboost.data.meaning import DIALECT, Dialect, folder_columns, is_text
from dboost.data.parquet.plan import sparse_columns
from dboost.data.parquet.read import NUMBERS, FileInfo, first_of
from dboost.data.prepared.documents import document_files, header_of
from dboost.data.sources import copy_tables, source_of_copy
from dboost.errors import DataError, DboostError, UsageError
from dboost.estimators.model_folders import find_model, is_one_vs_rest, is_pipeline, pipeline_parts
from dboost.files import storage
from dboost.files.storage import check_writable, sha256_json, write_file
from dboost.files.store_folders import current, local_copy
from dboost.files.stores import any_path
from dboost.hypotheses.columns import ColumnSet
from dboost.model import fitted
from dboost.model.fitted import Model
from dboost.model.tasks import leading

from .config import DataSettings, S, dialect_of, needed
from .runs.fingerprints import of_input

# Columns that are named in an error of one line.
MOST_NAMED = 8


def open_data(settings: DataSettings, preferred: str, model: Model | None = None, groups: str | None = None) -> Any:
    """The ``ParquetData`` that the settings name; nothing but the manifest is read.

    `preferred`: the split taken from a prepared folder when none is named.
    `model`: its number of features is the width of sparse rows. Where the features are columns, those that it reads are
    found by their names, and others (a label, an identifier) are left alone.
    `groups`: the column of rows that are held out together.
    """
    needed(settings, "data")
    path = current(any_path(str(settings.data), "data"))
    split = settings.split
    if split is None and (path / MANIFEST).is_file():
        splits = load_manifest(path).splits
        split = preferred if preferred in splits else next(iter(splits)) if len(splits) == 1 else None
        if split is None:
            raise UsageError(
                f"{path} has no split {preferred!r}", hint=f"use --split, one of {', '.join(sorted(splits))}"
            )
    data = dboost.ParquetData(
        path,
        features=one_or_all(settings.features),
        label=one_or_all(settings.label),
        weight=settings.weight,
        groups=groups,
        n_features=settings.n_features if model is None else model.n_features,
        split=split,
    )
    files, manifest, _ = data.resolve()
    if model is not None and manifest is None and settings.features is None:
        first = first_of(files)
        names = input_columns(model, first)
        if names is not None:
            data = dboost.ParquetData(path, features=names, label=data.label, weight=data.weight)
        elif (rows := sparse_columns(first.kinds)) is not None:
            # A label that nobody has named is no feature.
            data.features = rows
    return data.opened()


def input_columns(model: Model, first: FileInfo) -> list[str] | None:
    """Columns of a file that a model reads, by their names; None where its features are no columns of their own."""
    names, kinds = model.input_names, first.kinds
    if names is None:
        return None
    lacking = [name for name in names if name not in kinds]
    if len(lacking) == len(names) and any(kind.startswith(("list<", "fixed[")) for kind in kinds.values()):
        # Rows in lists have no names: the model's are those of the vocabulary that it was trained with.
        return None
    if lacking:
        near = nearest(lacking[0], kinds) if len(lacking) == 1 else ""
        raise DataError(
            f"{len(lacking)} of the {len(names)} columns that the model reads are not there: {abbreviated(lacking)}",
            file=first.ref.path,
            hint=f"{near}{listed(list(kinds))}",
        )
    # A model of no feature predicts the same for every row, and rows are counted by any column.
    return list(names) or [name for name, kind in kinds.items() if kind in NUMBERS][:1] or None


def input_positions(model: Model, names: Sequence[str] | None, n_features: int, data: Any) -> NDArray[np.int64]:
    """Where the columns that a model reads are among those of the data, in the order of ``model.inputs``."""
    wanted, manifest = model.input_names, data.resolve()[1]
    if manifest is None and names is not None and wanted is not None and set(wanted) <= set(names):
        place = {name: at for at, name in enumerate(names)}
        return np.array([place[name] for name in wanted], dtype=np.int64)
    hint = "prepare it with the vocabulary of the training data"
    if n_features != model.n_features:
        what = f"the data has {n_features} features, the model was trained on {model.n_features}"
        raise DataError(what, file=str(data.path), hint=hint)
    if names is not None and model.feature_names is not None and tuple(names) != model.feature_names:
        what = "the features of the data have other names than those of the model"
        raise DataError(what, file=str(data.path), hint=hint)
    return model.inputs


def columns_of(data: str, dialect: Dialect) -> list[str]:
    """The columns of the first file of documents or features; those that its folders hold are among them."""
    path, name = document_files(data)[0]
    own = header_of(path, dialect) if is_text(path) else list(first_of([(path, name)]).kinds)
    return [*own, *(column for column in folder_columns(name) if column not in own)]


def abbreviated(names: Sequence[Any]) -> str:
    """The first of a few or many names, and how many more there are."""
    shown = ", ".join(map(repr, names[:MOST_NAMED]))
    return shown if len(names) <= MOST_NAMED else f"{shown} and {len(names) - MOST_NAMED} more"


def one_or_all(found: tuple[str, ...] | None) -> str | list[str] | None:
    """One name as a text, several as a list."""
    return None if found is None else found[0] if len(found) == 1 else list(found)


def read_model(path: str | None) -> Model:
    """A saved model, from any folder in which ``find_model`` finds one."""
    found = find_model(str(path))
    if not current(any_path(found, "model")).is_dir():
        raise DataError("there is no such model folder", file=str(path), hint="make one with `dboost train`")
    folder = os.fspath(local_copy(found))
    if is_pipeline(folder):
        folder = pipeline_parts(folder)[2]
    if is_one_vs_rest(folder):
        return read_one_for_each(folder)
    return fitted.read_model(folder)


def refuse_existing(out: str | None, marker: str, force: bool) -> None:
    """Refuse an output folder that exists or that cannot be written, before any work is done for it."""
    target = any_path(str(out), "out")
    storage.refuse_existing(str(out), marker, force)
    check_writable(target)


Float = NDArray[np.float64]


class OneForEach(Model):
    """The union of the columns of several classifiers, one score for each.

    Its scores are the logarithms of the shares of the single probabilities, so that the softmax of them, which is that
    of any model of several classes, are the probabilities of ``OneVsRestBoostedClassifier``.
    """

    def scores_of_inputs(self, X: Any) -> Float:
        """See ``Model``."""
        scores = super().scores_of_inputs(X)
        each: Float = log_expit(scores)
        return leading(scores, each - logsumexp(each, axis=1, keepdims=True))


def read_one_for_each(path: str) -> Model:
    """The models of a folder as one."""
    estimator = dboost.load_model(path)
    parts = [one.model_ for one in estimator.estimators_]
    if len(parts) == 1:
        return replace(parts[0], classes=estimator.classes_)
    if not all(part.plain and part.n_outputs == 1 for part in parts):
        raise UsageError(
            "models of one class each are judged together where they hold columns, one score each", file=path
        )
    active = np.unique(np.concatenate([part.active for part in parts]))
    W = np.zeros((len(active), len(parts)))
    for r, part in enumerate(parts):
        W[np.searchsorted(active, part.active), r] = part.W[:, 0]
    names = parts[0].feature_names
    words = None if names is None else tuple(names[j] for j in active.tolist())
    common = {item.name: getattr(parts[0], item.name) for item in fields(Model)}
    return OneForEach(
        **common
        | {
            "task": "multiclass",
            "loss": "multinomial",
            "hypotheses": ColumnSet(active, words),
            "W": W,
            "intercept": np.concatenate([part.intercept for part in parts]),
            "classes": estimator.classes_,
            "history": (),
            "stages": None,
        }
    )


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
    """The settings with the data as Parquet, copied into `folder` unless the same copies, with `keep`, stand there."""
    if not is_text_table(settings):
        return settings
    label, dialect = tuple(settings.label or ()), dialect_of(settings)
    columns = None if settings.features is None else (*settings.features, *filter(None, [settings.weight]), *keep)
    mine = sha256_json([of_input(str(settings.data)), label, columns, *vars(dialect).values()])
    of = folder / _OF
    if not of.is_file() or of.read_text(encoding="utf-8") != mine:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        copy_tables(any_path(str(settings.data), "data"), folder, ENDING, label, columns, dialect)
        write_file(of, mine.encode())
    return replace(settings, data=str(folder), **dict.fromkeys(DIALECT))


@contextmanager
def naming_sources(settings: DataSettings, folder: Path) -> Iterator[None]:
    """Have an error about a copy that ``as_parquet`` made in a folder name the file that the user gave."""
    try:
        yield
    except DboostError as error:
        copied = error.file is not None and Path(error.file).absolute().is_relative_to(folder.absolute())
        source = any_path(str(settings.data), "data")
        file = source_of_copy(source, folder, ENDING, str(error.file)) if copied else None
        if file is None:
            raise
        raise type(error)(error.what, file=file, column=error.column, hint=error.hint) from error


@contextmanager
def for_a_while(settings: S, client: Any = None) -> Iterator[S]:
    """As ``as_parquet``, with copies that are gone afterwards."""
    with staging_for(settings, client) as staging:
        folder = staging / "tables"
        with naming_sources(settings, folder):
            yield as_parquet(settings, folder)


@contextmanager
def staging_for(settings: DataSettings, client: Any) -> Iterator[Path]:
    """A folder for copies of the data; where a cluster works it is beside the data, which all workers see."""
    beside = None if client is None else Path(str(any_path(str(settings.data), "data").absolute())).parent
    with tempfile.TemporaryDirectory(prefix=".dboost-", dir=beside) as folder:
        yield Path(folder)
